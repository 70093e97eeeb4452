"""What a solve returns: the certified value, the kernel, the machine, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError, ShapeError
from kernelopt.grams import Grams, IdentityGrams
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.machine import BlockMachine
from kernelopt.validation import PSD_TOLERANCE, Array, as_float_array, smallest_relative_eigenvalue

MODERATE = 500  # points, up to which a machine is trained once more for the value of its risk
VANISHED = 1e-12  # a squared norm of f, relative to the value of the risk, that counts as zero


@dataclass(frozen=True)
class Part:
    """Weighted Gram matrices of a learned kernel on all N points, and the coefficients they act on."""

    weights: Array
    grams: Grams
    coefficients: Array  # (n,): alpha, but for some kernels of low rank under a block norm above 2; or (m, n)
    is_ridge: bool = False  # whether this is tau I, which prediction leaves out

    def predictions(self, n: int) -> Array:
        """The part's share of f on all N points."""
        if self.coefficients.ndim == 1:
            return np.asarray(self.grams.combine(self.weights)[:, :n] @ self.coefficients)
        each = zip(self.weights, self.grams, self.coefficients, strict=True)
        return np.asarray(sum(w * (K[:, :n] @ c) for w, K, c in each))


@dataclass(frozen=True)
class Learned:
    """The machine of one risk at the solution, f = sum over its parts of K coefficients + intercept."""

    alpha: Array  # (n,), empty where only a kernel was learned; (m, n) where each kernel has its own
    intercept: float
    parts: tuple[Part, ...]
    combined: bool  # whether the kernel is a combination of Gram matrices
    extends: bool  # whether its weights carry a sign, so that it is a kernel at new points too
    y: Array | None = None  # the labels or targets it was trained on
    value: float = np.nan  # of its risk

    @property
    def kernel(self) -> Array:
        """The sum of the kernels on all N points, without the ridge tau I."""
        return np.asarray(sum(p.grams.combine(p.weights) for p in self.parts if not p.is_ridge))

    @property
    def weights(self) -> Array | None:
        """The weights of the kernels without the identity, None where there is no combination."""
        weights = [p.weights for p in self.parts if not p.is_ridge]
        return np.concatenate(weights) if weights and self.combined else None

    @property
    def tau(self) -> float | None:
        """The weight of the identity kernel, None where there is none."""
        ridges = [float(p.weights.sum()) for p in self.parts if p.is_ridge]
        return sum(ridges) if ridges else None


@dataclass(frozen=True, repr=False)
class Solution:
    """A certified solution.

    Attributes
    ----------
    status : "optimal" if the gap meets the tolerance, else "inaccurate"
    method, solver : str
        The route, and the solver whose point was taken.
    value : float
        The objective at the returned point: `upper` for Minimize, `lower` for Maximize.
    lower, upper, gap : float
        Certified bounds, and their distance relative to max(1, |upper|).
    weights : array, tuple of arrays or None
        Kernel weights (per risk where there are several), without that of the identity.
    weights_unique : bool or None
        Whether the optimum determines them; None where that is not known.
    kernel : array of shape (N, N), tuple, or None
        The learned kernel for prediction, without the ridge tau I.
    alpha : array of shape (n,), of shape (m, n) where every kernel has its own, tuple, or None
        Signed dual variables: f = K alpha + intercept for one kernel (or a list with norm 2).
    intercept : float, tuple, or None
    tau : float or None
        Weight of the identity kernel: Lanckriet's ridge.
    iterations : int or None
    history : tuple of (seconds, lower, upper)
        One entry per point that was certified.
    build_time, solve_time, certify_time : float
        Seconds spent compiling, in solvers, and on certificates.
    certificate : Certificate
    """

    status: str
    method: str
    solver: str
    value: float
    certificate: Certificate
    weights: Any = None
    weights_unique: bool | None = None
    learned: tuple[Learned, ...] = ()
    iterations: int | None = None
    history: tuple[tuple[float, float, float], ...] = ()
    build_time: float = 0.0
    solve_time: float = 0.0
    certify_time: float = 0.0

    @property
    def lower(self) -> float:
        """The certified lower bound of the optimum."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """The certified upper bound of the optimum."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """The certified gap, relative to max(1, |upper|)."""
        return self.certificate.gap

    @property
    def kernel(self) -> Any:
        """The learned kernel on all N points without tau I, one per risk where there are several."""
        return single([part.kernel for part in self.learned])

    @property
    def is_psd(self) -> Any:
        """Whether the learned kernel is positive semidefinite on all N points, to 1e-8 of its size.

        With weights of one sign it is so at any points; with others it need not be so at new ones.
        """
        return single([smallest_relative_eigenvalue(part.kernel) >= -PSD_TOLERANCE for part in self.learned])

    @property
    def alpha(self) -> Any:
        """The signed dual variables, one array per risk where there are several."""
        return single([part.alpha for part in self.learned])

    @property
    def intercept(self) -> Any:
        """The intercept, one per risk where there are several."""
        return single([part.intercept for part in self.learned])

    @property
    def tau(self) -> Any:
        """The weight of the identity kernel, None where there is none."""
        return single([part.tau for part in self.learned])

    @property
    def margin(self) -> float:
        """omega^(-1/2) with omega = 2 x risk: for a hard margin the geometric margin."""
        values = [machine.value for machine in self.learned if np.isfinite(machine.value)]
        if len(values) != 1:
            raise InputError(f"margin needs a problem with one risk, got {len(values)}. Read `risk.value`.")
        return float((2 * values[0]) ** -0.5)

    def decision_function(self, cross: ArrayLike | None = None, *, risk: int = 0) -> Array:
        """Return the predictions of the learned machine; classify by their sign.

        Parameters
        ----------
        cross : array of shape (m, n_new, N), optional
            The m kernels between new points and the N points (or their first n, the labelled ones).
            Without it the predictions are for all N points: the labelled ones and, by transduction,
            the others.
        risk : int, default 0
            Which machine, where the problem has several risks.

        Returns
        -------
        array of shape (N,) or (n_new,)

        Raises
        ------
        InputError
            With `cross`, if the weights have no sign or the kernel is not a combination: it need not
            be positive semidefinite at new points. Learn with the new points among the N instead.
        """
        if not self.learned or not self.learned[risk].alpha.size:
            raise InputError(
                "this problem has no risk, so no machine was learned. Train one on `kernel`, or use the "
                "formulation's own prediction."
            )
        machine = self.learned[risk]
        n = machine.alpha.shape[-1]
        parts = [part for part in machine.parts if not part.is_ridge]
        if cross is None:
            return machine.intercept + np.asarray(sum(part.predictions(n) for part in parts))
        if not machine.extends:
            raise InputError(
                "new points need a combination with non-negative weights, got a kernel with free signs or "
                "without kernel functions: it need not be positive semidefinite there. Learn with the new "
                "points among the N (unlabelled, after the labelled ones) and call decision_function()."
            )
        stack, weights = crossed(cross, machine)
        images = [np.broadcast_to(part.coefficients, (part.weights.size, n)) for part in parts]
        weighted = weights[:, None] * np.concatenate(images)
        return np.asarray(machine.intercept + np.einsum("mij,mj->i", stack[:, :, :n], weighted))

    def kernel_at(self, cross: ArrayLike, *, risk: int = 0) -> Array:
        """Return the learned kernel between new points and the N, shape (n_new, N), without the ridge.

        Parameters
        ----------
        cross : array of shape (m, n_new, N)
            The m kernels between them.
        risk : int, default 0
            Which kernel, where there are several risks.
        """
        if not self.learned:
            raise InputError("this problem has no combination of kernels, so there is none at new points.")
        stack, weights = crossed(cross, self.learned[risk])
        return np.asarray(np.tensordot(weights, stack, 1))

    def __repr__(self) -> str:
        return f"<Solution: {self}>"

    def __str__(self) -> str:
        return (
            f"{self.status} by {self.method} ({self.solver}): {self.certificate}, "
            f"build {self.build_time:.2f} s, solve {self.solve_time:.2f} s"
        )


def crossed(cross: ArrayLike, machine: Learned) -> tuple[Array, Array]:
    """Return cross kernels and the weights that they belong to, checked."""
    stack, weights = as_float_array(cross, "cross", ndim=3), machine.weights
    n, n_points = machine.alpha.shape[-1], machine.parts[0].grams.n_points
    if weights is None or len(stack) != weights.size or stack.shape[2] not in (n or n_points, n_points):
        raise ShapeError(
            f"cross must have shape (m, n_new, N) with m = {0 if weights is None else weights.size} and "
            f"N = {n_points} (or the first {n}), got {stack.shape}. Use grams.cross(X_new)."
        )
    return stack, weights


def single(values: list[Any]) -> Any:
    """Return the one value, a tuple of several, or None of none."""
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


def learned_machine(risk: Risk, alpha: Array) -> Learned:
    """Return the machine of a risk at the current values of the variables."""
    machine = risk.at(alpha)
    several = isinstance(machine, BlockMachine)
    coefficients = machine.coefficients if several else machine.alpha[None]  # type: ignore[union-attr]
    parts: list[Part] = []
    combined = extends = True
    for K, c in zip(risk.learner.kernels, coefficients, strict=True):
        length = float(np.linalg.norm(machine.alpha))
        scale = float(np.linalg.norm(c)) / length if length > 0 else 1.0
        c = c / scale if scale > 0 else machine.alpha
        pieces = terms(K)
        if pieces is None:
            combined = extends = False
            parts.append(Part(np.array([scale]), Grams.from_array(np.asarray(K.value)[None]), c))
            continue
        extends = extends and all(weights.is_nonneg() for weights, _ in pieces)
        for weights, grams in pieces:
            ridge = isinstance(grams, IdentityGrams) and len(pieces) > 1  # alone it is a kernel like others
            parts.append(Part(scale * np.ravel(weights.value), grams, c, ridge))
    b = float(machine.intercept)
    value = risk.oracle().value if risk.learner.n <= MODERATE else machine.value
    return Learned(machine.alpha, b, tuple(parts), combined, extends, risk.learner.y, float(value))


def weights_are_unique(machine: Learned, p: float | None) -> bool | None:
    """Whether the optimum determines the weights, where the set is an l_p ball, or p is None for another.

    All optimal kernels give the same function f, so two optimal weight vectors differ by weights whose
    combination maps alpha to zero: there are none where the images K_i alpha of the kernels in use are
    independent; kernels that are tight at weight zero count as used. A strictly convex ball has one
    optimum if f is not zero; another set may have one for reasons that are not looked at here.
    """
    weights = machine.weights
    if not machine.extends or weights is None:
        return None
    used = [p.grams for p in machine.parts if not p.is_ridge]
    images = np.concatenate([grams.apply(machine.alpha)[:, : machine.alpha.size] for grams in used])
    traces = np.concatenate([grams.traces for grams in used])
    forms = images @ machine.alpha / np.where(traces > 0, traces, 1.0)
    if not weights @ images @ machine.alpha > VANISHED * max(1.0, abs(machine.value)):
        return False
    if p is not None and 1 < p < np.inf:
        return True
    chosen = (weights > 1e-7 * weights.max()) | (forms >= (1 - 1e-7) * forms.max())
    lengths = np.linalg.norm(images[chosen], axis=1, keepdims=True)
    directions = images[chosen] / np.where(lengths > 0, lengths, 1.0)
    return bool(np.linalg.matrix_rank(directions, tol=1e-7) == chosen.sum()) or (None if p is None else False)
