"""The tree of the writer: an expression in normal form, from which its text and its LaTeX are made.

cvxpy's own nodes are strict in shape: x' needs a matrix, and 2 x + 2 y is no 2 (x + y). In a `Tree` a number
in front of an expression is its `factor`, sums and products are flat, vectors are columns, and promotions and
attributes are left out. `operations` computes with trees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import copysign, prod

from kernelopt.duality.written import PRODUCT, SUM, TEMPLATES, UNIT, Template, latex_name, number_of, word

Shape = tuple[int, ...]
FIELD = re.compile(r"([@~#])(\d+)")  # of a template; the mark says SUM, PRODUCT or UNIT
LEAST = 3  # terms that differ by the numbers of their names alone become one sum over i
NUMBERED = re.compile(r"(?<![A-Za-z\d.^(/])([A-Za-z]+)(\d+)(?![\d.])")  # a name with a number, such as a12
SCRIPTS = {"power": "^", "index": "_", "member": "_"}  # LaTeX has no double exponents and indices


@dataclass(frozen=True)
class Tree:
    """An expression of the board: factor * head(args).

    Attributes
    ----------
    head : str
        "one" of a number, "name" or "symmetric" of a leaf, "sum", "product", "hadamard", "block", a key of
        `TEMPLATES`, the name of another function, or "formula".
    args : tuple of Tree
    factor : float
    template : tuple of (text, LaTeX) or of (text, LaTeX, how tightly they bind)
        The name of a leaf; of a formula with @0, @1, ... in the places of the arguments.
    shape : tuple of int
    """

    head: str
    args: tuple[Tree, ...] = ()
    factor: float = 1.0
    template: Template = ()
    shape: Shape = field(default=(), compare=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions with more than one entry."""
        return sum(n != 1 for n in self.shape)

    @property
    def bare(self) -> Tree:
        """The expression without its factor."""
        return replace(self, factor=1.0)

    @property
    def terms(self) -> tuple[Tree, ...]:
        """The terms of a sum; of any other expression the expression itself."""
        return tuple(a.times(self.factor) for a in self.args) if self.head == "sum" else (self,)

    @cached_property
    def written(self) -> tuple[str, str, int]:
        """The text, the LaTeX, and how tightly they bind."""
        template, args = filling(self)

        def filled(k: int) -> str:
            if not args:
                return str(template[k])
            return FIELD.sub(lambda at: args[int(at[2])].inside("@~#".index(at[1]), k), template[k])

        return filled(0), filled(1), (*template, UNIT)[2]

    @property
    def text(self) -> str:
        """The expression as text."""
        return self.written[0]

    @property
    def tex(self) -> str:
        """The expression as LaTeX."""
        return self.written[1]

    def inside(self, tight: int, side: int) -> str:
        """Return the text (0) or the LaTeX (1), in brackets where it binds less tightly than `tight`."""
        whole = self.written[:2][side]
        return whole if self.written[2] >= tight else ("({})", r"\left({}\right)")[side].format(whole)

    def times(self, factor: float) -> Tree:
        """Return the expression times a number."""
        return replace(self, factor=self.factor * factor) if factor else ZERO

    def under(self, head: str, *more: Tree, shape: Shape = ()) -> Tree:
        """Return a linear function of the expression; the factor stands in front of the function."""
        return Tree(head, (self.bare, *more), self.factor, shape=shape)


Filled = tuple[Template, Sequence[Tree]]  # a template, and what stands in its fields


def is_row(shape: Shape) -> bool:
    """Whether a matrix has one row."""
    return len(shape) == 2 and shape[0] == 1


def number(value: float) -> Tree:
    """Return a number."""
    return Tree("one", factor=float(value))


def index(value: float) -> Tree:
    """Return an exponent, or the index of a norm: 2, inf, or a fraction such as (4/3)."""
    text, tex = number_of(abs(value))
    return formula(*((f"({text})", text) if "/" in text else (text, tex))).times(copysign(1.0, value))


def leaf(name: str, shape: Shape = (), symmetric: bool = False, tex: str = "") -> Tree:
    """Return a name."""
    head = "symmetric" if symmetric else "name"
    return Tree(head, template=(name, tex or latex_name(name)), shape=shape)


def formula(text: str, tex: str, *args: Tree, binds: int = UNIT) -> Tree:
    r"""Return a template of text and one of LaTeX with expressions in the place of @0, @1, ...

    An expression stands in brackets in the place of ~0 where it is a sum, and of #0 where it is a product.

    Examples
    --------
    >>> formula("min @0 of ~1", r"\min_{@0}\ ~1", leaf("theta"), leaf("f0")).tex
    '\\min_{\\theta}\\ f_{0}'
    """
    return Tree("formula", args, template=(text, tex, binds))


def listed(parts: Sequence[Tree], text: str = ", ", tex: str = ", ") -> Tree:
    """Return expressions with a separator between them."""
    fields = [f"@{i}" for i in range(len(parts))]
    return formula(text.join(fields), tex.join(fields), *parts)


ZERO, ONE, ONES, IDENTITY = number(0.0), number(1.0), leaf("1"), leaf("I", (), True)


def filling(tree: Tree) -> Filled:
    """Return the template of a tree with its factor, and what stands in its fields."""
    head, args = tree.head, tree.args
    if tree.factor < 0:
        return ("-~0", "-~0", SUM), [tree.times(-1.0)]
    if head == "one" or (tree.factor != 1 and tree.bare == ONES):
        return number_of(tree.factor), []
    if tree.factor != 1:
        mark = "#" if tree.bare.text[0].isdigit() else "~"  # 2 (1 / x), not 2 1 / x
        return (f"@0 {mark}1", rf"@0\,{mark}1", PRODUCT), [number(tree.factor), tree.bare]
    if head in COMPOSED:
        return COMPOSED[head](tree)
    other = (f"{head}(@*)", rf"{word(head)}\left(@*\right)")
    text, tex, *binds = TEMPLATES.get(head) or tree.template or other
    every = ", ".join(f"@{i}" for i in range(len(args)))
    if head in SCRIPTS and SCRIPTS[head] in re.sub(
        r"\\left.*\\right.|\\\|.*\\\|", "", args[0].inside(UNIT, 1)
    ):
        tex = tex.replace("#0", r"\left(#0\right)")
    return (text.replace("@*", every), tex.replace("@*", every), *binds), args


def flat(head: str, parts: Sequence[Tree], shape: Shape) -> Tree:
    """Return a product of parts in which no part is a product."""
    args = [a for p in parts for a in (p.args if p.head == head else (p.bare,))]
    return Tree(head, tuple(args), prod(p.factor for p in parts), shape=shape)


def multiplied(parts: Sequence[Tree], shape: Shape = ()) -> Tree:
    """Return a product of matrices, vectors and scalars, the scalars first."""
    whole = flat("product", parts, shape)
    rest = sorted((a for a in whole.args if a != ONE), key=lambda a: 2 if a.ndim else a.head != "name")
    if len(rest) > 1 and rest[-2].ndim:  # several arrays
        rest = [a for a in rest if a != IDENTITY] or [IDENTITY]
    if len(rest) < 2 or not whole.factor:
        return (rest or [ONE])[0].times(whole.factor)
    return replace(whole, args=tuple(rest))


def with_ones(tree: Tree, shape: Shape) -> Tree:
    """Return a number in all entries of a vector or a matrix as a multiple of 1 or of 1 1'."""
    ones = [replace(ONES, shape=(n,)) for n in shape if n > 1]
    rows = [one.under("transpose", shape=(1, *one.shape)) for one in ones[1:]]
    return tree if tree.ndim or not ones else multiplied([tree, *ones[:1], *rows], shape)


def sum_of(tree: Tree) -> Filled:
    """Return a sum, which begins with a summand of positive sign where there is one.

    A scalar that is added to a vector is a multiple of the vector of ones.
    """
    terms = gathered([a if a.head == "one" else with_ones(a, tree.shape) for a in tree.args])
    first = next((a for a in terms if a.factor > 0), terms[0])
    terms.sort(key=lambda a: a is not first)
    signs = "".join(f" - ~{i}" if a.factor < 0 else f" + @{i}" for i, a in enumerate(terms[1:], 1))
    rest = [a.times(copysign(1.0, a.factor)) for a in terms[1:]]
    return (f"@0{signs}", f"@0{signs}", SUM), [terms[0], *rest]


def product(tree: Tree) -> Filled:
    """Return A x, a'x, c x."""
    text = tex = ""
    for i, a in enumerate(tree.args):
        field = f"{'#' if a.head in ('quotient', 'sum', 'hadamard') else '~'}{i}"
        near = a.head == "transpose" and a.ndim == 1 and a.args[0].head != "sum"
        text, tex = text + field + " " * (not near), tex + field + (" " if near else r"\,")
    return (text.strip(), tex.removesuffix(r"\,").strip(), PRODUCT), tree.args


def hadamard(tree: Tree) -> Filled:
    """Return x * y."""
    fields = [f"~{i}" for i in range(len(tree.args))]
    return (" * ".join(fields), r" \odot ".join(fields), PRODUCT), tree.args


def block(tree: Tree) -> Filled:
    """Return a block matrix as [A, b; b', c]."""
    rows = [listed(row.args, tex=" & ") for row in tree.args]
    return ("[@0]", r"\begin{bmatrix} @0 \end{bmatrix}"), [listed(rows, "; ", r" \\ ")]


COMPOSED: dict[str, Callable[[Tree], Filled]] = {
    "sum": sum_of, "product": product, "hadamard": hadamard, "block": block,
}  # fmt: skip


def runs(parts: Sequence[Tree]) -> list[list[Tree]]:
    """Return parts in runs that differ by the number of their names alone, which counts up."""

    def key(place: tuple[int, Tree]) -> tuple[str, object]:
        numbers = {int(n) for _, n in NUMBERED.findall(place[1].text)}
        start = numbers.pop() - place[0] if len(numbers) == 1 else place
        return NUMBERED.sub(r"\1#", place[1].text), start

    return [[part for _, part in run] for _, run in groupby(enumerate(parts), key)]


def gathered(terms: Sequence[Tree]) -> list[Tree]:
    """Return terms in which runs that differ by the numbers of their names alone are one sum over i.

    The sum over i of f(a_i, lambda_i) is the sum of the terms by the definition of the sum; a term belongs
    where all its names with a number have the same one, and the numbers are 1, 2, ... in turn.
    """
    found = list[Tree]()
    for run in runs(terms):
        sign = copysign(1.0, run[0].factor)
        first = run[0].times(sign)
        if len(run) >= LEAST and NUMBERED.findall(first.text)[0][1] == "1":
            text, tex = NUMBERED.sub(r"\1_i", first.text), re.sub(r"_\{\d+\}", "_{i}", first.tex)
            run = [formula(f"sum_i {text}", rf"\sum_i {tex}", binds=PRODUCT).times(sign)]
        found += run
    return found


def enumerated(names: Sequence[Tree]) -> list[Tree]:
    """Return names in which a run such as y1, y2, y3, y4 is "y1, ..., y4"."""
    found = list[Tree]()
    for run in runs(names):
        found += [formula("@0, ..., @1", r"@0, \ldots, @1", run[0], run[-1])] if len(run) > LEAST else run
    return found
