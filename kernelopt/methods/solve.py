"""`solve`: checks the arguments, chooses the methods and runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from importlib.metadata import entry_points
from inspect import Parameter, signature
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack

import cvxpy as cp
import numpy as np

from kernelopt.certificates.gap import floor
from kernelopt.errors import ParameterError, insufficient_memory
from kernelopt.language.terms import terms
from kernelopt.methods.checkpoint import Checkpoint
from kernelopt.methods.control import Callback, Control
from kernelopt.methods.describe import start_of
from kernelopt.methods.driver import Candidate, drive, no_point_error
from kernelopt.methods.exact.method import Exact
from kernelopt.methods.exact.programme import Programme
from kernelopt.methods.explain import warn_of_formulation
from kernelopt.methods.method import Method
from kernelopt.methods.selection import GROUP, add, candidates
from kernelopt.methods.solution import Solution
from kernelopt.structure.gate import check_problem, check_values
from kernelopt.structure.structure import Structure
from kernelopt.threads import one_blas_thread
from kernelopt.validation import as_path, boolean, memory_size, positive, shown
from kernelopt.validation.messages import refuse_unknown

DEFAULT_TOL = 1e-5  # the relative gap at which a solution is optimal, if no `tol` is given
P = ParamSpec("P")
T = TypeVar("T")
MODERATE = 1000  # points up to which one BLAS thread is used: more threads mostly wait for each other


class SolveOptions(TypedDict, total=False):
    """The options of `solve`, for functions that pass them on."""

    tol: float
    time_limit: float | None
    memory: float | str | None
    callback: Callback | None
    verbose: bool
    checkpoint: str | os.PathLike[str] | None
    start: Solution | None
    solver: Any
    solver_options: dict[str, Any] | None
    force: bool | None
    max_iterations: int | None
    max_chunks: int | None
    chunk: int | None
    master: Literal["exact", "taylor"] | None
    stabilize: bool | None
    step: Literal["adaptive", "theorem"] | None
    update: Literal["descent", "best-response", "averaging", "as-printed"] | None
    random_state: int | None


def with_options(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that takes `SolveOptions`: its signature lists them, and others are refused."""
    own = [p for p in signature(function).parameters.values() if p.kind != p.VAR_KEYWORD]
    defaults = {"tol": DEFAULT_TOL, "verbose": False}
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind.__forward_arg__)
        for name, kind in SolveOptions.__annotations__.items()
    ]

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> T:
        names = [p.name for p in (*own, *more) if p.name != "self"]
        refuse_unknown(options, names, function.__name__)
        return function(*args, **options)

    checked.__signature__ = signature(function).replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return checked


@with_options
def solve(problem: cp.Problem, method: str | Method = "auto", **options: Unpack[SolveOptions]) -> Solution:
    """Solve a problem by the best method for its structure and size, and certify the result.

    Parameters
    ----------
    problem : cp.Problem
        DCP, with or without risks.
    method : str or Method, default "auto"
        "exact", "newton", "interleaved", "cutting-plane", "block-descent", "smooth-dual", "first-order-dual",
        "mirror-descent", "spectral-master", or any other registered method. `explain(problem)` lists those
        that apply, with their predicted seconds. "auto" runs the fastest one, and then the next one if the
        first ends above `tol` or raises an error.
    tol : float > 0, default 1e-5
        Certified gap to reach, relative to max(|upper|, |lower|, floor).
    time_limit : float > 0, optional
        Seconds of the whole call, kept to within a second or a tenth of the limit. The best point so far is
        returned. The evaluation of kernels, the first compilation of functions and the compilation of a
        conic problem by cvxpy cannot be interrupted and may add to it. No conic problem is compiled whose
        compilation is predicted to take more than twice the time left.
    memory : float > 0 or str, optional
        Bytes, or text such as "4GB". For "exact": the largest predicted memory of a semidefinite problem,
        default 16e9. For "interleaved": the size of the cache of kernel rows, default 5e8. For "newton": what
        its working set may take, by default of kernels of one distance the memory of the machine, and 1e9 of
        others.
    callback : function of a dict, optional
        Called with every reported point. The keys are "method", "iteration", "seconds", "lower", "upper",
        "gap" and "point" (values by variable id, or the weights for methods on an l_p ball). For "exact"
        they are also "solver", "status" and "certificate". For "newton" they are also "provider", "passes"
        (entries of kernels read, divided by m n^2) and "solves" (trainings at fixed weights). The method
        "exact" reports when a conic solver has ended and its point is certified, mostly once. The callback
        may raise StopIteration to end the call with the best point so far. Ctrl-C does the same, and also
        interrupts a conic solver.
    verbose : bool, default False
        Print the solver's log, or a line per iteration, and before it starts what needs all pairs of points,
        such as a normalisation. Without it, a long call shows one line of progress on a terminal.
    checkpoint : str or path-like, optional
        A file in which every iterative method keeps its state, at most a fiftieth of the time. Where the file
        exists, the call goes on from it; an interrupted call is repeated with the same arguments. The bounds
        are computed from the data again. "exact" writes nothing. The file stays after the call.
    start : Solution, optional
        The solution of a similar problem, with the same variables and samples, such as one with another C or
        p. Iterative methods start from its point and its dual variables. The bounds do not depend on it. A
        checkpoint has precedence.
    solver : str or cvxpy solver, optional
        For "exact": the only conic solver to use.
    solver_options : dict, optional
        For "exact": settings that every conic solver receives.
    force : bool, optional
        For "exact": try a semidefinite problem whose predicted time or memory is too large.
    max_iterations : int, optional
        For all methods but "exact", "interleaved" and "newton".
    max_chunks, chunk : int, optional
        For "interleaved": the number of chunks, and the number of entries of alpha in a chunk.
    master, stabilize : optional
        For "cutting-plane": the master problem, "exact" (default) or "taylor", and whether the level method
        is used (default True).
    step : "adaptive" (default) or "theorem", optional
        For "mirror-descent".
    update : optional
        For "block-descent" "descent" (default) or "best-response"; for "mirror-descent" "averaging"
        (default) or "as-printed".
    random_state : int, optional
        For "newton": the seed of its first working set, default 0.

    Returns
    -------
    Solution
        The problem has status, value and every variable set, its constraints their multipliers, and
        every risk its `alpha` and `intercept`.

    Raises
    ------
    InfeasibleError
        With a proof. A hard margin that no kernel of the set can meet is detected before solving.
    FileError
        If `checkpoint` is damaged, or belongs to another problem.
    UnboundedError, SolverError, MethodError
    MemoryError
        If an array does not fit into memory. The message says how large the kernels are, and what would fit.
    TypeError
        If there is no such option; the message names the nearest one.
    ParameterError
        If an option has a wrong type or range, or is not one of the method's; if `start` is a solution of
        other variables or samples.
    cvxpy.DCPError
        If the problem is not convex.

    Warns
    -----
    ConvergenceWarning
        If the certified gap is above `tol`.
    ConditionWarning
        If the problem is semidefinite only because the sign of weights is a constraint and not
        `nonneg=True`; and if nothing bounds the weights, as far as the constraints show it.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> mu = cp.Variable(2, nonneg=True)
    >>> K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    >>> solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4]))
    >>> solution.status, round(solution.value, 5), solution.weights.round(5) + 0.0
    ('optimal', 0.25, array([0., 2.]))
    """
    return solve_with(None, problem, method, **options)


def solve_with(
    programme: Programme | None,
    problem: cp.Problem,
    method: str | Method = "auto",
    *,
    also: Collection[str] = (),
    tol: float = DEFAULT_TOL,
    time_limit: float | None = None,
    memory: float | str | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    start: Solution | None = None,
    **options: Any,
) -> Solution:
    """Solve as `solve` does, but let the method "exact" solve `programme` where that is given.

    `also` lists options that the calling function takes beside the options of `solve`, for error messages.
    The other `options` belong to single methods.
    """
    check_problem(problem)
    check_values(problem)
    if callback is not None and not callable(callback):
        raise ParameterError(
            f"callback must be a function of a dict, got {shown(callback)} ({type(callback).__name__}). "
            "Pass for instance callback=print."
        )
    control = Control(
        positive(tol, "tol"),
        None if time_limit is None else positive(time_limit, "time_limit"),
        callback,
        boolean(verbose, "verbose"),
        None if memory is None else memory_size(memory, "memory"),
    )
    own = {name: value for name, value in options.items() if value is not None}
    try:
        structure = read(problem, control, checkpoint, start)
        largest = max((term.learner.n for term in structure.risks), default=0)
        quiet = np.errstate(all="ignore")  # bounds are infinite where something overflows
        with one_blas_thread(1 if largest <= MODERATE else None), quiet:
            return run(programme, structure, control, method, own, (*also, *SolveOptions.__annotations__))
    finally:  # last of all: a second Ctrl-C must not interrupt the exit of the limit of threads
        control.close()


def run(
    programme: Programme | None,
    structure: Structure,
    control: Control,
    method: str | Method,
    options: dict[str, Any],
    taken: Collection[str],
) -> Solution:
    """Choose the methods for a problem and run them; the arguments are those of `solve_with`.

    Raises
    ------
    InsufficientMemoryError
        Of any MemoryError, with the numbers of kernels and of points.
    """
    chosen: list[Candidate] = []  # a call that ends before the choice trains machines on a sample
    control.show("choosing a method")
    control.exceed_limit()
    try:
        with control:
            chosen, control.alternatives = candidates(structure, method, options, taken)
            warn_of_formulation(structure)
        for k, each in enumerate(chosen):
            if isinstance(each.method, Exact):
                chosen[k] = replace(each, method=replace(each.method, programme=programme))
        return drive(structure, chosen, control)
    except MemoryError as error:
        raise insufficient_memory(error, *sizes(structure)) from error


def read(problem: cp.Problem, control: Control, path: Any, start: Solution | None) -> Structure:
    """Return a problem as a `Structure`, and let the control know what it reports to and starts from."""
    control.show("reading the problem")
    control.exceed_limit()
    with control:
        structure = Structure(problem)
        control.maximize, control.floor = structure.maximize, floor(structure)
        if path is not None:
            control.checkpoint = Checkpoint(as_path(path, "checkpoint"), structure)
        if start is not None:
            control.start = start_of(structure, start)
        return structure
    raise no_point_error(control)


def sizes(structure: Structure) -> tuple[int, int]:
    """Return the number of kernels of all risks, each stack once, and the largest number of points."""
    kernels = [K for term in structure.risks for K in term.kernels]
    stacks = {id(grams): len(grams) for K in kernels for _, grams in terms(K) or ()}
    return sum(stacks.values()), max((K.shape[0] for K in kernels), default=0)


def register_method(method: Method) -> None:
    """Add a method: `solve` finds it by its name, and "auto" considers it.

    It also becomes `problem.solve(method=name)`, through cvxpy's global registry.

    Parameters
    ----------
    method : Method
        An instance with the default values of its options.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import kernelopt as ko
    >>> from formulations.triplet_lp.method.column_generation import ColumnGeneration
    >>> ko.extend.register_method(ColumnGeneration())
    >>> "column-generation" in cp.Problem.REGISTERED_SOLVE_METHODS
    True
    """
    add(method)
    give_to_cvxpy(method.name)


def give_to_cvxpy(name: str) -> None:
    """Let cvxpy's `problem.solve(method=name)` be `solve(problem, name)`."""

    def solve_method(problem: cp.Problem, *_: Any, **options: Any) -> float:
        return solve(problem, name, **options).value

    cp.Problem.register_solve(name, solve_method)


give_to_cvxpy("auto")
for installed in entry_points(group=GROUP).names:  # metadata alone: the packages are imported by a solve
    give_to_cvxpy(installed)
