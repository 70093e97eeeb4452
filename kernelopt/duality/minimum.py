"""A minimum as it is written, and the minima over the functions, the fit and the bias of a risk."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.closed import shrunk
from kernelopt.duality.model import Shrinkage
from kernelopt.duality.notation import Notation, relation
from kernelopt.duality.primal import ExplicitRisk
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    ZERO,
    Written,
    added,
    filled,
    index_of,
    inside,
    multiplied,
    name_of,
    negated,
    number_of,
)

SQUARED = "the conjugate of half the square of a norm is half the square of the dual norm"
LINEAR = "a linear function is bounded below only where its slope is in the dual cone"


class Minimum(NamedTuple):
    """The minimum of the part of a Lagrangian that belongs to one variable.

    Attributes
    ----------
    variable : Written
    function : Written
        What is minimised.
    value : Written
        The minimum, where the conditions hold; elsewhere it is -inf.
    conditions : list of chains of Written
    kind : str
        The conjugate that it is, in words.
    """

    variable: Written
    function: Written
    value: Written
    conditions: list[list[Written]]
    kind: str


def minimum_lines(minimum: Minimum) -> list[Written]:
    """Return a minimum as lines: what is minimised, what comes out and where, and which conjugate it is."""
    over = filled("min over @0 of @1", r"\min_{@0}\ @1", minimum.variable, minimum.function)
    lines = [over, filled("  = @0", r"\quad = @0", minimum.value)]
    if minimum.conditions:
        chains = [[" ".join(getattr(p, s) for p in chain) for s in ("signed_text", "signed_tex")]
                  for chain in minimum.conditions]  # fmt: skip
        text, tex = (", ".join(parts) for parts in zip(*chains, strict=True))
        lines.append(Written(f"  where {text}, else -inf", rf"\quad\mathrm{{where}}\ {tex}"))
    words = name_of(f"x[{minimum.kind}]").tex.removeprefix("x_{").removesuffix("}")
    return [*lines, Written(f"  ({minimum.kind})", rf"\quad\left({words}\right)")]


def shrinkage_line(found: Shrinkage, notation: Notation) -> Written:
    """Return the minimum of |g + u| over the u in a ball as a line."""
    ball = found.ball
    u, price, g = name_of(ball.u.variable.name()), notation(ball.price.expression), notation(found.g())
    least = notation(shrunk(found.g(), ball, found.kind))
    factors = notation.factor(cp.Constant(ball.factors))
    sign = (" ", r"\,") if factors.text[0].isdigit() else (" * ", r" \odot ")
    size = added([g, multiplied(factors, u, *sign)])
    size = filled("(@0)_+", r"\left(@0\right)_{+}", size) if found.kind != "free" else size
    if ball.p == 2:
        domain, size = filled("|@0|_2", r"\|@0\|_{2}", u), filled("|@0|_2", r"\|@0\|_{2}", size)
    else:
        domain = filled("|@0|", r"|@0|", u)
        size = filled("|@0|", r"|@0|", size) if found.kind == "free" else size
    return filled("min over @0 <= @1 of @2 = @3", r"\min_{@0 \leq @1}\ @2 = @3", domain, price, size, least)


def risk_minima(risk: ExplicitRisk, dual_loss: Written, domain: list[list[Written]]) -> list[Minimum]:
    """Return the minima over f, z and b of a risk with alpha'(z - f - b)."""
    alpha = risk.alpha
    slope = filled("@0'", r"@0^\top ", alpha)
    found = []
    if len(risk.functions) == 1:
        (f,), (K,) = risk.functions, risk.kernels
        square = filled(
            "1/2 @0' @1^+ @0", r"\frac{1}{2}\,@0^\top @1^{+} @0", f, inside(K, UNIT), binds=PRODUCT
        )
        form = filled("1/2 @0' @1 @0", r"\frac{1}{2}\,@0^\top @1 @0", alpha, inside(K, UNIT), binds=PRODUCT)
        function = added([square, negated(joined(slope, f))])
        found.append(Minimum(f, function, negated(form), [], "the conjugate of a square is a square"))
    else:
        names = [Written(", ".join(f.text for f in risk.functions), ", ".join(f.tex for f in risk.functions))]
        total = added([risk.square, *(negated(joined(slope, f)) for f in risk.functions)])
        rest = [
            filled("@0' @1 @0", r"@0^\top @1 @0", alpha, inside(K, UNIT), binds=PRODUCT) for K in risk.kernels
        ]
        best = multiplied(number_of(0.5), dual_norm_square(rest, risk.norm))
        found.append(Minimum(names[0], total, negated(best), [], SQUARED))
    loss = added([risk.loss, joined(slope, risk.z)])
    found.append(Minimum(risk.z, loss, dual_loss, domain, "minus the conjugate of the loss at -alpha"))
    if risk.bias is not None:
        total = filled("sum(@0)", r"\mathbf{1}^\top @0", alpha)
        function = negated(multiplied(risk.bias, total))
        found.append(Minimum(risk.bias, function, ZERO, [relation(total, ZERO, True)], LINEAR))
    return found


def dual_norm_square(forms: list[Written], norm: float) -> Written:
    """Return |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1."""
    if norm == 2:
        return added(forms)
    texts, texs = ([getattr(form, side) for form in forms] for side in ("text", "tex"))
    if np.isinf(norm):
        inner = [(rf"sqrt({t})", rf"\sqrt{{{x}}}") for t, x in zip(texts, texs, strict=True)]
        text, tex = (" + ".join(part) for part in zip(*inner, strict=True))
        return Written(f"({text})^2", rf"\left({tex}\right)^{{2}}")
    if norm == 1:
        return Written(f"max({', '.join(texts)})", rf"\max\left({', '.join(texs)}\right)")
    s = index_of(norm / (norm - 1))
    text, tex = ", ".join(f"sqrt({t})" for t in texts), ", ".join(rf"\sqrt{{{t}}}" for t in texs)
    return Written(f"|({text})|_{s.text}^2", rf"\left\|\left({tex}\right)\right\|_{{{s.tex}}}^{{2}}")


def joined(slope: Written, variable: Written) -> Written:
    """Return alpha'f, for alpha' and f."""
    body = inside(variable, UNIT)
    return Written(f"{slope.text}{body.text}", f"{slope.tex}{body.tex}", PRODUCT)
