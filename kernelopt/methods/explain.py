"""`explain`: a report on how a problem is read, what it costs, and which methods apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cvxpy as cp

from kernelopt.comparisons import comparisons
from kernelopt.language.terms import terms
from kernelopt.language.triplets import TripletGains
from kernelopt.methods.hints import hints
from kernelopt.methods.registry import registered
from kernelopt.methods.selection import applicable
from kernelopt.methods.sizing import Size, size
from kernelopt.plain_tables import html_table
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes


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

    Returns
    -------
    Explanation
        `print` shows it as text. Nothing is evaluated or compiled. The risks count from 0, in the order in
        which the problem names them, as in `Solution.decision_function(cross, risk=0)`. Some methods
        compile machine code at their first call on a machine, by numba. It takes some seconds, which the
        predictions do not contain.
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
        bias = "with" if learner.bias is not None else "without"
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
    for found in applicable(structure):
        yield f"method {found.method.name!r}: applies, about {found.seconds:.2g} s"
        remark = found.method.remark(found.match)
        if remark:
            yield f"{found.method.name!r} {remark}"
    for method in registered().values():
        why_not = method.match(structure)
        if isinstance(why_not, str):
            yield f"method {method.name!r}: no: {why_not}"


def compared(problem: cp.Problem) -> Iterator[str]:
    """Yield a line on every set of triplets in a problem, with the contradictions in it."""
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
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
