"""`explain`: how a problem is read, what it costs and which methods apply; advice on costly formulations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cvxpy as cp
from cvxpy.constraints import Inequality

from kernelopt.certificates.impossible import kernel_variables, unbounded_text, weights_that_grow
from kernelopt.comparisons import comparisons
from kernelopt.errors import ConditionWarning
from kernelopt.language.combination import Combination
from kernelopt.language.terms import terms
from kernelopt.language.triplets import TripletGains
from kernelopt.methods.describe import warn_caller
from kernelopt.methods.selection import judged, registered
from kernelopt.methods.sizing import Size, size
from kernelopt.plain_tables import html_table
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes, short
from kernelopt.structure.zero_weights import all_zero_weights, zero_weights


def hints(structure: Structure) -> list[str]:
    """Return advice on formulations that cost more than necessary."""
    unbounded = unbounded_text(structure, weights_that_grow(structure)).rstrip(".")
    found = [without_kernel(structure).rstrip("."), unbounded]
    return [*undeclared_signs(structure), *expanded_traces(structure), *filter(None, found)]


def warn_of_formulation(structure: Structure) -> None:
    """Warn of weights whose sign is a constraint, that are forced to zero, or that nothing bounds.

    The first warning does not depend on the size of the problem. The sign decides the cone, the methods that
    apply, and whether the learned machine predicts at new points.
    """
    found, told = undeclared_signs(structure), [without_kernel(structure)]
    if found and size(structure).order:
        order, seconds = size(structure).order, size(structure).seconds
        told.append(
            f"the problem is semidefinite of order {order} (about {seconds:.2g} s by 'exact'): {found[0]}."
        )
    loose = weights_that_grow(structure)
    if loose:
        told.append(
            f"{unbounded_text(structure, loose)} The risk falls as they grow, towards a value that is not "
            "attained, unless the machine is constant at the optimum."
        )
    for text in filter(None, told):
        warn_caller(ConditionWarning(text))


def without_kernel(structure: Structure) -> str:
    """Return a sentence that names the constraints that force all weights to zero, empty if none do.

    The weights are the variables of the kernels of a risk.
    """
    in_kernels = kernel_variables(structure)
    weights = [v for v in structure.variables if v.id in in_kernels]
    if not weights:  # before all constraints are read
        return ""
    zero = all_zero_weights(structure)
    if not all(v in zero and zero[v].all() for v in weights):
        return ""
    pairs = enumerate(zip(structure.lifted.constraints, zero_weights(structure), strict=True))
    forcing = [(i, c) for i, (c, found) in pairs if any(v in found for v in weights)]
    named = [repr(c.label) if c.label else f"{i} ({short(c)})" for i, c in forcing]
    subject, it = ("constraint", "it") if len(named) == 1 else ("constraints", "them")
    return (
        f"The {subject} {', '.join(named)} {'leaves' if it == 'it' else 'leave'} no kernel with a positive "
        f"weight: {weights[0].name()} = 0 is the only feasible value. Leave {it} out, allow {it} to be "
        f"violated at a price, or add kernels that satisfy {it}."
    )


def undeclared_signs(structure: Structure) -> list[str]:
    """Return advice for every weight whose sign is stated by a constraint and not by an attribute."""
    signed = (c for c in structure.problem.constraints if isinstance(c, Inequality) and c.args[0].is_zero())
    stated = {id(constraint.args[1]) for constraint in signed}
    kernels = [K for term in structure.risks for K in term.learner.kernels]
    weights = [w for K in kernels for w, _ in terms(K) or [] if not w.is_nonneg() and id(w) in stated]
    return [
        f"{name} >= 0 is a constraint, which the sign analysis does not see: create the variable with "
        "nonneg=True and the risk becomes a second-order cone"
        for name in dict.fromkeys(w.name() for w in weights)
    ]


def expanded_traces(structure: Structure) -> list[str]:
    """Return advice where the trace of a combination is written with cvxpy's own `trace`."""
    traces = (node for node in nodes(structure.problem) if type(node).__name__.lower() == "trace")
    if not any(isinstance(trace.args[0], Combination) for trace in traces):
        return []
    return ["cp.trace expands all N^2 m entries of a combination: kernelopt.trace(K) costs m numbers"]


@dataclass(frozen=True)
class Explanation:
    """The report of `explain`, as lines of text and as the predicted `Size`."""

    size: Size
    lines: tuple[str, ...]
    hints: tuple[str, ...]

    def _repr_html_(self) -> str:
        rows = [["", line] for line in self.lines] + [["hint", hint] for hint in self.hints]
        return html_table(rows, caption="How the problem is read")

    def __str__(self) -> str:
        hints = [f"hint: {hint}" for hint in self.hints]
        return "\n".join([*self.lines, *hints])


def explain(problem: cp.Problem) -> Explanation:
    """Report how a problem is read: its risks, cones, size and cost, and the methods that apply.

    Parameters
    ----------
    problem : cp.Problem
        Of any kind; it is not solved.

    Returns
    -------
    Explanation
        `print` shows it as text. Nothing is evaluated or compiled. The risks count from 0, in the order in
        which the problem names them, as in `Solution.decision_function(cross, risk=0)`. Some methods
        compile machine code at their first large call on a machine, by numba, and run small ones in Python
        until then. It takes some seconds, which the predictions do not contain.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> theta = cp.Variable(2, nonneg=True)
    >>> risk = ko.risk(ko.combine(theta, [np.eye(2), np.ones((2, 2))]), [1, -1], ko.hinge(1.0))
    >>> problem = cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2))
    >>> ko.explain(problem).lines[1].partition(";")[0]
    'risk 0: hinge(C=1.0) on 2 points with intercept'
    """
    structure = Structure(problem)
    expected = size(structure)
    variables = structure.user_variables
    lines = [f"{len(variables)} variable(s): " + ", ".join(map(described, variables))]
    for i, term in enumerate(structure.risks):
        learner = term.learner
        forms = ", ".join(
            f"{reason(K, form)}" for K, form in zip(learner.kernels, learner.forms, strict=True)
        )
        bias = "with" if learner.has_intercept else "without"
        lines.append(f"risk {i}: {learner.loss!r} on {learner.n} points {bias} intercept; {forms}")
    lines += list(compared(problem))
    cones = [f"semidefinite of orders {', '.join(map(str, expected.semidefinite))}"] if expected.order else []
    if expected.coordinates:
        cones.append(
            f"second-order cones over {expected.coordinates} coordinates ({expected.nonzeros} non-zeros)"
        )
    lines.append("cones of method 'exact': " + ("; ".join(cones) or "those of the constraints"))
    lines.append(
        f"predicted for 'exact': about {expected.seconds:.1f} s and {expected.memory / 1e9:.1f} GB, and "
        f"{expected.certification_seconds:.1f} s for the certificate of any method, to a factor of four"
    )
    if problem.is_dcp():
        lines += list(methods(structure))
        lines.append("predicted seconds leave out that some methods compile at their first call on a machine")
    if not problem.is_dcp():
        lines.append("not DCP: cvxpy will refuse it; a risk is convex and decreasing in its kernel")
    return Explanation(expected, tuple(lines), tuple(hints(structure)))


def methods(structure: Structure) -> Iterator[str]:
    """Yield a line on every method: first those that apply, the fastest first, then why the others do not."""
    able, refused = judged(structure, registered().values())
    for found in able:
        parts = [f"applies, about {found.seconds:.2g} s", found.method.remark(found.match)]
        yield f"method {found.method.name!r}: {'; '.join(filter(None, parts))}"
    for name, why_not in refused.items():
        yield f"method {name!r}: no: {why_not}"


def compared(problem: cp.Problem) -> Iterator[str]:
    """Yield a line on every set of triplets in a problem, with the contradictions in it."""
    for node in nodes(problem):
        if isinstance(node, TripletGains):
            yield f"comparisons: {comparisons(node.triplets)}"


def described(variable: cp.Variable) -> str:
    """Return the name, the shape and the attributes of a variable."""
    attributes = [k for k, v in variable.attributes.items() if v is not None and v is not False]
    return f"{variable.name()} {variable.shape}" + (f" {'/'.join(attributes)}" if attributes else "")


def reason(K: cp.Expression, form: str) -> str:
    """Return the cone of a kernel, with the reason for it."""
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
