r"""The part of a Lagrangian that belongs to a risk: the conjugate of its loss, and the forms of its kernels.

With a weight w > 0 a risk is

.. math:: w \max_{\alpha, \gamma}\ \ell(\alpha) - \tfrac12 \sum_m \alpha'K_m\alpha / \gamma_m

over the domain of the conjugate, with 1'alpha = 0 where there is an intercept and gamma = 1 for one kernel.
The kernels enter linearly: by s >= (alpha'K_i alpha / gamma)_i where they are sums of matrices with
non-negative weights, and by S with [[S, alpha], [alpha', gamma]] >= 0 elsewhere. Where the weight is itself
a multiplier, the variables are w alpha and w gamma, and the conjugate is replaced by its perspective w
l(alpha / w).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD

from kernelopt.duality.forms import Multiplier
from kernelopt.duality.functions import conic_norm
from kernelopt.duality.model import Model, Piece
from kernelopt.duality.products import labelled, row_product, times
from kernelopt.duality.products import scaled as times_scale
from kernelopt.duality.squares import quadratic_forms, quadratic_lengths
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.penalty import weighted
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.structure.structure import RiskTerm
from kernelopt.validation import Array


class Scaled(NamedTuple):
    """The multipliers of one risk: alpha and gamma, times the weight where that is a multiplier.

    Attributes
    ----------
    alpha : Multiplier
    gamma : Multiplier or None
    weight : number, cvxpy expression of parameters, or Multiplier
    """

    alpha: Multiplier
    gamma: Multiplier | None
    weight: Any

    @property
    def homogeneous(self) -> bool:
        """Whether alpha is multiplied by the weight."""
        return isinstance(self.weight, Multiplier)

    @property
    def factor(self) -> float:
        """The number that the terms are multiplied by: the weight, or one."""
        return float(self.weight) if isinstance(self.weight, int | float) else 1.0

    @property
    def size(self) -> float:
        """The value of the weight that the terms are multiplied by."""
        return self.factor if self.scale is None else float(np.ravel(self.scale.value)[0])

    @property
    def scale(self) -> cp.Expression | None:
        """The expression of parameters that the terms are multiplied by, None for one."""
        return self.weight if isinstance(self.weight, cp.Expression) else None

    def weighted(self, share: float, expression: cp.Expression) -> cp.Expression:
        """Return share * weight * expression, or share * expression where the multipliers have the weight."""
        product = times(share * self.factor, expression)
        return product if self.scale is None else times_scale(self.scale, product)

    def divisor(self, m: int) -> cp.Expression | None:
        """Return gamma_m, or the weight, or None for one."""
        if self.gamma is not None:
            return self.gamma.expression[m]
        return self.weight.expression if self.homogeneous else None


def by_conjugate(term: RiskTerm, homogeneous: bool) -> bool:
    """Whether a risk is written by the conjugate of its loss."""
    learner = term.learner
    if any(K.parameters() for K in term.kernels):
        return False
    loss, parameters = learner.loss, any(isinstance(v, cp.Parameter) for v in vars(learner.loss).values())
    probe = cp.Variable(learner.n)
    if homogeneous or parameters:
        return loss.dual_perspective(probe, learner.y, cp.Variable(nonneg=True)) is not None
    return True


def add_risk(model: Model, term: RiskTerm, weight: Any, suffix: str, covered: dict[int, int]) -> Multiplier:
    """Add a risk times its weight to a Lagrangian, and return its alpha.

    `covered` holds the position of the constraint K >> 0 for each kernel that has one of its own.
    """
    learner = term.learner
    alpha = model.multiplier(f"alpha{suffix}", (learner.n,), f"the fit of risk{suffix and ' ' + suffix}")
    norms = len(term.kernels) > 1 and learner.norm > 2
    gamma = None
    if norms:
        gamma = model.multiplier(
            f"gamma{suffix}", (len(term.kernels),), "the block norm of the risk", nonneg=True
        )
        alpha.shares = gamma
    scaled = Scaled(alpha, gamma, weight)
    number = f" {suffix}" if suffix else ""
    add_loss(model, term, scaled, number)
    if gamma is not None:
        add_shares(model, scaled, learner.norm, number)
    if all(form == "fixed" for form in term.forms) and not norms:
        add_fixed(model, term, scaled)
        return alpha
    for m, (K, form) in enumerate(zip(term.kernels, term.forms, strict=True)):
        if form == "semidefinite":
            add_lifted(model, K, scaled, m, covered.get(m))
        else:
            add_weighted(model, term, scaled, m)
    return alpha


def add_loss(model: Model, term: RiskTerm, scaled: Scaled, number: str) -> None:
    """Add w l(alpha), its domain, and 1'alpha = 0 where there is an intercept.

    `number` is that of the risk where there are several; the labels end with it.
    """
    learner, alpha = term.learner, scaled.alpha
    loss, y = learner.loss, learner.y

    def stated() -> tuple[cp.Expression, list[Any]]:
        a = alpha.expression
        found = loss.dual_perspective(a, y, scaled.weight.expression if scaled.homogeneous else None)
        return found if found is not None else loss.dual_expression(a, y)

    def value() -> cp.Expression:
        return scaled.weighted(1.0, stated()[0])

    def domain() -> list[Any]:
        found = stated()[1]
        if learner.bias is not None:
            found = [*found, labelled(cp.sum(alpha.expression) == 0, "bias")]
        return [labelled(c, (c.label or "domain") + number) for c in found]

    model.pieces.append(Piece(value, domain, label="loss"))


def add_shares(model: Model, scaled: Scaled, norm: float, number: str) -> None:
    """Add |gamma|_p <= 1, or the weight, with p = r / (r - 2) for the block norm r."""
    p = 1.0 if np.isinf(norm) else norm / (norm - 2)

    def domain() -> list[Any]:
        gamma: Any = scaled.gamma
        bound = scaled.weight.expression if scaled.homogeneous else 1
        return [labelled(conic_norm(gamma.expression, p) <= bound, f"shares{number}")]

    model.pieces.append(Piece(domain=domain, label="shares"))


def add_fixed(model: Model, term: RiskTerm, scaled: Scaled) -> None:
    """Add -w/2 |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1 for constant kernels."""
    n, norm = term.learner.n, term.learner.norm
    stacks = [part.grams.block(slice(0, n)) for K in term.kernels for part in (weighted(K) or [])]

    def value() -> cp.Expression:
        a = scaled.alpha.expression
        if len(stacks) == 1 or norm == 2:
            squares = [quadratic_forms(a, stack, scaled.divisor(0))[0] for stack in stacks]
            return scaled.weighted(-0.5, sum(squares[1:], squares[0]))
        images = cp.hstack([quadratic_lengths(a, stack)[0] for stack in stacks])
        length = conic_norm(images, conjugate_exponent(norm))
        if scaled.homogeneous:
            return -cp.quad_over_lin(length, 2 * scaled.weight.expression)
        return scaled.weighted(-0.5, cp.square(length))

    model.pieces.append(Piece(value, label="fixed kernels"))


def add_weighted(model: Model, term: RiskTerm, scaled: Scaled, m: int) -> None:
    """Add -w/2 sum_i weights_i s_i with s >= (alpha'K_i alpha)_i for every stack of a kernel."""
    n = term.learner.n
    for weights, grams in weighted(term.kernels[m]) or []:
        block = grams.block(slice(0, n)) if n < grams.n_points else grams

        def forms(block: Any = block) -> cp.Expression:
            return quadratic_forms(scaled.alpha.expression, block, scaled.divisor(m))

        if weights.is_constant():

            def value(weights: Any = weights, forms: Callable[[], cp.Expression] = forms) -> cp.Expression:
                return scaled.weighted(-0.5, row_product(np.asarray(weights.value), forms(), (), "W"))

            model.pieces.append(Piece(value, label="fixed kernel"))
            continue
        s = model.multiplier("s", (len(grams),), "the weights of the kernels", auxiliary=True, nonneg=True)

        def product(weights: Any = weights, s: Multiplier = s, forms: Any = forms) -> float:
            slack = np.ravel(s.expression.value) - np.ravel(forms().value)
            return scaled.size / 2 * float(slack @ np.ravel(weights.value))

        alpha = scaled.alpha.variable.name()
        words = f"<{s.variable.name()} - ({alpha}'K_m {alpha})_m, {short_name(weights, 'weights')}>"
        model.complements.append((words, product))
        model.add_product(weights, s, -scaled.factor / 2, scaled.scale, "W")
        model.pieces.append(Piece(floor=(s, forms), label="forms"))


def add_lifted(model: Model, K: cp.Expression, scaled: Scaled, m: int, position: int | None) -> None:
    """Add -w/2 <S, K> with [[S, alpha], [alpha', gamma]] >= 0.

    A kernel that is a PSD variable, or has a constraint K >> 0 at `position`, needs no multiplier for that:
    it would be part of S, which may grow by any PSD matrix. The order of S is then that of K, and alpha is
    zero at the unlabelled points. Kernels of low rank are restricted to their joint range.
    """
    n, order = scaled.alpha.size, K.shape[0]
    own = isinstance(K, cp.Variable) and K.attributes["PSD"] and absorbs(scaled)
    if own:
        row = model.row_of(K)
        row.kind = "free" if row.kind == "psd" else row.kind
    elif position is None:
        order = n
    basis = joint_range(K, order)
    K = K[:order, :order] if order < K.shape[0] else K
    whole = K
    if basis is not None:
        K, order = restricted_to_range(K, basis), basis.shape[1]
    S = model.multiplier(
        "S", (order, order), "the positive semidefinite kernel", auxiliary=True, solvable=True, symmetric=True
    )
    model.add_product(cp.vec(K, order="F"), S, -scaled.factor / 2, scaled.scale, "K")

    def column() -> cp.Expression:
        a, size = scaled.alpha.expression, order if basis is None else len(basis)
        a = cp.hstack([a, np.zeros(size - n)]) if size > n else a
        return a if basis is None else cp.Constant(basis.T, name="Q'") @ a

    def corner() -> cp.Expression:
        divisor = scaled.divisor(m)
        return cp.Constant(1.0) if divisor is None else divisor

    def domain() -> list[Any]:
        z = cp.reshape(column(), (order, 1), order="F")
        lifted = cp.bmat([[S.expression, z], [z.T, cp.reshape(corner(), (1, 1), order="F")]])
        return [labelled(PSD(lifted), f"{S.variable.name()} >= alpha alpha'")]

    model.pieces.append(Piece(domain=domain, label="lifting"))

    def rest() -> list[Array]:
        z, gamma = np.ravel(column().value), float(np.ravel(corner().value)[0])
        forced = np.outer(z, z) / gamma if gamma > 0 else 0.0  # z = 0 where gamma = 0
        Z = scaled.size / 2 * (np.asarray(S.expression.value) - forced)
        return [Z if basis is None else basis @ Z @ basis.T]

    if position is not None:
        model.of_constraints[position] = rest
        return
    alpha = f"{scaled.alpha.variable.name()} {scaled.alpha.variable.name()}'"
    divisor = scaled.divisor(m)
    share = "" if divisor is None else f"/{divisor.name()}"
    words = f"<{S.variable.name()} - {alpha}{share}, {short_name(whole, 'K')}>"
    model.complements.append((words, lambda: float(np.vdot(rest()[0], whole.value))))


def short_name(expression: cp.Expression, otherwise: str) -> str:
    """Return the name of a variable, and other words for an expression."""
    return str(expression.name()) if isinstance(expression, cp.Variable) else otherwise


def absorbs(scaled: Scaled) -> bool:
    """Whether the term -w/2 <S, K> has a weight that is surely positive, or a multiplier."""
    return scaled.scale is None
