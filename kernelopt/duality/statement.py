"""Problems as statements: an objective, variables, and constraints with what belongs to each beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.notation import LEQ, Notation
from kernelopt.duality.rendering import enumerated, listed
from kernelopt.duality.symbols import dense
from kernelopt.duality.written import (
    SUM,
    ZERO,
    Written,
    filled,
    name_of,
)

SIGNS = {
    "nonneg": (">= 0", r"\geq 0"), "nonpos": ("<= 0", r"\leq 0"),
    "pos": ("> 0", "> 0"), "neg": ("< 0", "< 0"),
    "PSD": (">> 0", r"\succeq 0"), "NSD": ("<< 0", r"\preceq 0"),
    "boolean": ("in {0, 1}", r"\in \{0, 1\}"), "integer": ("integer", r"\ \mathrm{integer}"),
    "diag": ("diagonal", r"\ \mathrm{diagonal}"),
}  # fmt: skip
Tags = dict[Any, tuple[Written, ...]]  # by the position of a constraint, the name of a bound, ("risk", k)


@dataclass(frozen=True)
class Line:
    """A constraint as a chain of sides and signs, with the name of its multiplier or its label.

    Attributes
    ----------
    chain : tuple of Written
        A constraint in one piece, or sides and signs in turn: (0, <=, y * alpha, <=, C).
    tag : tuple of Written
        The names of the multipliers, empty where there are none.
    """

    chain: tuple[Written, ...]
    tag: tuple[Written, ...] = ()

    @property
    def whole(self) -> Written:
        """The constraint in one piece."""
        text, tex = (
            " ".join(getattr(part, side) for part in self.chain) for side in ("signed_text", "signed_tex")
        )
        return Written(text, tex, SUM)


@dataclass(frozen=True)
class Statement:
    """A problem as it is written.

    Attributes
    ----------
    maximize : bool
    variables : tuple of Written
    value : Written
    lines : tuple of Line
    """

    maximize: bool
    variables: tuple[Written, ...]
    value: Written
    lines: tuple[Line, ...]


def statement_of(
    problem: cp.Problem,
    notation: Notation,
    place: str = "",
    hidden: Collection[int] = (),
    order: Sequence[str] = (),
) -> Statement:
    """Return a dual as a statement; `place` is DUAL for one by hand, and `order` that of its variables.

    Variables that are `hidden`, by their ids, and their constraints are not written.
    """
    notation.symbols.place = place
    value = notation(problem.objective.args[0])
    variables = [v for v in problem.variables() if v.id not in hidden]
    variables.sort(key=lambda v: order.index(v.name()) if v.name() in order else len(order))
    constraints = [c for c in problem.constraints if not any(v.id in hidden for v in c.variables())]
    lines, rest = between(constraint_lines(constraints, notation, {}), variables, notation)
    lines += sign_lines(rest, notation) + bound_lines(variables, notation, {})
    names = tuple(enumerated([notation(v) for v in variables]))
    return Statement(isinstance(problem.objective, cp.Maximize), names, value, tuple(lines))


def tag_of(label: str | None) -> tuple[Written, ...]:
    """Return a label as a tag; the gradient by a variable of an atom, which has no name, has none."""
    return (label_written(label),) if label and not re.fullmatch(r"d/d (var\d+|)", label) else ()


def label_written(label: str) -> Written:
    """Return a label: that of a gradient, such as d/d theta, is the name of the variable."""
    if label.startswith("d/d "):
        return name_of(label.removeprefix("d/d "))
    bias = re.fullmatch(r"bias ?(\d*)", label)
    if bias:
        return name_of("b" + bias[1])
    return Written(label, name_of(f"x[{label}]").tex.removeprefix("x_{").removesuffix("}"))


def constraint_lines(
    constraints: list[Any], notation: Notation, tags: Tags, places: bool = False
) -> list[Line]:
    """Return constraints as lines; lower <= e and e <= upper become one.

    `places` says that the arrays in them stand in the place that the label of the constraint names.
    """
    lines: list[Line] = []
    for i, constraint in enumerate(constraints):
        notation.symbols.label = constraint.label or ""
        if places:
            notation.symbols.place = constraint.label or f"constraint {i}"
        chain = tuple(notation.constraint(constraint))
        line = Line(chain, tags.get(i, tag_of(constraint.label)))
        joined = joined_lines(lines[-1], line) if lines else None
        if joined is not None:
            lines[-1] = joined
        else:
            lines.append(line)
    return lines


def joined_lines(first: Line, second: Line) -> Line | None:
    """Return lower <= e <= upper of e >= lower and e <= upper, None of other pairs."""
    if len(first.chain) != 3 or len(second.chain) != 3:
        return None
    if first.chain[1].text == "<=" and second.chain[1].text == ">=":
        first, second = second, first
    if second.chain[1].text != "<=":
        return None
    left, sign, right = first.chain
    lower, middle = (left, right) if sign.text == "<=" else (right, left)
    if sign.text == "==" or middle.signed_text != second.chain[0].signed_text:
        return None
    whole = boxed({part.text for part in (*first.tag, *second.tag)})
    tag = tag_of(whole) or tuple(dict.fromkeys((*first.tag, *second.tag)))
    return Line((lower, LEQ, *second.chain), tag)


def boxed(labels: set[str]) -> str:
    """Return "box 1" for the labels "lower 1" and "upper 1", and an empty label for any others."""
    words = {label.partition(" ")[0] for label in labels}
    numbers = {label.partition(" ")[2] for label in labels}
    return f"box {numbers.pop()}".rstrip() if words == {"lower", "upper"} and len(numbers) == 1 else ""


def between(
    lines: list[Line], variables: list[cp.Variable], notation: Notation
) -> tuple[list[Line], list[cp.Variable]]:
    """Return 0 <= y <= e for every y <= e of a variable y >= 0, and the variables whose signs are left."""
    positive = {notation(v).text: v for v in variables if v.attributes["nonneg"]}
    found = list(lines)
    for i, line in enumerate(lines):
        one_sided = len(line.chain) == 3 and line.chain[1].text == "<="
        if one_sided and not line.chain[0].minus and line.chain[0].text in positive:
            positive.pop(line.chain[0].text)
            found[i] = Line((ZERO, LEQ, *line.chain), line.tag)
    return found, [
        v for v in variables if not v.attributes["nonneg"] or any(v is w for w in positive.values())
    ]


def sign_lines(variables: list[cp.Variable], notation: Notation) -> list[Line]:
    """Return the signs, cones and bounds of variables as lines."""
    lines = []
    for name, (text, tex) in SIGNS.items():
        shown = [notation(v) for v in variables if v.attributes[name] is True]
        if shown:
            joined = listed(enumerated(shown))
            lines.append(Line((filled(f"@0 {text}", f"@0 {tex}", joined, binds=SUM),)))
    return lines


def bound_lines(variables: list[cp.Variable], notation: Notation, tags: Tags) -> list[Line]:
    """Return the bounds of variables as lines; `tags` has their multipliers under "name lower"."""
    lines, sign = [], LEQ
    for v in variables:
        if notation.symbols.place:
            notation.symbols.place = f"the bounds of {notation(v).text}"
        bounds = v.attributes.get("bounds") or ()
        chain: list[Written] = [notation(v)]
        tag: tuple[Written, ...] = ()
        for side, value in zip(("lower", "upper"), bounds, strict=False):
            limit = value if isinstance(value, cp.Expression) else cp.Constant(dense(value))
            if limit.is_constant() and np.isinf(limit.value).all():
                continue
            chain = [notation(limit), sign, *chain] if side == "lower" else [*chain, sign, notation(limit)]
            tag += tags.get(f"{v.name()} {side}", ())
        if len(chain) > 1:
            lines.append(Line(tuple(chain), tag))
    return lines
