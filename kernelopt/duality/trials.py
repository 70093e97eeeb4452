"""Values of a Lagrangian at given points: the numbers behind `derive` and `kkt_table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Equality, Inequality

from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.duality.assembly import parts, value_of
from kernelopt.duality.check import set_value
from kernelopt.duality.forms import Multiplier
from kernelopt.duality.lagrangian import Read
from kernelopt.duality.model import Model
from kernelopt.duality.solving import USABLE
from kernelopt.duality.symbols import dense
from kernelopt.errors import SolverError
from kernelopt.language.terms import terms
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import number, replaced
from kernelopt.threads import quietly
from kernelopt.validation import Array

WIDE = 100.0  # half the width of a box, in units of the largest value that is known


def values_of(model: Model) -> dict[str, Array]:
    """Return the values of all multipliers by name; those that were eliminated have theirs by definition."""
    found = {}
    for multiplier in model.multipliers:
        value = multiplier.expression.value
        if value is not None:
            found[multiplier.variable.name()] = np.reshape(dense(value), multiplier.variable.shape, order="F")
    return found


@contextmanager
def fixed(model: Model, values: Mapping[str, Any]) -> Iterator[None]:
    """Replace multipliers without a definition by constants, or by functions that return expressions."""
    changed = []
    for multiplier in model.multipliers:
        name = multiplier.variable.name()
        if name in values and multiplier.definition is None:
            multiplier.definition = given(values[name])
            changed.append(multiplier)
    try:
        yield
    finally:
        for multiplier in changed:
            multiplier.definition = None


def given(value: Any) -> Any:
    """Return a function that returns a value as a constant expression; a function is returned as it is."""
    if callable(value):
        return value
    constant = cp.Constant(value)
    return lambda: constant


def scaled_alpha(alpha: Array, weight: Any) -> Any:
    """Return alpha, or where the weight is a multiplier the product of both as an expression."""
    if not isinstance(weight, Multiplier):
        return alpha
    return lambda: weight.expression * alpha


def maximized(model: Model, values: Mapping[str, Any]) -> tuple[float, dict[str, Array]]:
    """Return the largest value of the dual function with some multipliers fixed, and all multipliers there.

    Conditions on the fixed multipliers alone are left out: they hold, or are measured elsewhere.
    """
    with fixed(model, values):
        constraints = [c for c in parts(model).values() if c.variables()]
        problem = cp.Problem(cp.Maximize(value_of(model)), constraints)
        value = solved(problem) if problem.variables() else float(problem.objective.value)
        return value, values_of(model)


def solved(problem: cp.Problem) -> float:
    """Solve a small convex problem, and return its value.

    Raises
    ------
    SolverError
        If no solver has an answer.
    """
    semidefinite = (c for c in problem.constraints if isinstance(c, cp.constraints.PSD))
    order = max((c.args[0].shape[0] for c in semidefinite), default=0)
    statuses = []
    with quietly():
        for attempt in ladder(linear=problem.is_lp(), order=order):
            result = run_solver(problem, attempt)
            statuses.append(f"{attempt.name}: {result.failure or result.status}")
            if result.status in USABLE:
                return float(problem.solution.opt_val)
    raise SolverError(f"a check of the derivation must have an optimum, got {'; '.join(statuses)}.")


def domains(read: Read, names: set[str]) -> list[Any]:
    """Return the constraints K >> 0 without which a risk is infinite, for kernels whose S is not fixed.

    `names` has the multipliers that are fixed. A minorant at alpha does not know the domain of the risk; in
    the dual the matrix S >= alpha alpha' does.
    """
    lifted = [m for m in read.model.multipliers if m.of == "the positive semidefinite kernel"]
    if any(m.variable.name() in names for m in lifted):
        return []
    return [
        K[: term.learner.n, : term.learner.n] >> 0
        for term in read.structure.risks
        for K, form in zip(term.kernels, term.forms, strict=True)
        if form == "semidefinite"
    ]


def least_value(expression: cp.Expression, constraints: list[Any]) -> float:
    """Return the minimum of a convex expression over some constraints.

    The slope by a free variable is zero up to the error of a solver, and a linear function with a slope of
    1e-9 has no minimum. Where the solvers find none, it is sought in a box that is far wider than the values.
    """
    try:
        return solved(cp.Problem(cp.Minimize(expression), constraints))
    except SolverError:
        variables = expression.variables()
        size = max(
            (float(np.abs(dense(v.value)).max(initial=0.0)) for v in variables if v.value is not None),
            default=0.0,
        )
        box = [cp.abs(cp.vec(v, order="F") if v.ndim == 2 else v) <= WIDE * max(size, 1.0) for v in variables]
        return solved(cp.Problem(cp.Minimize(expression), [*constraints, *box]))


def names_of_constraints(read: Read) -> set[str]:
    """Return the names of the multipliers of the problem's own constraints and of its risks.

    The others belong to atoms, to fidelities and to the bounds of variables.
    """
    labels = [c.label or str(i) for i, c in enumerate(read.structure.lifted.constraints)]
    own = {f"the constraint {label}" for label in labels}
    model = read.model
    names = {m.variable.name() for m in model.multipliers if m.of in own}
    for _, alpha, weight in read.alphas:
        names.add(alpha.variable.name())
        if isinstance(weight, Multiplier):
            names.add(weight.variable.name())
    names |= {m.variable.name() for m in model.multipliers if m.of == "the block norm of the risk"}
    listed = {label for label in labels if any(m.of == f"the constraint {label}" for m in model.multipliers)}
    if any(
        labels[i] not in listed for i in model.of_constraints if i >= 0
    ):  # K >> 0 whose multiplier is in S
        names |= {m.variable.name() for m in model.multipliers if m.of == "the positive semidefinite kernel"}
    return names


def minorant(term: RiskTerm, alpha: Array, gamma: Array | None) -> cp.Expression:
    """Return l(alpha) - 1/2 sum_m alpha'K_m alpha / gamma_m, which is below the risk and affine in K."""
    learner, total = term.learner, []
    n, norm = learner.n, learner.norm
    if gamma is None and len(term.kernels) > 1 and norm != 2:  # fixed kernels: their dual norm is a number
        lengths = [np.sqrt(max(float(alpha @ K.value[:n, :n] @ alpha), 0.0)) for K in term.kernels]
        length = lp_length(lengths, conjugate_exponent(norm))
        return cp.Constant(term.loss.dual_value(alpha, learner.y) - length**2 / 2)
    for m, K in enumerate(term.kernels):
        share = 1.0 if gamma is None else 1 / max(float(gamma[m]), 1e-300)
        pieces = terms(K)
        if pieces is None:
            total.append(share * cp.sum(cp.multiply(np.outer(alpha, alpha), K[:n, :n])))
        else:
            total += [share * (grams.forms(alpha) @ weights) for weights, grams in pieces]
    return term.loss.dual_value(alpha, learner.y) - cp.sum(total) / 2


def lagrangian_at(read: Read, values: Mapping[str, Array]) -> cp.Expression:
    """Return the Lagrangian of the minimisation at given multipliers, a convex expression of the variables.

    It is written from the constraints and the risks of the problem, and not from the model of `dualize`.
    The multipliers of the constraints are those that the model's variables have the values of.
    """
    structure = read.structure
    substitutes: dict[int, Any] = {}
    extra: list[cp.Expression] = []
    for term, multiplier, weight in read.alphas:
        name = multiplier.variable.name()
        gamma = values[multiplier.shares.variable.name()] if multiplier.shares is not None else None
        if isinstance(weight, Multiplier):
            price = float(values[weight.variable.name()])
            below = minorant(term, values[name] / price, None if gamma is None else gamma / price)
            extra.append(price * (below - term.stand_in))
        else:
            substitutes[id(term.stand_in)] = minorant(term, values[name], gamma)
    for term in structure.risks:
        if not any(term is known for known, _, _ in read.alphas):
            substitutes[id(term.stand_in)] = term.rebuilt()
    objective = structure.sign * replaced(structure.lifted.objective.args[0], substitutes)
    return cp.sum([objective, *extra, *constraint_terms(read, substitutes)])


def constraint_terms(read: Read, substitutes: dict[int, Any]) -> Iterator[cp.Expression]:
    """Yield <multiplier, constraint> for every constraint, with the sign of a minimisation."""
    for i, constraint in enumerate(read.structure.lifted.constraints):
        if i not in read.model.of_constraints:
            continue
        values = read.model.of_constraints[i]()
        if isinstance(constraint, Equality | Inequality):
            expression = replaced(constraint.expr, substitutes)
            y = np.reshape(values[0], expression.shape, order="F")
            y = np.maximum(y, 0.0) if isinstance(constraint, Inequality) else y
            yield cp.sum(cp.multiply(y, expression))
            continue
        for value, arg in zip(values, constraint.args, strict=True):
            yield -cp.sum(cp.multiply(np.reshape(value, arg.shape, order="F"), replaced(arg, substitutes)))


def objective_at(structure: Structure, risks: Sequence[float] = ()) -> float:
    """Return the objective of the minimisation at the values of the structure's variables.

    `risks` holds the values of the risks; those that are missing are trained.
    """
    with np.errstate(all="ignore"):
        for k, term in enumerate(structure.risks):
            if k < len(risks):
                value = risks[k]
            else:
                kernels = term.values()
                value = np.inf if kernels is None else term.learner.train(kernels).value
            term.stand_in.save_value(np.asarray(value))
        return structure.sign * number(structure.lifted.objective.args[0])


def near_random(problem: cp.Problem, constraints: list[Any], rng: np.random.Generator) -> None:
    """Set the variables of a problem to a random feasible point: half way to one near to random values.

    The variables must hold a feasible point. The other point is the projection of random values, of the
    size of the first one's, on the constraints; all points between the two are feasible.
    """
    variables = problem.variables()
    now = {v.id: dense(v.value) for v in variables}
    size = max((float(np.abs(value).max(initial=0.0)) for value in now.values()), default=0.0) or 1.0
    targets = [rng.normal(scale=size, size=v.shape) for v in variables]
    distance = cp.sum([cp.sum_squares(v - r) for v, r in zip(variables, targets, strict=True)])
    solved(cp.Problem(cp.Minimize(distance / size**2), constraints))
    for v in variables:
        set_value(v, (now[v.id] + dense(v.value)) / 2)


def risk_residual(term: RiskTerm, alpha: Array, rng: np.random.Generator) -> float:
    """Return how far the minima over z and f of a risk are from l(alpha) and -1/2 alpha'K alpha."""
    learner = term.learner
    z = cp.Variable(learner.n)
    least = solved(cp.Problem(cp.Minimize(term.loss.expression(z, learner.y) + alpha @ z)))
    value = term.loss.dual_value(alpha, learner.y)
    residual = abs(least - value) / max(1.0, abs(value))
    if len(term.kernels) > 1:
        return residual
    return max(residual, square_residual(term.kernels[0].value[: learner.n, : learner.n], alpha, rng))


def square_residual(K: Array, alpha: Array, rng: np.random.Generator) -> float:
    """Return by how much f = K beta, at random beta, is below f = K alpha in 1/2 f'K^+ f - alpha'f."""
    least = -float(alpha @ K @ alpha) / 2
    others = alpha + rng.normal(size=(8, alpha.size)) * (np.abs(alpha).max() + 1e-3)
    values = [float(b @ K @ b) / 2 - float(alpha @ K @ b) for b in others]
    return max(0.0, least - min(values)) / max(1.0, abs(least))
