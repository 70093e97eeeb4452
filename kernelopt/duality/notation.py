"""From cvxpy expressions to mathematics as it is written: |theta|_2, <U, S>, y'alpha, [S, z; z', 1] >> 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, SOC, Equality, Inequality

from kernelopt.duality.squares import QuadraticForms
from kernelopt.duality.symbols import SAME, Symbols, dense
from kernelopt.duality.written import (
    ONE,
    PRODUCT,
    SUM,
    UNIT,
    Written,
    added,
    divided,
    filled,
    grouped,
    index_of,
    inside,
    latex_name,
    multiplied,
    name_of,
    negated,
    number_of,
    word,
)
from kernelopt.language.combination import Combination
from kernelopt.language.fidelity import Difference
from kernelopt.structure.trees import number
from kernelopt.validation import Array

TRANSPARENT = (
    "Promote", "reshape", "Vec", "symmetric_wrap", "psd_wrap", "nonneg_wrap", "nonpos_wrap", "nsd_wrap",
    "Distance", "TripletGains", "FrobeniusNorm", "conj", "real",
)  # fmt: skip
CONES = {"ExpCone": r"\mathcal{K}_{\exp}", "PowCone3D": r"\mathcal{P}", "PowConeND": r"\mathcal{P}"}


class Notation:
    """Writes expressions and constraints, with names for their data and their variables.

    Attributes
    ----------
    symbols : Symbols
    substitutes : dict from the id of a node to what is written in its place
    """

    def __init__(self, symbols: Symbols, names: Mapping[int, str] | None = None) -> None:
        self.symbols = symbols
        self.names = dict(names or {})
        self.substitutes: dict[int, Written] = {}

    def __call__(self, expression: Any) -> Written:
        """Return an expression as it is written."""
        expression = alone(expression)
        if id(expression) in self.substitutes:
            return self.substitutes[id(expression)]
        if isinstance(expression, QuadraticForms):
            return self.forms(expression)
        if isinstance(expression, Combination):
            return self.kernel(expression)
        if isinstance(expression, Difference):
            return self.difference(expression.args[0])
        if isinstance(expression, cp.Constant):
            return self.symbols.constant(expression)
        if not expression.args:
            return name_of(self.names.get(expression.id, expression.name()))
        name = type(expression).__name__.removesuffix("Approx")
        if name in TRANSPARENT:
            return self(expression.args[0])
        known = WRITERS.get(name)
        if known is not None:
            return known(self, expression)
        args = [self(arg) for arg in expression.args]
        text, tex = (", ".join(getattr(a, side) for a in args) for side in ("signed_text", "signed_tex"))
        return Written(f"{name}({text})", rf"{word(name)}\left({tex}\right)")

    def forms(self, expression: QuadraticForms) -> Written:
        """Return (alpha'K_m alpha)_m, or (alpha'K_m alpha / gamma)_m."""
        alpha = inside(self(expression.alpha), UNIT)
        if is_identity(expression.what[1]):
            form = filled("|@0|^2", r"\|@0\|_{2}^{2}", alpha)
            return form if expression.gamma is None else divided(form, self(expression.gamma))
        grams = expression.what[1]
        K = self.symbols.member(self.symbols.stack(grams))
        form = filled("@0' @1 @0", r"@0^\top @1 @0", alpha, K, binds=PRODUCT)
        if expression.gamma is not None:
            form = divided(form, self(expression.gamma))
        return form if len(grams) == 1 else filled("(@0)_m", r"\left(@0\right)_m", form)

    def kernel(self, expression: Combination) -> Written:
        """Return K(theta)."""
        letter, weights = self.symbols.stack(expression.grams), self(expression.weights)
        K, whole = self.symbols.member(letter), latex_name(letter)
        name = filled(f"{letter}(@0)", f"{whole}(@0)", weights)
        one = inside(weights, UNIT)
        total = filled(
            f"sum_m {one.text}_m @0" if len(expression.grams) > 1 else f"{one.text} @0",
            rf"\sum_m \left({one.tex}\right)_m @0" if "_" in one.tex else rf"\sum_m {one.tex}_m @0", K,
        )._replace(binds=SUM)  # fmt: skip
        self.symbols.sums[name.text] = (name, total)
        self.symbols.used[name.text] = f"= {total.text}"
        return name

    def difference(self, expression: Any) -> Written:
        """Return K - S, with S0, S1, ... for the matrices that a kernel is to be near to."""
        for arg in expression.args:
            inner = arg.args[0] if type(arg).__name__ == "NegExpression" else arg
            if isinstance(inner, cp.Constant):
                self.symbols.declare(inner.value, self.next_similarity(), "a given similarity")
        return self(expression)

    def next_similarity(self) -> str:
        """Return S0, S1, ... in the order in which `dualize` counts them."""
        count = 0
        while f"S{count}" in self.symbols.taken:
            count += 1
        return f"S{count}"

    def constraint(self, constraint: Any) -> list[Written]:
        """Return a constraint as a chain of sides: two, or one that says all."""
        args = [self(arg) for arg in constraint.args]
        if isinstance(constraint, Inequality | Equality):
            return relation(args[0], args[1], isinstance(constraint, Equality))
        if isinstance(constraint, PSD):
            return [filled("@0 >> 0", r"@0 \succeq 0", args[0], binds=SUM)]
        if isinstance(constraint, SOC):
            each = "" if constraint.args[0].size == 1 else " for each column"
            tail = r"\ \mathrm{for\ each\ column}" if each else ""
            if each and constraint.axis != 0:
                each, tail = " for each row", r"\ \mathrm{for\ each\ row}"
            return [filled(f"|@1|_2 <= @0{each}", rf"\|@1\|_{{2}} \leq @0{tail}", *args, binds=SUM)]
        if len(args) == 1:
            sign = {"NonNeg": (">=", r"\geq"), "NonPos": ("<=", r"\leq")}.get(
                type(constraint).__name__, ("==", "=")
            )
            return [filled(f"@0 {sign[0]} 0", rf"@0 {sign[1]} 0", args[0], binds=SUM)]
        kind = type(constraint).__name__
        text, tex = (", ".join(getattr(a, side) for a in args) for side in ("signed_text", "signed_tex"))
        return [Written(f"({text}) in {kind}", rf"\left({tex}\right) \in {CONES.get(kind, word(kind))}", SUM)]

    # The writers of single atoms; `WRITERS` lists them by the name of the atom.

    def product(self, expression: Any) -> Written:
        """Return c e, y'x, A x, or y * x for products of entries."""
        left, right = expression.args
        traces = self.inner_products(left, right)
        if traces is not None:
            return traces
        if is_scalar(left) or is_scalar(right):
            return multiplied(self(left), self(right))
        if type(expression).__name__ == "multiply":
            return multiplied(self(left), self(right), " * ", r" \odot ")
        constant = collapsed(expression)
        if constant is not None:
            matrix, right = constant
            other = self(right)
            if np.ptp(matrix) == 0 and matrix.ndim == 1:
                return multiplied(
                    number_of(float(matrix[0])), filled("sum(@0)", r"\mathbf{1}^\top @0", other)
                )
            one = self.symbols.matrix(matrix, str(left.name()))
            if one.text == "I":
                return other
        else:
            one, other = self(left), self(right)
        if left.ndim == 1:
            a = grouped(one, PRODUCT)
            return multiplied(one._replace(text=f"{a.text}'", tex=rf"{a.tex}^\top"), other, "", " ")
        return multiplied(one, other)

    def inner_products(self, left: Any, right: Any) -> Written | None:
        """Return c (<K_m, S>)_m for the matrix with the rows c vec(K_m)' times vec(S), None for others."""
        if not (isinstance(left, cp.Constant) and is_vector_of_matrix(right)):
            return None
        rows, n = dense(left.value), right.args[0].shape[0]
        for letter, grams in self.symbols.stacks:
            if len(grams) != len(rows) or grams.n_points < n or rows.ndim < 2:
                continue
            vectors = np.array([grams.gram(i)[:n, :n].ravel(order="F") for i in range(len(grams))])
            factor = float((rows * vectors).sum() / (vectors * vectors).sum())
            if np.allclose(rows, factor * vectors, rtol=0, atol=SAME * np.abs(rows).max()):
                K = self.symbols.member(self.symbols.stack(grams) or letter)
                pair = filled("(<@0, @1>)_m", r"\left(\langle @0, @1\rangle\right)_m", K, self(right.args[0]))
                return multiplied(number_of(factor), pair)
        return None

    def total(self, expression: Any) -> Written:
        """Return <A, B> for the sum over a product of matrices, a'b for one of vectors, else sum(e)."""
        (arg,) = expression.args
        if arg.size == 1:
            return self(arg)
        if type(arg).__name__ == "multiply" and not any(is_scalar(a) for a in arg.args) and arg.ndim == 2:
            a, b = (self(part) for part in arg.args)
            pair = filled("<@0, @1>", r"\langle @0, @1\rangle", grouped(a, SUM), grouped(b, SUM))
            return pair._replace(minus=a.minus != b.minus)
        if type(arg).__name__ == "abs":
            inner = self(arg.args[0])
            return filled("sum(|@0|)", r"\|@0\|_{1}", inner)
        inner = self(arg)
        bare = inner._replace(minus=False)
        return Written(
            f"sum({bare.text})", rf"\mathbf{{1}}^\top {grouped(bare, UNIT).tex}", UNIT, inner.minus
        )

    def square(self, expression: Any) -> Written:
        """Return |x|^2, or |x|^2 / y, without a second pair of bars around a norm."""
        x, y = expression.args
        inner = self(x)._replace(minus=False)
        square = (
            power_of(inner, 2) if is_norm(x) or x.size == 1 else filled("|@0|^2", r"\|@0\|_{2}^{2}", inner)
        )
        return divided(square, self(y))

    def power(self, expression: Any) -> Written:
        """Return x^p."""
        exponent = float(number(expression.p))
        return ONE if exponent == 0 else power_of(self(expression.args[0]), exponent)

    def norm(self, expression: Any, exponent: str = "") -> Written:
        """Return |x|_p; a matrix has the Frobenius norm for p = 2."""
        index = index_of(float(exponent or expression.p))
        if index.text == "2" and expression.args[0].ndim == 2:
            index = Written("F", "F")
        inner = self(expression.args[0])._replace(minus=False)
        return filled(f"|@0|_{index.text}", rf"\|@0\|_{{{index.tex}}}", inner)

    def maximum(self, expression: Any) -> Written:
        """Return (e)_+ for the maximum with zero, else max(a, b)."""
        args = [self(arg) for arg in expression.args]
        rest = [arg for arg in args if not arg.is_zero]
        if len(rest) == 1 and len(args) == 2:
            return filled("(@0)_+", r"\left(@0\right)_{+}", rest[0])
        return self.listed(r"\max", "max", args)

    def listed(self, tex: str, text: str, args: list[Written]) -> Written:
        """Return f(a, b, ...)."""
        texts, texs = ([getattr(a, side) for a in args] for side in ("signed_text", "signed_tex"))
        return Written(f"{text}({', '.join(texts)})", rf"{tex}\left({', '.join(texs)}\right)")

    def quadratic_form(self, expression: Any) -> Written:
        """Return x'P x."""
        x, P = (inside(self(arg), UNIT) for arg in expression.args)
        return filled("@0'@1 @0", r"@0^\top @1 @0", x, P)

    def inverse_form(self, expression: Any) -> Written:
        """Return x'K^+ x."""
        x, K = (inside(self(arg), UNIT) for arg in expression.args)
        return filled("@0' @1^+ @0", r"@0^\top @1^{+} @0", x, K)

    def transposed(self, expression: Any) -> Written:
        """Return x', and X for a symmetric matrix X."""
        return filled("@0'", r"@0^\top", inside(self(expression.args[0]), UNIT))

    def index(self, expression: Any) -> Written:
        """Return x[i] or X[i:j, k:l]."""
        inner, key = inside(self(expression.args[0]), UNIT), index_text(expression)
        body = rf"\left({inner.tex}\right)" if "_" in inner.tex else inner.tex
        return Written(f"{inner.text}[{key}]", f"{body}_{{[{key}]}}")

    def blocks(self, expression: Any) -> Written:
        """Return a block matrix as [A, b; b', c]."""
        rows = [arg.args if type(arg).__name__ == "Hstack" else [arg] for arg in expression.args]
        cells = [[self(cell) for cell in row] for row in rows]
        text = "; ".join(", ".join(cell.signed_text for cell in row) for row in cells)
        tex = r" \\ ".join(" & ".join(cell.signed_tex for cell in row) for row in cells)
        return Written(f"[{text}]", rf"\begin{{bmatrix}} {tex} \end{{bmatrix}}")

    def entropy(self, expression: Any) -> Written:
        """Return a log(a / b), entry by entry."""
        a, b = (self(arg) for arg in expression.args)
        ratio = divided(a, b)
        return filled("@0 log(@1)", r"@0 \odot \log\left(@1\right)", inside(a, UNIT), ratio, binds=PRODUCT)


def relation(left: Written, right: Written, equal: bool) -> list[Written]:
    """Return the sides of a relation; a zero on the left of an inequality goes to the right."""
    sign = Written("==", "=") if equal else Written("<=", r"\leq")
    if left.is_zero and not right.is_zero:
        return [right, sign if equal else Written(">=", r"\geq"), left]
    return [left, sign, right]


def power_of(base: Written, exponent: float) -> Written:
    """Return a power."""
    shown = number_of(exponent)
    body = inside(base, UNIT)
    return Written(f"{body.text}^{shown.signed_text}", f"{body.tex}^{{{shown.signed_tex}}}")


def collapsed(expression: Any) -> tuple[Array, Any] | None:
    """Return (A, x) for A x with a constant A; A (B x) is (AB) x, which has one name. None for others."""
    left, right = expression.args
    if not isinstance(left, cp.Constant):
        return None
    matrix, right = dense(left.value), alone(right)
    while type(right).__name__ == "MulExpression" and isinstance(right.args[0], cp.Constant):
        if is_scalar(right.args[0]) or is_scalar(right.args[1]) or matrix.ndim > right.args[0].ndim + 1:
            break
        matrix, right = matrix @ dense(right.args[0].value), alone(right.args[1])
    return matrix, right


def alone(expression: Any) -> Any:
    """Return the only vector that is stacked, or the expression itself."""
    while (
        type(expression).__name__ == "Hstack" and len(expression.args) == 1 and expression.args[0].ndim == 1
    ):
        expression = expression.args[0]
    return expression


def is_scalar(expression: Any) -> bool:
    """Whether an expression is one number, perhaps promoted."""
    while type(expression).__name__ == "Promote":
        expression = expression.args[0]
    return bool(expression.size == 1)


def is_vector_of_matrix(expression: Any) -> bool:
    """Whether an expression is vec(X) for a square matrix X."""
    inner = expression.args[0] if len(expression.args) == 1 else None
    if type(expression).__name__ not in ("Vec", "reshape") or expression.ndim != 1 or inner.ndim != 2:
        return False
    return bool(inner.shape[0] == inner.shape[1])


def is_norm(expression: Any) -> bool:
    """Whether an expression is written with bars and an exponent."""
    return type(expression).__name__.removesuffix("Approx") in ("Pnorm", "norm1", "norm_inf")


def is_identity(grams: Any) -> bool:
    """Whether a stack is the identity matrix alone."""
    return len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points))


def index_text(expression: Any) -> str:
    """Return the key of an index: i, or i:j, or "..." for a list of entries."""
    if not all(isinstance(key, slice | int) for key in expression.key or [None]):
        return "..."
    parts = []
    for key in expression.key:
        if isinstance(key, int):
            parts.append(str(key))
            continue
        single = key.stop is not None and key.stop == (key.start or 0) + 1
        parts.append(str(key.start or 0) if single else f"{key.start or ''}:{key.stop or ''}")
    return ", ".join(parts)


WRITERS: dict[str, Callable[[Notation, Any], Written]] = {
    "AddExpression": lambda w, e: added([w(arg) for arg in e.args]),
    "NegExpression": lambda w, e: negated(w(e.args[0])),
    "MulExpression": Notation.product,
    "multiply": Notation.product,
    "DivExpression": lambda w, e: divided(w(e.args[0]), w(e.args[1])),
    "Sum": Notation.total,
    "Trace": lambda w, e: filled("tr(@0)", r"\operatorname{tr}(@0)", w(e.args[0])),
    "trace": lambda w, e: filled("tr(@0)", r"\operatorname{tr}(@0)", w(e.args[0])),
    "transpose": Notation.transposed,
    "index": Notation.index,
    "special_index": Notation.index,
    "Pnorm": Notation.norm,
    "norm1": lambda w, e: w.norm(e, "1"),
    "norm_inf": lambda w, e: w.norm(e, "inf"),
    "quad_over_lin": Notation.square,
    "Power": Notation.power,
    "power": Notation.power,
    "QuadForm": Notation.quadratic_form,
    "MatrixFrac": Notation.inverse_form,
    "abs": lambda w, e: filled("|@0|", r"\left|@0\right|", w(e.args[0])._replace(minus=False)),
    "maximum": Notation.maximum,
    "max": lambda w, e: filled("max(@0)", r"\max\left(@0\right)", w(e.args[0])),
    "Vstack": Notation.blocks,
    "Hstack": lambda w, e: w.listed("", "", [w(arg) for arg in e.args]),
    "rel_entr": Notation.entropy,
    "log": lambda w, e: filled("log(@0)", r"\log\left(@0\right)", w(e.args[0])),
    "exp": lambda w, e: filled("exp(@0)", r"\exp\left(@0\right)", w(e.args[0])),
    "entr": lambda w, e: filled("entr(@0)", r"\operatorname{entr}\left(@0\right)", w(e.args[0])),
    "logistic": lambda w, e: filled("log(1 + exp(@0))", r"\log\left(1 + e^{@0}\right)", w(e.args[0])),
    "diag_vec": lambda w, e: filled("diag(@0)", r"\operatorname{diag}(@0)", w(e.args[0])),
    "diag_mat": lambda w, e: filled("diag(@0)", r"\operatorname{diag}(@0)", w(e.args[0])),
    "lambda_max": lambda w, e: filled("lambda_max(@0)", r"\lambda_{\max}(@0)", w(e.args[0])),
}
