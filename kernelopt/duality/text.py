"""Problems as text, in the notation of the docstrings: 1/2 |x|_2^2, <S, U>, y'alpha, [S, z; z', 1] >> 0."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import wrap
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, SOC, Equality, Inequality

from kernelopt.duality.squares import QuadraticForms
from kernelopt.structure.trees import number

NO_BREAK = "\N{NO-BREAK SPACE}"  # in the place of the spaces of a name, while lines are broken
WIDTH = 100  # columns of a line
FRACTIONS = {0.5: "1/2", 0.25: "1/4", 0.125: "1/8", 1.5: "3/2"}
SUM, PRODUCT, UNIT = 0, 1, 2  # how tightly a text binds


def problem_text(problem: cp.Problem) -> str:
    """Return a problem as text: the objective, its variables, and the constraints with their labels."""
    word = "minimize" if isinstance(problem.objective, cp.Minimize) else "maximize"
    names = ", ".join(v.name() for v in problem.variables())
    head = f"{word} over {names}" if names else word
    value = broken(expression_text(problem.objective.args[0]), "    ", "        ")
    lines = [(constraint_text(c), c.label or "") for c in problem.constraints]
    lines += [(text, "") for text in attribute_texts(problem.variables())]
    if not lines:
        return f"{head}\n{value}"
    width = min(max(len(text) for text, _ in lines), WIDTH - 20)
    rows = []
    for text, label in lines:
        pieces = broken(text, "    ", "        ").split("\n")
        pieces[-1] = f"{pieces[-1]:<{width + 4}}  ({label})" if label else pieces[-1]
        rows += pieces
    return "\n".join([head, value, "subject to", *rows])


def broken(text: str, first: str, rest: str) -> str:
    """Return a text in lines of at most WIDTH columns, broken at spaces."""
    kept = re.sub(r"\[[^][]*\]", lambda name: name[0].replace(" ", NO_BREAK), text)
    lines = wrap(
        kept, WIDTH - 20, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace(NO_BREAK, " ")


def attribute_texts(variables: list[cp.Variable]) -> list[str]:
    """Return the signs and the cones of variables as constraints."""
    signs = {"nonneg": ">= 0", "nonpos": "<= 0", "PSD": ">> 0", "NSD": "<< 0"}
    named = {s: [v.name() for v in variables if v.attributes[name]] for name, s in signs.items()}
    return [f"{', '.join(names)} {sign}" for sign, names in named.items() if names]


def constraint_text(constraint: Any) -> str:
    """Return a constraint as text."""
    args = [expression_text(arg) for arg in constraint.args]
    if isinstance(constraint, Inequality) and args[0] == "0":
        return f"{args[1]} >= 0"
    if isinstance(constraint, Equality | Inequality):
        return f"{args[0]} {'==' if isinstance(constraint, Equality) else '<='} {args[1]}"
    if isinstance(constraint, PSD):
        return f"{args[0]} >> 0"
    if isinstance(constraint, SOC):
        return f"|{args[1]}|_2 <= {args[0]} for each {'column' if constraint.axis == 0 else 'row'}"
    return f"({', '.join(args)}) in {type(constraint).__name__}"


def expression_text(expression: Any, tight: int = SUM) -> str:
    """Return an expression as text, in brackets where it binds less tightly than `tight`."""
    name = type(expression).__name__
    if isinstance(expression, QuadraticForms):
        alpha, gamma = (
            None if e is None else expression_text(e, UNIT) for e in (expression.alpha, expression.gamma)
        )
        return f"({alpha}' K_m {alpha}{'' if gamma is None else f' / {gamma}'})_m"
    if isinstance(expression, cp.Constant):
        return constant_text(expression, tight)
    if not expression.args:
        return str(expression.name())
    if name in ("Promote", "reshape", "Vec", "symmetric_wrap", "psd_wrap", "nonneg_wrap"):
        return expression_text(expression.args[0], tight)
    known = TEXTS.get(name.removesuffix("Approx"))
    if known is None:
        return f"{name}({', '.join(expression_text(arg) for arg in expression.args)})"
    text, binds = known(expression)
    return f"({text})" if binds < tight else text


def constant_text(constant: cp.Constant, tight: int) -> str:
    """Return a number, the name of an array, or what is known of an array without one."""
    value = constant.value
    dense = np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)
    given = str(constant.name())
    if constant.size > 1 and given and not given.startswith(("[", " ", "<", "(")) and "\n" not in given:
        return given
    if np.ptp(dense) == 0:
        text = number_text(float(dense.flat[0]))
        return f"({text})" if tight == UNIT and ("/" in text or text.startswith("-")) else text
    return f"c({'x'.join(map(str, dense.shape))})"


def number_text(value: float) -> str:
    """Return a number with six digits, a simple fraction as one."""
    if abs(value) in FRACTIONS:
        return ("-" if value < 0 else "") + FRACTIONS[abs(value)]
    return f"{value:.6g}"


def sum_text(expression: Any) -> tuple[str, int]:
    """Return a sum, with minus signs in the place of negated summands."""
    parts = [expression_text(arg, SUM) for arg in expression.args]
    parts = [part for part in parts if part not in ("0", "-0")] or ["0"]
    first = next((i for i, part in enumerate(parts) if not part.startswith("-")), 0)
    text = parts.pop(first)
    for part in parts:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text, SUM if parts or text.startswith("-") else PRODUCT


def minus_text(expression: Any) -> tuple[str, int]:
    """Return -e."""
    return f"-{expression_text(expression.args[0], PRODUCT)}", SUM


def product_text(expression: Any) -> tuple[str, int]:
    """Return c e, y'x, A x, or x * y for entries."""
    left, right = expression.args
    one, other = expression_text(left, PRODUCT), expression_text(right, PRODUCT)
    if is_scalar(left) or is_scalar(right):
        if one == "1" or other == "1":
            return (other if one == "1" else one), PRODUCT
        return f"{one} {other}", PRODUCT
    if type(expression).__name__ == "multiply":
        return f"{one} * {other}", PRODUCT
    return (f"{one}'{other}" if left.ndim == 1 else f"{one} {other}"), PRODUCT


def is_scalar(expression: Any) -> bool:
    """Whether an expression is one number, perhaps promoted."""
    while type(expression).__name__ == "Promote":
        expression = expression.args[0]
    return bool(expression.size == 1)


def total_text(expression: Any) -> tuple[str, int]:
    """Return <A, B> for the sum over a product of matrices, and sum(e) for any other."""
    (arg,) = expression.args
    if type(arg).__name__ == "multiply" and arg.ndim == 2:
        return f"<{expression_text(arg.args[0])}, {expression_text(arg.args[1])}>", UNIT
    return f"sum({expression_text(arg)})", UNIT


def norm_text(exponent: str) -> Callable[[Any], tuple[str, int]]:
    """Return the text of a norm with an exponent."""
    return lambda e: (f"|{expression_text(e.args[0])}|_{exponent}", UNIT)


def quotient_text(expression: Any) -> tuple[str, int]:
    """Return |x|^2, or |x|^2 / y, without a second pair of bars around a norm."""
    x, y = expression.args
    inner = expression_text(x)
    square = f"{inner}^2" if is_norm(x) else f"|{inner}|^2"
    bottom = expression_text(y, UNIT)
    return (square, UNIT) if bottom == "1" else (f"{square} / {bottom}", PRODUCT)


def is_norm(expression: Any) -> bool:
    """Whether an expression is written with bars and an exponent."""
    return type(expression).__name__.removesuffix("Approx") in ("Pnorm", "norm1", "norm_inf")


def power_text(expression: Any) -> tuple[str, int]:
    """Return x^p."""
    return f"{expression_text(expression.args[0], UNIT)}^{number(expression.p):g}", UNIT


def maximum_text(expression: Any) -> tuple[str, int]:
    """Return (e)_+ for the maximum with zero."""
    args = [expression_text(arg) for arg in expression.args]
    rest = [arg for arg in args if arg != "0"]
    return (f"({rest[0]})_+" if len(rest) == 1 and len(args) == 2 else f"max({', '.join(args)})"), UNIT


def rows_text(expression: Any) -> tuple[str, int]:
    """Return the rows of a block matrix as [A, b; b', c]."""
    rows = [arg.args if type(arg).__name__ == "Hstack" else [arg] for arg in expression.args]
    return f"[{'; '.join(', '.join(map(expression_text, row)) for row in rows)}]", UNIT


def stacked_text(expression: Any) -> tuple[str, int]:
    """Return (a, b, ...)."""
    return f"({', '.join(expression_text(arg) for arg in expression.args)})", UNIT


TEXTS: dict[str, Callable[[Any], tuple[str, int]]] = {
    "AddExpression": sum_text,
    "NegExpression": minus_text,
    "MulExpression": product_text,
    "multiply": product_text,
    "DivExpression": lambda e: (
        f"{expression_text(e.args[0], PRODUCT)} / {expression_text(e.args[1], UNIT)}",
        PRODUCT,
    ),
    "Sum": total_text,
    "Trace": lambda e: (f"tr({expression_text(e.args[0])})", UNIT),
    "trace": lambda e: (f"tr({expression_text(e.args[0])})", UNIT),
    "transpose": lambda e: (f"{expression_text(e.args[0], UNIT)}'", UNIT),
    "index": lambda e: (f"{expression_text(e.args[0], UNIT)}{index_text(e)}", UNIT),
    "special_index": lambda e: (f"{expression_text(e.args[0], UNIT)}[some]", UNIT),
    "Pnorm": lambda e: norm_text(f"{float(e.p):.6g}")(e),
    "norm1": norm_text("1"),
    "norm_inf": norm_text("inf"),
    "quad_over_lin": quotient_text,
    "Power": power_text,
    "QuadForm": lambda e: (
        f"{expression_text(e.args[0], UNIT)}'{expression_text(e.args[1])} {expression_text(e.args[0], UNIT)}",
        UNIT,
    ),
    "abs": lambda e: (f"|{expression_text(e.args[0])}|", UNIT),
    "maximum": maximum_text,
    "Vstack": rows_text,
    "Hstack": stacked_text,
}


def index_text(expression: Any) -> str:
    """Return [i] or [i:j] of an index."""
    parts = []
    for key in expression.key:
        single = isinstance(key, slice) and key.stop is not None and key.stop == (key.start or 0) + 1
        parts.append(str(key.start or 0) if single else f"{key.start or ''}:{key.stop or ''}")
    return f"[{', '.join(parts)}]"
