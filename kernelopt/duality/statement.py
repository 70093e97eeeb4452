"""Problems as statements: an objective, variables, and constraints with what belongs to each beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.reading import LEQ, Reader
from kernelopt.duality.tree import ZERO, Tree, enumerated, formula, leaf, listed
from kernelopt.duality.written import SUM, word

SIGNS = {
    "nonneg": (">= 0", r"\geq 0"), "nonpos": ("<= 0", r"\leq 0"),
    "pos": ("> 0", "> 0"), "neg": ("< 0", "< 0"),
    "PSD": (">> 0", r"\succeq 0"), "NSD": ("<< 0", r"\preceq 0"),
    "boolean": ("in {0, 1}", r"\in \{0, 1\}"), "integer": ("integer", r"\ \mathrm{integer}"),
    "diag": ("diagonal", r"\ \mathrm{diagonal}"),
}  # fmt: skip
Tags = dict[Any, tuple[Tree, ...]]  # by the id of a constraint, the name of a bound, ("risk", k)


@dataclass(frozen=True)
class Line:
    """A constraint as a chain of sides and signs, with the name of its multiplier or its label.

    Attributes
    ----------
    chain : tuple of Tree
        A constraint in one piece, or sides and signs in turn: (0, <=, y * alpha, <=, C).
    tag : tuple of Tree
        The names of the multipliers, empty where there are none.
    """

    chain: tuple[Tree, ...]
    tag: tuple[Tree, ...] = ()

    @property
    def whole(self) -> Tree:
        """The constraint in one piece."""
        return listed(self.chain, " ", " ")

    @property
    def named(self) -> Tree:
        """The tag in brackets, nothing where there is none."""
        return formula("(@0)", r"\left(@0\right)", listed(self.tag)) if self.tag else formula("", "")


@dataclass(frozen=True)
class Statement:
    """A problem as it is written.

    Attributes
    ----------
    maximize : bool
    variables : tuple of Tree
    value : Tree
    lines : tuple of Line
    """

    maximize: bool
    variables: tuple[Tree, ...]
    value: Tree
    lines: tuple[Line, ...]


def statement_of(
    maximize: bool,
    value: Tree,
    lines: list[Line],
    variables: Sequence[cp.Variable],
    notation: Reader,
    tags: Tags | None = None,
) -> Statement:
    """Return a statement of an objective and constraints, with the signs and bounds of its variables."""
    names = {notation(v): v for v in variables if id(v) not in notation.substitutes}
    for i, line in enumerate(lines):  # y <= e with y >= 0 is 0 <= y <= e
        v = names.get(line.chain[0])
        if v is not None and v.attributes["nonneg"] and line.chain[1:2] == (LEQ,) and len(line.chain) == 3:
            lines[i] = Line((ZERO, LEQ, *line.chain), line.tag)
            del names[line.chain[0]]
    lines = lines + sign_lines(list(names.values()), notation) + bound_lines(variables, notation, tags or {})
    over = enumerated([notation(v) for v in variables])
    return Statement(maximize, tuple(over), value, tuple(lines))


def tag_of(label: str | None) -> tuple[Tree, ...]:
    """Return a label as a tag: of d/d x the variable x, of a bias its name, of an atom's variable nothing."""
    by = re.fullmatch(r"(?:d/d |bias ?(?=\d*$))(.*)", label or "")
    if by is None:
        return (leaf(label, tex=word(label)),) if label else ()
    name = by[1] if label and label.startswith("d/d ") else f"b{by[1]}"
    return (leaf(name),) if name and not re.fullmatch(r"var\d+", name) else ()


def constraint_lines(
    constraints: Sequence[Any], notation: Reader, tags: Tags, place: str | None = None
) -> list[Line]:
    """Return constraints as lines; lower <= e and e <= upper become one.

    The arrays in them stand in the `place`, without one in that which the label of the constraint names.
    """
    lines: list[Line] = []
    for i, c in enumerate(constraints):
        unlabelled = "" if notation.symbols.dual else f"constraint {i}"
        notation.symbols.place = c.label or unlabelled if place is None else place
        line = Line(tuple(notation.constraint(c)), tags.get(id(c), tag_of(c.label)))
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


def sign_lines(variables: Sequence[cp.Variable], notation: Reader) -> list[Line]:
    """Return the signs and cones of variables as lines."""
    found = []
    for name, (text, tex) in SIGNS.items():
        shown = enumerated([notation(v) for v in variables if v.attributes[name] is True])
        if shown:
            found.append(Line((formula(f"@0 {text}", f"@0 {tex}", listed(shown), binds=SUM),)))
    return found


def bound_lines(variables: Sequence[cp.Variable], notation: Reader, tags: Tags) -> list[Line]:
    """Return the bounds of variables as lines; `tags` has their multipliers under "name lower"."""
    lines = []
    for v in variables:
        made, found = [], {}
        for side, limit in zip(("lower", "upper"), v.attributes.get("bounds") or (), strict=False):
            limit = cp.Expression.cast_to_const(limit)
            if not isinstance(limit, cp.Constant) or not np.isinf(limit.value).all():
                made.append(v >= limit if side == "lower" else v <= limit)
                found[id(made[-1])] = tags.get(f"{v.name()} {side}", ())
        lines += constraint_lines(made, notation, found, f"the bounds of {notation(v).text}")
    return lines
