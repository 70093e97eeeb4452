"""The learned machine of a risk: its parts, its kernel and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.grams import Grams, IdentityStorage
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a learned machine: f = sum_m weights_m K_m c_m on all N points.

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
            return np.asarray(self.grams.combine(self.weights)[:, :n] @ self.coefficients)
        each = zip(self.weights, self.grams, self.coefficients, strict=True)
        return np.asarray(sum(w * (K[:, :n] @ c) for w, K, c in each))


@dataclass(frozen=True, eq=False)
class Learned:
    """The machine of one risk at the solution, f = sum of its parts + intercept.

    Attributes
    ----------
    alpha : array of shape (n,), or (m, n) where each kernel has its own
        Empty where only a kernel was learned.
    intercept : float
    parts : tuple of Part
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
    def kernel(self) -> Array:
        """The sum of the weighted kernels on all N points, without the ridge tau I."""
        return np.asarray(sum(p.grams.combine(p.weights) for p in self.parts if not p.is_ridge))

    @property
    def weights(self) -> Array | None:
        """The weights of the kernels except the ridge, or None where the kernel is no combination."""
        weights = [p.weights for p in self.parts if not p.is_ridge]
        return np.concatenate(weights) if weights and self.combined else None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the kernels, in the order of `weights`, or None where the kernel is no combination."""
        names = tuple(name for p in self.parts if not p.is_ridge for name in p.grams.names)
        return names if names and self.combined else None

    @property
    def tau(self) -> float | None:
        """The weight of the identity kernel, or None where there is none."""
        ridges = [float(p.weights.sum()) for p in self.parts if p.is_ridge]
        return sum(ridges) if ridges else None

    def __str__(self) -> str:
        trained = f"{self.n} of " if 0 < self.n < self.n_points else ""
        return f"{self.loss or ('a risk' if self.n else 'a kernel')} on {trained}{self.n_points} points"


def weights_of(learned: Sequence[Learned], nodes: Sequence[Risk] = ()) -> Any:
    """Return the weights of all machines: one array if they share the weights, else one per machine.

    Parameters
    ----------
    learned : sequence of Learned
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


def weight_variables(node: Risk) -> tuple[int, ...]:
    """Return the ids of the variables in the weights of a risk's kernels, except those of a ridge."""
    ids: list[int] = []
    for K in node.learner.kernels:
        pieces = terms(K) or []
        for weights, grams in pieces:
            ridge = isinstance(grams.storage, IdentityStorage)
            if len(pieces) == 1 or not ridge:  # alone, the identity is the kernel
                ids += [variable.id for variable in weights.variables()]
    return tuple(ids)
