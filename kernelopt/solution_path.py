"""`path`: a problem solved at several values of a parameter, each from the solution before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Unpack, overload

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Formulation
from kernelopt.errors import InputError, KerneloptError, ParameterError
from kernelopt.figures import draw_bounds, draw_weights_along, new_axes, shortened_name, values_axis
from kernelopt.methods import Method, Solution, SolveOptions, solve
from kernelopt.methods.control import Callback
from kernelopt.plain_tables import html_table, text_table
from kernelopt.validation import Array, as_list, positive, shown
from kernelopt.validation.messages import refuse_unknown

HEADER = ("lower bound", "upper bound", "gap", "weights above 0")
USED = 1e-6  # share of the largest weight from which a weight is counted
NOT_TAKEN = ("checkpoint", "start")  # options that belong to one problem


@dataclass(frozen=True, eq=False, repr=False)
class Path(Sequence[Solution]):
    """Certified solutions along the values of a parameter, as a sequence.

    Parameters
    ----------
    name : str
        The parameter.
    values : tuple of k values
        Those that were solved, in order.
    solutions : tuple of k Solutions
        One for each value.
    complete : bool
        Whether all values were solved. Otherwise Ctrl-C, the callback or the time limit ended the path.
    """

    name: str
    values: tuple[Any, ...]
    solutions: tuple[Solution, ...]
    complete: bool = True

    def __len__(self) -> int:
        return len(self.solutions)

    @overload
    def __getitem__(self, i: int) -> Solution: ...

    @overload
    def __getitem__(self, i: slice) -> tuple[Solution, ...]: ...

    def __getitem__(self, i: int | slice) -> Solution | tuple[Solution, ...]:
        return self.solutions[i]

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    @property
    def lower(self) -> Array:
        """The certified lower bounds of the optima, shape (k,)."""
        return np.array([solution.lower for solution in self])

    @property
    def upper(self) -> Array:
        """The certified upper bounds of the optima, shape (k,)."""
        return np.array([solution.upper for solution in self])

    @property
    def gap(self) -> Array:
        """The certified relative gaps, shape (k,)."""
        return np.array([solution.gap for solution in self])

    @property
    def weights(self) -> Array:
        """The kernel weights, shape (k, m).

        Raises
        ------
        InputError
            If a solution has no weights or several arrays of them, or if their numbers differ.
        """
        rows = [solution.weights for solution in self]
        shapes = {row.shape if isinstance(row, np.ndarray) else type(row).__name__ for row in rows}
        if len(shapes) != 1 or not isinstance(rows[0], np.ndarray):
            raise InputError(
                "the weights of a path are one array with a row for each solution, got solutions with "
                f"weights of {', '.join(map(str, shapes))}. Read path[i].weights."
            )
        return np.array(rows)

    def plot(self, ax: Any = None, *, names: Sequence[str] | None = None) -> Any:
        """Draw the kernel weights against the values, one line per kernel.

        The axis is logarithmic where the values are positive numbers of different magnitude. Values that are
        infinite or no numbers stand at equal distances, with their names. Of many kernels, the legend names
        the twelve with the largest weights.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        names : sequence of m str, optional
            Names of the kernels; by default the names of the first solution.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        weights = self.weights
        own = self[0].learned[0].names if self[0].learned else None
        if names is None:
            listed = list(own or range(weights.shape[1]))
        else:
            listed = as_list(names, "names", "one name per kernel")
        if len(listed) != weights.shape[1]:
            raise InputError(
                f"names must be one name per kernel ({weights.shape[1]}), got {len(listed)} names. Pass them "
                "in the order of the kernels, or leave them out."
            )
        ax = new_axes(ax)
        draw_weights_along(ax, self._axis(ax), weights, [str(name) for name in listed])
        ax.set_ylabel("weight")
        ax.set_title(f"Kernel weights along {shortened_name(self.name)}")
        return ax

    def plot_bounds(self, ax: Any = None) -> Any:
        """Draw the certified bounds against the values, with the gap between them shaded.

        The horizontal axis is as in `plot`; the title has the largest gap. Infinite bounds are left out.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        ax = new_axes(ax)
        draw_bounds(
            ax, self._axis(ax), self.lower, self.upper, ("certified upper bound", "certified lower bound")
        )
        ax.set_ylabel("value")
        ax.set_title(f"Certified bounds along {shortened_name(self.name)}, gaps up to {self.gap.max():.0e}")
        ax.legend(fontsize=8, loc="best", frameon=False)
        return ax

    def _axis(self, ax: Any) -> Array:
        return values_axis(ax, self.name, self.values, [value_text(value) for value in self.values])

    def _rows(self) -> list[list[str]]:
        return [
            [value_text(value), f"{s.lower:.6g}", f"{s.upper:.6g}", f"{s.gap:.1e}", used_text(s.weights)]
            for value, s in zip(self.values, self, strict=True)
        ]

    def _repr_html_(self) -> str:
        return html_table(self._rows(), (self.name, *HEADER), caption="Path", numbers=len(HEADER))

    def __repr__(self) -> str:
        ended = "" if self.complete else ", ended before the last value"
        worst = f", gaps up to {self.gap.max():.1e}" if len(self) else ""
        return f"<Path over {self.name}: {len(self)} solutions{worst}{ended}>"

    def __str__(self) -> str:
        return text_table((self.name, *HEADER), self._rows(), len(HEADER))


def value_text(value: Any) -> str:
    """Return a value of the parameter as short text."""
    return f"{value:.4g}" if isinstance(value, Real) else str(value)


def used_text(weights: Any) -> str:
    """Return the number of weights that are not zero, as "3 of 10"; a dash where there is no one array."""
    if not isinstance(weights, np.ndarray):
        return "-"
    sizes = np.abs(weights)
    return f"{int((sizes > USED * sizes.max(initial=0.0)).sum())} of {sizes.size}"


def path(
    make_problem: Callable[[Any], Formulation | cp.Problem],
    values: Iterable[Any],
    method: str | Method = "auto",
    *,
    name: str = "value",
    **options: Unpack[SolveOptions],
) -> Path:
    """Solve a problem at several values of a parameter, starting from the solution at the value before.

    Every solution is certified on its own: a poor start costs time, and no accuracy.

    Parameters
    ----------
    make_problem : function of a value
        Returns a `Formulation` or a `cp.Problem`. Kernels are read once if all problems share one `Grams`.
    values : sequence
        In the order in which they are solved; neighbours are best close to each other.
    method : str or Method, default "auto"
        As for `kernelopt.solve`, the same for all values.
    name : str, default "value"
        The name of the parameter, for tables and figures.
    **options
        As for `kernelopt.solve`, without `checkpoint` and `start`. The `time_limit` is for the whole path.
        The reports to the `callback` have the key "value" too.

    Returns
    -------
    Path
        If Ctrl-C, the callback or the time limit ends a solve, the path ends with its best point.

    Raises
    ------
    ParameterError, TypeError
        If an argument is wrong. The errors of `kernelopt.solve` are passed on.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> kernels = ko.extend.as_grams([np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]])
    >>> path = ko.path(lambda p: lp_norm.primal(kernels, [1, -1], p=p), [1.0, 2.0], "block-descent", name="p")
    >>> path.values, path.upper.round(4), path.weights.shape
    ((1.0, 2.0), array([0.5   , 0.4472]), (2, 2))
    """
    if not callable(make_problem):
        raise ParameterError(
            f"make_problem must be a function of a value that returns a problem, got {shown(make_problem)}. "
            "Pass for instance lambda p: lp_norm.primal(grams, y, p=p)."
        )
    listed = as_list(values, "values", "a list of values of the parameter")
    if not listed:
        raise ParameterError(
            f"the values of {name} must be at least one value, got none. Pass for instance [1, 2, 4]."
        )
    refuse_unknown(options, ("method", "name", *SolveOptions.__annotations__), "path")
    for option in NOT_TAKEN:
        if options.get(option) is not None:
            raise ParameterError(
                f"a path takes no {option}, which belongs to one problem, got {shown(options.get(option))}. "
                "Leave it out."
            )
    given: dict[str, Any] = dict(options)
    limit, callback = given.get("time_limit"), given.get("callback")
    end = np.inf if limit is None else time.perf_counter() + positive(limit, "time_limit")
    solved: list[Solution] = []
    for value in listed:
        if limit is not None:
            given["time_limit"] = end - time.perf_counter()
            if solved and given["time_limit"] <= 0:
                break
        if callable(callback):
            given["callback"] = partial(report_with_value, callback, value)
        if solved:
            given["start"] = solved[-1]
        try:
            problem = make_problem(value)
            if not isinstance(problem, Formulation | cp.Problem):
                raise ParameterError(
                    f"make_problem must return a Formulation or a cp.Problem, got {shown(problem)} "
                    f"({type(problem).__name__}) at {name} = {value_text(value)}. Return the problem itself."
                )
            call = problem.solve if isinstance(problem, Formulation) else partial(solve, problem)
            solved.append(call(method, **given))
        except (KeyboardInterrupt, KerneloptError) as error:
            if not solved or not (isinstance(error, KeyboardInterrupt) or time.perf_counter() >= end):
                raise
            break
        if solved[-1].ended_by_caller:
            break
    return Path(str(name), tuple(listed[: len(solved)]), tuple(solved), len(solved) == len(listed))


def report_with_value(callback: Callback, value: Any, report: dict[str, Any]) -> None:
    """Call the callback with a report that has the value of the parameter too."""
    callback({**report, "value": value})
