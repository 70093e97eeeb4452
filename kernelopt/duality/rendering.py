"""From the tree of the writer to text and LaTeX, by `TEMPLATES`, and `WRITERS` for what has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from kernelopt.duality.tree import Tree, with_ones
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    Written,
    added,
    filled,
    inside,
    multiplied,
    number_of,
    word,
)

LEAST = 3  # terms that differ by the numbers of their names alone become one sum over i
NUMBERED = re.compile(r"(?<![A-Za-z\d.^(/])([A-Za-z]+)(\d+)(?![\d.])")  # a name with a number, such as a12
TEMPLATES: dict[str, tuple[str, str] | tuple[str, str, int]] = {  # text, LaTeX, how tightly they bind
    "quotient": ("~0 / #1", r"\frac{@0}{@1}", PRODUCT),
    "transpose": ("#0'", r"#0^\top"),
    "inner": ("<@0, @1>", r"\langle @0, @1\rangle"),
    "norm": ("|@0|_@1", r"\|@0\|_{@1}"),
    "Frobenius norm": ("|@0|_F", r"\|@0\|_{F}"),
    "square": ("|@0|^2", r"\|@0\|_{2}^{2}"),
    "square of a matrix": ("|@0|_F^2", r"\|@0\|_{F}^{2}"),
    "by columns": ("@0 by columns", r"@0\ \mathrm{by\ columns}"),
    "by rows": ("@0 by rows", r"@0\ \mathrm{by\ rows}"),
    "sqrt": ("sqrt(@0)", r"\sqrt{@0}"),
    "abs": ("|@0|", r"\left|@0\right|"),
    "plus": ("(@0)_+", r"\left(@0\right)_{+}"),
    "apply": ("@1(@0)", "@1(@0)"),
    "each": ("(@0)_m", r"\left(@0\right)_m"),
    "form": ("#0' #1 #0", r"#0^\top #1 #0", PRODUCT),
    "inverse form": ("#0' #1^+ #0", r"#0^\top #1^{+} #0", PRODUCT),
    "x log x": ("#0 log #0", r"#0 \log #0", PRODUCT),
    "x log y": ("#0 log(@1)", r"#0 \odot \log\left(@1\right)", PRODUCT),
    "total": ("sum(@0)", r"\mathbf{1}^\top #0"),
    "tr": ("tr(@0)", r"\operatorname{tr}(@0)"),
    "Diag": ("Diag(@0)", r"\operatorname{Diag}(@0)"),
    "diag": ("diag(@0)", r"\operatorname{diag}(@0)"),
    "vec": ("vec(@0)", r"\operatorname{vec}(@0)"),
    "mat": ("mat(@0)", r"\operatorname{mat}(@0)"),
    "log": ("log(@0)", r"\log\left(@0\right)"),
    "exp": ("exp(@0)", r"\exp\left(@0\right)"),
    "logistic": ("log(1 + exp(@0))", r"\log\left(1 + e^{@0}\right)"),
    "log det": ("log det(@0)", r"\log\det\left(@0\right)"),
    "log sum exp": ("log sum exp(@0)", r"\log \mathbf{1}^\top \exp\left(@0\right)"),
    "lambda_max": ("lambda_max(@0)", r"\lambda_{\max}(@0)"),
    "max": ("max(@*)", r"\max\left(@*\right)"),
    "min": ("min(@*)", r"\min\left(@*\right)"),
    "nuclear norm": ("|@0|_*", r"\|@0\|_{*}"),
    "spectral norm": ("|@0|_op", r"\|@0\|_{\mathrm{op}}"),
    "geo mean": ("geo mean(@0)", r"\operatorname{geo\,mean}\left(@0\right)"),
    "row": ("(@*)", r"\left(@*\right)"),
}


def listed(parts: Sequence[Written], text: str = ", ", tex: str = ", ") -> Written:
    """Return expressions with a separator between them."""
    return Written(text.join(p.signed_text for p in parts), tex.join(p.signed_tex for p in parts))


def render(tree: Tree) -> Written:
    """Return a tree as it is written."""
    if tree.head == "one":
        return number_of(tree.factor + 0.0)
    body = WRITERS[tree.head](tree) if tree.head in WRITERS else call(tree)
    return body if tree.factor == 1 else multiplied(number_of(tree.factor), body)


def call(tree: Tree) -> Written:
    """Return the template of a function with its arguments, @* for all of them; else f(a, b, ...)."""
    args = [render(a) for a in tree.args]
    plain = (f"{tree.head}(@*)", rf"{word(tree.head)}\left(@*\right)")
    text, tex, *binds = TEMPLATES.get(tree.head, plain)
    if "@*" in text:
        text, tex, args = text.replace("*", "0"), tex.replace("*", "0"), [listed(args)]
    return filled(text, tex, *args, binds=(*binds, UNIT)[0])


def sum_of(tree: Tree) -> Written:
    """Return a sum; a scalar that is added to a vector is a multiple of the vector of ones."""
    parts = [a if a.head == "one" else with_ones(a, tree.shape) for a in tree.args]
    return added(gathered(list(map(render, parts))))


def product(tree: Tree) -> Written:
    """Return A x, a'x, c x."""
    tights = [UNIT if a.head in ("quotient", "sum", "hadamard") else PRODUCT for a in tree.args]
    whole, *rest = [inside(render(a), tight) for a, tight in zip(tree.args, tights, strict=True)]
    for before, part in zip(tree.args, rest, strict=False):
        near = before.head == "transpose" and before.ndim == 1 and before.args[0].head != "sum"
        whole = listed([whole, part], "" if near else " ", " " if near else r"\,")
    return whole._replace(binds=PRODUCT)


def hadamard(tree: Tree) -> Written:
    """Return x * y."""
    return reduce(lambda a, b: multiplied(a, b, " * ", r" \odot "), map(render, tree.args))


def scripted(tree: Tree) -> Written:
    """Return x^p, or x[i]; LaTeX has no double exponents and indices, so that x stands in brackets."""
    mark, text, tex = SCRIPTS[tree.head]
    body = inside(render(tree.args[0]), UNIT)
    outer = re.sub(r"\\left.*\\right.|\\\|.*\\\|", "", body.tex)
    inner = body._replace(tex=rf"\left({body.tex}\right)") if mark in outer else body
    return filled(text, tex, inner, tree.args[1].data)


def block(tree: Tree) -> Written:
    """Return a block matrix as [A, b; b', c]."""
    rows = [listed([render(cell) for cell in row.args], tex=" & ") for row in tree.args]
    return filled("[@0]", r"\begin{bmatrix} @0 \end{bmatrix}", listed(rows, "; ", r" \\ "))


def named(tree: Tree) -> Written:
    """Return the name of a leaf."""
    return tree.data


SCRIPTS = {
    "power": ("^", "@0^@1", "@0^{@1}"),
    "index": ("_", "@0[@1]", "@0_{[@1]}"),
    "member": ("_", "@0_@1", "@0_@1"),
}
WRITERS: dict[str, Callable[[Tree], Written]] = {
    "name": named, "symmetric": named, "sum": sum_of, "product": product, "hadamard": hadamard,
    "block": block, **dict.fromkeys(SCRIPTS, scripted),
}  # fmt: skip


def runs(parts: Sequence[Written]) -> list[list[Written]]:
    """Return parts in runs that differ by the number of their names alone, which counts up."""
    found: list[list[Written]] = []
    last: object = None
    for part in parts:
        numbers = {int(n) for _, n in NUMBERED.findall(part.text)}
        n = numbers.pop() if len(numbers) == 1 else -2  # no number that follows another one
        form = NUMBERED.sub(r"\1#", part.text), part.minus
        if last == (form, n - 1):
            found[-1].append(part)
        else:
            found.append([part])
        last = form, n
    return found


def gathered(terms: list[Written]) -> list[Written]:
    """Return terms in which runs that differ by the numbers of their names alone are one sum over i.

    The sum over i of f(a_i, lambda_i) is the sum of the terms by the definition of the sum; a term belongs
    where all its names with a number have the same one, and the numbers are 1, 2, ... in turn.
    """
    found = list[Written]()
    for run in runs(terms):
        first = run[0]
        if len(run) < LEAST or NUMBERED.findall(first.text)[0][1] != "1":
            found += run
            continue
        text, tex = NUMBERED.sub(r"\1_i", first.text), re.sub(r"_\{\d+\}", "_{i}", first.tex)
        whole = filled("sum_i ~0", r"\sum_i ~0", Written(text, tex, first.binds), binds=PRODUCT)
        found.append(whole._replace(minus=first.minus))
    return found


def enumerated(names: list[Written]) -> list[Written]:
    """Return names in which a run such as y1, y2, y3, y4 is "y1, ..., y4"."""
    found = list[Written]()
    for run in runs(names):
        short = filled("@0, ..., @1", r"@0, \ldots, @1", run[0], run[-1])
        found += [short] if len(run) > LEAST else run
    return found
