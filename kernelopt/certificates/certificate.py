"""`Certificate`: two bounds of an optimum, what proves them, and the file that carries the proof."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.certificates.lower.choices import Route
from kernelopt.certificates.statements.columns import BeyondFractionsError, Source
from kernelopt.certificates.statements.statement import save_claims
from kernelopt.errors import ConditionWarning, MethodError
from kernelopt.learner import Machine
from kernelopt.plain_tables import html_table
from kernelopt.records import record
from kernelopt.running import ProgressLine
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

LONG = 30.0  # predicted seconds of a `save` from which it says so beforehand, on a terminal or not


@record("certificate", omit=("point", "proof", "source"))
@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds lower <= optimum <= upper, in doubles, computed from the problem's data alone.

    Parameters
    ----------
    lower, upper : float
        Bounds of the optimal value, infinite where none was found.
    route : "closed", "conic", "sign" or "none"
        How the bound by duality was obtained: by a formula, or by the multipliers of a conic solver, which
        are corrected. "sign" is the bound zero of an objective that cvxpy knows to be non-negative.
    residuals : dict
        Violations of the constraints at the candidate by name, relative to the size of their sides.
    reason : str
        Why a bound is infinite, or what limits a finite one.
    assumes : tuple of str
        What the bounds assume beside the data, as sentences: a kernel of a class outside kernelopt that
        claims complete monotonicity, a matrix that is symmetric or centred up to rounding and is taken as
        exactly so, limits of weights along dependent kernels. Empty where they assume nothing.
    feasible : bool
        Whether a feasible point was found.
    point : dict
        The feasible point at which the objective is the primal bound: values by cvxpy variable.
    alphas : tuple of arrays
        The dual variables from which the bound by duality was computed, one per risk.
    machines : tuple of machines
        The machines at the point's kernels that the primal bound is the value of, one per risk.
    proof : array or None
        A Farkas ray, where the problem is infeasible.
    floor : float >= 0
        The smallest denominator of the relative gap: 1e-4 times the objective's value at f = 0.
    source : Source or str
        The problem as `save` writes it, or the reason why it cannot be saved.
    """

    lower: float
    upper: float
    route: Route
    residuals: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    assumes: tuple[str, ...] = ()
    feasible: bool = False
    point: dict[Any, Array] = field(default_factory=dict, repr=False)
    alphas: tuple[Array, ...] = field(default=(), repr=False)
    machines: tuple[Machine, ...] = field(default=(), repr=False)
    proof: Array | None = field(default=None, repr=False)
    floor: float = 0.0
    source: Source | str = field(default="it was not made from a problem", repr=False)

    @property
    def gap(self) -> float:
        """The gap relative to max(|upper|, |lower|, floor).

        It is infinite where a bound is missing, and where the two contradict each other.
        """
        return np.inf if self.lower > self.upper else relative_gap(self.lower, self.upper, self.floor)

    @property
    def absolute_gap(self) -> float:
        """Upper - lower, infinite if a bound is missing or lower > upper.

        The relative `gap` is one whenever one of the bounds is zero. The absolute gap compares two
        certificates of a problem in that case too.
        """
        found = self.upper - self.lower
        return float(found) if 0 <= found < np.inf else np.inf

    @property
    def statement_digest(self) -> str:
        """The SHA-256 of the problem in plain numbers, in hexadecimal, without its proof and its names.

        The checker prints it of a file. Where both are equal, the file proves bounds of this problem: it is
        computed from the data alone, so that whoever states the problem anew gets the same digest.

        Raises
        ------
        MethodError
            If the problem is not of a form that can be saved.

        Examples
        --------
        >>> import cvxpy as cp, numpy as np, tempfile, kernelopt as ko
        >>> from kernelopt.certificates.check import verdict
        >>> mu = cp.Variable(2, nonneg=True)
        >>> K = ko.combine(mu, np.array([np.eye(4), np.ones((4, 4))]))
        >>> risk = ko.risk(K, [1, 1, -1, -1], ko.hinge())
        >>> found = ko.solve(cp.Problem(cp.Minimize(risk), [cp.sum(mu) <= 1])).certificate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     valid, said = verdict(found.save(f"{folder}/proof.npz"))
        >>> valid, found.statement_digest in said
        (True, True)
        """
        return self._saved_source().statement().statement_digest

    def save(self, path: str | Path) -> Path:
        """Write the problem, the bounds and their proof to a file that is checked without kernelopt.

        `python -m kernelopt.certificates.check FILE` or a copy of that module, which needs numpy only,
        recomputes the bounds in exact fractions. The bounds of the file hold for the stored doubles without
        any rounding error. They are computed for the file and usually differ from `lower` and `upper` in
        the last digits. See docs/certificates.md.

        A problem without risks is stated as a programme over linear, second-order and semidefinite cones. It
        is solved once more, and the numbers of the solver are changed until all equations hold exactly.
        Where that is too costly, the file has `lower` and `upper` alone: they are rigorous in floating point
        (Jansson, Chaykin and Keil, SIAM J. Numer. Anal. 46 (2007)), and the checker says `INVALID` with
        that reason.

        With m kernels on n points it takes about 4e-6 n^2 (m + 2) + 2.5e-8 n^3 seconds: one at n = 200 and
        m = 5. A terminal shows what is being done and the predicted seconds.

        Parameters
        ----------
        path : str or Path
            An NPZ archive; an existing file is replaced, at once: an interrupted call leaves it.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        MethodError
            If the problem is not of a form that can be saved, or its proof needs too many digits.
        ParameterError
            If the exponent of a ball is not a fraction of small numbers.
        OSError
            If the file cannot be written.

        Warns
        -----
        ConditionWarning
            Beforehand, if it is predicted to take more than half a minute.
        """
        source = self._saved_source()
        expected = source.seconds
        about = f"about {expected:.0f} s are predicted for all"
        if expected > LONG:
            warnings.warn(
                ConditionWarning(
                    f"saving a certificate takes about {expected:.0f} s here: exact fractions need 4e-6 n^2 "
                    "(m + 2) + 2.5e-8 n^3 seconds with m kernels on n points. Interrupt it if that is long."
                ),
                stacklevel=2,
            )
        began, line = time.perf_counter(), ProgressLine()
        try:
            line.show(f"save: the witness in fractions ({about})", expected)
            statement = source.statement()
            source.prove(statement, self)
            left = max(0.0, expected - (time.perf_counter() - began))
            line.show(f"save: the bounds in fractions ({about}, {left:.0f} s are left)", expected)
            return statement.save(path)
        except BeyondFractionsError:
            return save_claims(path, self.lower, self.upper)
        finally:
            line.close()

    @property
    def assumed(self) -> str:
        """The end of a line with the bounds, "; assumes: ...", empty where nothing is assumed."""
        return f"; assumes: {'; '.join(self.assumes)}" if self.assumes else ""

    def _saved_source(self) -> Source:
        """Return the source, or raise the reason why there is none."""
        if isinstance(self.source, str):
            raise MethodError(
                "save the fitted estimator or the solution instead, by its own save(path): the file has the "
                "certificate, and certify(X, y) of the estimator, or of what kernelopt.load returns, proves "
                "it again. A certificate alone can be saved of one risk over a ball or a trace, and of "
                f"problems without risks, got another problem: {self.source}."
            )
        return self.source

    def _repr_html_(self) -> str:
        rows = [
            ["lower bound", f"{self.lower:.9g}"], ["upper bound", f"{self.upper:.9g}"],
            ["relative gap", f"{self.gap:.1e}"], ["route", self.route],
        ]  # fmt: skip
        rows += [["remark", self.reason]] if self.reason else []
        rows += [["assumes", text] for text in self.assumes]
        rows += [[f"violation of {name}", f"{value:.1e}"] for name, value in self.residuals.items()]
        return html_table(rows, caption="Certificate")

    def __str__(self) -> str:
        text = f"{self.lower:.9g} <= optimum <= {self.upper:.9g} (gap {self.gap:.1e}, {self.route})"
        return text + (f": {self.reason}" if self.reason else "") + self.assumed


def minimised(structure: Structure, certificate: Certificate) -> tuple[float, float]:
    """Return the lower bound and the value of the minimisation; a maximum is minus a minimum."""
    sides = certificate.lower, certificate.upper
    return (-sides[1], -sides[0]) if structure.maximize else sides


def with_better_bound(structure: Structure, certificate: Certificate, lower: float) -> Certificate:
    """Return the certificate with `lower` as its bound by duality, if that is a better bound.

    The bound by duality is the lower bound of the minimisation. A lower bound above the value of the point is
    not used: by their rounding errors two bounds may cross.
    """
    bound, value = minimised(structure, certificate)
    if not bound < lower <= value:
        return certificate
    return replace(certificate, upper=-lower) if structure.maximize else replace(certificate, lower=lower)


def combined_certificate(structure: Structure, one: Certificate, two: Certificate) -> Certificate:
    """Return the certificate with the better value, with the better of the two bounds by duality."""
    best, other = sorted((one, two), key=lambda found: minimised(structure, found)[1])
    certificate = with_better_bound(structure, best, minimised(structure, other)[0])
    if certificate is best:
        return best
    assumes = tuple(dict.fromkeys(best.assumes + other.assumes))
    reason = "" if best.feasible else best.reason  # what was said of the bound that is replaced
    return replace(certificate, alphas=other.alphas, route=other.route, assumes=assumes, reason=reason)


Values = dict[int, np.ndarray]  # by variable id
Multipliers = dict[str, Any]  # by label of the constraint; None where the solver returned none


class BoundedProblem(cp.Problem, ABC):  # type: ignore[misc]
    """A problem without risks whose optimum is bounded in closed form, by formulas of its paper.

    `solve` uses these bounds, whichever method found the point, and `certify` uses them where they are
    better than the general ones. They must hold for any values and multipliers.

    Parameters
    ----------
    objective : cp.Minimize or cp.Maximize
        As for `cp.Problem`.
    constraints : list of cvxpy constraints, optional
        As for `cp.Problem`.
    """

    @abstractmethod
    def bounds(self, values: Values, multipliers: Multipliers) -> Certificate:
        """Return bounds from the values and multipliers of a solver, which need not be feasible.

        The keys of the certificate's point are the problem's variables.

        Parameters
        ----------
        values : dict from variable to array
            The point.
        multipliers : dict from constraint to array
            In the signs of cvxpy.
        """
