"""What is printed is read back and solved as a problem of its own: it has the value of the dual."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality import written
from kernelopt.duality.naming import multiplier_tags, notation_of, stated_dual
from kernelopt.duality.reading import Reader
from kernelopt.duality.solving import solved
from kernelopt.duality.statement import primal_of
from kernelopt.duality.symbols import Symbols
from tests.duality import textbook
from tests.duality.generic import PROBLEMS, RISKS
from tests.duality.printed import EXTRA, Parser, Unread
from tests.duality.random_atoms import ATOMS, variable_of
from tests.every import every

PATTERN = re.compile(r"(.+?) (>= 0|<= 0|>> 0|<< 0)$")


CONES = {"ExpCone": cp.ExpCone, "PowCone3D": cp.PowCone3D}


def relations(line, names):
    """The constraints of a line."""
    texts = [part.text for part in line.chain]
    if len(texts) == 1:
        return single(texts[0], names)
    sides = [Parser(text, names).whole() for text in texts[::2]]
    return [
        {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b}[sign](a, b)
        for a, sign, b in zip(sides, texts[1::2], sides[1:], strict=False)
    ]


def single(text, names):
    """A constraint in one piece: signs of variables, matrix inequalities, cones."""
    if text.endswith(" diagonal"):  # `problem_said` makes such variables
        return []
    cone = re.fullmatch(r"\((.*)\) in (\w+)(?:\((.*)\))?", text)
    if cone:
        inner = Parser(f"max({cone[1]})", names)
        inner.take(), inner.take()
        args = [inner.nested()]
        while inner.peek() == ",":
            inner.take()
            args.append(inner.nested())
        if cone[2] == "PowConeND":
            return [cp.PowConeND(cp.hstack(args[:-1]), args[-1], Parser(cone[3], names).whole().value)]
        size = max(a.size for a in args)
        args = [a if a.size == size else cp.promote(a, (size,)) for a in args]
        return [CONES[cone[2]](*args, *([Parser(cone[3], names).whole().value] if cone[3] else []))]
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


def read_back(dual, primal=False):
    """The problem that the statement of a dual says, or of its primal without risks, on new variables.

    Text has no shapes: what the parser cannot put together without them is `Unread`.
    """
    digits, written.DIGITS = written.DIGITS, 16  # of a price times a large multiplier six are too few
    try:
        return problem_said(dual, primal)
    except (ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
        raise Unread(str(error)) from error
    finally:
        written.DIGITS = digits


def add_data(names, notation):
    """Add the data of a notation to the names of variables."""
    for name, (value, _) in notation.symbols.known.items():
        names[name] = cp.Constant(value)
    for letter, grams in notation.symbols.stacks.items():
        names[letter if len(grams) == 1 else f"{letter}_m"] = (
            cp.Constant(grams.gram(0)) if len(grams) == 1 else [grams.gram(i) for i in range(len(grams))]
        )
    for name, whole in notation.symbols.sums.values():
        if "(" not in name.text:  # Q, and not K(theta)
            names[name.text] = Parser(whole.text, names).whole()


def problem_said(dual, primal):
    """The problem that the statement of a dual, or of its primal, says."""
    state = dual.state
    notation = notation_of(state.swept.structure, dual)
    statement, _ = primal_of(state.swept.structure, notation, multiplier_tags(state))
    if not primal:
        statement = stated_dual(dual, notation, state)
    names = {}
    for v in state.swept.structure.variables if primal else dual.variables():
        if v.attributes["diag"]:
            names[v.name()] = cp.diag(cp.Variable(v.shape[0]))
        elif v.id not in state.hidden:
            names[v.name()] = cp.Variable(v.shape, symmetric=bool(v.ndim == 2 and v.is_symmetric()))
    for p in dual.primal.parameters():
        names[notation.names.get(p.id, p.name())] = cp.Constant(p.value)
    add_data(names, notation)
    EXTRA.clear()
    value = Parser(statement.value.text, names).whole()
    constraints = []
    for line in statement.lines:
        constraints += relations(line, names)
    constraints += EXTRA
    problem = cp.Maximize(value) if statement.maximize else cp.Minimize(value)
    return cp.Problem(problem, constraints)


WITHOUT_SHAPES = ("norms of rows", "nuclear norm")  # matrices of 3 x 2, and text has no shapes


@every("name", [*PROBLEMS, *RISKS])
def test_what_is_printed_has_the_value_of_the_dual(name):
    problem = {**PROBLEMS, **RISKS}[name]()
    dual = ko.dualize(problem)
    if name in WITHOUT_SHAPES:
        with pytest.raises(Unread):
            read_back(dual)
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


def value_of_print(e, *variables):
    """The value of the text of an expression."""
    notation = Reader(Symbols({v.name() for v in variables}))
    text, names = notation(e).text, {v.name(): v for v in variables}
    add_data(names, notation)
    return Parser(text, names).whole().value, text


@every("name", ATOMS)
def test_the_print_of_an_atom_has_its_value(name, monkeypatch):
    monkeypatch.setattr(written, "DIGITS", 16)
    rng = np.random.default_rng(len(name))
    for kind in ("free", "matrix", "symmetric"):
        x = variable_of(rng, kind)
        e = 2 * cp.sum(ATOMS[name](rng, x)) - 1.5
        with np.errstate(invalid="ignore"):  # cvxpy's loggamma has logarithms outside of their domains
            value, text = value_of_print(e, x)
            assert value == pytest.approx(e.value, rel=1e-9, nan_ok=name == "loggamma"), text


PRODUCTS = {
    "a row times a matrix": lambda x, X, a, A: a @ X @ x,
    "a row of a product": lambda x, X, a, A: cp.sum((A @ x) @ X @ A),
    "ones times a matrix": lambda x, X, a, A: np.ones(3) @ X @ a,
    "a matrix times ones": lambda x, X, a, A: a @ (X @ (2 * np.ones(3))),
    "a matrix of equal entries": lambda x, X, a, A: a @ (2 * np.ones((3, 3))) @ x,
    "a column times a row": lambda x, X, a, A: cp.trace(A @ cp.reshape(x, (3, 1), order="F") @ a[None]),
    "a scaled row of entries": lambda x, X, a, A: cp.multiply(a, x) @ X @ a,
    "a trace of three": lambda x, X, a, A: cp.trace(A @ X @ A.T),
    "a number in all entries": lambda x, X, a, A: cp.sum_squares(X + cp.sum(x)),
    "a number in a vector": lambda x, X, a, A: cp.norm1(A @ (x + cp.sum(x))),
    "entries by rows": lambda x, X, a, A: np.arange(9.0) @ cp.reshape(X, (9,), order="C"),
    "a matrix by rows": lambda x, X, a, A: cp.trace(A @ cp.reshape(cp.vec(X, order="F"), (3, 3), order="C")),
    "rows of a matrix": lambda x, X, a, A: a @ cp.reshape(np.tri(9, 3) @ x, (3, 3), order="C") @ a,
    "slices": lambda x, X, a, A: X[1, 0] + a[:2] @ X[0, 1:] + cp.sum(X[:2, 1:]) + x[2],
    "a list of entries": lambda x, X, a, A: a[:2] @ x[[0, 2]] + a @ X[:, [2, 0, 1]] @ a,
    "every second entry": lambda x, X, a, A: a[:2] @ x[::2] + a[:2] @ X[1::-1, 2],
    "the entries in reverse": lambda x, X, a, A: a @ x[::-1] + X[-1, -1],
    "a part of a part": lambda x, X, a, A: X[0, :3][1] + a[:2] @ X[1:, :][:, [0, 2]][1] + x[1:][1:][0],
    "single entries": lambda x, X, a, A: a[:2] @ X[[0, 1], [1, 2]],
    "a mask": lambda x, X, a, A: a[:2] @ x[np.array([True, False, True])],
    "stacks": lambda x, X, a, A: cp.sum(cp.multiply(np.arange(6.0).reshape(2, 3), cp.vstack([x, X @ a]))),
    "blocks": lambda x, X, a, A: cp.sum(cp.multiply(np.arange(18.0).reshape(3, 6), cp.hstack([X, A @ X]))),
    "vectors in a row": lambda x, X, a, A: np.arange(6.0) @ cp.concatenate([x, X @ a]),
    "the identity": lambda x, X, a, A: cp.sum(x[0] * np.eye(3)) + cp.trace(x[1] * np.eye(3) @ X),
}  # fmt: skip


@every("name", PRODUCTS)
def test_the_print_of_a_product_has_its_value(name, monkeypatch):
    monkeypatch.setattr(written, "DIGITS", 16)
    rng = np.random.default_rng(0)
    x, X = cp.Variable(3, name="x"), cp.Variable((3, 3), name="X")
    x.value, X.value = rng.normal(size=3), rng.normal(size=(3, 3))
    e = PRODUCTS[name](x, X, rng.normal(size=3), rng.normal(size=(3, 3)))
    value, text = value_of_print(e, x, X)
    assert value == pytest.approx(float(e.value), rel=1e-9), text
