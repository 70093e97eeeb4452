"""What is printed is read back and solved as a problem of its own: it has the value of the dual."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality.naming import multiplier_tags, notation_of, stated_dual
from kernelopt.duality.primal import primal_of
from kernelopt.duality.solving import solved
from tests.duality import textbook
from tests.duality.generic import PROBLEMS, RISKS
from tests.duality.printed import EXTRA, Parser, Unread
from tests.every import every

PATTERN = re.compile(r"(.+?) (>= 0|<= 0|>> 0|<< 0)$")


CONES = {"ExpCone": cp.ExpCone, "PowCone3D": None, "PowConeND": None}


def relations(line, names):
    """The constraints of a line."""
    texts = [part.signed_text for part in line.chain]
    if len(texts) == 1:
        return single(texts[0], names)
    sides = [Parser(text, names).whole() for text in texts[::2]]
    return [
        {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b}[sign](a, b)
        for a, sign, b in zip(sides, texts[1::2], sides[1:], strict=False)
    ]


def single(text, names):
    """A constraint in one piece: signs of variables, matrix inequalities, cones."""
    cone = re.fullmatch(r"\((.*)\) in (\w+)", text)
    if cone:
        if CONES[cone[2]] is None:
            raise Unread(text)
        inner = Parser(f"max({cone[1]})", names)
        inner.take(), inner.take()
        args = [inner.nested()]
        while inner.peek() == ",":
            inner.take()
            args.append(inner.nested())
        size = max(a.size for a in args)
        return [CONES[cone[2]](*(a if a.size == size else cp.promote(a, (size,)) for a in args))]
    column = re.fullmatch(r"\|(.*)\|_2 <= (.*) for each (column|row)", text)
    if column:
        x, t = (Parser(part, names).whole() for part in (column[1], column[2]))
        return [cp.norm2(x, axis=0 if column[3] == "column" else 1) <= t]
    if text.count(" <= ") == 1:
        low, high = (Parser(part, names).whole() for part in text.split(" <= "))
        return [low <= high]
    body, sign = re.fullmatch(r"(.+) (>= 0|<= 0|>> 0|<< 0)", text).groups()
    parts = body.split(", ") if all(part in names or "..." in part for part in body.split(", ")) else [body]
    found = []
    for part in expanded(parts):
        e = Parser(part, names).whole()
        found.append(
            {
                ">= 0": lambda e: e >= 0,
                "<= 0": lambda e: e <= 0,
                ">> 0": lambda e: e >> 0,
                "<< 0": lambda e: e << 0,
            }[sign](e)
        )
    return found


def expanded(parts):
    """Names with those that "..." stands for."""
    if "..." not in parts:
        return parts
    at = parts.index("...")
    (stem, first), (_, last) = (re.fullmatch(r"(.*?)(\d+)", parts[k]).groups() for k in (at - 1, at + 1))
    between = [f"{stem}{k}" for k in range(int(first) + 1, int(last))]
    return expanded(parts[:at] + between + parts[at + 1 :])


def read_back(dual):
    """The problem that the statement of a dual says, on new variables.

    Text has no shapes: what the parser cannot put together without them is `Unread`.
    """
    try:
        return problem_said(dual)
    except (ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
        raise Unread(str(error)) from error


def problem_said(dual):
    """The problem that the statement of a dual says."""
    made = dual.made
    notation = notation_of(made.structure, dual)
    primal_of(made.structure, notation, multiplier_tags(made))
    statement = stated_dual(dual, notation, made)
    names = {}
    for v in dual.variables():
        if v.id not in made.state.hidden:
            names[v.name()] = cp.Variable(v.shape, symmetric=bool(v.ndim == 2 and v.is_symmetric()))
    for p in dual.parameters():
        names[notation.read.names.get(p.id, p.name())] = cp.Constant(p.value)
    for symbol in notation.symbols.known:
        names[symbol.name] = cp.Constant(symbol.value)
    for letter, grams in notation.symbols.stacks:
        names[letter if len(grams) == 1 else f"{letter}_m"] = (
            cp.Constant(grams.gram(0)) if len(grams) == 1 else [grams.gram(i) for i in range(len(grams))]
        )
    for name, whole in notation.symbols.products.values():
        names[name.text] = Parser(whole.text, names).whole()
    EXTRA.clear()
    value = Parser(statement.value.signed_text, names).whole()
    constraints = []
    for line in statement.lines:
        constraints += relations(line, names)
    constraints += EXTRA
    problem = cp.Maximize(value) if statement.maximize else cp.Minimize(value)
    return cp.Problem(problem, constraints)


WITHOUT_SHAPES = (
    "norms of rows", "nuclear norm", "power cone", "power cone of many", "sparse", "reciprocals and a price",
    "two risks of a PSD variable", "alignment, maximized",
)  # fmt: skip


@every("name", [*PROBLEMS, *RISKS])
def test_what_is_printed_has_the_value_of_the_dual(name):
    problem = {**PROBLEMS, **RISKS}[name]()
    dual = ko.dualize(problem)
    if name in WITHOUT_SHAPES:
        return
    said = read_back(dual)
    value = dual.solve()
    assert solved(said) == pytest.approx(value, rel=1e-5, abs=1e-5)


@every(
    "make",
    [
        v
        for v in vars(textbook).values()
        if callable(v)
        and v.__module__ == textbook.__name__
        and not v.__code__.co_argcount
        and v is not textbook.x
    ],
)
def test_the_textbook_is_read_back(make):
    dual = ko.dualize(make())
    assert solved(read_back(dual)) == pytest.approx(dual.solve(), rel=1e-6)


def test_a_scalar_of_all_entries_times_data_is_a_vector():
    """The adjoint of a * x - mean(a * x) has the vector (sum(u) / n) a, and no matrix Diag(a)."""
    x, a = cp.Variable(3, name="x"), np.array([1.1, 0.8, -1.6])
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.std(cp.multiply(a, x[:3])) <= 0.4]))
    assert "sum(u) Diag" not in str(dual)
    assert solved(read_back(dual)) == pytest.approx(dual.solve(), rel=1e-6)
