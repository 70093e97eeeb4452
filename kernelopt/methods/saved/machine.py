"""`SavedMachine`: a learned machine with the points of its support, which predicts at new points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kernelopt.errors import InputError, MethodError
from kernelopt.grams import Storage
from kernelopt.grams.arguments import as_names
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.written import is_evaluated
from kernelopt.methods.learned import Learned, crossed
from kernelopt.records import record
from kernelopt.validation import Array, Index, as_indices


@record("machine")
@dataclass(frozen=True, eq=False, repr=False)
class SavedMachine:
    """The machine of one risk, f(x) = sum_m weights_m sum_j coefficients_mj k_m(x, x_j) + intercept.

    The x_j are the points of the support, those with a coefficient that is not zero. Where only a kernel was
    learned they are all N points.

    Attributes
    ----------
    weights : array of shape (m,)
        Without that of the identity.
    support : integer array of shape (s,)
        The numbers of the x_j among the N points.
    coefficients : array of shape (s,), or (m, s) where each kernel has its own
        Those of the support; empty where only a kernel was learned.
    intercept : float
    n, n_points : int
        The labelled points, 0 where only a kernel was learned, and all points.
    names : tuple of str
        The kernels.
    storage : Storage or None
        The kernels at the support; None where the stack was given as an array.
    value : float
        The value of the risk.
    loss : str
    """

    weights: Annotated[Array, "m"]
    support: Annotated[Index, "s"]
    coefficients: Annotated[Array, "c", "m c"]
    intercept: float
    n: int
    n_points: int
    names: Annotated[tuple[str, ...], "m"]
    storage: Storage | None
    value: float
    loss: str

    def __post_init__(self) -> None:
        as_names(self.names, self.weights.size)
        as_indices(self.support, self.n or self.n_points, "support", unique=True)
        sizes = self.coefficients.shape[-1], *(() if self.storage is None else self.storage.shape[:2])
        wanted = (self.support.size if self.n else 0, self.weights.size, self.support.size)
        if sizes != wanted[: len(sizes)] or (self.n and not np.isfinite(self.intercept)):
            raise InputError(
                f"a machine of {wanted[1]} kernels on {wanted[2]} points expected, got sizes {sizes}"
            )

    def __str__(self) -> str:
        return f"{self.loss or 'a kernel'} on {self.n or self.n_points} points"

    def __repr__(self) -> str:
        return f"<SavedMachine: {self}>"

    def decision_function(self, X: Any) -> Array:
        """Return the predictions at new points, or for cross kernels where the stack was an array."""
        if not self.n:
            raise InputError(
                "a prediction needs a machine, got a problem without a risk in decision_function. Train one "
                "on kernel_at(X)."
            )
        used, cross = self._cross(X, "decision_function")
        each = np.broadcast_to(self.coefficients, (self.weights.size, self.support.size))
        weighted = self.weights[used, None] * each[used]
        return np.asarray(self.intercept + np.einsum("mij,mj->i", cross, weighted))

    def kernel_at(self, X: Any) -> Array:
        """Return the learned kernel between new points and all N."""
        if self.n:
            raise InputError(
                f"kernel_at needs all {self.n_points} points, got a saved machine, which keeps the "
                f"{self.support.size} points of its support. Call it before saving."
            )
        used, cross = self._cross(X, "kernel_at")
        return np.asarray(np.tensordot(self.weights[used], cross, 1))

    def _cross(self, X: Any, caller: str) -> tuple[Index, Array]:
        """Return the numbers of the kernels with a weight, and these between new points and the support."""
        if self.storage is None:
            stack, weights = crossed(X, self, caller)
            return np.arange(weights.size), stack[:, :, self.support]
        used = np.flatnonzero(self.weights)
        used = used if used.size else np.arange(1)
        return used, self.storage.subset(used).cross(X)


def saved_machine(machine: Learned) -> SavedMachine:
    """Return what a file keeps of a machine.

    Raises
    ------
    MethodError
        If the machine does not predict at new points.
    """
    parts = [part for part in machine.parts if not part.is_ridge]
    if machine.weights is None or (machine.n and not machine.inductive):
        raise MethodError(
            "a solution that is saved must have a combination of kernels with non-negative weights, got a "
            "kernel with free signs or without kernel functions: it is known on the N points only. Save "
            "solution.kernel with numpy.save, or solution.certificate.save(path)."
        )
    each = np.concatenate([np.broadcast_to(p.coefficients, (p.weights.size, machine.n)) for p in parts])
    chosen = np.flatnonzero(np.any(each, axis=0)) if machine.n else np.arange(machine.n_points)
    support = chosen if chosen.size else np.arange(1)  # the machine f = b keeps one point, to know their form
    each = each[:, support] if machine.n else each[:1]
    joined = JoinedStorage([part.grams.storage for part in parts])
    return SavedMachine(
        machine.weights,
        support,
        each[0] if (each == each[0]).all() else each,
        machine.intercept,
        machine.n,
        machine.n_points,
        joined.names,
        joined.block(support) if is_evaluated(joined) else None,
        machine.value,
        machine.loss,
    )
