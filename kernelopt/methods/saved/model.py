"""`SavedSolution`: a solution read from a file, which predicts and can be proved again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError, MethodError
from kernelopt.files import check_forms, check_members, forms, write_file
from kernelopt.grams.written import StackReader, StackWriter
from kernelopt.learner import Machine
from kernelopt.methods.learned import chosen_machine, single
from kernelopt.methods.saved import machine as machines_of
from kernelopt.methods.saved.machine import SavedMachine
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, as_indices, as_model_path, as_vector, boolean, positive, whole

if TYPE_CHECKING:
    from kernelopt.methods.solution import Solution

Contents = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name
ROUTES = ("closed", "conic", "sign", "none")
UNIQUE = {"yes": True, "no": False, "unknown": None}


@dataclass(frozen=True, eq=False, repr=False)
class SavedSolution:
    """What a file keeps of a `Solution`: its machines with their support, its weights and its certificate.

    `kernelopt.load` returns it.

    Attributes
    ----------
    status, method, solver : str
        As in `Solution`.
    value : float
        The objective at the point.
    certificate : Certificate
        The bounds as they were saved. `kernelopt.certify(problem, saved)` computes them again.
    weights_unique : bool or None
    tol : float or None
        The relative gap that was asked for.
    machines : tuple of SavedMachine
        One for each risk; none in an estimator, which has them itself.
    iterations : int or None
    history : tuple of (seconds, lower, upper)
    build_time, solve_time, certify_time : float
        As in `Solution`.
    shared : bool
        Whether all machines have the same weights.
    written : tuple of two dicts
        What the file says, JSON and arrays, which `save` writes again.
    """

    status: str
    method: str
    solver: str
    value: float
    certificate: Certificate
    weights_unique: bool | None
    tol: float | None
    machines: tuple[SavedMachine, ...]
    iterations: int | None
    history: tuple[tuple[float, float, float], ...]
    build_time: float
    solve_time: float
    certify_time: float
    shared: bool
    written: tuple[Mapping[str, Any], Mapping[str, Any]]

    @property
    def lower(self) -> float:
        """The certified lower bound of the optimum, as it was saved."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """The certified upper bound of the optimum, as it was saved."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """The certified gap, relative to max(|upper|, |lower|, floor)."""
        return self.certificate.gap

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
        write_file(target, "solution", *self.written)
        return target

    def point_in(self, problem: cp.Problem) -> dict[cp.Variable, Array]:
        """Return the saved values of the variables of a problem that is built as the one that was solved.

        `kernelopt.certify(problem, saved)` calls it.

        Raises
        ------
        InputError
            If the problem has other variables.
        """
        arrays, variables = self.written[1], Structure(problem).user_variables
        values = [arrays[f"point.{k}"] for k in range(len(variables)) if f"point.{k}" in arrays]
        wanted, got = [np.shape(value) for value in values], [variable.shape for variable in variables]
        if wanted != got or f"point.{len(variables)}" in arrays:
            raise InputError(
                f"problem must be built as the one that was solved, with variables of shapes {wanted}, got "
                f"variables of shapes {got} in certify. Matrix variables are not saved."
            )
        return dict(zip(variables, values, strict=True))

    def __repr__(self) -> str:
        return f"<SavedSolution: {self}>"

    def __str__(self) -> str:
        counts = ", ".join(f"{each.support.size} of {each.n_points}" for each in self.machines)
        support = f", support {counts} points" if counts else ""  # an estimator keeps its own machines
        return f"{self.status} by {self.method}: {self.certificate}{support}"


def contents(solution: Solution | SavedSolution, *, machines: bool = True) -> Contents:
    """Return what a file keeps of a solution: JSON, and arrays by name.

    Without `machines` it is the certificate with its point and dual variables, for an estimator, which keeps
    its own machines and states its own problem.

    Raises
    ------
    MethodError
        If the solution does not predict at new points, or a kernel function cannot be written as text.
    """
    if isinstance(solution, SavedSolution):
        header, arrays = solution.written
        return dict(header), dict(arrays)
    if machines and not solution.learned:
        raise MethodError(
            "a solution that is saved must have learned a combination of kernels, got one that has none. "
            "Save the values of its variables with numpy.savez, or solution.certificate.save(path)."
        )
    stacks, arrays, headers = StackWriter(), dict[str, Any](), []
    for k, learned in enumerate(solution.learned if machines else ()):
        header, of_machine = machines_of.written(learned, stacks)
        headers.append(header)
        arrays |= {f"machine.{k}.{name}": array for name, array in of_machine.items()}
    certificate = solution.certificate
    arrays |= stacks.arrays
    if all(np.ndim(values) < 2 for values in certificate.point.values()):
        arrays |= {f"point.{k}": values for k, values in enumerate(certificate.point.values())}
    simple = all(isinstance(each, Machine) for each in certificate.machines)
    trained = [each.alpha for each in certificate.machines] if simple else []
    for name, alphas in (("alpha", certificate.alphas), ("trained", trained)):
        for k, alpha in enumerate(alphas):
            rows = np.flatnonzero(alpha)
            arrays |= {f"{name}.{k}": alpha[rows], f"{name}.{k}.rows": rows}
    arrays["bounds"] = np.array([solution.value, certificate.lower, certificate.upper, certificate.floor])
    arrays["residuals"] = np.array(list(certificate.residuals.values()), dtype=float)
    arrays["history"] = np.array(solution.history, dtype=float).reshape(-1, 3)
    arrays["seconds"] = np.array([solution.build_time, solution.solve_time, solution.certify_time])
    header = {
        "status": solution.status,
        "method": solution.method,
        "solver": solution.solver,
        "iterations": None if solution.iterations is None else int(solution.iterations),
        "weights_unique": next(text for text, value in UNIQUE.items() if value is solution.weights_unique),
        "tol": solution.tol,
        "shared": isinstance(solution.weights, np.ndarray),
        "route": certificate.route,
        "reason": certificate.reason,
        "assumes": list(certificate.assumes),
        "feasible": certificate.feasible,
        "residuals": list(certificate.residuals),
        "alphas": [alpha.size for alpha in certificate.alphas],
        "trained": [alpha.size for alpha in trained],
        "machines": headers,
        "arrays": forms(arrays),
    }
    return header, arrays


def from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> SavedSolution:
    """Return the solution of `contents`; an error of Python or of kernelopt where something is wrong."""
    check_forms(header, arrays)
    for kind, entries in (("alpha", header["alphas"]), ("machine", header["machines"])):
        check_members(arrays, kind, entries)
    stacks = StackReader(arrays)
    value, lower, upper, floor = map(float, np.asarray(arrays["bounds"], dtype=float))
    if np.isnan([value, lower, upper, floor]).any():
        raise ValueError("the value and the bounds must be numbers, got NaN")
    sizes = np.asarray(arrays["residuals"], dtype=float).tolist()
    if header["route"] not in ROUTES:
        raise ValueError(f"unknown route {header['route']!r}")
    certificate = Certificate(
        lower,
        upper,
        header["route"],
        residuals=dict(zip(map(str, header["residuals"]), sizes, strict=True)),
        reason=str(header["reason"]),
        assumes=tuple(map(str, header["assumes"])),
        feasible=boolean(header["feasible"], "feasible"),
        alphas=tuple(dual_variables(arrays, "alpha", header["alphas"])),
        machines=tuple(
            Machine(np.nan, a, np.nan) for a in dual_variables(arrays, "trained", header["trained"])
        ),
        floor=floor,
        source="it was read from a file",
    )
    machines = tuple(
        machines_of.read(each, starting(arrays, f"machine.{k}."), stacks)
        for k, each in enumerate(header["machines"])
    )
    iterations, tol = header["iterations"], header["tol"]
    build, solve, certify = as_vector(arrays["seconds"], "seconds", size=3).tolist()
    return SavedSolution(
        status=str(header["status"]),
        method=str(header["method"]),
        solver=str(header["solver"]),
        value=value,
        certificate=certificate,
        weights_unique=UNIQUE[header["weights_unique"]],
        tol=None if tol is None else positive(tol, "tol"),
        machines=machines,
        iterations=None if iterations is None else whole(iterations, "iterations", 0),
        history=tuple(map(tuple, np.asarray(arrays["history"], dtype=float).reshape(-1, 3).tolist())),
        build_time=build,
        solve_time=solve,
        certify_time=certify,
        shared=boolean(header["shared"], "shared") or len(machines) == 1,
        written=(header, arrays),
    )


def dual_variables(arrays: Mapping[str, Any], name: str, sizes: Sequence[Any]) -> Iterator[Array]:
    """Return vectors of the given sizes, of which the file has the entries that are not zero."""
    for k, n in enumerate(sizes):
        alpha = np.zeros(whole(n, f"{name}.{k}"))
        rows = np.asarray(arrays[f"{name}.{k}.rows"])
        if rows.size:  # else alpha is zero
            rows = as_indices(rows, alpha.size, "the rows of alpha", unique=True)
            alpha[rows] = as_vector(arrays[f"{name}.{k}"], "alpha", rows.size)
        yield alpha


def starting(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
