"""Names, numbers and functions as they are written, in text and in LaTeX."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
DIGITS = 6  # of a number
WORDS = {"eps": r"\varepsilon", "inf": r"\infty"}
FRACTIONS = (0.5, 0.25, 0.125, 1.5, 0.75)  # numbers that are written as fractions
ENDLESS = (3, 6, 7, 9, 11, 12)  # denominators of the others
SAME = 1e-12  # relative error of an exponent p / (p - 1) in doubles
ESCAPED = {c: "\\" + c for c in "_#%{}$"} | {
    "&": r"\,and\,", "\\": r"\backslash ",
    "~": r"\sim ", "^": r"\wedge ", '"': "''", "`": "'", "@": r"\,at\,",
    " ": r"\ ", "\n": r"\ ", "!": r"\,not\,", ";": ",", "?": "",
}  # fmt: skip
Template = tuple[Any, ...]  # text, LaTeX, how tightly they bind
SUM, PRODUCT, UNIT = 0, 1, 2  # how tightly an expression binds
TEMPLATES: dict[str, Template] = {
    "quotient": ("~0 / #1", r"\frac{@0}{@1}", PRODUCT),
    "transpose": ("#0'", r"#0^\top"),
    "inner": ("<@0, @1>", r"\langle @0, @1\rangle"),
    "norm": ("|@0|_@1", r"\|@0\|_{@1}"),
    "Frobenius norm": ("|@0|_F", r"\|@0\|_{F}"),
    "square": ("|@0|^2", r"\|@0\|_{2}^{2}"),
    "square of a matrix": ("|@0|_F^2", r"\|@0\|_{F}^{2}"),
    "by columns": ("@0 by columns", r"@0\ \mathrm{by\ columns}"),
    "by rows": ("@0 by rows", r"@0\ \mathrm{by\ rows}"),
    "power": ("#0^@1", "#0^{@1}"),
    "index": ("#0[@1]", "#0_{[@1]}"),
    "member": ("#0_@1", "#0_@1"),
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
    "Trace": ("tr(@0)", r"\operatorname{tr}(@0)"),
    "diag_vec": ("Diag(@0)", r"\operatorname{Diag}(@0)"),
    "diag_mat": ("diag(@0)", r"\operatorname{diag}(@0)"),
    "vec": ("vec(@0)", r"\operatorname{vec}(@0)"),
    "mat": ("mat(@0)", r"\operatorname{mat}(@0)"),
    "log": ("log(@0)", r"\log\left(@0\right)"),
    "exp": ("exp(@0)", r"\exp\left(@0\right)"),
    "logistic": ("log(1 + exp(@0))", r"\log\left(1 + e^{@0}\right)"),
    "log_det": ("log det(@0)", r"\log\det\left(@0\right)"),
    "log_sum_exp": ("log sum exp(@0)", r"\log \mathbf{1}^\top \exp\left(@0\right)"),
    "lambda_max": ("lambda_max(@0)", r"\lambda_{\max}(@0)"),
    "max": ("max(@*)", r"\max\left(@*\right)"),
    "min": ("min(@*)", r"\min\left(@*\right)"),
    "minimum": ("min(@*)", r"\min\left(@*\right)"),
    "normNuc": ("|@0|_*", r"\|@0\|_{*}"),
    "sigma_max": ("|@0|_op", r"\|@0\|_{\mathrm{op}}"),
    "GeoMean": ("geo mean(@0)", r"\operatorname{geo\,mean}\left(@0\right)"),
    "row": ("(@*)", r"\left(@*\right)"),
}


def number_of(size: float) -> tuple[str, str]:
    r"""Return a number that is not negative with `DIGITS` digits, a simple fraction as one.

    Examples
    --------
    >>> number_of(0.5), number_of(2.5), number_of(2 / 3)
    (('1/2', '\\frac{1}{2}'), ('2.5', '2.5'), ('2/3', '\\frac{2}{3}'))
    """
    a, b = Fraction(size if size < float("inf") else 0).limit_denominator(12).as_integer_ratio()
    if size in FRACTIONS or (b in ENDLESS and abs(a / b - size) <= SAME * size):
        return f"{a}/{b}", rf"\frac{{{a}}}{{{b}}}"
    text = f"{size:.{DIGITS}g}"
    mantissa, _, power = text.partition("e")
    return text, rf"{mantissa}\cdot 10^{{{int(power)}}}" if power else WORDS.get(text, text)


def fresh(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it: `wanted`, or the first with a larger number.

    Examples
    --------
    >>> taken = {"u", "A1", "y[total]"}
    >>> fresh("u", taken), fresh("A1", taken), fresh("y[total]", taken), fresh("u", taken)
    ('u2', 'A2', 'y[total 2]', 'u3')
    """
    end = "]" * wanted.endswith("]")
    stem = f"{wanted[:-1]} " if end else wanted.rstrip("0123456789")
    name, k = wanted, int(wanted[len(stem) :] or 1)
    while name in taken:
        k += 1
        name = f"{stem}{k}{end}"
    taken.add(name)
    return name


def latex_name(name: str) -> str:
    r"""Return a name as LaTeX: Greek letters, numbers as indices, and y[label] as y with an index.

    Examples
    --------
    >>> latex_name("alpha2"), latex_name("y[trace]"), latex_name("slack")
    ('\\alpha_{2}', 'y_{\\mathrm{trace}}', '\\mathrm{slack}')
    """
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
