"""The parts of a Lagrangian that belong to support functions and to fidelities."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.forms import Multiplier
from kernelopt.duality.functions import Support, dual_norm, name_of, norm_ball
from kernelopt.duality.model import Ball, Model, Piece, read_affine
from kernelopt.duality.products import constant_entry, labelled, positive_factor, times
from kernelopt.duality.squares import product_roots
from kernelopt.fidelities import Fidelity


def add_fidelity(
    model: Model, fidelity: Fidelity, difference: cp.Expression, price: Any, number: int
) -> None:
    """Add price (<U, D> - L*(U)), the maximum of which over U is price * L(D)."""
    symmetric = difference.ndim == 2
    U = model.multiplier(
        f"U{number}", difference.shape, f"the fidelity {fidelity!r}",
        auxiliary=True, solvable=True, symmetric=symmetric,
    )  # fmt: skip
    flat = cp.vec(difference, order="F") if difference.ndim == 2 else difference
    factor, scale = (float(price), None) if isinstance(price, int | float) else (1.0, price)
    model.add_product(flat, U, factor, scale, "D", constant=False)
    target = -read_affine(flat).constant.reshape(difference.shape, order="F")
    S = cp.Constant(target, name=f"S{number}")

    def value() -> cp.Expression:
        stated: Any = fidelity.conjugate_expression(U.expression)
        product = cp.sum(cp.multiply(U.expression, S)) if symmetric else S @ U.expression
        is_indicator = isinstance(stated[0], cp.Constant) and not np.any(stated[0].value)
        total = product if is_indicator else product + stated[0]
        return -(total if scale is None and factor == 1 else price * total)

    def domain() -> list[Constraint]:
        stated: Any = fidelity.conjugate_expression(U.expression)
        return [labelled(c, f"domain of U{number}") for c in stated[1]]

    def product() -> float:
        D, L = np.asarray(difference.value), fidelity.conjugate_expression(U.expression)
        pairing = float(np.vdot(np.asarray(U.expression.value), D))
        size = factor if scale is None else float(np.ravel(scale.value)[0])
        return size * (fidelity.value(D) + float(np.ravel(L[0].value)[0]) - pairing)  # type: ignore[index]

    model.pieces.append(Piece(value, domain, label="fidelity"))
    model.complements.append((f"L(K - S{number}) + L*(U{number}) = <U{number}, K - S{number}>", product))


def add_support(model: Model, support: Support) -> None:
    """Add the multipliers (lambda, u) of tau >= g(D), u in lambda U: <u, D> - lambda tau."""
    row = model.row_of(support.stand_in)
    row.kind = "free"
    if support.kind == "max":
        (arg,) = support.args
        u = part_multiplier(model, support, arg, nonneg=True)
        row.form.add(-np.ones((1, u.size)), u)
        add_argument(model, arg, u, support.kind)
        return
    price = model.multiplier(
        f"lambda[{support.name}]", support.stand_in.shape, f"the value of {support.name}", auxiliary=True
    )
    row.form.add(-sp.eye_array(price.size), price)
    add = {
        "maximum": add_maximum, "square": add_quotient, "matrix_frac": add_inverse,
        "reciprocal": add_reciprocal,
    }.get(support.kind, add_norm)  # fmt: skip
    add(model, support, price)


def part_multiplier(model: Model, support: Support, arg: cp.Expression, **attributes: Any) -> Multiplier:
    """Return a multiplier for an argument of a support function."""
    symmetric = arg.ndim == 2 and arg.is_symmetric() and not attributes
    more = {"symmetric": True} if symmetric else attributes
    return model.multiplier(
        f"u[{name_of(support.kind, arg)}]",
        arg.shape,
        f"the argument of {name_of(support.kind, arg)}",
        auxiliary=True,
        solvable=support.p != np.inf and support.kind != "max",
        norm=support.kind in ("norm", "abs", "square"),
        **more,
    )


def add_argument(model: Model, arg: cp.Expression, u: Multiplier, kind: str, factor: float = 1.0) -> None:
    """Add factor * <u, arg>, where arg belongs to an atom of a kind."""
    flat = arg if arg.ndim < 2 else cp.vec(arg, order="F")
    model.add_product(flat, u, factor, name=f"A[{kind}]")


def add_norm(model: Model, support: Support, price: Multiplier) -> None:
    """Add |u|_q <= lambda for a norm, or |u_i| <= lambda_i for absolute values."""
    (arg,) = support.args
    u = part_multiplier(model, support, arg)
    add_argument(model, arg, u, support.kind)
    p = 1.0 if support.kind == "abs" else support.p
    if p == 1:
        model.pieces.append(
            Piece(domain=lambda: [labelled(norm_ball(u.expression, p, price.expression), support.name)],
                  label=support.name, ball=Ball(u, price, 1.0, np.ones(u.size)))
        )  # fmt: skip
    else:
        floor = (price, lambda: dual_norm(u.expression, p))
        model.pieces.append(Piece(floor=floor, label=support.name, ball=Ball(u, price, p, np.ones(u.size))))


def add_maximum(model: Model, support: Support, price: Multiplier) -> None:
    """Add u_j >= 0 with sum_j u_j = lambda for the arguments of a maximum, one of which may be constant."""
    shares, constant = [], None
    for arg in support.args:
        if arg.is_constant() and not arg.parameters() and not np.any(arg.value):
            constant = arg
            continue
        arg = arg if arg.shape == price.variable.shape else cp.promote(arg, price.variable.shape)
        u = part_multiplier(model, support, arg, nonneg=True)
        add_argument(model, arg, u, support.kind)
        shares.append(u)
    if constant is not None:

        def domain() -> list[Constraint]:
            total = sum((u.expression for u in shares[1:]), shares[0].expression)
            return [labelled(total <= price.expression, support.name)]

        model.pieces.append(Piece(domain=domain))
        return
    row = model.row_of(support.stand_in)
    row.form.terms.clear()
    for u in shares:
        row.form.add(-sp.eye_array(u.size), u)
    model.multipliers.remove(price)


def add_quotient(model: Model, support: Support, price: Multiplier) -> None:
    """Add <u, x> - w y with w >= |u|^2 / (4 lambda) for the square |x|^2 / y."""
    x, y = support.args
    u = part_multiplier(model, support, x)
    w = model.multiplier(f"w[{support.name}]", y.shape, "the denominator of a square", auxiliary=True)
    add_argument(model, x, u, "square")
    add_argument(model, y, w, "square", -1.0)

    def least() -> cp.Expression:
        flat, at = u.expression, price.expression
        flat = flat if flat.ndim == 1 else cp.vec(flat, order="F")
        if at.is_constant() and not at.parameters():
            return 1 / (4 * float(np.ravel(at.value)[0])) * cp.sum_squares(flat)
        factor, at = positive_factor(at)
        return cp.quad_over_lin(flat, times(4 * factor, at))

    model.pieces.append(Piece(floor=(w, least), label=support.name))


def add_reciprocal(model: Model, support: Support, price: Multiplier) -> None:
    """Add -<v, x> + 2 sum sqrt(lambda v) with v >= 0 for the reciprocals 1 / x."""
    (x,) = support.args
    v = part_multiplier(model, support, x, nonneg=True)
    add_argument(model, x, v, "reciprocal", -1.0)

    def value() -> cp.Expression:
        at, c = price.expression, constant_entry(price.expression)
        if c is not None:
            return times(2 * np.sqrt(c), cp.sum(cp.sqrt(v.expression)))
        return 2 * cp.sum(product_roots(at, v.expression))

    model.pieces.append(Piece(value, label=support.name, reciprocal=(v, price)))


def add_inverse(model: Model, support: Support, price: Multiplier) -> None:
    """Add <u, x> - <W, P> with W >= uu' / (4 lambda) for x'P^+x."""
    x, P = support.args
    u = part_multiplier(model, support, x)
    n = P.shape[0]
    W = model.multiplier(
        f"W[{support.name}]", (n, n), "the matrix of x'P^+x", auxiliary=True, solvable=True, symmetric=True
    )
    add_argument(model, x, u, "inverse")
    add_argument(model, P, W, "inverse", -1.0)

    def domain() -> list[Constraint]:
        half = u.expression / 2
        half = cp.reshape(half, (n, half.size // n), order="F")
        corner = price.expression * np.eye(half.shape[1])
        return [labelled(PSD(cp.bmat([[W.expression, half], [half.T, corner]])), support.name)]

    model.pieces.append(Piece(domain=domain))
