"""Names for the data of a problem: y, C, K_m, S0, A1, ..., each with a line that says what it is."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.duality.matrices import multiple_of_identity
from kernelopt.duality.written import UNIT, Written, multiplied, name_of, negated, number_of
from kernelopt.grams import Grams
from kernelopt.validation import Array

SAME = 1e-12  # entries that differ by less, relative to the largest, are the same up to the order of sums
NUMBERED = ("a", "A", "b", "B")  # letters of arrays that always have a number
OBJECTIVE, DUAL = "the objective", "the dual"  # places
GRAM = "the Gram matrix"
BY_DUALIZE = {  # names that `dualize` gives to arrays: a letter and a meaning
    "c": ("c", "the coefficients of the objective"),
    "P": ("P", "the matrix of the quadratic objective"),
    "b": ("", "the constants of the weights"),
    "R": ("a", "1 / sqrt(2 p) for the coefficients p of a weighted sum of squares"),
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

    def constant(self, constant: cp.Constant, role: Role = Role.TERM) -> Written:
        """Return a constant: a number, a multiple of I, or the name of its array."""
        array = dense(constant.value)
        if array.size == 1 or np.ptp(array) == 0:
            return number_of(float(array.flat[0]) + 0.0)
        return self.matrix(array, str(constant.name()), role)

    def matrix(self, array: Array, given: str, role: Role) -> Written:
        """Return the name of an array, which by itself or in a product is no number, or a multiple of I."""
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        multiple = multiple_of_identity(sp.csr_array(array)) if square else None
        if multiple is None:
            return self.named(array, given, role)
        return multiplied(number_of(multiple), name_of("I"))

    def named(self, array: Array, given: str, role: Role) -> Written:
        """Return the name of an array, a new one for one that has none."""
        found = self.found(array)
        if found is None:
            wanted, meaning = described(given, array.ndim) if not self.place else ("", "")
            if not (self.place or meaning) and self.label:
                meaning = f"in {self.label}"
            if self.place and given.isidentifier():
                wanted = given
            letter = wanted or self.letter(array.ndim, role)
            symbol = Symbol(self.fresh(letter, letter in NUMBERED), array, meaning)
            self.known.append(symbol)
            found = (symbol, False, False)
        symbol, minus, transposed = found
        self.used[symbol.name] = f"{symbol.shape}  {symbol.meaning or self.standing(symbol.name)}".rstrip()
        written = self.member(symbol.name) if symbol.name in dict(self.stacks) else name_of(symbol.name)
        if transposed:
            written = Written(f"{written.text}'", rf"{written.tex}^\top", UNIT)
        return negated(written) if minus else written

    def letter(self, ndim: int, role: Role) -> str:
        """Return the letter of an array from where it stands."""
        if role is Role.SLOPE and self.place == OBJECTIVE:
            return "c"
        letter = "b" if role is Role.TERM else "a"
        return letter.upper() if ndim > 1 else letter

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

    def found(self, array: Array) -> tuple[Symbol, bool, bool] | None:
        """Return the symbol of an array, whether it is the negative of it, and whether the transpose."""
        if array.size > COMPARED:
            return None
        for symbol in self.known:
            for transposed in (False, True) if array.ndim == 2 else (False,):
                other = symbol.value.T if transposed else symbol.value
                if other.shape != array.shape:
                    continue
                for minus in (False, True):
                    if same_array(array, -other if minus else other):
                        return symbol, minus, transposed
        return None

    def printed(self) -> dict[str, str]:
        """Return the names that were printed since the last call, with shapes and meanings."""
        used, self.used = self.used, {}
        return used


def described(given: str, ndim: int) -> tuple[str, str]:
    """Return a letter and a meaning for the name that `dualize` gave an array: A[label, variable], b[label].

    The letter is empty where it comes from where the array stands.
    """
    if given in BY_DUALIZE:
        return BY_DUALIZE[given]
    kind, bracket, rest = given.partition("[")
    if not bracket or kind not in ("A", "b", "D", "W", "K"):
        return "", ""
    parts = [part for part in rest.rstrip("]").split(", ") if not re.fullmatch(r"var\d+", part)]
    if kind == "b":
        return ("b" if ndim < 2 else "B"), f"the constants of {parts[0]}"
    return ("A" if ndim == 2 else "a"), "the coefficients of " + " in ".join(reversed(parts))


def same_array(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape are the same up to rounding; infinite entries have to be equal."""
    if not np.isfinite(one).all():
        return np.array_equal(one, other)
    return bool(np.abs(one - other).max() <= SAME * np.abs(one).max())


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
