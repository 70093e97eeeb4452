"""From a certified point to a solution: putting it into the problem, and describing it."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solution import Solution as CvxpySolution

from kernelopt.certificates import Certificate
from kernelopt.grams import Grams, IdentityGrams
from kernelopt.language.adapter import set_value
from kernelopt.language.terms import terms
from kernelopt.learner import BlockMachine, Machine
from kernelopt.methods.learned import Learned, Part
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.validation import Array

VANISHED = 1e-12  # a squared norm of f, relative to the value of the risk, that counts as zero


def write_back(
    structure: Structure,
    certificate: Certificate,
    hidden: dict[int, Any],
    multipliers: list[list[Any]] | None,
    solver: str,
    optimal: bool,
) -> None:
    """Put a point into the user's problem: status, value, variables and multipliers.

    The structure's own variables hold the point already. Without multipliers those of an earlier solve are
    taken away.
    """
    problem = structure.problem
    values = {**hidden, **{v.id: value for v, value in certificate.point.items()}}
    primal = {v.id: filled(v, values.get(v.id)) for v in problem.variables()}
    for variable in problem.variables():
        variable.save_value(primal[variable.id])
    for term, machine in zip(structure.risks, certificate.machines, strict=True):
        term.node.alpha, term.node.intercept = machine.alpha, float(machine.intercept)
        term.node.remember(machine)  # cvxpy evaluates the objective in `unpack`
    status = cp.OPTIMAL if optimal else cp.OPTIMAL_INACCURATE
    problem.unpack(CvxpySolution(status, None, primal, {}, {"solver": solver}))
    set_value(problem, certificate.lower if structure.maximize else certificate.upper)
    for term in structure.risks:
        term.node.forget()
    for i, constraint in enumerate(problem.constraints):
        for j, variable in enumerate(constraint.dual_variables):
            variable.save_value(multipliers[i][j] if multipliers is not None else None)


def filled(variable: cp.Variable, value: Any) -> Any:
    """Return a value for a hidden variable that a failed solver left empty or not finite."""
    usable = value is not None and np.isfinite(np.asarray(value)).all()
    return value if usable else np.zeros(variable.shape)


def learned_machine(term: RiskTerm, machine: Machine | BlockMachine) -> Learned:
    """Return the machine of a risk at the current values of the structure's variables."""
    several = isinstance(machine, BlockMachine)
    coefficients = machine.coefficients if several else machine.alpha[None]  # type: ignore[union-attr]
    parts: list[Part] = []
    combined = inductive = True
    for K, c in zip(term.kernels, coefficients, strict=True):
        length = float(np.linalg.norm(machine.alpha))
        scale = float(np.linalg.norm(c)) / length if length > 0 else 1.0
        c = c / scale if scale > 0 else machine.alpha
        pieces = terms(K)
        if pieces is None:
            combined = inductive = False
            parts.append(Part(np.array([scale]), Grams.from_array(np.asarray(K.value)[None]), c))
            continue
        inductive = inductive and all(weights.is_nonneg() for weights, _ in pieces)
        for weights, grams in pieces:
            ridge = isinstance(grams, IdentityGrams) and len(pieces) > 1  # alone it is a kernel like others
            parts.append(Part(scale * np.ravel(weights.value), grams, c, ridge))
    b, y, loss = float(machine.intercept), term.learner.y, repr(term.learner.loss)
    return Learned(machine.alpha, b, tuple(parts), combined, inductive, y, float(machine.value), loss)


def weights_are_unique(machine: Learned, p: float | None) -> bool | None:
    """Whether the optimum determines the weights, where the set is an l_p ball, or p is None for another.

    All optimal kernels give the same function f, so two optimal weight vectors differ by weights whose
    combination maps alpha to zero: there are none where the images K_i alpha of the kernels in use are
    independent; kernels that are tight at weight zero count as used. A strictly convex ball has one
    optimum if f is not zero; another set may have one for reasons that are not looked at here.
    """
    weights = machine.weights
    if not machine.inductive or weights is None:
        return None
    used = [p.grams for p in machine.parts if not p.is_ridge]
    images = np.concatenate([grams.apply(machine.alpha)[:, : machine.alpha.size] for grams in used])
    traces = np.concatenate([grams.traces for grams in used])
    forms = images @ machine.alpha / np.where(traces > 0, traces, 1.0)
    if not weights @ images @ machine.alpha > VANISHED * abs(machine.value):
        return False
    if p is not None and 1 < p < np.inf:
        return True
    chosen = (weights > 1e-7 * weights.max()) | (forms >= (1 - 1e-7) * forms.max())
    lengths = np.linalg.norm(images[chosen], axis=1, keepdims=True)
    directions = images[chosen] / np.where(lengths > 0, lengths, 1.0)
    return bool(np.linalg.matrix_rank(directions, tol=1e-7) == chosen.sum()) or (None if p is None else False)


def only_vector(structure: Structure) -> Array | None:
    """Return the value of the one vector variable of a problem without risks."""
    vectors = [v for v in structure.variables if v.ndim == 1]
    return np.asarray(vectors[0].value) if len(vectors) == 1 else None
