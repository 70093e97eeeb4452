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
from kernelopt.duality.written import SUM, ZERO, Written, filled, name_of, word

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
        return listed(self.chain, " ", " ")._replace(binds=SUM)


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
    lines = constraint_lines(constraints, notation, {})
    for i, (left, *rest) in enumerate(line.chain for line in lines):  # y <= e with y >= 0 is 0 <= y <= e
        found = [v for v in variables if v.attributes["nonneg"] and notation(v) == left]
        if found and rest and rest[0] is LEQ and len(rest) == 2:
            lines[i] = Line((ZERO, LEQ, *lines[i].chain), lines[i].tag)
    bounded = {line.chain[2] for line in lines if line.chain[0] == ZERO and len(line.chain) == 5}
    lines += sign_lines([v for v in variables if notation(v) not in bounded], notation)
    lines += bound_lines(variables, notation, {})
    names = tuple(enumerated([notation(v) for v in variables]))
    return Statement(isinstance(problem.objective, cp.Maximize), names, value, tuple(lines))


def tag_of(label: str | None) -> tuple[Written, ...]:
    """Return a label as a tag: of d/d x the variable x, of a bias its name, of an atom's variable nothing."""
    by = re.fullmatch(r"(?:d/d |bias ?(?=\d*$))(.*)", label or "")
    if by is None:
        return (Written(label, word(label)),) if label else ()
    name = by[1] if label and label.startswith("d/d ") else f"b{by[1]}"
    return (name_of(name),) if name and not re.fullmatch(r"var\d+", name) else ()


def constraint_lines(
    constraints: Sequence[Any], notation: Notation, tags: Tags, places: bool = False
) -> list[Line]:
    """Return constraints as lines; lower <= e and e <= upper become one.

    `places` says that the arrays in them stand in the place that the label of the constraint names.
    """
    lines: list[Line] = []
    for i, constraint in enumerate(constraints):
        notation.symbols.label = constraint.label or ""
        if places:
            notation.symbols.place = constraint.label or f"constraint {i}"
        line = Line(tuple(notation.constraint(constraint)), tags.get(i, tag_of(constraint.label)))
        both = joined_lines(lines[-1], line) if lines else None
        lines[len(lines) - bool(both) :] = [both or line]
    return lines


def joined_lines(first: Line, second: Line) -> Line | None:
    """Return lower <= e <= upper of e >= lower and e <= upper, None of other pairs."""
    chains = [line.chain if line.chain[1:2] == (LEQ,) else line.chain[::-1] for line in (first, second)]
    if any(len(line.chain) != 3 or line.chain[1].text == "==" for line in (first, second)):
        return None
    if first.chain[1] is LEQ is not second.chain[1]:
        chains.reverse()
    lower, upper = chains
    if lower[2] != upper[0]:
        return None
    tag = tuple(dict.fromkeys((*first.tag, *second.tag)))
    words = re.fullmatch(r"lower( \d+)?;upper( \d+)?", ";".join(sorted(part.text for part in tag)))
    return Line((lower[0], LEQ, lower[2], LEQ, upper[2]), tag_of(f"box{words[1] or ''}") if words else tag)


def sign_lines(variables: Sequence[cp.Variable], notation: Notation) -> list[Line]:
    """Return the signs and cones of variables as lines."""
    found = []
    for name, (text, tex) in SIGNS.items():
        shown = enumerated([notation(v) for v in variables if v.attributes[name] is True])
        if shown:
            found.append(Line((filled(f"@0 {text}", f"@0 {tex}", listed(shown), binds=SUM),)))
    return found


def bound_lines(variables: Sequence[cp.Variable], notation: Notation, tags: Tags) -> list[Line]:
    """Return the bounds of variables as lines; `tags` has their multipliers under "name lower"."""
    lines = []
    for v in variables:
        if notation.symbols.place:
            notation.symbols.place = f"the bounds of {notation(v).text}"
        bounds = [
            value if isinstance(value, cp.Expression) else cp.Constant(dense(value))
            for value in v.attributes.get("bounds") or ()
        ]
        made = {
            f"{v.name()} {side}": v >= limit if side == "lower" else v <= limit
            for side, limit in zip(("lower", "upper"), bounds, strict=False)
            if not isinstance(limit, cp.Constant) or not np.isinf(limit.value).all()
        }
        names = {i: tags.get(name, ()) for i, name in enumerate(made)}
        lines += constraint_lines(list(made.values()), notation, names)
    return lines
