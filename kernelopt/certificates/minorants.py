"""Replacing every risk by an affine minorant: a relaxation in the user's variables only."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from kernelopt.language.faces import faced
from kernelopt.language.measures import alignment
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.machine import block_lower_bound
from kernelopt.norms import lp_length
from kernelopt.reading import coefficient, nodes, number
from kernelopt.validation import Array

LEAST_SHARE = 1e-7


def minorant(risk: Risk, alpha: Array) -> cp.Expression | float:
    """Return an affine expression of the kernels that is below the risk everywhere.

    l(alpha) - 1/2 sum_m alpha'K_m alpha / gamma_m, with gamma = 1 for one kernel or norm 2, and else
    |gamma|_p = 1, p = r / (r - 2), chosen from alpha. For constant kernels it is a number.
    """
    learner = risk.learner
    alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
    gain = learner.loss.conjugate(alpha, learner.y)
    if all(form == "fixed" for form in learner.forms):
        Ks = learner.kernel_values()
        if Ks is not None:
            return block_lower_bound(Ks, alpha, learner.y, learner.loss, learner.norm if len(Ks) > 1 else 2)
    shares = np.ones(len(learner.kernels))
    if len(learner.kernels) > 1 and learner.norm != 2:
        shares = block_shares(risk, alpha)
    forms = [alignment(K, alpha) / share for K, share in zip(learner.kernels, shares, strict=True)]
    return gain - cp.sum(forms) / 2


def block_shares(risk: Risk, alpha: Array) -> Array:
    """Return gamma > 0 with |gamma|_p = 1 near the best one, gamma_m ~ (alpha'K_m alpha)^(1/(p+1))."""
    norm = risk.learner.norm
    p = 1.0 if np.isinf(norm) else norm / (norm - 2)
    Ks = risk.learner.kernel_values() or [np.eye(alpha.size)] * len(risk.learner.kernels)
    forms = np.array([max(float(alpha @ K @ alpha), 0.0) for K in Ks])
    gamma = (forms / max(float(forms.max()), 1e-300)) ** (1 / (p + 1))
    gamma = np.maximum(gamma, LEAST_SHARE)
    shares: Array = gamma / lp_length(gamma, p)
    return shares


def absent(problem: cp.Problem, risk: Risk) -> bool:
    """Whether a risk has weight zero in the objective and no place in the constraints."""
    share = coefficient(problem.objective.args[0], risk)
    inside = any(node is risk for c in problem.constraints for node in nodes(c))
    return share is not None and number(share) == 0 and not inside


def relaxation(
    problem: cp.Problem, risks: Sequence[Risk], alphas: Sequence[Array], keep_sign: bool
) -> cp.Problem:
    """Return the minimisation with every risk replaced by its minorant.

    DCP makes the objective and the constraints monotone in every risk, so this is a relaxation. With
    `keep_sign` a minorant that may be negative is replaced by its positive part.
    """
    substitutes = {}
    for risk, alpha in zip(risks, alphas, strict=True):
        below = 0.0 if absent(problem, risk) else minorant(risk, alpha)
        if isinstance(below, float):
            below = cp.Constant(max(below, 0.0) if keep_sign else below)
        else:
            below = cp.pos(below) if keep_sign else below
        substitutes[id(risk)] = below
    return without_risks(problem, risks, substitutes)


def without_risks(
    problem: cp.Problem, risks: Sequence[Risk], substitutes: dict[int, cp.Expression]
) -> cp.Problem:
    """Return the minimisation with every risk replaced, by id, and its domain added."""
    objective = problem.objective.args[0].tree_copy(substitutes)
    if isinstance(problem.objective, cp.Maximize):
        objective = -objective
    constraints = [*problem.constraints, *domains(problem, risks)]
    return cp.Problem(cp.Minimize(objective), [scaled(c).tree_copy(substitutes) for c in constraints])


def domains(problem: cp.Problem, risks: Sequence[Risk]) -> list[cp.Constraint]:
    """Return K >> 0 for the kernels of unknown sign, without which a risk is infinite.

    Left out where the problem says so already: by an attribute, or by a constraint on the same
    combination (to which non-negative terms may be added).
    """
    said = [c.args[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
    found: list[cp.Constraint] = []
    for risk in risks:
        learner = risk.learner
        for K, form in zip(learner.kernels, learner.forms, strict=True):
            if form != "semidefinite" or K.is_psd() or any(implies(other, K) for other in said):
                continue
            found.append(K[: learner.n, : learner.n] >> 0)
    return found


def implies(known: cp.Expression, K: cp.Expression) -> bool:
    """Whether `known` >> 0 makes K PSD because K is `known` plus non-negative terms."""
    if known is K:
        return True
    parts, given = terms(K), terms(known)
    if parts is None or given is None:
        return False
    pairs = {(id(w), id(grams)) for w, grams in given}
    return pairs <= {(id(w), id(g)) for w, g in parts} and all(
        w.is_nonneg() for w, g in parts if (id(w), id(g)) not in pairs
    )


def scaled(constraint: cp.Constraint) -> cp.Constraint:
    """Return a semidefinite constraint on its face and with entries of size one."""
    smaller = faced(constraint)[0]
    parts = terms(smaller.args[0]) if isinstance(smaller, cp.constraints.PSD) else None
    if parts is None:
        return smaller
    size = max(float(np.abs(gram).max()) for _, grams in parts for gram in grams)
    return smaller.args[0] / size >> 0 if size > 0 else smaller
