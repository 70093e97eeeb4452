"""The constrained form at p = 1 over all widths of an interval, by column generation."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import HINGE, multiple_kernel_data
from formulations.lp_norm.primal import primal
from formulations.lp_norm.widths import largest_form
from kernelopt.extend import (
    Array,
    Ball,
    Method,
    as_float_array,
    as_list,
    parameters_of,
    positive,
    shown,
    whole,
)

FIRST_WIDTHS = 6  # in equal ratios, at the start
SHARE = 0.2  # of the tolerance: for a solve, and for the search of a width
SAME = 1e-6  # relative difference of widths that count as equal
USED = 1e-7  # share of the largest weight from which a width is chosen


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousWidth:
    """A kernel with chosen widths, and bounds of the optimum over all widths of the interval.

    Parameters
    ----------
    solution : Solution
        Of the problem with the widths that were generated. Its `lower` holds for these alone.
    widths, weights : arrays of shape (k,)
        Those with a positive weight, the widths ascending.
    lower, upper : float
        Certified bounds of the optimum over all widths in `bounds`.
    bounds : (float, float)
        The ends of the interval.
    generated : tuple of float
        All widths of the last problem, in the order of its kernels.
    rounds : int
        The number of problems that were solved.
    """

    solution: ko.Solution
    widths: Array
    weights: Array
    lower: float
    upper: float
    bounds: tuple[float, float]
    generated: tuple[float, ...]
    rounds: int

    @property
    def gap(self) -> float:
        """The gap relative to max(|lower|, |upper|)."""
        size = max(abs(self.lower), abs(self.upper))
        return (self.upper - self.lower) / size if size > 0 else 0.0

    def __repr__(self) -> str:
        return (
            f"<ContinuousWidth: {self.widths.size} widths in [{self.bounds[0]:g}, {self.bounds[1]:g}], "
            f"{self.lower:.9g} <= optimum <= {self.upper:.9g} (gap {self.gap:.1e})>"
        )


@parameters_of(primal)
def continuous_width(
    X: ArrayLike,
    y: ArrayLike | None,
    *,
    bounds: tuple[float, float],
    family: Any = ko.gaussian,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
    tol: float = 1e-3,
    max_rounds: int = 40,
    method: str | Method = "auto",
    time_limit: float | None = None,
) -> ContinuousWidth:
    r"""The best mixture of all widths in an interval: `primal` at p = 1 with infinitely many kernels.

    .. math::

        \min_{\theta}\ \operatorname{risk}\Big(\int K_\sigma\, d\theta(\sigma)\Big),
        \qquad \theta \ge 0,\quad \theta([\sigma_0, \sigma_1]) \le 1

    Dual: :math:`\max_\alpha\ \ell(\alpha) - \tfrac12 \max_\sigma \alpha'K_\sigma\alpha`.

    Statement: an optimal measure has finitely many widths. At any alpha of the domain, a bound of
    :math:`\alpha'K_\sigma\alpha` over the interval gives a lower bound of the optimum over all widths. The
    search for the largest form ends with such a bound, by a bound of its second derivative in log sigma.
    Widths at which the form is largest are added until the two bounds meet. For p > 1 the problem has no
    meaning: two equal widths would count as more than one.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    y : array of shape (n,)
        Labels or targets, as the loss takes them, or None for `one_class`.
    bounds : pair of floats, 0 < low < high
        The interval of the widths, in units of X.
    family : `ko.gaussian` or `ko.laplacian`, default gaussian
        The kernel as a function of its width.
    loss, bias
        As for `primal`.
    tol : float > 0, default 1e-3
        The relative gap over the whole interval at which the search ends.
    max_rounds : int > 0, default 40
        The largest number of problems.
    method : str or Method, default "auto"
        As for `kernelopt.solve`.
    time_limit : float > 0, optional
        Seconds of the whole call. The best widths so far are returned.

    Returns
    -------
    ContinuousWidth
        The upper bound holds for the kernels as they are evaluated in doubles, and the lower bound includes
        the rounding errors of the search.

    Warns
    -----
    ConvergenceWarning
        If the gap over the interval is above `tol`.

    References
    ----------
    .. [1] Gehler, Nowozin, Infinite kernel learning, MPI for Biological Cybernetics, technical report 178
       (2008).
    .. [2] Argyriou, Micchelli, Pontil, Learning convex combinations of continuously parameterized basic
       kernels, COLT 2005: finitely many kernels suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import lp_norm
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = lp_norm.continuous_width(X, np.sign(X[:, 0] * X[:, 1]), bounds=(0.1, 10.0))
    >>> found.gap <= 1e-3, bool(found.lower <= found.upper)
    (True, True)
    """
    low, high = interval(bounds)
    if family is not ko.gaussian and family is not ko.laplacian:
        raise ko.errors.ParameterError(
            f"family must be kernelopt.gaussian or kernelopt.laplacian, got {shown(family)}. Use a grid "
            "of widths for others."
        )
    tol, max_rounds = positive(tol, "tol"), whole(max_rounds, "max_rounds")
    end = np.inf if time_limit is None else time.perf_counter() + positive(time_limit, "time_limit")
    points = as_float_array(X, "X", ndim=2)
    widths = [float(w) for w in np.geomspace(low, high, FIRST_WIDTHS)]
    data = multiple_kernel_data(ko.Grams.from_kernels([family(low)], points), y, loss, bias)
    lower, upper, rounds = -np.inf, np.inf, 0
    while True:
        rounds += 1
        grams = ko.Grams.from_kernels([family(width) for width in widths], points)
        left = None if time_limit is None else max(end - time.perf_counter(), np.finfo(float).tiny)
        with warnings.catch_warnings():  # the gap over the interval is judged at the end
            warnings.simplefilter("ignore", ko.ConvergenceWarning)
            problem = primal(grams, data.y, p=1.0, loss=loss, bias=data.bias)
            solution = problem.solve(method, tol=SHARE * tol, time_limit=left)
        upper = min(upper, solution.upper)
        alpha = np.asarray(solution.certificate.alphas[0])
        slack = SHARE * tol * 2 * abs(upper)
        largest, peaks = largest_form(points[: data.n], alpha, family is ko.gaussian, low, high, slack)
        gain = data.loss.bounded_dual_value(alpha, data.y).below
        lower = max(lower, float((Ball(gain) - largest / 2).below))
        known = np.array(widths)
        new = [w for w in peaks if (np.abs(known / w - 1) > SAME).all()]
        met = upper - lower <= tol * max(abs(upper), abs(lower))
        if met or not new or rounds >= max_rounds or time.perf_counter() >= end:
            break
        widths += new
    weights = np.asarray(solution.weights)
    chosen = np.flatnonzero(weights > USED * weights.max(initial=0.0))
    order = chosen[np.argsort(known[chosen])]
    found = ContinuousWidth(
        solution, known[order], weights[order], lower, upper, (low, high), tuple(widths), rounds
    )
    if not met:
        warnings.warn(
            ko.ConvergenceWarning(
                f"the certified gap over all widths is {found.gap:.1e}, above tol = {tol:g}, after {rounds} "
                "rounds. Allow more rounds or time."
            ),
            stacklevel=2,
        )
    return found


def interval(bounds: Any) -> tuple[float, float]:
    """Return the ends of the interval of widths after checking them."""
    ends = [positive(end, "bounds") for end in as_list(bounds, "bounds", "a pair of widths, (low, high)")]
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ko.errors.ParameterError(
            f"bounds must be a pair of widths with low < high, got {shown(bounds)}. Pass for instance "
            "bounds=(0.1, 10)."
        )
    return ends[0], ends[1]
