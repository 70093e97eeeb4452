"""How the atoms of cvxpy are written; `WRITERS` lists them by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.symbols import SAME, Role, dense
from kernelopt.duality.written import (
    ONE,
    PRODUCT,
    SUM,
    UNIT,
    ZERO,
    Written,
    added,
    divided,
    filled,
    grouped,
    index_of,
    inside,
    multiplied,
    negated,
    number_of,
)
from kernelopt.structure.trees import number
from kernelopt.validation import Array

if TYPE_CHECKING:
    from kernelopt.duality.notation import Notation


def product(write: Notation, expression: Any) -> Written:
    """Return c e, y'x, A x, or y * x for products of entries."""
    left, right = expression.args
    traces = inner_products(write, left, right)
    if traces is not None:
        return traces
    if is_scalar(left) or is_scalar(right):
        return multiplied(write.factor(left), write.factor(right))
    if type(expression).__name__ == "multiply":
        return multiplied(write.factor(left), write.factor(right), " * ", r" \odot ")
    constant = collapsed(expression)
    if constant is not None:
        matrix, right = constant
        other = write(right)
        if np.ptp(matrix) == 0 and matrix.ndim == 1:
            return multiplied(number_of(float(matrix[0])), filled("sum(@0)", r"\mathbf{1}^\top @0", other))
        one = write.symbols.matrix(matrix, str(left.name()), Role.SLOPE if matrix.ndim == 1 else Role.FACTOR)
        if one.text == "I":
            return other
    else:
        one, other = write(left), write.factor(right)
    if left.ndim == 1:
        a = grouped(one, PRODUCT)
        return multiplied(one._replace(text=f"{a.text}'", tex=rf"{a.tex}^\top"), other, "", " ")
    return multiplied(one, other)


def inner_products(write: Notation, left: Any, right: Any) -> Written | None:
    """Return c (<K_m, S>)_m for the matrix with the rows c vec(K_m)' times vec(S), None for others."""
    if not (isinstance(left, cp.Constant) and is_vector_of_matrix(right)):
        return None
    rows, n = dense(left.value), right.args[0].shape[0]
    for letter, grams in write.symbols.stacks:
        if len(grams) != len(rows) or grams.n_points < n or rows.ndim < 2:
            continue
        vectors = np.array([grams.gram(i)[:n, :n].ravel(order="F") for i in range(len(grams))])
        factor = float((rows * vectors).sum() / (vectors * vectors).sum())
        if np.allclose(rows, factor * vectors, rtol=0, atol=SAME * np.abs(rows).max()):
            K = write.symbols.member(write.symbols.stack(grams) or letter)
            pair = filled("(<@0, @1>)_m", r"\left(\langle @0, @1\rangle\right)_m", K, write(right.args[0]))
            return multiplied(number_of(factor), pair)
    return None


def total(write: Notation, expression: Any) -> Written:
    """Return <A, B> for the sum over a product of matrices, a'b for one of vectors, else sum(e)."""
    (arg,) = expression.args
    if arg.size == 1:
        return write(arg)
    if type(arg).__name__ == "multiply" and not any(is_scalar(a) for a in arg.args) and arg.ndim == 2:
        a, b = (write.factor(part) for part in arg.args)
        pair = filled("<@0, @1>", r"\langle @0, @1\rangle", grouped(a, SUM), grouped(b, SUM))
        return pair._replace(minus=a.minus != b.minus)
    if type(arg).__name__ == "abs":
        inner = write(arg.args[0])
        return filled("sum(|@0|)", r"\|@0\|_{1}", inner)
    inner = write(arg)
    bare = inner._replace(minus=False)
    return Written(f"sum({bare.text})", rf"\mathbf{{1}}^\top {grouped(bare, UNIT).tex}", UNIT, inner.minus)


def square(write: Notation, expression: Any) -> Written:
    """Return |x|^2, or |x|^2 / y, without a second pair of bars around a norm."""
    x, y = expression.args
    inner = write(x)._replace(minus=False)
    if inner.is_zero:
        return ZERO
    if is_norm(x) or x.size == 1:
        square = power_of(inner, 2)
    elif is_matrix(x):
        square = filled("|@0|_F^2", r"\|@0\|_{F}^{2}", inner)
    else:
        square = filled("|@0|^2", r"\|@0\|_{2}^{2}", inner)
    return divided(square, write(y))


def power(write: Notation, expression: Any) -> Written:
    """Return x^p."""
    exponent = float(number(expression.p))
    if exponent == 0.5:
        return filled("sqrt(@0)", r"\sqrt{@0}", write(expression.args[0]))
    return ONE if exponent == 0 else power_of(write(expression.args[0]), exponent)


def norm(write: Notation, expression: Any, exponent: str = "") -> Written:
    """Return |x|_p; a matrix has the Frobenius norm for p = 2."""
    index = index_of(float(exponent or expression.p))
    if index.text == "2" and is_matrix(expression.args[0]):
        index = Written("F", "F")
    inner = write(expression.args[0])._replace(minus=False)
    return filled(f"|@0|_{index.text}", rf"\|@0\|_{{{index.tex}}}", inner)


def maximum(write: Notation, expression: Any) -> Written:
    """Return (e)_+ for the maximum with zero, else max(a, b)."""
    args = [write(arg) for arg in expression.args]
    rest = [arg for arg in args if not arg.is_zero]
    if len(rest) == 1 and len(args) == 2:
        return filled("(@0)_+", r"\left(@0\right)_{+}", rest[0])
    return listed(r"\max", "max", args)


def listed(tex: str, text: str, args: list[Written]) -> Written:
    """Return f(a, b, ...)."""
    texts, texs = ([getattr(a, side) for a in args] for side in ("signed_text", "signed_tex"))
    return Written(f"{text}({', '.join(texts)})", rf"{tex}\left({', '.join(texs)}\right)")


def quadratic_form(write: Notation, expression: Any) -> Written:
    """Return x'P x."""
    x, P = (inside(write(arg), UNIT) for arg in expression.args)
    return filled("@0'@1 @0", r"@0^\top @1 @0", x, P)


def inverse_form(write: Notation, expression: Any) -> Written:
    """Return x'K^+ x."""
    x, K = (inside(write(arg), UNIT) for arg in expression.args)
    return filled("@0' @1^+ @0", r"@0^\top @1^{+} @0", x, K)


def transposed(write: Notation, expression: Any) -> Written:
    """Return x', and X for a symmetric matrix X."""
    return filled("@0'", r"@0^\top", inside(write(expression.args[0]), UNIT))


def index(write: Notation, expression: Any) -> Written:
    """Return x[i] or X[i:j, k:l]."""
    if expression.size == expression.args[0].size == 1:
        return write(expression.args[0])
    inner, key = inside(write(expression.args[0]), UNIT), index_text(expression)
    body = rf"\left({inner.tex}\right)" if "_" in inner.tex else inner.tex
    return Written(f"{inner.text}[{key}]", f"{body}_{{[{key}]}}")


def blocks(write: Notation, expression: Any) -> Written:
    """Return a block matrix as [A, b; b', c]."""
    rows = [arg.args if type(arg).__name__ == "Hstack" else [arg] for arg in expression.args]
    cells = [[write(cell) for cell in row] for row in rows]
    text = "; ".join(", ".join(cell.signed_text for cell in row) for row in cells)
    tex = r" \\ ".join(" & ".join(cell.signed_tex for cell in row) for row in cells)
    return Written(f"[{text}]", rf"\begin{{bmatrix}} {tex} \end{{bmatrix}}")


def entropy(write: Notation, expression: Any) -> Written:
    """Return a log(a / b), entry by entry."""
    a, b = (write(arg) for arg in expression.args)
    ratio = divided(a, b)
    return filled("@0 log(@1)", r"@0 \odot \log\left(@1\right)", inside(a, UNIT), ratio, binds=PRODUCT)


def power_of(base: Written, exponent: float) -> Written:
    """Return a power."""
    shown = number_of(exponent)
    body = inside(base, UNIT)
    outer = re.sub(r"\\left.*\\right.", "", re.sub(r"\\\|.*\\\|", "", body.tex))
    tex = rf"\left({body.tex}\right)" if "^" in outer else body.tex  # LaTeX has no double exponents
    return Written(f"{body.text}^{shown.signed_text}", f"{tex}^{{{shown.signed_tex}}}")


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
    if type(expression).__name__ not in ("Vec", "reshape") or expression.ndim != 1:
        return False
    shape = expression.args[0].shape
    return len(shape) == 2 and shape[0] == shape[1]


def is_matrix(expression: Any) -> bool:
    """Whether an expression is a matrix, or is written as one: vec(X) is written X."""
    if type(expression).__name__ in ("Vec", "reshape"):
        return is_matrix(expression.args[0])
    return min(expression.shape, default=1) > 1 and expression.ndim == 2


def is_norm(expression: Any) -> bool:
    """Whether an expression is written with bars and an exponent."""
    return type(expression).__name__.removesuffix("Approx") in ("Pnorm", "norm1", "norm_inf")


def index_text(expression: Any) -> str:
    """Return the key of an index: i, or i:j, or "..." for a list of entries."""
    keys = expression.key if isinstance(expression.key, tuple) else ()
    if not keys or not all(isinstance(key, slice | int) for key in keys):
        return "..."
    parts = []
    for key in keys:
        if isinstance(key, int):
            parts.append(str(key))
            continue
        single = key.stop is not None and key.stop == (key.start or 0) + 1
        parts.append(str(key.start or 0) if single else f"{key.start or ''}:{key.stop or ''}")
    return ", ".join(parts)


WRITERS: dict[str, Callable[[Notation, Any], Written]] = {
    "AddExpression": lambda w, e: added([w(arg) for arg in e.args]),
    "NegExpression": lambda w, e: negated(w(e.args[0])),
    "MulExpression": product,
    "multiply": product,
    "DivExpression": lambda w, e: divided(w(e.args[0]), w(e.args[1])),
    "Sum": total,
    "Trace": lambda w, e: filled("tr(@0)", r"\operatorname{tr}(@0)", w(e.args[0])),
    "trace": lambda w, e: filled("tr(@0)", r"\operatorname{tr}(@0)", w(e.args[0])),
    "transpose": transposed,
    "index": index,
    "special_index": index,
    "Pnorm": norm,
    "norm1": lambda w, e: norm(w, e, "1"),
    "norm_inf": lambda w, e: norm(w, e, "inf"),
    "quad_over_lin": square,
    "Power": power,
    "power": power,
    "QuadForm": quadratic_form,
    "MatrixFrac": inverse_form,
    "abs": lambda w, e: filled("|@0|", r"\left|@0\right|", w(e.args[0])._replace(minus=False)),
    "maximum": maximum,
    "max": lambda w, e: filled("max(@0)", r"\max\left(@0\right)", w(e.args[0])),
    "Vstack": blocks,
    "Hstack": lambda w, e: listed("", "", [w(arg) for arg in e.args]),
    "rel_entr": entropy,
    "log": lambda w, e: filled("log(@0)", r"\log\left(@0\right)", w(e.args[0])),
    "exp": lambda w, e: filled("exp(@0)", r"\exp\left(@0\right)", w(e.args[0])),
    "entr": lambda w, e: filled("entr(@0)", r"\operatorname{entr}\left(@0\right)", w(e.args[0])),
    "logistic": lambda w, e: filled("log(1 + exp(@0))", r"\log\left(1 + e^{@0}\right)", w(e.args[0])),
    "diag_vec": lambda w, e: filled("diag(@0)", r"\operatorname{diag}(@0)", w(e.args[0])),
    "diag_mat": lambda w, e: filled("diag(@0)", r"\operatorname{diag}(@0)", w(e.args[0])),
    "lambda_max": lambda w, e: filled("lambda_max(@0)", r"\lambda_{\max}(@0)", w(e.args[0])),
}
