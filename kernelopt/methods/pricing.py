r"""`price` and `screen`: what one more kernel can change of the optimum, and which kernels cannot.

With one more kernel K_0 the dual of l_p multiple kernel learning has the same domain, and its norm one more
entry: max_a l(a) - 1/2 |(s(a), s_0(a))|_q with s_0(a) = a'K_0 a. So the alpha of a solution, or any other,
bounds the new optimum from below. From above it is bounded by the value at any weights, here at the best ones
of (1 - e^p)^(1/p) w and e, where w are the weights of the solution. The value is convex in e, since the risk
is convex and decreasing in the weights and (1 - e^p)^(1/p) is concave.

References
----------
.. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011), Optimization Problem (D).
.. [2] Gehler, Nowozin, Infinite kernel learning, MPI for Biological Cybernetics, technical report 178 (2008):
   the pricing problem of column generation over kernels, p = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from kernelopt.certificates import certify
from kernelopt.errors import InputError, MethodError, ShapeError
from kernelopt.grams import Grams, join
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.functions import KernelFunction
from kernelopt.kernels import Kernel
from kernelopt.language import combine, lp_ball, risk
from kernelopt.learner import learn
from kernelopt.methods.gap_safe import machine_of, screened, zero_kernels
from kernelopt.methods.solution import Solution
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.norms import lp_length
from kernelopt.plain_tables import html_table
from kernelopt.structure import Structure
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.validation import Array, as_symmetric, shown

SEARCHED = 1e-3  # accuracy of the new weight: the value is flat near the best one
ACCURACY = 1e-8  # relative gap of a machine of the search
BALL = "ball"  # the label of the constraint of `lp_ball`


@dataclass(frozen=True, eq=False, repr=False)
class Price:
    """What one more kernel can change of the optimum of a minimisation.

    Attributes
    ----------
    kernel : str
        Its name.
    helps : bool or None
        True if the optimum is proved to decrease, False if it is proved not to change, None if neither is.
    at_least, at_most : float
        Certified bounds of the decrease.
    lower, upper : float
        Certified bounds of the new optimum.
    weight : float
        The weight of the new kernel at which `upper` is attained, zero if the search has found no better one.
        It is a weight in the units of the problem.
    """

    kernel: str
    helps: bool | None
    at_least: float
    at_most: float
    lower: float
    upper: float
    weight: float

    def __repr__(self) -> str:
        answer = {True: "helps", False: "does not help", None: "undecided"}[self.helps]
        return f"<Price of {self.kernel}: {answer}, {self.at_least:.6g} <= decrease <= {self.at_most:.6g}>"

    def _repr_html_(self) -> str:
        answer = {True: "yes, proved", False: "no, proved", None: "undecided"}[self.helps]
        rows = [
            ["helps", answer], ["decrease at least", f"{self.at_least:.6g}"],
            ["decrease at most", f"{self.at_most:.6g}"], ["new lower bound", f"{self.lower:.9g}"],
            ["new upper bound", f"{self.upper:.9g}"], ["weight", f"{self.weight:.4g}"],
        ]  # fmt: skip
        return html_table(rows, caption=f"Price of {self.kernel}")


def price(solution: Solution, kernel: KernelFunction | Grams | ArrayLike) -> Price:
    r"""Bound by how much the optimum of a solved problem decreases if a kernel is added.

    With :math:`s_m = \alpha'K_m\alpha` at the dual variables of the solution or of the search, and with
    :math:`1/p + 1/q = 1`, the new optimum v' is at least

    .. math:: \ell(\alpha) - \tfrac12 \|(s_1, \dots, s_M, s_0)\|_q,

    and at most the value at weights that a line search moves from the old kernels to the new one. For p = 1
    `screen` may prove that v' is the old optimum. All bounds include rounding errors.

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk and weights in an l_p ball or of a given trace.
    kernel : kernel function, Grams of one kernel, or array of shape (N, N)
        Positive semidefinite. A function needs a problem whose kernels are functions on points. Elsewhere
        pass the matrix, normalised as the others are.

    Returns
    -------
    Price
        The bounds of the new optimum, and whether the kernel helps.

    Raises
    ------
    InputError, ShapeError, NotPSDError
        If the kernel is none on the points of the problem.
    MethodError
        If the problem is another one.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> solution = lp_norm.primal([np.eye(2)], [1, -1], p=1).solve("exact")
    >>> found = ko.price(solution, [[1.0, -1.0], [-1.0, 1.0]])
    >>> found.helps, round(found.at_least, 4), round(found.at_most, 4)  # the value falls from 1 to 1/2
    (True, 0.5, 0.5)
    >>> ko.price(solution, np.eye(2) / 2).helps
    False
    """
    read = ball_of(solution, "price")
    machine, theta = machine_of(solution.certificate)
    new = one_kernel(kernel, read)
    scale = scale_of(solution.problem, read, new)
    v = cp.Variable(theta.size + 1, nonneg=True, name="w")  # the scaled weights, in the unit ball
    K = combine(v, join([(read.reach, read.whole), (scale, new)]))
    value = read.factor * risk(K, read.y, read.loss, read.bias) + read.offset
    problem = cp.Problem(cp.Minimize(value), lp_ball(v, read.p))
    ones = np.ones(theta.size + 1)
    extended = replace(read, whole=K.grams, variables=(v,), reach=ones, prices=0 * ones)
    w = theta / read.reach
    # Each candidate is a share of the new kernel, its weights and the alpha of their machine.
    candidates = [(0.0, np.append(w, 0.0), np.asarray(solution.certificate.alphas[0]))]
    candidates.append(best_share(extended, w / (lp_length(w, read.p) or 1.0), machine.alpha))
    found = [certify(problem, weights=v, alpha=alpha, retrain=False) for _, v, alpha in candidates]
    best = int(np.argmin([one.upper for one in found]))
    lower, upper = max(one.lower for one in found), min(found[best].upper, solution.upper)
    at_least = float((Ball(solution.lower) - upper).below)
    if at_least <= 0 and (
        not new.diagonals.any() or (read.p == 1 and screened(extended, np.append(w, 0.0), machine, lower)[-1])
    ):  # the kernel is zero, or has weight zero
        return Price(new.names[0], False, 0.0, 0.0, solution.lower, solution.upper, 0.0)
    return Price(
        kernel=new.names[0],
        helps=True if at_least > 0 else None,
        at_least=max(at_least, 0.0),
        at_most=max(float((Ball(solution.upper) - lower).above), 0.0),
        lower=lower,
        upper=upper,
        weight=float(candidates[best][0]) * scale,
    )


def one_kernel(kernel: Any, read: BallProblem) -> Grams:
    """Return the new kernel as a stack of one on the points of the problem."""
    storage, N = read.whole.storage, read.whole.n_points
    if isinstance(kernel, Kernel) or (callable(kernel) and hasattr(kernel, "rank")):
        if not isinstance(storage, KernelStorage):
            raise InputError(
                f"kernel must be a matrix where the kernels of the problem are no functions on points, got "
                f"{kernel!r}. Pass its Gram matrix, normalised as the others are."
            )
        return Grams.from_kernels([kernel], storage.X)
    given = isinstance(kernel, Grams)
    one: Grams = kernel if given else Grams.from_array(as_symmetric(kernel, "kernel")[None], ["kernel"])
    if len(one) != 1:
        raise ShapeError(
            f"kernel must be one kernel, got {len(one)}. Pass grams.subset([i]) for each of them."
        )
    if one.n_points != N:
        raise ShapeError(
            f"kernel must be on the {N} points of the problem, got {one.n_points}. Evaluate it there."
        )
    if not one.known_semidefinite:
        one.factor(0)  # raises where it is indefinite
    return one


def scale_of(problem: cp.Problem, read: BallProblem, new: Grams) -> float:
    """Return the factor of the new kernel: the radius of a ball, or what gives it the trace of the others."""
    is_ball = read.p > 1 or any(constraint.label == BALL for constraint in problem.constraints)
    trace = float(new.traces[0])
    if is_ball or not trace > 0:
        return float(read.reach.max())
    return float((read.reach * read.whole.traces).max()) / trace


def best_share(extended: BallProblem, w: Array, alpha: Array) -> tuple[float, Array, Array]:
    """Return about the best share e of the new kernel, with its weights and the alpha of their machine.

    `w` are the weights of the other kernels, of length one. They are multiplied by (1 - e^p)^(1/p).
    """
    p, m = extended.p, w.size
    old = np.asarray(extended.grams.combine(np.append(w, 0.0)))
    new = np.asarray(extended.grams[m])
    best: list[tuple[float, float, Array]] = []

    def value(e: float) -> float:
        machine = learn(
            kept_share(e, p) * old + e * new, extended.y, extended.loss, extended.bias, alpha, ACCURACY
        )
        best.append((machine.value, e, machine.alpha))
        return machine.value

    value(1.0)
    if np.isfinite(p):
        minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": SEARCHED})
    _, e, found = min(best, key=lambda one: one[0])
    return e, np.append(kept_share(e, p) * w, e), found


def kept_share(e: float, p: float) -> float:
    """Return (1 - e^p)^(1/p), the length that is left to the other weights."""
    return 1.0 if np.isinf(p) else float((1 - e**p) ** (1 / p))


def screen(solution: Solution) -> tuple[str, ...]:
    """Return the names of kernels that are proved to have weight zero at every optimum.

    The proof is a gap-safe rule for weights on a simplex: an l_1 ball, or a trace. From the bounds of the
    solution it follows how far its dual variables are from optimal ones, and hence how large alpha'K_m alpha
    can be there. A kernel is named if that is below the largest. Rounding errors are included. A smaller gap
    names more kernels, but never one of two equal kernels that tie for the largest.

    Several kernels are proved together, by a Cholesky factorisation whose order is the number of samples that
    are not far from the kinks of their losses.

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk and p = 1.

    Returns
    -------
    tuple of str
        Names of `grams.names`, in their order. The problem without these kernels has the same optima.

    Raises
    ------
    InputError
        If the solution is of no such problem.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> kernels = ko.Grams.from_array([np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]], ["identity", "labels"])
    >>> ko.screen(lp_norm.primal(kernels, [1, -1], p=1).solve("exact"))
    ('identity',)
    """
    read = ball_of(solution, "screen")
    if read.p != 1:
        raise InputError(
            f"screen needs weights on a simplex, p = 1, got p = {read.p:g}: for p > 1 no weight of a kernel "
            "with alpha'K alpha > 0 is zero. Read solution.weights."
        )
    return zero_kernels(solution.certificate, read)


def ball_of(solution: Any, caller: str) -> BallProblem:
    """Return the problem of a solution as a `BallProblem`, or raise where it is none."""
    if not isinstance(solution, Solution):
        raise InputError(
            f"solution must be a Solution in {caller}, got {shown(solution)} ({type(solution).__name__}). "
            "Pass what solve has returned."
        )
    if solution.problem is None:
        raise InputError(
            f"{caller} needs the problem of the solution, got a solution that was pickled. Solve it again."
        )
    read = read_ball(Structure(solution.problem))
    if isinstance(read, str):
        raise MethodError(
            f"{caller} needs one risk and weights in an l_p ball or of a given trace, got another problem: "
            f"{read}. Solve it with and without the kernel instead."
        )
    return read
