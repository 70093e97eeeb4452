"""Conjugates of risks and fidelities, from those that losses and fidelities state."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD

from kernelopt.duality.adjoints import in_shape, uniform, value_of
from kernelopt.duality.conjugates.norms import conic_norm
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate
from kernelopt.duality.squares import quadratic_forms, quadratic_lengths
from kernelopt.grams import Grams
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.fidelity import Distance
from kernelopt.language.learner import Learner
from kernelopt.language.penalty import weighted
from kernelopt.language.risk import Risk
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.structure.structure import implies
from kernelopt.structure.trees import times


@conjugate(Risk)
def machine(g: Risk, u: cp.Expression, new: New) -> Conjugate | None:
    """U (l(alpha) - 1/2 sum_m alpha'K_m alpha): weights of kernels meet s >= (alpha'K_i alpha)_i.

    A kernel without such weights meets S >> alpha alpha'. With a block norm above 2 the kernels share
    |gamma|_p <= 1, and K_m counts by alpha'K_m alpha / gamma_m. Where u is no number the variables are u
    alpha and u gamma, and l is replaced by its perspective u l(alpha / u).
    """
    learner, weight = g.learner, None if u.is_constant() else uniform(u)
    n, p, kernels = learner.n, learner.norm, learner.kernels
    several, fixed = len(kernels) > 1 and p != 2, set(learner.forms) == {"fixed"}
    if any(K.parameters() for K in kernels) or (several and p < 2 and not fixed):
        return None
    alpha = new((n,), f"alpha{new.number}")
    stated = stated_loss(learner, alpha, weight)
    if stated is None:
        return None
    gain, domain = stated
    pairs: list[Any] = []
    divisors: Any = [weight] * len(kernels)
    if several and not fixed:
        divisors = new((len(kernels),), f"gamma{new.number}", nonneg=True)
        bound = conic_norm(divisors, 1.0 if np.isinf(p) else p / (p - 2)) <= (1 if weight is None else weight)
        domain.append(bound.set_label("shares"))
    elif several:
        gain, kernels = gain - half_length(learner, alpha, weight), ()
    for m, K in enumerate(kernels):
        parts = weighted(K)
        if parts is None:
            S, restricted, domain_of_S = lifted(K, alpha, divisors[m], new)
            pairs.append((-S / 2, restricted))
            domain.append(domain_of_S)
        for weights, grams in parts or []:
            forms = quadratic_forms(alpha, first(grams, n), divisors[m])
            if weights.is_constant():
                values = np.asarray(value_of(weights))
                gain = gain - (forms[0] if values.size == values.sum() == 1 else values @ forms) / 2
                continue
            s = new((len(grams),), "s", nonneg=True)
            pairs.append((-s / 2, weights))
            domain.append((forms <= s).set_label("forms"))
    for constraint in domain:
        if new.number and not (constraint.label or "").startswith("S"):
            constraint.set_label(f"{constraint.label or 'domain'} {new.number}")
    return Conjugate(pairs, -gain, domain)


def first(grams: Grams, n: int) -> Grams:
    """Return the matrices on the first n points, which are the labelled ones."""
    return grams.block(slice(0, n)) if n < grams.n_points else grams


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
    stacks = [first(part.grams, learner.n) for K in learner.kernels for part in weighted(K) or []]
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
    order = K.shape[0] if known else alpha.size
    basis, K = joint_range(K, order), K if order == K.shape[0] else K[:order, :order]
    a = cp.hstack([alpha, np.zeros(order - alpha.size)]) if order > alpha.size else alpha
    if basis is not None:
        K, a = restricted_to_range(K, basis), cp.Constant(basis.T, name="Q'") @ a
    S, z = new(K.shape, "S", symmetric=True), in_shape(a, (K.shape[0], 1))
    corner = in_shape(cp.Constant(1.0) if divisor is None else divisor, (1, 1))
    label = f"{S.name()} >= {alpha.name()} {alpha.name()}'"
    return S, K, PSD(cp.bmat([[S, z], [z.T, corner]])).set_label(label)


@conjugate(Distance)
def fidelity(g: Distance, u: cp.Expression, new: New) -> Conjugate | None:
    """U <U, D> - u L*(U), for a number u."""
    D, scale = g.difference, value_of(u)
    name = next(f"U{k}" for k in range(len(new.taken) + 1) if f"U{k}" not in new.taken)
    U = cp.Variable(D.shape, name=name, symmetric=D.ndim == 2)
    stated: Any = None if scale is None else g.fidelity.conjugate_expression(U)
    if stated is None:
        return None
    new.add(U)
    domain = [c.set_label(c.label or f"domain of {name}") for c in stated[1]]
    return Conjugate([(times(float(scale), U), D)], times(float(scale), stated[0]), domain)
