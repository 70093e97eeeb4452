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


def only_vector(structure: Structure) -> Array | None:
    """Return the value of the only vector variable of a problem without risks; None if it has several."""
    vectors = [v for v in structure.variables if v.ndim == 1]
    return np.asarray(vectors[0].value) if len(vectors) == 1 else None
