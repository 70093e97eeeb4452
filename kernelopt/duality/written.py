"""Mathematics as it is written: every expression as plain text and as LaTeX, composed side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

SUM, PRODUCT, UNIT = 0, 1, 2  # how tightly an expression binds
FIELD = re.compile(r"([@~#])(\d)")  # of a template; the mark says SUM, PRODUCT or UNIT
GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
DIGITS = 6  # of a number
WORDS = {"eps": r"\varepsilon", "inf": r"\infty"}
FRACTIONS = (0.5, 0.25, 0.125, 1.5, 0.75)  # numbers that are written as fractions
LARGEST_DENOMINATOR = 12  # of an exponent that is written as a fraction
SAME = 1e-12  # relative error of an exponent p / (p - 1) in doubles
ESCAPED = {c: "\\" + c for c in "_#%{}$"} | {
    "&": r"\,and\,", "\\": r"\backslash ",
    "~": r"\sim ", "^": r"\wedge ", '"': "''", "`": "'", "@": r"\,at\,",
    " ": r"\ ", "\n": r"\ ", "!": r"\,not\,", ";": ",", "?": "",
}  # fmt: skip


class Written(NamedTuple):
    """An expression as text and as LaTeX, both without the minus sign where `minus` is set.

    Attributes
    ----------
    text, tex : str
    binds : int
        SUM, PRODUCT or UNIT.
    minus : bool
        Whether the expression is the negative of what is written.
    """

    text: str
    tex: str
    binds: int = UNIT
    minus: bool = False

    @property
    def signed(self) -> Written:
        """The expression with its sign in what is written."""
        return filled("-~0", "-~0", self._replace(minus=False), binds=SUM) if self.minus else self

    @property
    def signed_text(self) -> str:
        """The text with its sign."""
        return self.signed.text

    @property
    def signed_tex(self) -> str:
        """The LaTeX with its sign."""
        return self.signed.tex


ZERO = Written("0", "0")


def inside(part: Written, tight: int) -> Written:
    """Return an expression with its sign, in brackets where it binds less tightly than `tight`."""
    whole = part.signed
    return whole if whole.binds >= tight else Written(f"({whole.text})", rf"\left({whole.tex}\right)")


def filled(text: str, tex: str, *parts: Written, binds: int = UNIT) -> Written:
    r"""Return a template of text and one of LaTeX with the parts in the place of @0, @1, ...

    A part stands in brackets in the place of ~0 where it is a sum, and of #0 where it is a product too.

    Examples
    --------
    >>> filled("|@0|_2", r"\|@0\|_{2}", name_of("theta")).tex
    '\\|\\theta\\|_{2}'
    """

    def fill(template: str, side: int) -> str:
        return FIELD.sub(lambda at: inside(parts[int(at[2])], "@~#".index(at[1]))[side], template)  # type: ignore[arg-type, return-value]

    return Written(fill(text, 0), fill(tex, 1), binds)


def negated(part: Written) -> Written:
    """Return the negative of an expression."""
    return part if part.text == "0" else part._replace(minus=not part.minus)


def added(parts: Sequence[Written]) -> Written:
    """Return a sum, which begins with a summand of positive sign where there is one."""
    kept = [part for part in parts if part.text != "0"] or [ZERO]
    whole = kept.pop(next((i for i, part in enumerate(kept) if not part.minus), 0))
    for part in kept:
        template = "@0 - ~1" if part.minus else "@0 + @1"
        whole = filled(template, template, whole, part._replace(minus=False), binds=SUM)
    return whole


def multiplied(left: Written, right: Written, text: str = " ", tex: str = r"\,") -> Written:
    """Return a product, whose factors are separated by `text` and `tex`; a factor of one is left out."""
    a, b = (part._replace(minus=False) for part in (left, right))
    if "0" in (a.text, b.text):
        return ZERO
    if "1" in (a.text, b.text):
        whole = b if a.text == "1" else a
    else:
        a, b = inside(a, PRODUCT), inside(b, PRODUCT)
        digits = a.text[-1].isdigit() and b.text[0].isdigit() and text == " "  # 2 (1/2 x), not 2 1/2 x
        whole = filled(
            f"@0{text}~1", f"@0{tex}~1", a, b._replace(binds=SUM if digits else UNIT), binds=PRODUCT
        )
    return whole._replace(minus=left.minus != right.minus)


def number_of(value: float) -> Written:
    """Return a number with `DIGITS` digits, a simple fraction as one."""
    size, minus = abs(value), value < 0
    if size in FRACTIONS:
        a, b = size.as_integer_ratio()
        return Written(f"{a}/{b}", rf"\frac{{{a}}}{{{b}}}", UNIT, minus)
    text = f"{size:.{DIGITS}g}"
    mantissa, _, power = text.partition("e")
    tex = rf"{mantissa}\cdot 10^{{{int(power)}}}" if power else WORDS.get(text, text)
    return Written(text, tex, UNIT, minus)


def index_of(value: float) -> Written:
    """Return a number as the index of a norm or an exponent: 2, inf, or a fraction such as (4/3).

    Examples
    --------
    >>> index_of(4 / 3).text, index_of(3.0).text
    ('(4/3)', '3')
    """
    near = Fraction(value if abs(value) < float("inf") else 0).limit_denominator(LARGEST_DENOMINATOR)
    if near.denominator > 1 and abs(near - value) <= SAME * abs(value):
        return Written(f"({abs(near)})", str(abs(near)), minus=value < 0)
    return number_of(value)


def name_of(name: str) -> Written:
    r"""Return a name: Greek letters, letters with numbers as indices, and y[label] as y with an index.

    Examples
    --------
    >>> name_of("alpha2").tex, name_of("y[trace]").tex, name_of("slack").tex
    ('\\alpha_{2}', 'y_{\\mathrm{trace}}', '\\mathrm{slack}')
    """
    return Written(name, latex_name(name))


def latex_name(name: str) -> str:
    """Return a name as LaTeX."""
    if found := re.fullmatch(r"([^\[\]]+)\[(.*)\]", name):
        return f"{latex_name(found[1])}_{{{word(found[2])}}}"
    if found := re.fullmatch(r"([A-Za-z]+)_?(\d+)('?)", name):
        return f"{latex_name(found[1])}_{{{found[2]}}}{found[3]}"
    if GREEK.fullmatch(name):
        return "\\" + name
    return WORDS.get(name) or (name if re.fullmatch(r"[A-Za-z]'?", name) else word(name))


def word(text: str) -> str:
    """Return any text as upright LaTeX, with what LaTeX reserves escaped."""
    if text.isdigit():
        return text
    return rf"\mathrm{{{''.join(ESCAPED.get(c, c) for c in text)}}}"
