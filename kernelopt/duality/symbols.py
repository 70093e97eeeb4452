"""Names for the data of a problem: y, C, K_m, S0, A1, ..., each with a line that says what it is."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from itertools import chain, count
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.rendering import render
from kernelopt.duality.tree import IDENTITY, ONES, Tree, leaf, number, transposed
from kernelopt.duality.written import SUM, Written, filled, name_of
from kernelopt.grams import Grams
from kernelopt.validation import Array

SAME = 1e-12  # entries that differ by less, relative to the largest, are the same up to the order of sums
OBJECTIVE, DUAL = "the objective", "the dual"  # places
UNNAMED = re.compile(r"(CONST|var|param)\d+|.*\W.*", re.DOTALL)  # the names that cvxpy gives, and no names
BY_DUALIZE = {  # names that the table of conjugates gives to arrays: a letter and a meaning
    "R": ("R", "a root of the matrix of a square"),
    "Q'": ("Q", "a basis of the range of the kernels, by rows"),
}
COMPARED = 4_000_000  # entries of an array up to which it is compared with the others to find it again


class Role(Enum):
    """What an array does where it stands: it is added, multiplies entries, or is a factor of a product."""

    TERM = "term"
    WEIGHT = "weight"
    FACTOR = "factor"


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
    stacks : dict from a letter to Grams
    sums : dict from a name to (name, Written)
        The definitions of K(theta) and Q.
    used : dict from name to meaning
        What was printed since `printed` was called last.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.known: list[Symbol] = []
        self.stacks: dict[str, Grams] = {}
        self.used: dict[str, str] = {}
        self.sums: dict[str, tuple[Written, Written]] = {}
        self.place = self.label = ""
        self._places: dict[str, list[str]] = {}

    def fresh(self, wanted: str) -> str:
        """Return a name that is not taken: `wanted`, or the first with a larger number."""
        stem = wanted.rstrip("0123456789")
        names = chain([wanted], (f"{stem}{k}" for k in count(int(wanted[len(stem) :] or 0) + 1)))
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name

    def declare(self, value: Any, wanted: str, meaning: str) -> None:
        """Name an array beforehand, unless it has a name or needs none."""
        array = dense(value)
        if not same_entries(array) and self.found(array) is None:
            self.known.append(Symbol(self.fresh(wanted), array, meaning))

    def declare_stack(self, grams: Grams, wanted: str = "") -> str:
        """Return the letter of a stack of Gram matrices, a new one for a new stack.

        The block of a stack on its first points has the letter of the stack. The matrix of a stack of one is
        found by its values too.
        """
        for letter, known in self.stacks.items():
            if same_stack(known, grams):
                return letter
        letter = self.fresh(wanted or ("K" if not self.stacks else f"K{len(self.stacks) + 1}"))
        self.stacks[letter] = grams
        if len(grams) == 1:
            self.known.append(Symbol(letter, grams.gram(0), "the Gram matrix"))
        else:
            self.declare(grams.traces, "t", f"the traces tr {letter}_m")
        return letter

    def stack(self, grams: Grams) -> Written:
        """Return the name K_m of the matrices of a stack that is printed, K for a stack of one."""
        letter = self.declare_stack(grams)
        m, n = len(self.stacks[letter]), self.stacks[letter].n_points
        tex = re.sub(r"_\{(\d+)\}", r"^{(\1)}", name_of(letter).tex)
        if m == 1:
            self.used[letter] = f"({n}, {n})  the Gram matrix"
            return Written(letter, f"{{{tex}}}" if "^" in tex else tex)  # it may get an exponent: K^+
        self.used[f"{letter}_m"] = f"({m}, {n}, {n})  Gram matrices, m = 1, ..., {m}"
        return Written(f"{letter}_m", f"{tex}_m")

    def constant(self, e: Any, role: Role) -> Tree:
        """Return a constant: a number, a multiple of 1 or I, or the name of its array."""
        array = dense(e.value)
        if same_entries(array) and (array.size == 1 or role is not Role.FACTOR):
            return number(float(array.flat[0]))
        return self.matrix(array, e.name() if isinstance(e, cp.Constant) else "", role)

    def matrix(self, array: Array, given: str, role: Role) -> Tree:
        """Return the name of an array, or a multiple of 1 or I."""
        if array.ndim == 2 and 1 in array.shape and array.size > 1:  # a column, or a row
            tree = self.matrix(array.ravel(), given.removesuffix("'"), role)
            return tree if array.shape[1] == 1 else transposed(tree)
        first = float(array.flat[0])
        if array.ndim == 1 and same_entries(array):
            return replace(ONES, factor=first, shape=array.shape)
        if array.ndim == 2 and np.array_equal(array, first * np.eye(len(array))):
            return replace(IDENTITY, factor=first, shape=array.shape)
        symbol, factor, transpose = self.found(array) or self.named(array, given, role)
        self.used[symbol.name] = (
            f"{symbol.value.shape}  {symbol.meaning or self.standing(symbol.name)}".rstrip()
        )
        name = self.stack(self.stacks[symbol.name]) if symbol.name in self.stacks else name_of(symbol.name)
        symmetric = array.ndim == 2 and np.array_equal(array, array.T)
        tree = leaf(name, symbol.value.shape, symmetric)
        return (transposed(tree) if transpose else tree).times(factor)

    def named(self, array: Array, given: str, role: Role) -> tuple[Symbol, float, bool]:
        """Return a new symbol as `found` does; an array of one entry is a multiple of e_i or E_ij."""
        at = np.argwhere(array).tolist()
        unit = (
            "eE"[array.ndim - 1] + "".join(str(i + 1) for i in at[0])
            if len(at) == 1 and array.ndim < 3
            else ""
        )
        if unit and unit not in self.taken:
            one = Symbol(self.fresh(unit), (array != 0).astype(float), f"one at {at[0]}, else zero")
            self.known.append(one)
            return one, float(array.sum()), False
        wanted, meaning = BY_DUALIZE.get(given, ("", "")) if not self.place else ("", "")
        if not (self.place or meaning):
            meaning = f"in {self.label or DUAL}".replace("in d/d", "the costs of")
        wanted = wanted or ("" if UNNAMED.fullmatch(given) else given) or self.letter(array.ndim, role)
        symbol = Symbol(self.fresh(wanted), array, meaning)
        self.known.append(symbol)
        return symbol, 1.0, False

    def letter(self, ndim: int, role: Role) -> str:
        """Return the letter of an array from where it stands."""
        costs = self.label.startswith("d/d ") and not self.place and role is Role.TERM
        slope = role is Role.FACTOR and ndim == 1 and self.place == OBJECTIVE
        letter = "c" if costs or slope else "b1" if role is Role.TERM else "a1"
        return letter.upper() if ndim > 1 else letter

    def combined(self, name: Tree, weights: Tree, letter: str) -> None:
        """Note K(theta) = sum_m theta_m K_m, which is printed."""
        several = len(self.stacks[letter]) > 1
        text, tex = ("sum_m #0 @1", r"\sum_m #0 @1") if several else ("#0 @1", r"#0\,@1")
        weight = render(Tree("member", (weights, leaf(name_of("m")))) if several else weights)
        self.define(render(name), filled(text, tex, weight, self.stack(self.stacks[letter]), binds=SUM))

    def define(self, name: Written, whole: Written) -> Written:
        """Note the definition of a name that is printed, and return the name."""
        self.sums[name.text] = name, whole
        self.used[name.text] = f"= {whole.text}"
        return name

    def defined(self, wanted: str, tree: Tree) -> Written:
        """Return a name for a product of data, the same for the same product."""
        whole = render(tree)
        same = [name for name, known in self.sums.values() if known == whole]
        return self.define(same[0] if same else name_of(self.fresh(wanted)), whole)

    def parameter(self, parameter: cp.Parameter, name: str) -> None:
        """Note a parameter that is printed."""
        shape = f"{parameter.shape}  " if parameter.ndim else ""
        self.used[name] = ", ".join(filter(None, (f"{shape}a parameter", self.standing(name))))

    def standing(self, name: str) -> str:
        """Return where an array stands, in words; a place in the dual counts where there is no other."""
        places = self._places.setdefault(name, [])
        if self.place and self.place not in places and not (self.place == DUAL and places):
            places.append(self.place)
        return "in " + ", ".join(places) if places else ""

    def found(self, array: Array) -> tuple[Symbol, float, bool] | None:
        """Return the symbol of which an array is a multiple, the factor, and whether it is the transpose."""
        for symbol in self.known if array.size <= COMPARED else ():
            for transpose in (False, True)[: array.ndim]:
                factor = multiple(array, symbol.value.T if transpose else symbol.value)
                if factor:
                    return symbol, factor, transpose
        return None

    def printed(self) -> dict[str, str]:
        """Return the names that were printed since the last call, with shapes and meanings."""
        used, self.used = self.used, {}
        return used


def multiple(array: Array, other: Array) -> float:
    """Return k with array = k * other up to rounding, zero where there is none."""
    if array.shape != other.shape or not (np.isfinite(array).all() and np.isfinite(other).all()):
        return float(np.array_equal(array, other))
    at = np.unravel_index(np.argmax(np.abs(other)), other.shape)
    k = float(array[at] / other[at])
    k = float(round(k)) if abs(k - round(k)) <= SAME * abs(k) else k  # 1, and not 0.9999999999999999
    return k if np.abs(array - k * other).max() <= SAME * np.abs(array).max() else 0.0


def dense(value: Any) -> Array:
    """Return a value as a dense array."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


def same_entries(value: Array) -> bool:
    """Whether all entries of an array are equal."""
    return bool(value.size == 1 or np.ptp(value) == 0)


def same_stack(one: Grams, other: Grams) -> bool:
    """Whether two stacks are the same on the points that both have, the first ones."""
    first = slice(0, min(one.n_points, other.n_points))
    return len(one) == len(other) and all(
        one is other or np.array_equal(one.gram(i)[first, first], other.gram(i)[first, first])
        for i in range(len(one))
    )
