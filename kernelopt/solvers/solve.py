"""`solve` and `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import cvxpy as cp
from cvxpy.constraints import Inequality
from threadpoolctl import threadpool_limits

from kernelopt.comparisons import comparisons
from kernelopt.errors import ParameterError
from kernelopt.language.combination import Combination
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.language.triplets import TripletGains
from kernelopt.reading import check_is_problem, check_problem, nodes, risks, visible_variables
from kernelopt.solvers.block_descent import BLOCK_DESCENT
from kernelopt.solvers.cutting_plane import CUTTING_PLANE
from kernelopt.solvers.exact import EXACT
from kernelopt.solvers.first_order import FIRST_ORDER_DUAL
from kernelopt.solvers.interleaved import INTERLEAVED
from kernelopt.solvers.mirror_descent import MIRROR_DESCENT
from kernelopt.solvers.progress import Callback
from kernelopt.solvers.registry import METHODS, Method, choose
from kernelopt.solvers.sizing import Size, size
from kernelopt.solvers.smooth_dual import SMOOTH_DUAL
from kernelopt.solvers.solution import Solution
from kernelopt.validation import positive

MODERATE = 1000  # points, up to which linear algebra is done by one thread


def solve(
    problem: cp.Problem,
    method: str = "auto",
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    memory: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    **options: Any,
) -> Solution:
    """Solve a problem by the best method for its structure and size, and certify the result.

    Parameters
    ----------
    problem : cp.Problem
        DCP, with or without risks.
    method : str, default "auto"
        "exact", "interleaved", "cutting-plane", "block-descent", "smooth-dual", "first-order-dual",
        "mirror-descent", or any other that is registered; `explain(problem)` lists those that apply.
        "auto" is exact where that takes seconds.
    tol : float > 0, default 1e-5
        Certified gap to reach, relative to max(1, |upper|).
    time_limit : float > 0, optional
        Seconds.
    memory : float > 0, optional
        Bytes: for "exact" those that a semidefinite problem may be predicted to need, default 16e9; for
        "interleaved" those of the kernel rows that are kept, default 5e8.
    callback : function of a dict, optional
        Called with every point: keys "method", "iteration", "seconds", "lower", "upper", "gap", "point"
        (the weights; values by variable id for "exact", "cutting-plane", "first-order-dual" and
        "mirror-descent"), and for "exact" also "solver",
        "status" and "certificate". It may raise StopIteration to end with the best point so far, as
        Ctrl-C does in the iterative methods.
    verbose : bool, default False
        Print the solver's log, or a line per iteration. On a terminal long work shows its progress
        without it.
    **options
        Of the method. For "exact": `solver` (a name, or a cvxpy solver object: only that one is used),
        `solver_options` (a dict, handed to every solver) and `force=True` to try a semidefinite problem
        that is predicted not to finish. For "block-descent": `update`, "descent" or "best-response". For
        "interleaved": `chunk`, entries of alpha that move together, and `max_chunks`. For
        "cutting-plane": `master`, "exact" or "taylor", and `stabilize`. For "mirror-descent": `step`,
        "adaptive" or "theorem", and `update`, "averaging" or "as-printed". For all but "interleaved" and
        "exact": `max_iterations`.

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
    cvxpy.DCPError
        If the problem is not convex.

    Warns
    -----
    ConvergenceWarning
        If the certified gap is above `tol`.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> mu = cp.Variable(2, nonneg=True)
    >>> K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    >>> solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4]))
    >>> solution.status, round(solution.value, 5), solution.weights.round(5) + 0.0
    ('optimal', 0.25, array([0., 2.]))
    """
    check_problem(problem)
    tol = positive(tol, "tol")
    time_limit = None if time_limit is None else positive(time_limit, "time_limit")
    chosen = choose(problem, method)
    if memory is not None:
        memory = positive(memory, "memory")
        if "memory" in signature(chosen.run).parameters:
            options["memory"] = memory
    unknown = sorted(set(options) - set(signature(chosen.run).parameters))
    if unknown:
        allowed = ", ".join(k for k in signature(chosen.run).parameters if k not in ("problem", "reading"))
        raise ParameterError(
            f"options of method {chosen.name!r} are {allowed}, got {', '.join(unknown)}. Settings of a "
            "solver go into solver_options={...}."
        )
    largest = max((node.learner.n for node in risks(problem)), default=0)
    # Threads of BLAS wait for each other on small matrices: up to ten times slower on a busy machine.
    with threadpool_limits(1 if largest <= MODERATE else None, user_api="blas"):
        return chosen.run(
            problem, tol=tol, time_limit=time_limit, callback=callback, verbose=verbose, **options
        )


def register(method: Method) -> None:
    """Add a method, here and as `problem.solve(method=name)` (cvxpy's registry is global)."""
    METHODS[method.name] = method

    def solve_method(problem: cp.Problem, *_: Any, **options: Any) -> float:
        return solve(problem, method.name, **options).value

    cp.Problem.register_solve(method.name, solve_method)


for method in (
    EXACT,
    BLOCK_DESCENT,
    SMOOTH_DUAL,
    MIRROR_DESCENT,
    CUTTING_PLANE,
    INTERLEAVED,
    FIRST_ORDER_DUAL,
):
    register(method)
cp.Problem.register_solve("auto", lambda problem, *_, **options: solve(problem, **options).value)


@dataclass(frozen=True)
class Explanation:
    """What `explain` found; print it."""

    size: Size
    lines: tuple[str, ...]
    hints: tuple[str, ...]

    def __str__(self) -> str:
        hints = [f"hint: {hint}" for hint in self.hints]
        return "\n".join([*self.lines, *hints])


def explain(problem: cp.Problem) -> Explanation:
    """Say how a problem is understood: its risks, cones, size, cost, and which methods apply.

    Parameters
    ----------
    problem : cp.Problem

    Returns
    -------
    Explanation
        Prints as text. Nothing is evaluated or compiled.
    """
    check_is_problem(problem)
    found = risks(problem)
    expected = size(problem)
    lines = [
        f"{len(visible_variables(problem))} variable(s): "
        + ", ".join(map(described, visible_variables(problem)))
    ]
    for i, node in enumerate(found):
        learner = node.learner
        forms = ", ".join(
            f"{reason(K, form)}" for K, form in zip(learner.kernels, learner.forms, strict=True)
        )
        bias = "with" if learner.bias is not None else "without"
        lines.append(f"risk {i + 1}: {learner.loss!r} on {learner.n} points {bias} intercept; {forms}")
    lines += list(compared(problem))
    cones = [f"semidefinite of orders {', '.join(map(str, expected.semidefinite))}"] if expected.order else []
    if expected.coordinates:
        cones.append(
            f"second-order cones over {expected.coordinates} coordinates ({expected.nonzeros} non-zeros)"
        )
    lines.append("cones of method 'exact': " + ("; ".join(cones) or "those of the constraints"))
    lines.append(
        f"predicted: about {expected.seconds:.1f} s and {expected.memory / 1e9:.1f} GB, to a factor of three"
    )
    for method in METHODS.values():
        stands = method.obstacles(problem)
        lines.append(f"method {method.name!r}: " + ("applies" if not stands else "no: " + "; ".join(stands)))
    if not problem.is_dcp():
        lines.append("not DCP: cvxpy will refuse it; a risk is convex and decreasing in its kernel")
    return Explanation(expected, tuple(lines), tuple(hints(problem, found)))


def compared(problem: cp.Problem) -> Iterator[str]:
    """Yield a line on every set of triplets in a problem, and how it contradicts itself."""
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
            if isinstance(node, TripletGains):
                yield f"comparisons: {comparisons(node.triplets)}"


def described(variable: cp.Variable) -> str:
    """Return name, shape and attributes of a variable."""
    attributes = [k for k, v in variable.attributes.items() if v is not None and v is not False]
    return f"{variable.name()} {variable.shape}" + (f" {'/'.join(attributes)}" if attributes else "")


def reason(K: cp.Expression, form: str) -> str:
    """Return which cone a kernel goes to, and why."""
    parts = terms(K)
    count = 0 if parts is None else sum(len(grams) for _, grams in parts)
    why = {
        "fixed": "constant kernel, quadratic",
        "second-order cone": f"{count} Gram matrices with non-negative weights, second-order cones",
        "semidefinite": f"{count} Gram matrices with weights of unknown sign, semidefinite form"
        if parts is not None
        else "a kernel that is not a combination, semidefinite form",
    }
    return why[form]


def hints(problem: cp.Problem, found: list[Risk]) -> list[str]:
    """Return cures for formulations that cost more than they need."""
    said: dict[str, None] = {}
    positive_ids = {
        id(c.args[1]) for c in problem.constraints if isinstance(c, Inequality) and is_zero(c.args[0])
    }
    for node in found:
        for K in node.learner.kernels:
            for weights, _ in terms(K) or []:
                if not weights.is_nonneg() and id(weights) in positive_ids:
                    said[
                        f"{weights.name()} >= 0 is a constraint, which the sign analysis does not see: "
                        "create the variable with nonneg=True and the risk becomes a second-order cone"
                    ] = None
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
            if type(node).__name__.lower() == "trace" and isinstance(node.args[0], Combination):
                said[
                    "cp.trace expands all N^2 m entries of a combination: kernelopt.trace(K) costs m numbers"
                ] = None
    return list(said)


def is_zero(expression: Any) -> bool:
    """Whether an expression is the constant zero."""
    return bool(expression.is_constant() and not expression.parameters() and (expression.value == 0).all())
