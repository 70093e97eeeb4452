"""Conjugates of risks and fidelities, from those that losses and fidelities state."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD

from kernelopt.duality.adjoints import uniform, value_of
from kernelopt.duality.conjugates.norms import conic_norm
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate
from kernelopt.duality.squares import quadratic_forms, quadratic_lengths
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.fidelity import Distance
from kernelopt.language.learner import Learner
from kernelopt.language.penalty import weighted
from kernelopt.language.risk import Risk
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.structure.structure import implies


@conjugate(Risk)
def machine(g: Risk, u: cp.Expression, new: New) -> Conjugate | None:
    """U (l(alpha) - 1/2 sum_m alpha'K_m alpha): weights of kernels meet s >= (alpha'K_i alpha)_i.

    A kernel without such weights meets S >> alpha alpha'. With a block norm above 2 the kernels share
    |gamma|_p <= 1, and K_m counts by alpha'K_m alpha / gamma_m. Where u is no number the variables are u
    alpha and u gamma, and l is replaced by its perspective u l(alpha / u).
    """
    learner = g.learner
    several = len(learner.kernels) > 1 and learner.norm != 2
    fixed = all(form == "fixed" for form in learner.forms)
    if any(K.parameters() for K in learner.kernels) or (several and learner.norm < 2 and not fixed):
        return None
    value = value_of(u)
    scale, weight = (float(value), None) if value is not None else (1.0, uniform(u))
    number = new.number and f" {new.number}"
    alpha = new((learner.n,), f"alpha{new.number}")
    stated = stated_loss(learner, alpha, weight)
    if stated is None:
        return None
    gain, domain, pairs = *stated, []
    divisors: list[Any] = [weight] * len(learner.kernels)
    if several and fixed:
        return Conjugate([], -scale * (gain - half_length(learner, alpha, weight)), domain)
    if several:
        gamma = new((len(learner.kernels),), f"gamma{new.number}", nonneg=True)
        p = 1.0 if np.isinf(learner.norm) else learner.norm / (learner.norm - 2)
        bound = 1 if weight is None else weight
        domain.append((conic_norm(gamma, p) <= bound).set_label("shares"))
        divisors = [gamma[m] for m in range(len(learner.kernels))]
    for K, divisor in zip(learner.kernels, divisors, strict=True):
        parts = weighted(K)
        if parts is None:
            S, restricted, domain_of_S = lifted(K, alpha, divisor, new)
            pairs.append((-scale / 2 * S, restricted))
            domain.append(domain_of_S)
            continue
        for weights, grams in parts:
            block = grams.block(slice(0, learner.n)) if learner.n < grams.n_points else grams
            forms = quadratic_forms(alpha, block, divisor)
            if weights.is_constant():
                values = np.asarray(value_of(weights))
                gain = gain - (forms[0] if values.size == values.sum() == 1 else values @ forms) / 2
                continue
            s = new((len(grams),), "s", nonneg=True)
            pairs.append((-scale / 2 * s, weights))
            domain.append((forms <= s).set_label("forms"))
    for constraint in domain:
        if not (constraint.label or "").startswith("S"):
            constraint.set_label(f"{constraint.label or 'domain'}{number}")
    return Conjugate(pairs, -scale * gain if scale != 1 else -gain, domain)


def stated_loss(
    learner: Learner, alpha: cp.Variable, weight: Any
) -> tuple[cp.Expression, list[cp.Constraint]] | None:
    """Return l(alpha), or its perspective, with its domain and 1'alpha = 0 where there is an intercept."""
    loss, y = learner.loss, learner.y
    found = loss.dual_perspective(alpha, y, weight)
    if found is None:
        if weight is not None or any(isinstance(v, cp.Parameter) for v in vars(loss).values()):
            return None
        found = loss.dual_expression(alpha, y)
    gain, domain = found[0], list(found[1])
    if learner.bias is not None:
        domain.append((cp.sum(alpha) == 0).set_label("bias"))
    return gain, domain


def half_length(learner: Learner, alpha: cp.Variable, weight: Any) -> cp.Expression:
    """Return 1/2 |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1, over the weight, of fixed kernels."""
    stacks = [part.grams.block(slice(0, learner.n)) for K in learner.kernels for part in weighted(K) or []]
    lengths = cp.hstack([quadratic_lengths(alpha, stack)[0] for stack in stacks])
    length = conic_norm(lengths, conjugate_exponent(learner.norm))
    return cp.square(length) / 2 if weight is None else cp.quad_over_lin(length, 2 * weight)


def lifted(
    K: cp.Expression, alpha: cp.Variable, divisor: Any, new: New
) -> tuple[cp.Variable, cp.Expression, PSD]:
    """Return S, the kernel that it meets, and [[S, alpha], [alpha', divisor]] >> 0.

    Unlabelled points of a kernel that is PSD anyway have alpha = 0: there S is as large as K. Kernels of low
    rank are restricted to their joint range.
    """
    known = K.is_psd() or any(implies(other, K) for other in new.psd)
    n, order = alpha.size, K.shape[0] if known else alpha.size
    basis = joint_range(K, order)
    K = K[:order, :order] if order < K.shape[0] else K
    a = cp.hstack([alpha, np.zeros(order - n)]) if order > n else alpha
    if basis is not None:
        K, a = restricted_to_range(K, basis), cp.Constant(basis.T, name="Q'") @ a
    S = new(K.shape, "S", symmetric=True)
    z = cp.reshape(a, (K.shape[0], 1), order="F")
    corner = cp.reshape(cp.Constant(1.0) if divisor is None else divisor, (1, 1), order="F")
    block = PSD(cp.bmat([[S, z], [z.T, corner]]))
    return S, K, block.set_label(f"{S.name()} >= {alpha.name()} {alpha.name()}'")


@conjugate(Distance)
def fidelity(g: Distance, u: cp.Expression, new: New) -> Conjugate | None:
    """U <U, D> - u L*(U), for a number u."""
    value = value_of(u)
    D = g.difference
    probe = cp.Variable(D.shape, symmetric=D.ndim == 2)
    if value is None or g.fidelity.conjugate_expression(probe) is None:
        return None
    count = 0
    while f"U{count}" in new.taken:
        count += 1
    U = new(D.shape, f"U{count}", symmetric=D.ndim == 2)
    stated: Any = g.fidelity.conjugate_expression(U)
    scale = float(value)
    domain = [c if c.label else c.set_label(f"domain of {U.name()}") for c in stated[1]]
    pair = (U if scale == 1 else scale * U, D)
    return Conjugate([pair], scale * stated[0] if scale != 1 else stated[0], domain)
