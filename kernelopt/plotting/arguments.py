"""What the figures are given: solutions, fitted estimators and what `kernelopt.load` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import machine_labels
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned, Solution, weights_of
from kernelopt.validation import as_list, shown

AnySolution: TypeAlias = Solution | SavedSolution


class Drawn(NamedTuple):
    """A solution, and the weights and names of its kernels.

    Attributes
    ----------
    solution : Solution, SavedSolution or Learned
    weights : array of shape (m,), a tuple of them where risks have different weights, or None
    names : tuple of m str, or None
    """

    solution: Any
    weights: Any
    names: tuple[str, ...] | None


def drawn_solutions(given: Any, caller: str, *, machines: bool = False) -> dict[str, Drawn]:
    """Return the solutions of an argument by their labels, at least one.

    Parameters
    ----------
    given : Solution, fitted estimator, list of them, or dict from label to them
        Without labels, solutions have the names of their methods and estimators the names of their classes;
        where these are not different, their numbers. An estimator with one problem for each class or target
        stands for the list of its solutions.
    caller : str
        The function of the figure, for messages.
    machines : bool, default False
        Whether one of a solution's `learned` is taken too.

    Raises
    ------
    InputError
        If it is none of these, or there are no solutions.
    """
    several = getattr(given, "solution_", None)
    if isinstance(several, tuple) and np.ndim(given.weights_) == 2:
        rows = zip(machine_labels(given), several, given.weights_, strict=True)
        return {label: Drawn(each, weights, given.kernel_names_) for label, each, weights in rows}
    if isinstance(given, AnySolution | Learned) or hasattr(given, "fit"):
        return {own_label(given): drawn(given, "solutions", caller, machines=machines)}
    if isinstance(given, Sequence) and not isinstance(given, str):
        labels = [*map(own_label, given)]
        if len({*labels}) < len(labels):
            labels = [*map(str, range(len(labels)))]
        given = dict(zip(labels, given, strict=True))
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            "solutions must be at least one solution: one, a list of them or a dict from label to solution, "
            f"got {shown(given)} in {caller}. Pass for instance {{'label': solution}}."
        )
    return {
        label: drawn(each, f"solutions[{label!r}]", caller, machines=machines)
        for label, each in given.items()
    }


def own_label(given: Any) -> str:
    """Return what a solution is called where the user gives no label."""
    return str(getattr(given, "method_and_solver", type(given).__name__))


def drawn(given: Any, what: str, caller: str, *, machines: bool = False) -> Drawn:
    """Return the solution of one argument: a solution, or the `solution_` of a fitted estimator.

    Of an estimator the weights are `weights_` and the names `kernel_names_`. Messages call the argument
    `what`.
    """
    if machines and isinstance(given, Learned):
        return Drawn(given, given.weights, given.names)
    if isinstance(given, AnySolution):
        return of_solution(given)
    solution = getattr(given, "solution_", None)
    if isinstance(solution, tuple):
        raise InputError(
            f"{what} must be one solution, got {shown(given)} in {caller}, which has {len(solution)}, one "
            "for each class or target. Pass model.solution_[0], or another one of them."
        )
    if isinstance(solution, AnySolution):
        read = of_solution(solution)
        combined = solution.shared if isinstance(solution, SavedSolution) else read.weights is not None
        return read._replace(weights=given.weights_, names=given.kernel_names_) if combined else read
    cure = "Pass what solve() returns, or an estimator of kernelopt.estimators after fit."
    if isinstance(given, Sequence) and given and isinstance(given[0], AnySolution):
        cure = "Pass one of them, such as path[0] of a path."
    elif hasattr(given, "fit"):
        cure = "Call its fit first; of a pipeline or a search pass the fitted estimator inside of it."
    wanted = "a Solution or a fitted estimator"
    raise InputError(f"{what} must be {wanted}, got {shown(given)} in {caller}. {cure}")


def as_names(names: Any, count: int, of: str, caller: str) -> list[Any]:
    """Return `count` names of kernels or points, `of` which they are, or raise `InputError`."""
    found = as_list(names, "names", f"one name per {of}")
    if len(found) != count:
        raise InputError(
            f"names must be one name per {of} ({count}), got {len(found)} names in {caller}. Pass them in "
            f"the order of the {of}s, or leave them out."
        )
    return found


def of_solution(solution: AnySolution) -> Drawn:
    """Return a solution with the weights and the names of its kernels, which are None where it has none."""
    learned = solution.learned if isinstance(solution, Solution) else solution.machines
    weights = solution.weights
    if isinstance(weights, tuple):
        weights = weights_of(learned)  # of equal weights one array, also where they are other variables
    return Drawn(solution, weights, learned[0].names if learned else None)
