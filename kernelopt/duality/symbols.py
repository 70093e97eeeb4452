"""Names for the data of a problem: y, C, K_m, S0, A1, ..., each with a line that says what it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.duality.matrices import multiple_of_identity
from kernelopt.duality.written import UNIT, Written, multiplied, name_of, negated, number_of
from kernelopt.grams import Grams
from kernelopt.validation import Array

SAME = 1e-12  # entries that differ by less, relative to the largest, are the same up to the order of sums
COMPARED = 4_000_000  # entries of an array up to which it is compared with the others to find it again


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

    An array that has been named is found again by its values, also its negative and its transpose.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.known: list[Symbol] = []
        self.stacks: list[tuple[str, Grams]] = []
        self.used: dict[str, str] = {}
        self.sums: dict[str, tuple[Written, Written]] = {}

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

    def declare_stack(self, grams: Grams) -> str:
        """Return the letter of a stack of Gram matrices, a new one for a new stack.

        The block of a stack on its first points has the letter of the stack.
        """
        for letter, known in self.stacks:
            if same_stack(known, grams):
                return letter
        letter = self.fresh("K" if not self.stacks else f"K{len(self.stacks) + 1}")
        self.stacks.append((letter, grams))
        traces = np.asarray(grams.traces, dtype=float)
        self.declare(traces, "t", f"the traces tr {letter}_m")
        return letter

    def stack(self, grams: Grams) -> str:
        """Return the letter of a stack that is printed, whose matrices are `member(letter)`."""
        letter = self.declare_stack(grams)
        _, whole = next(pair for pair in self.stacks if pair[0] == letter)
        m, n = len(whole), whole.n_points
        if m == 1:
            self.used[letter] = f"({n}, {n})  the Gram matrix"
        else:
            self.used[f"{letter}_m"] = f"({m}, {n}, {n})  Gram matrices, m = 1, ..., {m}"
        return letter

    def member(self, letter: str) -> Written:
        """Return K_m, for the letter of a stack."""
        whole = name_of(letter) if letter == "K" else Written(letter, f"K^{{({letter[1:]})}}")
        _, grams = next(pair for pair in self.stacks if pair[0] == letter)
        return whole if len(grams) == 1 else Written(f"{letter}_m", f"{whole.tex}_m")

    def constant(self, constant: cp.Constant, wanted: str = "") -> Written:
        """Return a constant: a number, a multiple of I, or the name of its array."""
        array = dense(constant.value)
        if array.size == 1 or np.ptp(array) == 0:
            return number_of(float(array.flat[0]) + 0.0)
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            factor = multiple_of_identity(sp.csr_array(array))
            if factor is not None:
                return multiplied(number_of(factor), name_of("I"))
        return self.named(array, str(constant.name()), wanted)

    def matrix(self, array: Array, given: str) -> Written:
        """Return the name of an array that is a factor of a matrix product, where it is no number."""
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        factor = multiple_of_identity(sp.csr_array(array)) if square else None
        return self.named(array, given, "") if factor is None else multiplied(number_of(factor), name_of("I"))

    def named(self, array: Array, given: str, wanted: str) -> Written:
        """Return the name of an array, a new one for one that has none."""
        found = self.found(array)
        if found is None:
            own = given if given.isidentifier() and len(given) <= 3 and given != "c" else ""
            letter = wanted or own or ("a" if array.ndim == 1 else "A")
            symbol = Symbol(self.fresh(letter, letter in ("a", "A")), array, described(given, own))
            self.known.append(symbol)
            found = (symbol, False, False)
        symbol, minus, transposed = found
        self.used[symbol.name] = f"{symbol.shape}  {symbol.meaning}".rstrip()
        written = name_of(symbol.name)
        if transposed:
            written = Written(f"{written.text}'", rf"{written.tex}^\top", UNIT)
        return negated(written) if minus else written

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
                    if np.abs(array + other if minus else array - other).max() <= SAME * np.abs(array).max():
                        return symbol, minus, transposed
        return None

    def legend(self) -> list[tuple[str, str]]:
        """Return the names that were printed, with shapes and meanings."""
        return list(self.used.items())


def described(given: str, own: str) -> str:
    """Return what an array is, from the name that `dualize` gave it: A[label, variable] or b[label]."""
    kind, bracket, rest = given.partition("[")
    if given == "c":
        return "the coefficients of the objective"
    if not bracket or own or "\n" in given or kind not in ("A", "b", "D", "W", "K"):
        return "the matrix of the quadratic objective" if given == "P" else ""
    parts = [part for part in rest.rstrip("]").split(", ") if not part.startswith("var")]
    if kind == "b":
        return f"the constants of {parts[0]}"
    return "the coefficients of " + " in ".join(reversed(parts))


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
