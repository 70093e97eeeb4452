"""The learned machine of a risk: its parts, its kernel and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.grams import Grams, IdentityStorage
from kernelopt.grams.storage import numbered
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.validation import Array, as_float_array, numeric, whole

AnyMachine = TypeVar("AnyMachine")


@dataclass(frozen=True, eq=False)
class Part:
    r"""One part of a learned machine, :math:`f = \sum_m \mathrm{weights}_m K_m c_m` on all N points.

    Attributes
    ----------
    weights : array of shape (m,)
    grams : Grams
        The matrices K_m.
    coefficients : array of shape (n,) or (m, n)
        The vectors c_m, or one vector for all m. That one is alpha, except for kernels of low rank under a
        block norm above 2.
    is_ridge : bool
        Whether the part is the ridge tau I, which predictions leave out.
    """

    weights: Array
    grams: Grams
    coefficients: Array
    is_ridge: bool = False

    def predictions(self, n: int) -> Array:
        """Return the values of this part of f on all N points."""
        if self.coefficients.ndim == 1:
            return self.grams.storage.image(self.weights, self.coefficients)
        each = zip(np.eye(len(self.grams)) * self.weights, self.coefficients, strict=True)
        return np.asarray(sum(self.grams.storage.image(w, c) for w, c in each))


@dataclass(frozen=True, eq=False)
class Learned:
    """The machine of one risk at the solution: f is the sum of its parts and the intercept.

    Parameters
    ----------
    alpha : array of shape (n,), or (m, n) where each kernel has its own
        Empty where only a kernel was learned.
    intercept : float
        b, zero where the machine has none.
    parts : tuple of Part
        The kernels with their weights and their alpha.
    combined : bool
        Whether the kernel is a combination of Gram matrices.
    inductive : bool
        Whether its weights are known to be non-negative, so that it is a kernel at new points too.
    y : array of shape (n,), or None
        The training labels or targets.
    value : float
        The value of the risk.
    loss : str
        The loss, as printed.
    """

    alpha: Array
    intercept: float
    parts: tuple[Part, ...]
    combined: bool
    inductive: bool
    y: Array | None = None
    value: float = np.nan
    loss: str = ""

    @property
    def n(self) -> int:
        """The number of training points, 0 where only a kernel was learned."""
        return int(self.alpha.shape[-1])

    @property
    def n_points(self) -> int:
        """N, the number of points of the kernel."""
        return self.parts[0].grams.n_points if self.parts else self.n

    @property
    def own(self) -> list[Part]:
        """The parts without the ridge."""
        return [part for part in self.parts if not part.is_ridge]

    @property
    def kernel(self) -> Array:
        """The sum of the weighted kernels on all N points, without the ridge tau I."""
        return np.asarray(sum(part.grams.combine(part.weights) for part in self.own))

    @property
    def weights(self) -> Array | None:
        """The weights of the kernels except the ridge, or None where the kernel is no combination."""
        return np.concatenate([p.weights for p in self.own]) if self.own and self.combined else None

    def crossed(self, cross: ArrayLike, caller: str) -> tuple[Array, Array]:
        """Return checked kernels between new points and the N points, and their weights.

        Parameters
        ----------
        cross : array of shape (m, n_new, N)
            The kernels.
        caller : str
            The function that messages name.
        """
        if self.weights is None:
            raise InputError(
                "new points need a combination of kernels, got a kernel that is none. Learn with the new "
                "points among the N and read `kernel`."
            )
        return crossed(cross, self.weights.size, (self.n, self.n_points), caller), self.weights

    @property
    def coefficients(self) -> Array:
        """The vectors c_m of the kernels except the ridge, shape (m, n)."""
        return np.concatenate([np.broadcast_to(p.coefficients, (p.weights.size, self.n)) for p in self.own])

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the kernels, in the order of `weights`, or None where the kernel is no combination."""
        names = numbered([name for part in self.own for name in part.grams.names])
        return names if names and self.combined else None

    @property
    def tau(self) -> float | None:
        """The weight of the identity kernel, or None where there is none."""
        ridges = [float(p.weights.sum()) for p in self.parts if p.is_ridge]
        return sum(ridges) if ridges else None

    def __str__(self) -> str:
        trained = f"{self.n} of " if 0 < self.n < self.n_points else ""
        return f"{self.loss or ('a risk' if self.n else 'a kernel')} on {trained}{self.n_points} points"


def weights_of(learned: Sequence[Any], nodes: Sequence[Risk] = ()) -> Any:
    """Return the weights of all machines: one array if they share the weights, else one per machine.

    Parameters
    ----------
    learned : sequence of Learned, or of what a file keeps of them
    nodes : sequence of Risk, optional
        Their risks, in the same order. If given, weights count as shared only if they are made of the same
        variables, so that two variables with the same value are still told apart.

    Returns
    -------
    array of shape (m,), tuple of arrays and None, or None
        None where no machine has weights.
    """
    found = [machine.weights for machine in learned]
    if not any(weights is not None for weights in found):
        return None
    equal = all(w is not None and found[0] is not None and np.array_equal(w, found[0]) for w in found)
    shared = equal and len({weight_variables(node) for node in nodes}) <= 1
    return found[0] if len(found) == 1 or shared else tuple(found)


def is_ridge(grams: Grams, pieces: Sequence[Any]) -> bool:
    """Whether a term of a kernel is a ridge: the identity beside other terms. Alone, it is the kernel."""
    return len(pieces) > 1 and isinstance(grams.storage, IdentityStorage)


def weight_variables(node: Risk) -> frozenset[int]:
    """Return the ids of the variables in the weights of a risk's kernels, except those of a ridge."""
    sums = [pieces for K in node.learner.kernels if (pieces := terms(K))]
    weights = [w for pieces in sums for w, grams in pieces if not is_ridge(grams, pieces)]
    return frozenset(variable.id for w in weights for variable in w.variables())


def crossed(cross: ArrayLike, m: int, sizes: tuple[int, int], caller: str) -> Array:
    """Return checked kernels between new points and the N points, or their first n, the labelled ones.

    `sizes` are n, zero where only a kernel was learned, and N; `caller` names the method in messages.
    """
    n, n_points = sizes[0] or sizes[1], sizes[1]
    try:
        stack = numeric(cross, "cross")
        got = f"an array of shape {stack.shape}"
    except ShapeError:  # the user has passed points that are no numbers, such as the nodes of a graph
        stack = np.empty(0)
        got = f"a {type(cross).__name__}" + (f" of {len(cross)}" if isinstance(cross, Sequence) else "")
    if stack.ndim != 3 or len(stack) != m or stack.shape[2] not in (n, n_points):
        cure = (
            "Use grams.cross(X_new)." if stack.ndim == 3 else f"For points X call {caller}(grams.cross(X))."
        )
        raise ShapeError(
            f"cross must have shape (m, n_new, N) with m = {m} and N = {n_points} (or the first "
            f"{n}), got {got}. {cure}"
        )
    return as_float_array(stack, "cross")


def values(cross: Array, weights: Array, coefficients: Array) -> Array:
    """Return sum_m weights_m cross_m c_m at new points, for vectors c_m, or one vector for all m."""
    each = np.broadcast_to(coefficients, (weights.size, cross.shape[2]))
    return np.asarray(np.einsum("mij,mj->i", cross, weights[:, None] * each))


def chosen_machine(machines: Sequence[AnyMachine], risk: int | None) -> AnyMachine:
    """Return the machine of one of the risks, the only one if `risk` is None."""
    if not machines:
        raise InputError(
            "a prediction needs a machine, got the solution of an estimator, which has the machines itself. "
            "Call estimator.decision_function(X)."
        )
    last = len(machines) - 1
    if risk is None and last > 0:
        listed = "; ".join(f"{i}: {machine}" for i, machine in enumerate(machines))
        raise InputError(
            f"risk must be given where there are several, got None for {last + 1} machines ({listed}). "
            f"Pass risk=0..{last}."
        )
    wanted = f"an integer from 0 to {last}"
    chosen = 0 if risk is None else whole(risk, "risk", 0, wanted)
    if chosen > last:
        raise ParameterError(f"risk must be {wanted}, got {chosen}. Pass risk=0..{last}.")
    return machines[chosen]


def single(values: list[Any]) -> Any:
    """Return the only value, a tuple of several values, or None of no values."""
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)
