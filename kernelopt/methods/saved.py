"""What a file keeps of a `Solution`: `SavedSolution` and its machines, which predict at new points."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.gap import relative_gap
from kernelopt.errors import InputError, MethodError
from kernelopt.grams import Storage
from kernelopt.grams.arguments import as_names
from kernelopt.grams.caching import pieces
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.written import is_evaluated
from kernelopt.learner import Machine
from kernelopt.methods.learned import Learned, chosen_machine, crossed, single, values
from kernelopt.records import record, write
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, Index, as_indices, as_model_path


@record("machine")
@dataclass(frozen=True, eq=False, repr=False)
class SavedMachine:
    """The machine of one risk, f(x) = sum_m weights_m sum_j coefficients_mj k_m(x, x_j) + intercept.

    The x_j are the points of the support, those with a coefficient that is not zero. Where only a kernel was
    learned they are all N points.

    Attributes
    ----------
    weights : array of shape (m,)
        Without the weight of the identity.
    support : integer array of shape (s,)
        The numbers of the x_j among the N points.
    coefficients : array of shape (s,), or (m, s) where each kernel has its own
        The coefficients of the support; empty where only a kernel was learned.
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
        return np.concatenate([self._values(part) for part in self._parts(X)])

    def _values(self, X: Any) -> Array:
        used, cross = self._cross(X, "decision_function")
        each = self.coefficients if self.coefficients.ndim == 1 else self.coefficients[used]
        return self.intercept + values(cross, self.weights[used], each)

    def _parts(self, X: Any) -> list[Any]:
        """Return new points, some at a time where their kernels with the support are many numbers."""
        rows = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim > 0)
        if self.storage is None or not rows:
            return [X]
        return [X[part] for part in pieces(len(X), self.weights.size * self.support.size)] or [X]

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
            stack = crossed(X, self.weights.size, (self.n, self.n_points), caller)
            return np.arange(len(stack)), stack[:, :, self.support]
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
    if machine.weights is None or (machine.n and not machine.inductive):
        raise MethodError(
            "a solution that is saved must have a combination of kernels with non-negative weights, got a "
            "kernel with free signs or without kernel functions: it is known on the N points only. Save "
            "solution.kernel with numpy.save, or solution.certificate.save(path)."
        )
    each = machine.coefficients
    chosen = np.flatnonzero(np.any(each, axis=0)) if machine.n else np.arange(machine.n_points)
    support = chosen if chosen.size else np.arange(1)  # the machine f = b keeps one point, to know their form
    each = each[:, support] if machine.n else each[:1]
    joined = JoinedStorage([part.grams.storage for part in machine.own])
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


@dataclass(frozen=True, eq=False, repr=False)
class Solved:
    """What a `Solution` and its file have in common; see `Solution`."""

    status: str
    method: str
    solver: str
    value: float
    certificate: Certificate
    weights_unique: bool | None = None
    iterations: int | None = None
    history: tuple[tuple[float, float, float], ...] = ()
    build_time: float = 0.0
    solve_time: float = 0.0
    certify_time: float = 0.0
    tol: float | None = None

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
        """The certified gap, relative to max(|upper|, |lower|, floor)."""
        return self.certificate.gap

    def certified_history(self, gap: bool) -> Array:
        """Return the history and its end, the certificate, as an array of shape (k, 4).

        Its columns are seconds, lower bound, upper bound and relative gap. Rows without a finite bound are
        left out, and with `gap` those with one finite bound too.

        Raises
        ------
        InputError
            If no row is left.
        """
        end = (self.build_time + self.solve_time + self.certify_time, self.lower, self.upper)
        floor = self.certificate.floor
        rows = np.array([(*row, relative_gap(*row[1:], floor)) for row in (*self.history, end)])
        wanted, columns = ("gap", rows[:, 3:]) if gap else ("bound", rows[:, 1:3])
        kept: Array = rows[np.isfinite(columns).any(axis=1)]
        if not kept.size:
            raise InputError(
                f"a history must have a report with a finite {wanted}, got {len(self.history)} reports of "
                f"the method {self.method!r}, and {self.lower:g} <= optimum <= {self.upper:g} at the end. "
                "Solve with more time or another method; kernelopt.explain(problem) lists those that apply."
            )
        return kept


@record("solution")
@dataclass(frozen=True, eq=False, repr=False)
class SavedSolution(Solved):
    """What a file keeps of a `Solution`: its machines with their support, its weights and its certificate.

    `kernelopt.load` returns it. Beside its own attributes it has attributes of `Solution`: `status` to `tol`.

    Attributes
    ----------
    certificate : Certificate
        The bounds as they were saved. `kernelopt.certify(problem, saved)` computes them again.
    machines : tuple of SavedMachine
        One for each risk; none in an estimator, which has them itself.
    shared : bool
        Whether all machines have the same weights.
    point : tuple of arrays
        The point of the certificate, in the order of the problem's variables; empty with matrix variables.
    """

    machines: tuple[SavedMachine, ...] = ()
    shared: bool = False
    point: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        if np.isnan([self.value, self.lower, self.upper, self.certificate.floor]).any():
            raise ValueError("the value and the bounds must be numbers, got NaN")

    @property
    def weights(self) -> Any:
        """The kernel weights of shape (m,), a tuple of them where several risks have weights of their own."""
        each = [machine.weights for machine in self.machines]
        return single(each[:1] if self.shared else each)

    @property
    def alpha(self) -> Any:
        """The signed dual variables of the support, one array per risk where there are several."""
        return single([each.coefficients for each in self.machines])

    @property
    def support(self) -> Any:
        """The numbers of the points of the support, one array per risk where there are several."""
        return single([each.support for each in self.machines])

    @property
    def intercept(self) -> Any:
        """The intercept, one per risk where there are several."""
        return single([each.intercept for each in self.machines])

    def decision_function(self, X: Any, *, risk: int | None = None) -> Array:
        """Return the predictions of the learned machine at new points; classify by their sign.

        Parameters
        ----------
        X : array of shape (n_new, d), or (m, n_new, N)
            New points. Where the kernels were given as an array, the m kernels between new points and the N
            points of the solve (or their first n, the labelled ones).
        risk : int from 0 to k - 1, optional
            Which machine; needed where the problem has k > 1 risks.

        Returns
        -------
        array of shape (n_new,)

        Raises
        ------
        ShapeError
            If X has another shape.
        InputError
            If no machine was learned, or `risk` is missing, or there is no such risk.
        """
        return chosen_machine(self.machines, risk).decision_function(X)

    def kernel_at(self, X: Any) -> Array:
        """Return the learned kernel between new points and the N, shape (n_new, N), without a risk.

        Parameters
        ----------
        X : array of shape (n_new, d), or (m, n_new, N)
            As in `decision_function`.

        Raises
        ------
        InputError
            If a machine was learned: then the points of its support are saved, and not all N.
        """
        return chosen_machine(self.machines, None).kernel_at(X)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the solution to a file again, as `Solution.save` does, and return the path."""
        target = as_model_path(path, "path")
        write(target, self)
        return target

    def point_in(self, problem: cp.Problem) -> dict[cp.Variable, Array]:
        """Return the saved values of the variables of a problem that is built as the solved problem was.

        `kernelopt.certify(problem, saved)` calls it.

        Raises
        ------
        InputError
            If the problem has other variables.
        """
        variables = Structure(problem).user_variables
        wanted, got = [value.shape for value in self.point], [variable.shape for variable in variables]
        if wanted != got:
            raise InputError(
                f"problem must be built as the solved problem was, with variables of shapes {wanted}, got "
                f"variables of shapes {got} in certify. Matrix variables are not saved."
            )
        return dict(zip(variables, self.point, strict=True))

    def __repr__(self) -> str:
        return f"<SavedSolution: {self}>"

    def __str__(self) -> str:
        counts = ", ".join(f"{each.support.size} of {each.n_points}" for each in self.machines)
        support = f", support {counts} points" if counts else ""  # an estimator keeps its own machines
        return f"{self.status} by {self.method}: {self.certificate}{support}"


def saved(solution: Any, *, machines: bool = True) -> SavedSolution:
    """Return what a file keeps of a `Solution`, or what it has kept itself.

    Without `machines` it is the certificate with its point and dual variables, for an estimator, which keeps
    its own machines and states its own problem.

    Raises
    ------
    MethodError
        If the solution does not predict at new points.
    """
    if isinstance(solution, SavedSolution):
        return solution
    if machines and not solution.learned:
        raise MethodError(
            "a solution that is saved must have learned a combination of kernels, got one that has none. "
            "Save the values of its variables with numpy.savez, or solution.certificate.save(path)."
        )
    certificate, learned = solution.certificate, solution.learned if machines else ()
    point = tuple(map(np.asarray, certificate.point.values()))
    simple = all(isinstance(each, Machine) for each in certificate.machines)
    common = {each.name: getattr(solution, each.name) for each in fields(Solved)}
    return SavedSolution(
        **common
        | {
            "certificate": certificate if simple else replace(certificate, machines=()),
            "history": tuple(tuple(map(float, row)) for row in solution.history),
        },
        machines=tuple(map(saved_machine, learned)),
        shared=isinstance(solution.weights, np.ndarray) or len(learned) == 1,
        point=point if all(values.ndim < 2 for values in point) else (),
    )
