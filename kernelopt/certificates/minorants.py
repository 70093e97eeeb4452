"""Replacing every risk by an affine minorant: a relaxation in the user's variables only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.language.faces import faced
from kernelopt.language.measures import alignment
from kernelopt.language.terms import Term, terms
from kernelopt.machine import block_lower_bound
from kernelopt.norms import lp_length
from kernelopt.structure.affine import affine
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import copied_constraint, replaced
from kernelopt.validation import Array

LEAST_SHARE = 1e-7


def minorant(term: RiskTerm, alpha: Array, Ks: list[Array] | None) -> cp.Expression | float:
    """Return an affine expression of the kernels that is below the risk everywhere.

    l(alpha) - 1/2 sum_m alpha'K_m alpha / gamma_m, with gamma = 1 for one kernel or norm 2, and else
    |gamma|_p = 1, p = r / (r - 2), chosen from alpha at the kernels `Ks` of a candidate. For constant
    kernels it is a number.
    """
    learner = term.learner
    alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
    gain = learner.loss.conjugate(alpha, learner.y)
    if all(form == "fixed" for form in term.forms) and Ks is not None:
        return block_lower_bound(Ks, alpha, learner.y, learner.loss, learner.norm if len(Ks) > 1 else 2)
    shares = np.ones(len(term.kernels))
    if len(term.kernels) > 1 and learner.norm != 2:
        shares = block_shares(learner.norm, alpha, Ks or [np.eye(alpha.size)] * len(term.kernels))
    forms = [alignment(K, alpha) / share for K, share in zip(term.kernels, shares, strict=True)]
    return gain - cp.sum(forms) / 2


def block_shares(norm: float, alpha: Array, Ks: list[Array]) -> Array:
    """Return gamma > 0 with |gamma|_p = 1 near the best one, gamma_m ~ (alpha'K_m alpha)^(1/(p+1))."""
    p = 1.0 if np.isinf(norm) else norm / (norm - 2)
    forms = np.array([max(float(alpha @ K @ alpha), 0.0) for K in Ks])
    gamma = (forms / max(float(forms.max()), 1e-300)) ** (1 / (p + 1))
    gamma = np.maximum(gamma, LEAST_SHARE)
    shares: Array = gamma / lp_length(gamma, p)
    return shares


def minorants(structure: Structure, alphas: Sequence[Array]) -> list[cp.Expression | float]:
    """Return a minorant of every risk, at the current values of the structure's variables."""
    found = []
    for k, (term, alpha) in enumerate(zip(structure.risks, alphas, strict=True)):
        found.append(0.0 if absent(structure, k) else minorant(term, alpha, term.values()))
    return found


def absent(structure: Structure, k: int) -> bool:
    """Whether risk k has weight zero in the objective and no place in the constraints."""
    shares = structure.objective.shares
    return shares is not None and shares[k] == 0 and not structure.constrained[k]


def relaxation(structure: Structure, below: Sequence[cp.Expression | float]) -> cp.Problem:
    """Return the minimisation with every risk replaced by the positive part of its minorant.

    DCP makes the objective and the constraints monotone in every risk, and no risk is negative: so this
    is a relaxation.
    """
    pairs = zip(structure.risks, below, strict=True)
    return substituted(
        structure,
        {
            id(term.stand_in): cp.Constant(max(e, 0.0)) if isinstance(e, float) else cp.pos(e)
            for term, e in pairs
        },
    )


def substituted(structure: Structure, substitutes: dict[int, Any]) -> cp.Problem:
    """Return the minimisation with the stand-ins of the risks replaced, and the risks' domains added."""
    objective = replaced(structure.lifted.objective.args[0], substitutes)
    constraints = [scaled(c) for c in (*structure.lifted.constraints, *structure.domains)]
    return cp.Problem(
        cp.Minimize(-objective if structure.maximize else objective),
        [copied_constraint(c, substitutes) for c in constraints],
    )


def scaled(constraint: cp.Constraint) -> cp.Constraint:
    """Return a semidefinite constraint on its face and with entries of size one."""
    smaller = faced(constraint)[0]
    parts = terms(smaller.args[0]) if isinstance(smaller, cp.constraints.PSD) else None
    if parts is None:
        return smaller
    size = max(largest_coefficient(term) for term in parts)
    return smaller.args[0] / size >> 0 if size > 0 else smaller


def largest_coefficient(term: Term) -> float:
    """Return the largest entry of the matrices of a term, each times what its weight has for coefficients."""
    read = affine(term.weights)
    factors = np.ones(len(term.grams))
    if read is not None:
        rows = [np.ravel(abs(M).max(axis=1).toarray()) for M in read.matrices.values()]
        factors = np.max([np.abs(read.constant), *rows], axis=0)
    return max(float(f * np.abs(K).max()) for f, K in zip(factors, term.grams, strict=True))
