"""From the tree of the writer to text and LaTeX: `WRITERS` lists the heads."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kernelopt.duality.tree import Tree
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    Written,
    added,
    divided,
    filled,
    grouped,
    index_of,
    inside,
    multiplied,
    number_of,
    word,
)

LEAST = 3  # terms that differ by the numbers of their names alone become one sum over i
NUMBERED = re.compile(r"(?<![A-Za-z\d.^(/])([A-Za-z]+)(\d+)(?![\d.])")  # a name with a number, such as a12
CALLS = {  # text, LaTeX, of one argument
    "tr": ("tr(@0)", r"\operatorname{tr}(@0)"),
    "Diag": ("Diag(@0)", r"\operatorname{Diag}(@0)"),
    "diag": ("diag(@0)", r"\operatorname{diag}(@0)"),
    "log": ("log(@0)", r"\log\left(@0\right)"),
    "exp": ("exp(@0)", r"\exp\left(@0\right)"),
    "logistic": ("log(1 + exp(@0))", r"\log\left(1 + e^{@0}\right)"),
    "log det": ("log det(@0)", r"\log\det\left(@0\right)"),
    "log sum exp": ("log sum exp(@0)", r"\log \mathbf{1}^\top \exp\left(@0\right)"),
    "lambda_max": ("lambda_max(@0)", r"\lambda_{\max}(@0)"),
    "nuclear norm": ("|@0|_*", r"\|@0\|_{*}"),
    "spectral norm": ("|@0|_op", r"\|@0\|_{\mathrm{op}}"),
    "geo mean": ("geo mean(@0)", r"\operatorname{geo\,mean}\left(@0\right)"),
    "vec": ("vec(@0)", r"\operatorname{vec}(@0)"),
    "mat": ("mat(@0)", r"\operatorname{mat}(@0)"),
}


def render(tree: Tree) -> Written:
    """Return a tree as it is written."""
    if tree.head == "one":
        return number_of(tree.factor + 0.0)
    body = WRITERS[tree.head](tree)
    return body if tree.factor == 1 else multiplied(number_of(tree.factor), body)


def side(tree: Tree, tight: int = UNIT) -> Written:
    """Return a tree with its sign, in brackets where it binds less tightly."""
    return inside(render(tree), tight)


def listed(args: Sequence[Written]) -> Written:
    """Return a, b, ..."""
    texts, texs = ([getattr(a, name) for a in args] for name in ("signed_text", "signed_tex"))
    return Written(", ".join(texts), ", ".join(texs))


def gathered(terms: list[Written]) -> list[Written]:
    """Return terms in which runs that differ by the numbers of their names alone are one sum over i.

    The sum over i of f(a_i, lambda_i) is the sum of the terms by the definition of the sum; a term belongs
    where all its names with a number have the same one, and the numbers are 1, 2, ... in turn.
    """
    found: list[Written] = []
    k = 0
    while k < len(terms):
        pattern = numberless(terms[k])
        run = k
        while (
            pattern and run < len(terms) and numberless(terms[run]) == pattern
            and own_number(terms[run]) == run - k + 1
        ):  # fmt: skip
            run += 1
        if run - k >= LEAST:
            first = terms[k]
            body = Written(indexed(first.text), indexed_tex(first.tex), first.binds)
            whole = filled("sum_i @0", r"\sum_i @0", grouped(body, PRODUCT), binds=PRODUCT)
            found.append(whole._replace(minus=first.minus))
            k = run
        else:
            found.append(terms[k])
            k += 1
    return found


def enumerated(names: list[Written]) -> list[Written]:
    """Return names in which a run such as y1, y2, y3, y4 is "y1, ..., y4"."""
    found, k = list[Written](), 0
    while k < len(names):
        run, start = k + 1, own_number(names[k])
        while (
            start is not None and run < len(names) and numberless(names[run]) == numberless(names[k])
            and own_number(names[run]) == start + run - k
        ):  # fmt: skip
            run += 1
        if run - k > LEAST:
            first, last = names[k], names[run - 1]
            found.append(Written(f"{first.text}, ..., {last.text}", rf"{first.tex}, \ldots, {last.tex}"))
        else:
            found += names[k:run]
        k = run
    return found


def numberless(term: Written) -> tuple[str, bool]:
    """Return the text of a term with # for the numbers of names, and its sign."""
    return NUMBERED.sub(r"\1#", term.text), term.minus


def own_number(term: Written) -> int | None:
    """Return the number that all numbered names of a term have, None where there is none."""
    numbers = {int(n) for _, n in NUMBERED.findall(term.text)}
    return numbers.pop() if len(numbers) == 1 else None


def indexed(text: str) -> str:
    """Return a text with the index i in the place of the numbers of names."""
    return NUMBERED.sub(r"\1_i", text)


def indexed_tex(tex: str) -> str:
    """Return a LaTeX text with the index i in the place of the numbers of names."""
    return re.sub(r"_\{\d+\}", "_{i}", tex)


def sum_of(tree: Tree) -> Written:
    """Return a sum."""
    return added(gathered([render(a) for a in tree.args]))


def product(tree: Tree) -> Written:
    """Return A x, a'x, c x."""
    parts = [side(a, UNIT if a.head in ("quotient", "sum", "hadamard") else PRODUCT) for a in tree.args]
    text, tex = parts[0].text, parts[0].tex
    for before, part in zip(tree.args, parts[1:], strict=False):
        tight = before.head == "transpose" and before.args[0].ndim == 1 and before.args[0].head != "sum"
        text, tex = text + ("" if tight else " ") + part.text, tex + (" " if tight else r"\,") + part.tex
    return Written(text, tex, PRODUCT)


def hadamard(tree: Tree) -> Written:
    """Return x * y."""
    found = side(tree.args[0], PRODUCT)
    for a in tree.args[1:]:
        found = multiplied(found, side(a, PRODUCT), " * ", r" \odot ")
    return found


def norm(tree: Tree) -> Written:
    """Return |x|_p."""
    exponent, each = tree.data
    index = Written("F", "F") if exponent == "F" else index_of(exponent)
    tail = rf"\ \mathrm{{{each.strip().replace(' ', chr(92) + ' ')}}}" if each else ""
    text, tex = index.signed_text, index.signed_tex
    return filled(f"|@0|_{text}{each}", rf"\|@0\|_{{{tex}}}{tail}", render(tree.args[0]))


def square(tree: Tree) -> Written:
    """Return |x|^2."""
    (x,) = tree.args
    if x.ndim == 2:
        return filled("|@0|_F^2", r"\|@0\|_{F}^{2}", render(x))
    return filled("|@0|^2", r"\|@0\|_{2}^{2}", render(x))


def power(tree: Tree) -> Written:
    """Return x^p, and sqrt(x)."""
    if tree.data == 0.5:
        return filled("sqrt(@0)", r"\sqrt{@0}", render(tree.args[0]))
    index, body = index_of(abs(tree.data)), side(tree.args[0])
    sign = "-" if tree.data < 0 else ""
    outer = re.sub(r"\\left.*\\right.", "", re.sub(r"\\\|.*\\\|", "", body.tex))
    tex = rf"\left({body.tex}\right)" if "^" in outer else body.tex  # LaTeX has no double exponents
    return Written(f"{body.text}^{sign}{index.text}", f"{tex}^{{{sign}{index.tex}}}")


def index(tree: Tree) -> Written:
    """Return x[i]."""
    body = side(tree.args[0])
    tex = rf"\left({body.tex}\right)" if "_" in body.tex else body.tex
    return Written(f"{body.text}[{tree.data}]", f"{tex}_{{[{tree.data}]}}")


def block(tree: Tree) -> Written:
    """Return a block matrix as [A, b; b', c]."""
    cells = [[render(cell) for cell in row.args] for row in tree.args]
    text = "; ".join(", ".join(cell.signed_text for cell in row) for row in cells)
    tex = r" \\ ".join(" & ".join(cell.signed_tex for cell in row) for row in cells)
    return Written(f"[{text}]", rf"\begin{{bmatrix}} {tex} \end{{bmatrix}}")


def call(tree: Tree) -> Written:
    """Return f(a, b, ...)."""
    args = [render(a) for a in tree.args]
    if tree.data in CALLS:
        return filled(*CALLS[tree.data], *args)
    whole = listed(args)
    name = rf"\{tree.data}" if tree.data in ("max", "min") else word(tree.data)
    return Written(f"{tree.data}({whole.text})", rf"{name}\left({whole.tex}\right)")


def transpose(tree: Tree) -> Written:
    """Return x'."""
    return filled("@0'", r"@0^\top", side(tree.args[0]))


def total(tree: Tree) -> Written:
    """Return sum(x), |x|_1 for the sum of absolute values."""
    (x,) = tree.args
    if x.head == "abs":
        return filled("|@0|_1", r"\|@0\|_{1}", render(x.args[0]))
    body = render(x)
    return filled("sum(@0)", rf"\mathbf{{1}}^\top {grouped(body, UNIT).tex}", body)


def form(tree: Tree) -> Written:
    """Return x' A x."""
    x, A = (side(a) for a in tree.args)
    return filled("@0' @1 @0", r"@0^\top @1 @0", x, A, binds=PRODUCT)


def inverse_form(tree: Tree) -> Written:
    """Return x' A^+ x."""
    x, A = (side(a) for a in tree.args)
    return filled("@0' @1^+ @0", r"@0^\top @1^{+} @0", x, A, binds=PRODUCT)


def entropy(tree: Tree) -> Written:
    """Return x log x, or x log(x / y)."""
    x, ratio = tree.args
    if x == ratio:
        return filled("@0 log @0", r"@0 \log @0", side(x), binds=PRODUCT)
    return filled("@0 log(@1)", r"@0 \odot \log\left(@1\right)", side(x), render(ratio), binds=PRODUCT)


def row(tree: Tree) -> Written:
    """Return (a, b, ...)."""
    return filled("(@0)", r"\left(@0\right)", listed([render(a) for a in tree.args]))


def plus(tree: Tree) -> Written:
    """Return (x)_+."""
    return filled("(@0)_+", r"\left(@0\right)_{+}", render(tree.args[0]))


def given(tree: Tree) -> Written:
    """Return the name of a leaf."""
    found: Written = tree.data
    return found


WRITERS: dict[str, Callable[[Tree], Written]] = {
    "name": given, "symmetric": given, "sum": sum_of, "product": product, "hadamard": hadamard,
    "quotient": lambda t: divided(render(t.args[0]), render(t.args[1])),
    "transpose": transpose, "norm": norm, "square": square, "power": power, "total": total,
    "inner": lambda t: filled("<@0, @1>", r"\langle @0, @1\rangle", *map(render, t.args)),
    "abs": lambda t: filled("|@0|", r"\left|@0\right|", render(t.args[0])),
    "plus": plus, "call": call, "block": block, "row": row, "index": index, "form": form,
    "inverse form": inverse_form, "entropy": entropy,
    "apply": lambda t: filled(f"{t.data.text}(@0)", f"{t.data.tex}(@0)", render(t.args[0])),
    "each": lambda t: filled("(@0)_m", r"\left(@0\right)_m", render(t.args[0])),
}  # fmt: skip
