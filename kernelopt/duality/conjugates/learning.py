"""Conjugates of risks and fidelities, from those that losses and fidelities state."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD

from kernelopt.duality.adjoints import in_shape, uniform
from kernelopt.duality.conjugates.functions import conic_norm
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate
from kernelopt.duality.lagrangian import pairing
from kernelopt.duality.squares import quadratic_forms
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.fidelity import Distance
from kernelopt.language.learner import Learner
from kernelopt.language.penalty import weighted
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import implies


@conjugate(Risk)
def machine(g: Risk, u: cp.Expression, new: New) -> Conjugate | None:
    """U (l(alpha) - 1/2 sum_m alpha'K_m alpha): weights of kernels meet s >= (alpha'K_i alpha)_i.

    A kernel without such weights meets S >> alpha alpha'. With a block norm above 2 the kernels share
    |gamma|_p <= 1, and K_m counts by alpha'K_m alpha / gamma_m. Where u is no number the variables are u
    alpha and u gamma, and l is replaced by its perspective u l(alpha / u).
    """
    learner, weight = g.learner, None if u.is_constant() else uniform(u)
    n, p, kernels = learner.n, learner.norm, learner.kernels
    several = len(kernels) > 1 and p != 2
    if any(K.parameters() for K in kernels) or (several and p < 2):
        return None
    alpha = new((n,), f"alpha{new.first}")
    stated = stated_loss(learner, alpha, weight)
    if stated is None:
        return None
    gain, domain = stated
    pairs: list[Any] = []
    divisors: Any = [weight] * len(kernels)
    if several:
        divisors = new((len(kernels),), "gamma", nonneg=True)
        bound = conic_norm(divisors, 1.0 if np.isinf(p) else p / (p - 2)) <= (1 if weight is None else weight)
        domain.append(bound.set_label("shares"))
    for m, K in enumerate(kernels):
        parts = weighted(K)
        if parts is None:
            S, restricted, domain_of_S = lifted(K, alpha, divisors[m], new)
            pairs.append((-S / 2, restricted))
            domain.append(domain_of_S)
        for weights, grams in parts or []:
            labelled = grams.block(slice(0, n))
            forms = quadratic_forms(alpha, labelled, divisors[m])
            if weights.is_constant():
                gain = gain - pairing(weights, forms) / 2
                continue
            s = new((len(grams),), "s", nonneg=True)
            pairs.append((-s / 2, weights))
            domain.append((forms <= s).set_label("forms"))
    return Conjugate(pairs, -gain, domain)


def stated_loss(
    learner: Learner, alpha: cp.Variable, weight: Any
) -> tuple[cp.Expression, list[cp.Constraint]] | None:
    """Return l(alpha), or its perspective, with its domain and 1'alpha = 0 where there is an intercept."""
    loss, y = learner.loss, learner.y
    found = loss.dual_perspective(alpha, y, weight)
    if found is None and weight is None and not any(isinstance(v, cp.Parameter) for v in vars(loss).values()):
        found = loss.dual_expression(alpha, y)
    bias = (
        [] if learner.bias is None else [(cp.sum(alpha) == 0).set_label(f"bias {alpha.name()[5:]}".strip())]
    )
    return None if found is None else (found[0], [*found[1], *bias])


def lifted(
    K: cp.Expression, alpha: cp.Variable, divisor: Any, new: New
) -> tuple[cp.Variable, cp.Expression, PSD]:
    """Return S, the kernel that it meets, and [[S, alpha], [alpha', divisor]] >> 0.

    Unlabelled points of a kernel that is PSD anyway have alpha = 0: there S is as large as K. Kernels of low
    rank are restricted to their joint range.
    """
    n, known = alpha.size, K.is_psd() or any(implies(other, K) for other in new.psd)
    order = K.shape[0] if known else n
    basis, K = joint_range(K, order), K if order == K.shape[0] else K[:order, :order]
    a = cp.hstack([alpha, np.zeros(order - n)]) if order > n else alpha
    if basis is not None:
        K, a = restricted_to_range(K, basis), cp.Constant(basis.T, name="Q") @ a
    S, z = new(K.shape, "S", symmetric=True), in_shape(a, (K.shape[0], 1))
    corner = np.eye(1) if divisor is None else in_shape(divisor, (1, 1))
    label = f"{S.name()} >= {alpha.name()} {alpha.name()}'"
    return S, K, PSD(cp.bmat([[S, z], [z.T, corner]])).set_label(label)


@conjugate(Distance)
def fidelity(g: Distance, u: cp.Expression, new: New) -> Conjugate | None:
    """<U, D> - L*(U), for a number u."""
    U = new(g.difference.shape, "U0", symmetric=g.difference.ndim == 2)
    stated = g.fidelity.conjugate_expression(U) if u.is_constant() else None
    return None if stated is None else Conjugate([(U, g.difference)], *stated)
