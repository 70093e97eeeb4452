"""Mathematics as it is written: every expression as plain text and as LaTeX, composed side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

SUM, PRODUCT, UNIT = 0, 1, 2  # how tightly an expression binds
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda",
    "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega",
}  # fmt: skip
WORDS = {"eps": r"\varepsilon", "inf": r"\infty"}
FRACTIONS = {0.5: (1, 2), 0.25: (1, 4), 0.125: (1, 8), 1.5: (3, 2), 0.75: (3, 4)}
LARGEST_DENOMINATOR = 12  # of an exponent that is printed as a fraction
SAME = (
    1e-12  # relative distance up to which an exponent is that fraction: it comes from p / (p - 1) in doubles
)
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
    def signed_text(self) -> str:
        """The text with its sign."""
        return f"-{grouped(self, PRODUCT).text}" if self.minus else self.text

    @property
    def signed_tex(self) -> str:
        """The LaTeX with its sign."""
        return f"-{grouped(self, PRODUCT).tex}" if self.minus else self.tex

    @property
    def is_zero(self) -> bool:
        """Whether it is the number zero."""
        return self.text == "0"


ZERO, ONE = Written("0", "0"), Written("1", "1")


def grouped(part: Written, tight: int) -> Written:
    """Return an expression without its sign, in brackets where it binds less tightly than `tight`."""
    if part.binds >= tight:
        return part._replace(minus=False)
    return Written(f"({part.text})", rf"\left({part.tex}\right)")


def inside(part: Written, tight: int) -> Written:
    """Return an expression with its sign, in brackets where it binds less tightly than `tight`."""
    if not part.minus:
        return grouped(part, tight)
    whole = Written(part.signed_text, part.signed_tex, SUM)
    return grouped(whole, tight)


def negated(part: Written) -> Written:
    """Return the negative of an expression."""
    return part._replace(minus=not part.minus) if not part.is_zero else part


def added(parts: Sequence[Written]) -> Written:
    """Return a sum, which begins with a summand of positive sign where there is one."""
    kept = [part for part in parts if not part.is_zero]
    if not kept:
        return ZERO
    if len(kept) == 1:
        return kept[0]
    first = next((i for i, part in enumerate(kept) if not part.minus), 0)
    ordered = [kept[first], *kept[:first], *kept[first + 1 :]]
    text, tex = ordered[0].signed_text, ordered[0].signed_tex
    for part in ordered[1:]:
        sign = "-" if part.minus else "+"
        shown = grouped(part, PRODUCT) if part.minus else part
        text, tex = f"{text} {sign} {shown.text}", f"{tex} {sign} {shown.tex}"
    return Written(text, tex, SUM)


def multiplied(left: Written, right: Written, text: str = " ", tex: str = r"\,") -> Written:
    """Return a product, whose factors are separated by `text` and `tex`; a factor of one is left out."""
    minus = left.minus != right.minus
    if left.is_zero or right.is_zero:
        return ZERO
    for one, other in ((left, right), (right, left)):
        if one.text == "1":
            return other._replace(minus=minus)
    a, b = grouped(left, PRODUCT), grouped(right, PRODUCT)
    if b.text[0].isdigit() and a.text[-1].isdigit() and text == " ":  # 2 (1/2 x), not 2 1/2 x
        b = grouped(b._replace(binds=SUM), PRODUCT)
    return Written(f"{a.text}{text}{b.text}", f"{a.tex}{tex}{b.tex}", PRODUCT, minus)


def divided(top: Written, bottom: Written) -> Written:
    """Return a quotient."""
    if bottom.text == "1" and not bottom.minus:
        return top
    a, b = grouped(top, PRODUCT), grouped(bottom, UNIT)
    fraction = rf"\frac{{{top.tex}}}{{{bottom.tex}}}"
    return Written(f"{a.text} / {b.text}", fraction, PRODUCT, top.minus != bottom.minus)


def filled(text: str, tex: str, *parts: Written, binds: int = UNIT) -> Written:
    r"""Return a template of text and one of LaTeX, in which @0, @1, ... are the parts.

    Examples
    --------
    >>> filled("|@0|_2", r"\|@0\|_{2}", name_of("theta")).tex
    '\\|\\theta\\|_{2}'
    """
    texts, texs = [part.signed_text for part in parts], [part.signed_tex for part in parts]
    return Written(
        re.sub(r"@(\d)", lambda field: texts[int(field[1])], text),
        re.sub(r"@(\d)", lambda field: texs[int(field[1])], tex),
        binds,
    )


def number_of(value: float) -> Written:
    """Return a number with six digits, a simple fraction as one."""
    size = abs(value)
    minus = value < 0
    if size in FRACTIONS:
        a, b = FRACTIONS[size]
        return Written(f"{a}/{b}", rf"\frac{{{a}}}{{{b}}}", UNIT, minus)
    text = f"{size:.6g}"
    mantissa, _, power = text.partition("e")
    if power:
        return Written(text, rf"{mantissa}\cdot 10^{{{int(power)}}}", UNIT, minus)
    return Written(text, r"\infty" if text == "inf" else text, UNIT, minus)


def index_of(value: float) -> Written:
    """Return a number as the index of a norm: 2, inf, or a fraction such as (4/3).

    Examples
    --------
    >>> index_of(4 / 3).text, index_of(3.0).text
    ('(4/3)', '3')
    """
    if not isfinite(value) or value == int(value):
        return number_of(value)
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    if abs(float(near) - value) > SAME * value:
        return number_of(value)
    return Written(f"({near})" if near.denominator > 1 else str(near), str(near))


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
    indexed = re.fullmatch(r"([^\[\]]+)\[(.*)\]", name)
    if indexed:
        return f"{latex_name(indexed[1])}_{{{word(indexed[2])}}}"
    numbered = re.fullmatch(r"([A-Za-z]+)_?(\d+)('?)", name)
    if numbered:
        return f"{letter(numbered[1])}_{{{numbered[2]}}}{numbered[3]}"
    return letter(name)


def letter(name: str) -> str:
    """Return a name without an index as LaTeX."""
    if name in GREEK:
        return "\\" + name
    if name in WORDS:
        return WORDS[name]
    return name if re.fullmatch(r"[A-Za-z]'?", name) else word(name)


def word(text: str) -> str:
    """Return any text as upright LaTeX, with what LaTeX reserves escaped."""
    if text.isdigit():
        return text
    return rf"\mathrm{{{''.join(ESCAPED.get(c, c) for c in text)}}}"
