"""`SavedSolution`: a solution read from a file, which predicts and can be proved again."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError, MethodError
from kernelopt.learner import Machine
from kernelopt.methods.learned import chosen_machine, single
from kernelopt.methods.saved.machine import SavedMachine, saved_machine
from kernelopt.records import record, write
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, as_model_path


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


@record("solution")
@dataclass(frozen=True, eq=False, repr=False)
class SavedSolution(Solved):
    """What a file keeps of a `Solution`: its machines with their support, its weights and its certificate.

    `kernelopt.load` returns it. Beside its own attributes it has those of `Solution`, from `status` to `tol`.

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
        """Return the saved values of the variables of a problem that is built as the one that was solved.

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
                f"problem must be built as the one that was solved, with variables of shapes {wanted}, got "
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
