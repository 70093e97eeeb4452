"""From a certificate to a solution: values for the user's problem, and the learned machines."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solution import Solution as CvxpySolution

from kernelopt.certificates import Certificate
from kernelopt.grams import Grams, IdentityStorage
from kernelopt.language.adapter import set_value
from kernelopt.language.terms import terms
from kernelopt.learner import BlockMachine, Machine
from kernelopt.methods.learned import Learned, Part
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.validation import Array

VANISHED = 1e-12  # a squared norm of f below this share of the value of the risk counts as zero
INDEPENDENT = 1e-7  # singular values of normalised vectors below this count as zero
ACTIVE = 1e-7  # relative distance below which a weight counts as zero, or a kernel as one of the best


def write_back(
    structure: Structure,
    certificate: Certificate,
    hidden: dict[int, Any],
    multipliers: list[list[Any]] | None,
    solver: str,
    optimal: bool,
) -> None:
    """Set status, value, variables and multipliers of the user's problem from a certificate.

    The structure's own variables must hold the point of the certificate. Where `multipliers` is None, the
    multipliers of an earlier solve are deleted.
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
    """Return the value of a variable, or zeros where it is missing or not finite."""
    usable = value is not None and np.isfinite(np.asarray(value)).all()
    return value if usable else np.zeros(variable.shape)


def learned_machine(term: RiskTerm, machine: Machine | BlockMachine) -> Learned:
    """Return the machine of a risk, with its kernel at the current values of the structure's variables."""
    parts: list[Part] = []
    combined = inductive = True
    for K, c, scale in zip(term.kernels, machine.coefficients, machine.scales, strict=True):
        c = c / scale if scale > 0 else machine.alpha
        pieces = terms(K)
        if pieces is None:
            combined = inductive = False
            parts.append(Part(np.array([scale]), Grams.from_array(np.asarray(K.value)[None]), c))
            continue
        inductive = inductive and all(weights.is_nonneg() for weights, _ in pieces)
        for weights, grams in pieces:
            # A ridge is the identity beside other kernels; alone, it is the kernel.
            ridge = isinstance(grams.storage, IdentityStorage) and len(pieces) > 1
            parts.append(Part(scale * np.ravel(weights.value), grams, c, ridge))
    b, y, loss = float(machine.intercept), term.learner.y, repr(term.learner.loss)
    return Learned(machine.alpha, b, tuple(parts), combined, inductive, y, float(machine.value), loss)


def weights_are_unique(machine: Learned, p: float | None) -> bool | None:
    """Whether the optimum determines the weights; None where the test below does not decide.

    All optimal kernels give the same function f. Hence two optimal weight vectors differ by some d with
    sum_i d_i K_i alpha = 0, where d_i = 0 unless K_i has a positive weight or the largest value of
    alpha'K_i alpha / tr K_i. The weights are unique if the vectors K_i alpha of these kernels are linearly
    independent. If f = 0 the weights are not unique. Otherwise they are unique in an l_p ball with
    1 < p < inf, by strict convexity.

    Parameters
    ----------
    machine : Learned
    p : float or None
        The exponent of the l_p ball, None for another set. Another set may have a unique optimum for further
        reasons, which are not tested.
    """
    weights = machine.weights
    if not machine.inductive or weights is None:
        return None
    used = [p.grams for p in machine.parts if not p.is_ridge]
    squares = np.concatenate([grams.forms(machine.alpha) for grams in used])
    traces = np.concatenate([grams.traces for grams in used])
    forms = squares / np.where(traces > 0, traces, 1.0)
    if not weights @ squares > VANISHED * abs(machine.value):
        return False
    if p is not None and 1 < p < np.inf:
        return True
    chosen = (weights > ACTIVE * weights.max()) | (forms >= (1 - ACTIVE) * forms.max())
    cuts = np.cumsum([len(grams) for grams in used])[:-1]
    active = zip(used, map(np.flatnonzero, np.split(chosen, cuts)), strict=True)
    some = [grams.subset(which) for grams, which in active if which.size]
    # Vectors that are independent on some points are independent. The support's images are known already.
    independent = any(
        are_independent(np.concatenate([grams.images(machine.alpha, points) for grams in some]))
        for points in (np.flatnonzero(machine.alpha), np.arange(machine.alpha.size))
    )
    return independent or (None if p is None else False)


def are_independent(rows: Array) -> bool:
    """Whether the rows of a matrix are linearly independent, each scaled to length one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    directions = rows / np.where(lengths > 0, lengths, 1.0)
    return bool(np.linalg.matrix_rank(directions, tol=INDEPENDENT) == len(rows))


def only_vector(structure: Structure) -> Array | None:
    """Return the value of the only vector variable of a problem without risks; None if it has several."""
    vectors = [v for v in structure.variables if v.ndim == 1]
    return np.asarray(vectors[0].value) if len(vectors) == 1 else None
