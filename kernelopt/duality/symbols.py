"""Names for the data of a problem: y, C, K_m, S0, A1, ..., each with a line that says what it is."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.rendering import render
from kernelopt.duality.tree import IDENTITY, Tree, number, same_entries, transposed
from kernelopt.duality.written import SUM, UNIT, Written, filled, inside, name_of
from kernelopt.grams import Grams
from kernelopt.validation import Array

SAME = 1e-12  # entries that differ by less, relative to the largest, are the same up to the order of sums
NUMBERED = ("a", "A", "b", "B")  # letters of arrays that always have a number
OBJECTIVE, DUAL = "the objective", "the dual"  # places
UNNAMED = re.compile(r"(CONST|var|param)\d+")  # the names that cvxpy gives
GRAM = "the Gram matrix"
BY_DUALIZE = {  # names that the table of conjugates gives to arrays: a letter and a meaning
    "R": ("R", "a root of the matrix of a square"),
    "Q'": ("Q", "a basis of the range of the kernels, by rows"),
}
COMPARED = 4_000_000  # entries of an array up to which it is compared with the others to find it again


class Role(Enum):
    """What an array does where it stands: it is added, it multiplies, or it is the vector a of a'x."""

    TERM = "term"
    FACTOR = "factor"
    SLOPE = "slope"


class Symbol(NamedTuple):
    """A name of an array.

    Attributes
    ----------
    name : str
    value : array
    meaning : str
    """

    name: str
    value: Array
    meaning: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape


class Symbols:
    """The names that the data of a problem and of its dual have in print.

    An array that has been named is found again by its values, also its negative and its transpose. A name
    comes from the user's `cp.Constant` where that has one, and else from where the array stands: A1, A2, ...
    for the matrix of a product, a1, ... for a vector, c for that of a linear objective, B1 and b1, ... for
    what is added.

    Attributes
    ----------
    taken : set of str
        All names, also those of variables, multipliers and parameters.
    place : str
        What is being written: "the objective", a constraint; empty for a dual by `dualize`, which says in
        the name of each array what it is.
    label : str
        The label of a constraint of a dual by `dualize` that is being written.
    used : dict from name to meaning
        What was printed since `printed` was called last.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.known: list[Symbol] = []
        self.stacks: list[tuple[str, Grams]] = []
        self.used: dict[str, str] = {}
        self.sums: dict[str, tuple[Written, Written]] = {}
        self.units: dict[str, tuple[int, ...]] = {}
        self.products: dict[str, tuple[Written, Written]] = {}
        self.place = ""
        self.label = ""
        self._places: dict[str, list[str]] = {}

    def fresh(self, wanted: str, numbered: bool = False) -> str:
        """Return a name that is not taken: `wanted`, or `wanted` with a number."""
        if not numbered and wanted not in self.taken:
            self.taken.add(wanted)
            return wanted
        count = 1
        while f"{wanted}{count}" in self.taken:
            count += 1
        self.taken.add(f"{wanted}{count}")
        return f"{wanted}{count}"

    def declare(self, value: Any, wanted: str, meaning: str) -> None:
        """Name an array beforehand, unless it has a name or needs none."""
        array = dense(value)
        if array.size > 1 and np.ptp(array) > 0 and self.found(array) is None:
            self.known.append(Symbol(self.fresh(wanted), array, meaning))

    def declare_stack(self, grams: Grams, wanted: str = "") -> str:
        """Return the letter of a stack of Gram matrices, a new one for a new stack.

        The block of a stack on its first points has the letter of the stack. The matrix of a stack of one is
        found by its values too.
        """
        for letter, known in self.stacks:
            if same_stack(known, grams):
                return letter
        letter = self.fresh(wanted or ("K" if not self.stacks else f"K{len(self.stacks) + 1}"))
        self.stacks.append((letter, grams))
        if len(grams) == 1:
            self.known.append(Symbol(letter, grams.gram(0), GRAM))
        else:
            traces = np.asarray(grams.traces, dtype=float)
            self.declare(traces, "t", f"the traces tr {letter}_m")
        return letter

    def stack(self, grams: Grams, wanted: str = "") -> str:
        """Return the letter of a stack that is printed, whose matrices are `member(letter)`."""
        letter = self.declare_stack(grams, wanted)
        _, whole = next(pair for pair in self.stacks if pair[0] == letter)
        m, n = len(whole), whole.n_points
        if m == 1:
            self.used[letter] = f"({n}, {n})  {GRAM}"
        else:
            self.used[f"{letter}_m"] = f"({m}, {n}, {n})  Gram matrices, m = 1, ..., {m}"
        return letter

    def member(self, letter: str) -> Written:
        """Return K_m, for the letter of a stack."""
        numbered = re.fullmatch(r"K(\d+)", letter)
        tex = f"K^{{({numbered[1]})}}" if numbered else name_of(letter).tex
        _, grams = next(pair for pair in self.stacks if pair[0] == letter)
        if len(grams) == 1:
            return Written(letter, f"{{{tex}}}" if numbered else tex)  # it may get an exponent: K^+
        return Written(f"{letter}_m", f"{tex}_m")

    def constant(self, constant: cp.Constant, role: Role = Role.TERM) -> Tree:
        """Return a constant: a number, a multiple of I, or the name of its array."""
        array = dense(constant.value)
        if same_entries(array):
            return replace(number(float(array.flat[0])), shape=array.shape)
        return self.matrix(array, str(constant.name()), role)

    def matrix(self, array: Array, given: str, role: Role) -> Tree:
        """Return the name of an array, which by itself or in a product is no number, or a multiple of I."""
        if array.ndim == 2 and 1 in array.shape and array.size > 1:  # a column, or a row
            tree = self.matrix(array.ravel(), given.removesuffix("'"), role)
            return tree if array.shape[1] == 1 else transposed(tree)
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            diagonal = np.diagonal(array)
            if same_entries(diagonal) and np.count_nonzero(array) == len(array):
                return Tree("symmetric", (), float(diagonal[0]), IDENTITY, array.shape)
        if np.count_nonzero(array) == 1:
            at = np.argwhere(array)[0]
            name = ("e" if array.ndim == 1 else "E") + "".join(str(i + 1) for i in at)
            if self.units.get(name) == array.shape or name not in self.taken:
                return self.unit(array, name)
        return self.named(array, given, role)

    def unit(self, array: Array, name: str) -> Tree:
        """Return a number times a unit vector, or a unit matrix of one entry."""
        if name not in self.units:
            self.taken.add(name)
            self.units[name] = array.shape
            self.known.append(Symbol(name, (array != 0).astype(float), ""))
        k = float(array[array != 0][0])
        self.used[name] = f"{array.shape}  one at {list(map(int, np.argwhere(array)[0]))}, else zero"
        return Tree("name", (), k, name_of(name), array.shape)

    def named(self, array: Array, given: str, role: Role) -> Tree:
        """Return the name of an array, a new one for one that has none."""
        found = self.found(array)
        if found is None:
            wanted, meaning = BY_DUALIZE.get(given, ("", "")) if not self.place else ("", "")
            if not (self.place or meaning):
                meaning = f"in {self.label or DUAL}".replace("in d/d", "the costs of")
            if not wanted and re.fullmatch(r"[A-Za-z]\w*", given) and not UNNAMED.fullmatch(given):
                wanted = given
            letter = wanted or self.letter(array.ndim, role)
            symbol = Symbol(self.fresh(letter, letter in NUMBERED and not wanted), array, meaning)
            self.known.append(symbol)
            found = (symbol, 1.0, False)
        symbol, factor, transpose = found
        self.used[symbol.name] = f"{symbol.shape}  {symbol.meaning or self.standing(symbol.name)}".rstrip()
        stacked = symbol.name in dict(self.stacks)
        written = self.member(symbol.name) if stacked else name_of(symbol.name)
        symmetric = array.ndim == 2 and array.shape == array.T.shape and np.array_equal(array, array.T)
        tree = Tree("symmetric" if symmetric else "name", (), 1.0, written, symbol.shape)
        return (transposed(tree) if transpose and not symmetric else tree).times(factor)

    def letter(self, ndim: int, role: Role) -> str:
        """Return the letter of an array from where it stands."""
        costs = self.label.startswith("d/d ") and not self.place and role is Role.TERM
        if costs or (role is Role.SLOPE and self.place == OBJECTIVE):
            return "c" if ndim < 2 else "C"
        letter = "b" if role is Role.TERM else "a"
        return letter.upper() if ndim > 1 else letter

    def noted(self, name: Tree, weights: Tree, member: Written, count: int) -> None:
        """Note K(theta) = sum_m theta_m K_m, which is printed."""
        one, whole = inside(render(weights), UNIT), render(name)
        total = filled(
            f"sum_m {one.text}_m @0" if count > 1 else f"{one.text} @0",
            rf"\sum_m \left({one.tex}\right)_m @0" if "_" in one.tex else rf"\sum_m {one.tex}_m @0",
            member,
        )._replace(binds=SUM)
        self.sums[whole.text] = (whole, total)
        self.used[whole.text] = f"= {total.text}"

    def defined(self, wanted: str, tree: Tree) -> Written:
        """Return a name for a product of data, the same for the same product."""
        whole = render(tree)
        if whole.text not in self.products:
            self.products[whole.text] = name_of(self.fresh(wanted)), whole
        name, _ = self.products[whole.text]
        self.used[name.text] = f"= {whole.text}"
        self.sums[name.text] = (name, whole)
        return name

    def parameter(self, parameter: cp.Parameter, name: str) -> None:
        """Note a parameter that is printed."""
        shape = f"{parameter.shape}  " if parameter.ndim else ""
        self.used[name] = f"{shape}a parameter{self.standing(name, ', ')}"

    def standing(self, name: str, before: str = "") -> str:
        """Return where an array stands, in words; a place in the dual counts where there is no other."""
        places = self._places.setdefault(name, [])
        if self.place and self.place not in places and not (self.place == DUAL and places):
            places.append(self.place)
        return before + "in " + ", ".join(places) if places else ""

    def found(self, array: Array) -> tuple[Symbol, float, bool] | None:
        """Return the symbol of which an array is a multiple, the factor, and whether it is the transpose."""
        if array.size > COMPARED:
            return None
        for symbol in self.known:
            for transpose in (False, True) if array.ndim == 2 else (False,):
                other = symbol.value.T if transpose else symbol.value
                factor = multiple(array, other) if other.shape == array.shape else 0.0
                if factor:
                    return symbol, factor, transpose
        return None

    def printed(self) -> dict[str, str]:
        """Return the names that were printed since the last call, with shapes and meanings."""
        used, self.used = self.used, {}
        return used


def multiple(array: Array, other: Array) -> float:
    """Return k with array = k * other up to rounding, zero where there is none."""
    if not (np.isfinite(array).all() and np.isfinite(other).all()):
        return float(np.array_equal(array, other))
    at = np.unravel_index(np.argmax(np.abs(other)), other.shape)
    k = float(array[at] / other[at]) if other[at] else 0.0
    if abs(k - round(k)) <= SAME * abs(k):  # 1, and not 0.9999999999999999
        k = float(round(k))
    return k if k and np.abs(array - k * other).max() <= SAME * np.abs(array).max() else 0.0


def dense(value: Any) -> Array:
    """Return a value as a dense array."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


def same_stack(one: Grams, other: Grams) -> bool:
    """Whether two stacks are the same on the points that both have, the first ones."""
    if one is other:
        return True
    if len(one) != len(other):
        return False
    n = min(one.n_points, other.n_points)
    first = slice(0, n)
    return all(
        np.array_equal(one.gram(i)[first, first], other.gram(i)[first, first]) for i in range(len(one))
    )
