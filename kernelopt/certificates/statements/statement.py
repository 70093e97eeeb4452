"""A problem in plain numbers with a witness of its bounds, saved to a file that is checked by itself."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.statements.witness import checker
from kernelopt.errors import InputError, MethodError, ParameterError
from kernelopt.files import EARLIEST, SUFFIX, replacing
from kernelopt.validation import Array


@dataclass
class Statement:
    r"""A minimisation in plain numbers, and the witness of its bounds.

    .. math:: \min_x\ o + c'x + \sum_k \pi_k \max_a \big(l_k(a) - \tfrac12 a' K_k(x) a\big)

    over x with A x <= b or == b, x_j >= 0 for the columns with a sign, balls :math:`|B x|_p \le R` and cones
    :math:`\sum_j x_j G_j \succeq 0`. docs/certificates.md explains how the witness proves the bounds. The
    columns are given first. The witness of every part that is added is zero until `set_witness`.

    Parameters
    ----------
    columns : list of str
        The names of the x_j, which are labels only.
    signs : list of bool
        Whether x_j >= 0.
    sense : 1 or -1
        -1 where the user's problem is the maximisation of minus this objective.
    offset : float, default 0
        o.
    infeasible : bool
        Whether the witness proves that there is no feasible point.

    Examples
    --------
    The least x >= 0 with -x <= -2 is 2, by the multiplier 1:

    >>> import kernelopt as ko
    >>> stated = ko.extend.Statement(["x"], [True])
    >>> stated.cost[0] = 1.0
    >>> stated.row("floor", [0], [-1.0], -2.0)
    0
    >>> stated.u, stated.x = [1], [2]
    >>> stated.bounds()
    (Fraction(2, 1), Fraction(2, 1))
    >>> stated.statement_digest[:16]
    '9ecd8afaba18614a'
    """

    columns: list[str]
    signs: list[bool]
    sense: int = 1
    offset: float = 0.0
    infeasible: bool = False
    cost: Array = field(init=False)
    x: list[Fraction] = field(init=False)
    u: list[Fraction] = field(init=False, default_factory=list)
    rows: list[tuple[str, list[int], list[float], float, bool]] = field(init=False, default_factory=list)
    risks: list[dict[str, Any]] = field(init=False, default_factory=list)
    balls: list[dict[str, Any]] = field(init=False, default_factory=list)
    cones: list[dict[str, Any]] = field(init=False, default_factory=list)
    mix: list[list[Fraction]] = field(init=False, default_factory=list)
    arrays: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.cost, self.x = np.zeros(len(self.columns)), [Fraction(0)] * len(self.columns)

    def row(
        self, name: str, at: Sequence[int], values: Sequence[float], right: float, equal: bool = False
    ) -> int:
        """Add a linear inequality or equation, and return its number.

        Parameters
        ----------
        name : str
            Its label.
        at : sequence of int
            The positions of its variables among the columns.
        values : sequence of float
            Their coefficients.
        right : float
            What the sum of values * x[at] is at most, or is equal to.
        equal : bool, default False
            Whether it is an equation.
        """
        self.rows.append((name, [int(j) for j in at], [float(v) for v in values], float(right), equal))
        self.u.append(Fraction(0))
        return len(self.rows) - 1

    def add_rows(self, names: Sequence[str], A: Any, right: Array, equal: bool) -> None:
        """Add the rows of A x <= right, or of A x == right.

        Parameters
        ----------
        names : sequence of str
            Their labels.
        A : sparse matrix, with a column for each variable
            The coefficients.
        right : array of shape (rows,)
            The right sides.
        equal : bool
            Whether they are equations.
        """
        A = sp.csr_array(A)
        for i, name in enumerate(names):
            at = slice(A.indptr[i], A.indptr[i + 1])
            self.row(name, A.indices[at], A.data[at], right[i], equal)

    @property
    def matrix(self) -> sp.csr_array:
        """The coefficients of all rows."""
        entries = [(v, i, j) for i, row in enumerate(self.rows) for j, v in zip(row[1], row[2], strict=True)]
        values, i, j = zip(*entries, strict=True) if entries else ((), (), ())
        return sp.csr_array((values, (i, j)), shape=(len(self.rows), len(self.columns)))

    def risk(
        self, K: Array, at: Sequence[int], curve: Array, ends: Array, price: float = 1.0, bias: bool = True
    ) -> int:
        r"""Add a risk of the kernel that the entries `at` of x combine, times a price; return its number.

        .. math:: \mathrm{price} \cdot \max_a\ \ell(a) - \tfrac12 a'\Big(\sum_j x_{at_j} K_j\Big)a

        with :math:`\ell(a) = linear\, a - \tfrac12 curvature\, a^2 - l_1 |a|`, summed over the points.

        Parameters
        ----------
        K : array of shape (m, n, n)
            The kernels on the labelled points.
        at : sequence of m int
            The positions of their weights among the columns.
        curve : array of shape (3, n)
            The rows linear, curvature and l1.
        ends : array of shape (2, n)
            The lower and the upper ends of a.
        price : float > 0, default 1.0
            The factor.
        bias : bool, default True
            Whether there is an intercept, so that :math:`1'a = 0`.
        """
        self.risks.append({"kernels": len(K), "points": K.shape[1], "bias": bool(bias)})
        return self._add(len(self.risks) - 1, K=K, at=at, curve=curve, ends=ends, price=price)

    def ball(self, B: Array, radius: float, p: float) -> int:
        r"""Add the ball :math:`\|B x\|_p \le radius`; return its number.

        Parameters
        ----------
        B : array with a column for each variable
            The matrix.
        radius : float >= 0
            The radius.
        p : float in [1, inf]
            The exponent.
        """
        self.balls.append({"rows": len(B), "p": exponent_text(p)})
        return self._add(len(self.balls) - 1, B=B, radius=radius)

    def cone(self, G: Array) -> int:
        r"""Add :math:`\sum_j x_j G_j \succeq 0`; return its number.

        Parameters
        ----------
        G : array of shape (columns, k, k)
            One symmetric matrix for every variable.
        """
        self.cones.append({"order": G.shape[1]})
        self.mix.append([Fraction(0)] * len(G))
        return self._add(len(self.cones) - 1, G=G)

    def set_witness(self, k: int, **arrays: Any) -> None:
        """Set arrays of the witness of a risk, ball or cone; the others are zero.

        Parameters
        ----------
        k : int
            Its number.
        **arrays : arrays
            By the names that docs/certificates.md has.
        """
        self._add(k, **arrays)

    def _add(self, k: int, **arrays: Any) -> int:
        self.arrays |= {f"{name}{k}": value for name, value in arrays.items()}
        return k

    def contents(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the statement and the witness as `check.opened` returns them, and the arrays of both.

        Raises
        ------
        InputError
            If an array is not of the shape or not in the range that `check.schema` demands.
        """
        entries = [(i, j, v) for i, row in enumerate(self.rows) for j, v in zip(row[1], row[2], strict=True)]
        given = {
            "cost": self.cost,
            "offset": self.offset,
            "signs": self.signs,
            "row": [i for i, _, _ in entries],
            "column": [j for _, j, _ in entries],
            "value": [v for _, _, v in entries],
            "right": [row[3] for row in self.rows],
            "equal": [row[4] for row in self.rows],
        } | self.arrays
        stated = {
            "format": checker().FORMAT,
            "sense": self.sense,
            "columns": len(self.columns),
            "rows": len(self.rows),
            "entries": len(entries),
            "risks": self.risks,
            "balls": self.balls,
            "cones": self.cones,
        }
        witness = {"infeasible": self.infeasible, "u": list(self.u), "x": list(self.x), "mix": self.mix}
        arrays = {}
        data, proof = checker().schema(stated)
        for name, shape in (data | proof).items():
            value = given[name] if name in data else given.get(name, np.zeros(shape))
            a = arrays[name] = np.asarray(value, dtype=checker().dtype(name), order="C")
            if a.shape != shape or not checker().in_range(name, a, stated):
                raise InputError(
                    f"{name} of a Statement must have the shape {shape} and entries in the range that "
                    f"docs/certificates.md has, got the shape {a.shape} or another entry. Pass it so."
                )
        return stated, witness, arrays

    @property
    def statement_digest(self) -> str:
        """The SHA-256 of the statement in hexadecimal, which the checker prints; see `Certificate`."""
        stated, _, arrays = self.contents()
        return str(checker().digest(stated, arrays))

    def bounds(self) -> tuple[Any, Any]:
        """Return the bounds of the user's problem that the witness proves, as fractions or infinite."""
        lower, upper = checker().bounds(*self.contents())
        return lower, upper

    def save(self, path: str | Path) -> Path:
        """Write the file, with the bounds rounded outward to doubles as its claims; return its path.

        It is an NPZ archive with two documents in JSON, whose comment is the SHA-256 of all bytes before it.
        An interrupted call leaves the file that was there before.

        Parameters
        ----------
        path : str or path-like
            The name, which is taken as it is.

        Raises
        ------
        MethodError
            If the fractions of the witness have more digits than a file may have.
        """
        stated, witness, arrays = self.contents()
        try:
            for lists in ((self.u, *self.mix), (self.x,)):
                checker().common([[Fraction(v) for v in part] for part in lists], stated)
        except ValueError as error:
            raise MethodError(
                f"{error} in Certificate.save. Scale the kernels to a mean diagonal of one, or use fewer "
                "kernels."
            ) from None
        lower, upper = checker().bounds(stated, witness, arrays)
        u, x, *mix = ([fraction_text(v) for v in part] for part in (self.u, self.x, *self.mix))
        claims = {"lower": rounded(lower, -np.inf).hex(), "upper": rounded(upper, np.inf).hex()}
        names = {"columns": self.columns, "rows": [row[0] for row in self.rows]}
        documents = {
            "statement": stated,
            "witness": witness | claims | {"names": names, "u": u, "x": x, "mix": mix},
        }
        members = {f"{name}.json": checker().canonical(document) for name, document in documents.items()}
        for name, a in arrays.items():
            members[name + SUFFIX] = checker().header(name, a.shape) + a.tobytes()
        return write_sealed(path, members)


def save_claims(path: str | Path, lower: float, upper: float) -> Path:
    """Write a file with bounds that hold rigorously in floating point, without a proof; return its path."""
    claims = {"lower": float(lower).hex(), "upper": float(upper).hex()}
    return write_sealed(path, {"floating.json": checker().canonical(claims)})


def write_sealed(path: str | Path, members: dict[str, bytes]) -> Path:
    """Write an archive whose comment is the SHA-256 of all bytes before it; return its path."""
    with replacing(path) as file:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            archive.comment = b"0" * checker().SEAL
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, EARLIEST), content)
        raw = packed.getvalue()[: -checker().SEAL]
        file.write(raw + hashlib.sha256(raw).hexdigest().encode())
    return Path(path)


def fraction_text(v: Any) -> str:
    """Return a fraction as text; `Decimal` writes integers of any length."""
    texts = [str(Decimal(part)) for part in Fraction(v).as_integer_ratio()]
    return texts[0] if texts[1] == "1" else "/".join(texts)


def rounded(value: Any, towards: float) -> float:
    """Return the nearest double on the side of a fraction where `towards`, -inf or inf, is."""
    if not isinstance(value, Fraction):
        return float(value)
    try:
        nearby = float(value)
    except OverflowError:
        nearby = np.inf if value > 0 else -np.inf
    if nearby == towards or (nearby <= value if towards < 0 else nearby >= value):
        return float(nearby)
    return math.nextafter(nearby, towards)


def exponent_text(p: float) -> str:
    """Return the exponent of a ball as the text of a fraction, or "inf"."""
    if np.isinf(p):
        return "inf"
    nearby = Fraction(p).limit_denominator(checker().LARGEST_DENOMINATOR)
    if float(nearby) != p or not checker().exponent(str(nearby)):
        like = checker().exponent(str(nearby))
        raise ParameterError(
            f"p must be a fraction a/b >= 1 with a of at most {checker().LARGEST_NUMERATOR} and b of at most "
            f"{checker().LARGEST_DENOMINATOR} for exact arithmetic, got {p!r} in Certificate.save. "
            f"Take {f'{float(nearby)!r}, which is {nearby}' if like else 'such a p, or numpy.inf'}."
        )
    return str(nearby)
