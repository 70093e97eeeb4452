"""`solve`: the method is chosen, checked and run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Literal, TypedDict, Unpack

import cvxpy as cp

from kernelopt.certificates.gap import floor
from kernelopt.errors import MethodError, ParameterError
from kernelopt.methods.control import Callback, Control
from kernelopt.methods.driver import Candidate, drive
from kernelopt.methods.exact.method import Exact
from kernelopt.methods.exact.programme import Programme
from kernelopt.methods.hints import warn_of_cost
from kernelopt.methods.method import Method
from kernelopt.methods.registry import GROUP, add, named, registered, with_options
from kernelopt.methods.sizing import CLOSED_SECONDS, size
from kernelopt.methods.solution import Solution
from kernelopt.structure.gate import check_problem, check_values
from kernelopt.structure.structure import Structure
from kernelopt.threads import one_blas_thread
from kernelopt.validation import boolean, positive, shown

MODERATE = 1000  # points, up to which linear algebra is done by one thread: more wait for each other

# Nobody notices so many seconds that "exact" takes more, and its weights are the most precise.
PRECISE, PRECISE_SHARE = 0.02, 0.6


def solve(
    problem: cp.Problem,
    method: str | Method = "auto",
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    memory: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    solver: Any = None,
    solver_options: dict[str, Any] | None = None,
    force: bool | None = None,
    max_iterations: int | None = None,
    max_chunks: int | None = None,
    chunk: int | None = None,
    master: Literal["exact", "taylor"] | None = None,
    stabilize: bool | None = None,
    step: Literal["adaptive", "theorem"] | None = None,
    update: Literal["descent", "best-response", "averaging", "as-printed"] | None = None,
) -> Solution:
    """Solve a problem by the best method for its structure and size, and certify the result.

    Parameters
    ----------
    problem : cp.Problem
        DCP, with or without risks.
    method : str or Method, default "auto"
        "exact", "interleaved", "cutting-plane", "block-descent", "smooth-dual", "first-order-dual",
        "mirror-descent", or any other that is registered; `explain(problem)` lists those that apply, with
        their predicted seconds. "auto" takes the fastest, and goes on with the next where that one ends
        above `tol` or refuses.
    tol : float > 0, default 1e-5
        Certified gap to reach, relative to max(|upper|, |lower|, floor).
    time_limit : float > 0, optional
        Seconds of the whole call, to a second or a tenth of it; kernels that are evaluated and functions
        that are compiled for the first time may add to it, and so may the compilation of a conic problem by
        cvxpy: nothing can end it, so that it is not begun where it is predicted to take more than twice the
        time that is left. The best point so far comes back.
    memory : float > 0, optional
        Bytes: for "exact" those that a semidefinite problem may be predicted to need, default 16e9; for
        "interleaved" those of the kernel rows that are kept, default 5e8.
    callback : function of a dict, optional
        Called with every point: keys "method", "iteration", "seconds", "lower", "upper", "gap", "point"
        (values by variable id, but for methods on an l_p ball the weights), and for "exact" also "solver",
        "status" and "certificate". For "exact" that is when a conic solver has ended and its point is
        certified: mostly once. It may raise StopIteration to end with the best point so far, as Ctrl-C does,
        which ends a conic solver while it works, too.
    verbose : bool, default False
        Print the solver's log, or a line per iteration. On a terminal long work shows its progress
        without it.
    solver : str or cvxpy solver, optional
        For "exact": the only conic solver to use.
    solver_options : dict, optional
        For "exact": settings that are handed to every conic solver.
    force : bool, optional
        For "exact": try a semidefinite problem that is predicted not to finish.
    max_iterations : int, optional
        For all methods but "exact" and "interleaved".
    max_chunks, chunk : int, optional
        For "interleaved": how many chunks, and how many entries of alpha move together in one.
    master, stabilize : optional
        For "cutting-plane": the master problem, "exact" (default) or "taylor"; and whether the level
        method is used (default True).
    step : "adaptive" (default) or "theorem", optional
        For "mirror-descent".
    update : optional
        For "block-descent" "descent" (default) or "best-response"; for "mirror-descent" "averaging"
        (default) or "as-printed".

    Returns
    -------
    Solution
        The problem has status, value and every variable set, its constraints their multipliers, and
        every risk its `alpha` and `intercept`.

    Raises
    ------
    InfeasibleError
        With a proof; a hard margin that no kernel of the set can meet is found before solving.
    UnboundedError, SolverError, MethodError
    ParameterError
        If an option has a wrong type or range, or is not one of the method's.
    cvxpy.DCPError
        If the problem is not convex.

    Warns
    -----
    ConvergenceWarning
        If the certified gap is above `tol`.
    ConditionWarning
        If weights whose sign is a constraint, and not `nonneg=True`, make the problem take long.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> mu = cp.Variable(2, nonneg=True)
    >>> K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    >>> solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4]))
    >>> solution.status, round(solution.value, 5), solution.weights.round(5) + 0.0
    ('optimal', 0.25, array([0., 2.]))
    """
    options = {
        "solver": solver,
        "solver_options": solver_options,
        "force": force,
        "max_iterations": max_iterations,
        "max_chunks": max_chunks,
        "chunk": chunk,
        "master": master,
        "stabilize": stabilize,
        "step": step,
        "update": update,
    }
    return solve_with(
        None,
        problem,
        method,
        tol=tol,
        time_limit=time_limit,
        memory=memory,
        callback=callback,
        verbose=verbose,
        **options,
    )


class SolveOptions(TypedDict, total=False):
    """The options of `solve`, for functions that hand them on."""

    tol: float
    time_limit: float | None
    memory: float | None
    callback: Callback | None
    verbose: bool
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


COMMON = ("tol", "time_limit", "memory", "callback", "verbose")  # options of every method


def solve_with(
    programme: Programme | None,
    problem: cp.Problem,
    method: str | Method = "auto",
    *,
    also: Collection[str] = (),
    **options: Unpack[SolveOptions],
) -> Solution:
    """Solve as `solve` does; the method "exact" solves the programme, where there is one.

    `also` are options that the called function takes beside those of `solve`, for its messages.
    """
    check_problem(problem)
    check_values(problem)
    tol = positive(options.get("tol", 1e-5), "tol")
    time_limit, memory = options.get("time_limit"), options.get("memory")
    callback = options.get("callback")
    if callback is not None and not callable(callback):
        raise ParameterError(
            f"callback must be a function of a dict, got {shown(callback)} ({type(callback).__name__}). "
            "Pass for instance callback=print."
        )
    structure = Structure(problem)
    control = Control(
        tol,
        None if time_limit is None else positive(time_limit, "time_limit"),
        callback,
        boolean(options.get("verbose", False), "verbose"),
        structure.maximize,
        None if memory is None else positive(memory, "memory"),
        floor(structure),
    )
    own = {name: value for name, value in options.items() if name not in COMMON and value is not None}
    largest = max((term.learner.n for term in structure.risks), default=0)
    with one_blas_thread(1 if largest <= MODERATE else None):
        taken = (*also, *SolveOptions.__annotations__)
        chosen, control.alternatives = candidates(structure, method, own, taken)
        warn_of_cost(structure)
        return drive(structure, [programmed(c, programme) for c in chosen], control)


def programmed(candidate: Candidate, programme: Programme | None) -> Candidate:
    """Return a candidate for which "exact" solves the programme."""
    if programme is None or not isinstance(candidate.method, Exact):
        return candidate
    return replace(candidate, method=replace(candidate.method, programme=programme))


def candidates(
    structure: Structure, method: str | Method, options: dict[str, Any], taken: Collection[str]
) -> tuple[list[Candidate], tuple[str, ...]]:
    """Return the methods to run, best first, and the names of all that apply.

    `taken` are the options that the called function takes.

    Raises
    ------
    MethodError
        If there is no such method or it does not apply, naming what stands in the way.
    """
    found = applicable(structure)
    names = tuple(candidate.method.name for candidate in found)
    if isinstance(method, str) and method == "auto":
        able = [c for c in found if set(options) <= set(c.method.options())]
        if not able:
            raise ParameterError(
                f"the options {', '.join(options)} must be those of one method that applies, got a mixture. "
                f"Name the method: {', '.join(map(repr, names)) or 'none applies'}."
            )
        return [replace(c, method=with_options(c.method, options, taken)) for c in able], names
    single = with_options(named(method) if not isinstance(method, Method) else method, options, taken)
    match = single.match(structure)
    if isinstance(match, str):
        raise MethodError(
            f"method {single.name!r} does not apply: {match}. Use method='auto', or see explain()."
        )
    return [candidate(structure, single, match)], names


def applicable(structure: Structure) -> list[Candidate]:
    """Return the registered methods that apply, the fastest first; "exact" is preferred by a short time."""
    found = [(method, method.match(structure)) for method in list(registered().values())]
    able = [candidate(structure, method, match) for method, match in found if not isinstance(match, str)]
    return sorted(able, key=handicapped)


def handicapped(candidate: Candidate) -> float:
    """Return the predicted seconds, for "exact" less what nobody notices."""
    if not isinstance(candidate.method, Exact):
        return candidate.seconds
    return candidate.seconds - min(PRECISE, PRECISE_SHARE * candidate.seconds)


def candidate(structure: Structure, method: Method, match: Any) -> Candidate:
    """Return a method with its predicted seconds, the certificate's included."""
    cost = method.cost(match)
    certification = CLOSED_SECONDS if cost.certified else size(structure).certification_seconds
    return Candidate(method, match, cost.seconds + certification, certification)


def register_method(method: Method) -> None:
    """Add a method: `solve` knows it by its name, and "auto" considers it.

    It is `problem.solve(method=name)` too, through cvxpy's registry, which is global.

    Parameters
    ----------
    method : Method
        With the default values of its options.
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
