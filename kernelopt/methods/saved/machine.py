"""`SavedMachine`: a learned machine with the points of its support, which predicts at new points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.errors import InputError, MethodError
from kernelopt.grams import Storage
from kernelopt.grams.arguments import as_names
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.written import StackReader, StackWriter, is_evaluated
from kernelopt.methods.learned import Learned, crossed
from kernelopt.validation import Array, Index, as_float_array, as_indices, as_vector, whole

GIVEN = "given"  # stands for a stack that was given as an array


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

    weights: Array
    support: Index
    coefficients: Array
    intercept: float
    n: int
    n_points: int
    names: tuple[str, ...]
    storage: Storage | None
    value: float
    loss: str

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


def written(machine: Learned, stacks: StackWriter) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file keeps of a machine: JSON, and arrays by name.

    Raises
    ------
    MethodError
        If the machine does not predict at new points, or a kernel function cannot be written.
    """
    parts = [part for part in machine.parts if not part.is_ridge]
    if machine.weights is None or (machine.n and not machine.inductive):
        raise MethodError(
            "a solution that is saved must have a combination of kernels with non-negative weights, got a "
            "kernel with free signs or without kernel functions: it is known on the N points only. Save "
            "solution.kernel with numpy.save, or solution.certificate.save(path)."
        )
    shape = (machine.weights.size, machine.n)
    each = np.concatenate([np.broadcast_to(p.coefficients, (p.weights.size, machine.n)) for p in parts])
    shared = not machine.n or bool((each == each[0]).all())
    coefficients = each[0] if shared else each.reshape(shape)
    chosen = np.flatnonzero(np.any(each, axis=0)) if machine.n else np.arange(machine.n_points)
    support = chosen if chosen.size else np.arange(1)  # the machine f = b keeps one point, to know their form
    joined = JoinedStorage([part.grams.storage for part in parts])
    header = {
        "n": machine.n,
        "n_points": machine.n_points,
        "names": list(joined.names),
        "stack": stacks.describe(joined, support) if is_evaluated(joined) else GIVEN,
        "loss": machine.loss,
    }
    return header, {
        "weights": machine.weights,
        "support": support,
        "coefficients": coefficients[..., support] if machine.n else np.empty(0),
        "numbers": np.array([machine.intercept, machine.value]),
    }


def read(header: Mapping[str, Any], arrays: Mapping[str, Any], stacks: StackReader) -> SavedMachine:
    """Return the machine that `written` has described; an error of Python or kernelopt where it is wrong."""
    n, n_points = whole(header["n"], "n", 0), whole(header["n_points"], "n_points")
    weights = as_vector(arrays["weights"], "weights")
    names = as_names(header["names"], weights.size)
    support = as_indices(arrays["support"], n or n_points, "support", unique=True)
    coefficients = as_float_array(arrays["coefficients"], "coefficients", ndim=(1, 2))
    shapes = ((support.size,), (len(names), support.size)) if n else ((0,),)
    if coefficients.shape not in shapes:
        raise InputError(f"coefficients must be those of the support, got shape {coefficients.shape}.")
    storage = None
    if header["stack"] != GIVEN:
        storage = stacks.storage(header["stack"], support)
        if storage.shape[:2] != (len(names), support.size):
            raise InputError(f"the stack must have {len(names)} kernels, got {len(storage)}.")
    intercept, value = np.asarray(arrays["numbers"], dtype=float).tolist()  # without a risk there is no value
    loss = str(header["loss"])
    return SavedMachine(weights, support, coefficients, intercept, n, n_points, names, storage, value, loss)
