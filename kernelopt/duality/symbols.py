"""Names for the data of a problem: y, C, K_m, S0, A1, ..., each with a line that says what it is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import dense
from kernelopt.duality.atoms import transposed
from kernelopt.duality.tree import IDENTITY, ONES, Tree, is_row, leaf, number
from kernelopt.duality.written import fresh
from kernelopt.grams import Grams
from kernelopt.validation import Array

SAME = 1e-12  # entries that differ by less, relative to the largest, are the same up to the order of sums
OBJECTIVE, DUAL = "the objective", "the dual"  # places
UNNAMED = re.compile(r"(CONST|var|param)\d+|.*\W.*|", re.DOTALL)  # the names that cvxpy gives, and no names
OF_THE_TABLE = {  # names that the table of conjugates gives to arrays
    "R": "a root of the matrix of a square",
    "Q": "a basis of the range of the kernels, by rows",
}


class Symbols:
    """The names that the data of a problem and of its dual have in print.

    An array that has been named is found again by its values, also its multiples and its transpose. A name
    comes from the user's `cp.Constant` where that has one, and else from where the array stands: A1, A2, ...
    for the matrix of a product, a1, ... for a vector, c for that of a linear objective, B1 and b1, ... for
    what is added.

    Attributes
    ----------
    taken : set of str
        All names, also those of variables, multipliers and parameters.
    place : str
        What is being read: "the objective", or the label of a constraint.
    dual : bool
        Whether the primal has been read. A place in the dual counts for what the primal does not have.
    stacks : dict from a letter to Grams
    sums : dict from a name to (name, Tree)
        The definitions of K(theta) and Q.
    used : dict from name to meaning
        What was printed since `printed` was called last.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.known: dict[str, tuple[Array, str]] = {}
        self.stacks: dict[str, Grams] = {}
        self.used: dict[str, str] = {}
        self.sums: dict[str, tuple[Tree, Tree]] = {}
        self.place, self.dual = "", False
        self._places: dict[str, list[str]] = {}

    def declare(self, value: Any, wanted: str, meaning: str) -> None:
        """Name an array beforehand, unless it has a name or needs none."""
        array = dense(value)
        if not same_entries(array) and self.found(array) is None:
            self.known[fresh(wanted, self.taken)] = array, meaning

    def declare_stack(self, grams: Grams, wanted: str = "") -> str:
        """Return the letter of a stack of Gram matrices, a new one for a new stack.

        The block of a stack on its first points has the letter of the stack. The matrix of a stack of one is
        found by its values too.
        """
        for letter, known in self.stacks.items():
            if same_stack(known, grams):
                return letter
        letter = fresh(wanted or "K", self.taken)
        self.stacks[letter] = grams
        if len(grams) == 1:
            self.known[letter] = grams.gram(0), "the Gram matrix"
        else:
            self.declare(grams.traces, "t", f"the traces tr {letter}_m")
        return letter

    def stack(self, grams: Grams) -> Tree:
        """Return the name K_m of the matrices of a stack that is printed, K for a stack of one."""
        letter = self.declare_stack(grams)
        m, n = len(grams), self.stacks[letter].n_points
        if m == 1:
            return self.constant(cp.Constant(self.stacks[letter].gram(0), name=""), "factor")
        self.used[f"{letter}_m"] = f"({m}, {n}, {n})  Gram matrices, m = 1, ..., {m}"
        tex = re.sub(r"_\{(\d+)\}", r"^{(\1)}", leaf(letter).tex)
        return leaf(f"{letter}_m", (n, n), True, f"{tex}_m")

    def constant(self, e: Any, role: str) -> Tree:
        """Return a constant: a number, a multiple of 1 or I, or the name of its array.

        An array may be a "term" of a sum, a "weight" of entries, or the "factor" of a product of matrices.
        """
        array = dense(e.value)
        first, row = float(array.flat[0]), is_row(array.shape) and array.size > 1
        if same_entries(array) and (array.size == 1 or role != "factor"):
            return number(first)
        array = array.ravel() if array.ndim == 2 and 1 in array.shape else array
        if array.ndim == 1 and same_entries(array):
            tree = replace(ONES, factor=first, shape=array.shape)
        elif array.ndim == 2 and np.array_equal(array, first * np.eye(len(array))):
            tree = replace(IDENTITY, factor=first, shape=array.shape)
        else:
            tree = self.array(array, e.name() if isinstance(e, cp.Constant) else "", role)
        return transposed(tree) if row else tree

    def array(self, array: Array, given: str, role: str) -> Tree:
        """Return an array by its name; one that has a single entry is a multiple of e_i or E_ij."""
        at = np.argwhere(array).tolist() if array.ndim < 3 else []
        unit = "eE"[array.ndim - 1] + "".join(str(i + 1) for i in at[0]) if len(at) == 1 else ""
        if unit and unit not in self.taken:
            self.declare(array != 0, unit, f"one at {at[0]}, else zero")
        found = self.found(array)
        if found is None:
            name = self.letter(array.ndim, role) if UNNAMED.fullmatch(given) else given
            name = fresh(name, self.taken)
            self.known[name] = array, OF_THE_TABLE.get(given, "") if self.dual else ""
            found = name, 1.0, False
        name, factor, transpose = found
        shape, meaning = self.known[name][0].shape, self.known[name][1]
        self.used[name] = f"{shape}  {meaning or self.standing(name)}"
        tree = leaf(name, shape, array.ndim == 2 and np.array_equal(array, array.T))
        return (transposed(tree) if transpose else tree).times(factor)

    def letter(self, ndim: int, role: str) -> str:
        """Return the letter of an array from where it stands."""
        slope = role == "factor" and ndim == 1 and self.place == OBJECTIVE
        costs = role == "term" and self.place.startswith("d/d ")
        letter = "c" if costs or slope else "b1" if role == "term" else "a1"
        return letter.upper() if ndim > 1 else letter

    def define(self, name: Tree, whole: Tree) -> Tree:
        """Note the definition of a name that is printed, and return the name."""
        self.sums[name.text] = name, whole
        self.used[name.text] = f"= {whole.text}"
        return name

    def defined(self, wanted: str, whole: Tree) -> Tree:
        """Return a name for a symmetric product of data, the same for the same product."""
        same = [name for name, known in self.sums.values() if known == whole]
        return self.define(same[0] if same else leaf(fresh(wanted, self.taken), whole.shape, True), whole)

    def parameter(self, parameter: cp.Parameter, name: str) -> None:
        """Note a parameter that is printed."""
        shape = f"{parameter.shape}  " if parameter.ndim else ""
        self.used[name] = f"{shape}a parameter, {self.standing(name)}"

    def standing(self, name: str) -> str:
        """Return where an array stands, in words."""
        places = self._places.setdefault(name, [])
        place = self.place.removesuffix("d/d ") or DUAL  # the variable of an atom has no name
        if place not in places and not (self.dual and places):
            places.append(place)
        return f"in {', '.join(places)}".replace("in d/d", "the costs of")

    def found(self, array: Array) -> tuple[str, float, bool] | None:
        """Return the symbol s of an array k s or k s', the factor k, and whether it is the transpose."""
        for name, (value, _) in self.known.items():
            for transpose in (False, True)[: array.ndim]:
                factor = multiple(array, value.T if transpose else value)
                if factor:
                    return name, factor, transpose
        return None

    def printed(self) -> dict[str, str]:
        """Return the names that were printed since the last call, with shapes and meanings."""
        used, self.used = self.used, {}
        return used


def multiple(array: Array, other: Array) -> float:
    """Return k with array = k * other up to rounding, zero where there is none."""
    if array.shape != other.shape or not np.isfinite(array).all():
        return float(np.array_equal(array, other))
    at = np.abs(other).argmax()
    with np.errstate(all="ignore"):
        k = float(f"{array.flat[at] / other.flat[at]:.12g}")  # 1, and not 0.9999999999999999
        return k if np.abs(array - k * other).max() <= SAME * np.abs(array).max() else 0.0


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
