"""A problem in plain numbers with a witness of its bounds, saved to a file that is checked by itself."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from kernelopt.certificates.statements.witness import checker
from kernelopt.errors import ParameterError
from kernelopt.validation import Array

FORMAT = "kernelopt-certificate/1"
DIGITS = 64  # hexadecimal, of the SHA-256 checksum at the end of a file
LARGEST_DENOMINATOR = 64  # of the exponent of a ball: the checker computes powers of this order


@dataclass
class Statement:
    r"""A minimisation in plain numbers, and the witness of its bounds.

    .. math:: \min_x\ o + c'x + \sum_k \pi_k \max_a \big(l_k(a) - \tfrac12 a' K_k(x) a\big)

    over x with A x <= b or == b, x_j >= 0 for the columns with a sign, balls :math:`|B x|_p \le R` and cones
    :math:`\sum_j x_j G_j \succeq 0`. docs/certificates.md explains how the witness proves the bounds. The
    columns are given first. Every part that is added has a trivial witness, which `set_witness` replaces.

    Attributes
    ----------
    text : str
        The problem as the user wrote it.
    columns : list of str
        The names of the x_j.
    signs : list of bool
        Whether x_j >= 0.
    sense : 1 or -1
        -1 where the user's problem is the maximisation of minus this objective.
    infeasible : bool
        Whether the witness proves that there is no feasible point.
    """

    text: str
    columns: list[str]
    signs: list[bool]
    sense: int = 1
    offset: float = 0.0
    infeasible: bool = False
    cost: Array = field(init=False)
    x: list[Fraction] = field(init=False)
    u: list[Fraction] = field(init=False, default_factory=list)
    rows: list[tuple[str, list[int], list[float], float, bool]] = field(init=False, default_factory=list)
    facts: dict[str, list[Any]] = field(init=False)
    arrays: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.cost, self.x = np.zeros(len(self.columns)), [Fraction(0)] * len(self.columns)
        self.facts = {"bias": [], "balls": [], "mix": []}

    def row(
        self, name: str, at: Sequence[int], values: Sequence[float], right: float, equal: bool = False
    ) -> int:
        """Add sum of values * x[at] <= right, or == right, and return its number."""
        self.rows.append((name, [int(j) for j in at], [float(v) for v in values], float(right), equal))
        self.u.append(Fraction(0))
        return len(self.rows) - 1

    def risk(
        self, K: Array, at: Sequence[int], curve: Array, ends: Array, price: float = 1.0, bias: bool = True
    ) -> int:
        """Add price * max_a l(a) - a'(sum_j x[at_j] K_j)a / 2, with 1'a = 0 where there is an intercept.

        l(a) = linear * a - curvature/2 a^2 - l1 |a|, with these three in the rows of `curve`, on the
        intervals between the two rows of `ends`.
        """
        k, n = len(self.facts["bias"]), K.shape[1]
        self.facts["bias"].append(bool(bias))
        parts = {"K": K, "at": np.asarray(at, dtype=np.int64), "curve": curve, "ends": ends, "price": price}
        witness = {"alpha": np.zeros(n), "beta": np.zeros(n), "b": 0.0, "ridge": 0.0, "L": np.zeros((n, n))}
        self.arrays |= {f"{name}{k}": value for name, value in (parts | witness).items()}
        return k

    def ball(self, B: Array, radius: float, p: float) -> int:
        """Add |B x|_p <= radius."""
        k = len(self.facts["balls"])
        self.facts["balls"].append(exponent_text(p))
        zero = np.zeros(len(B))
        parts = {"B": B, "radius": radius, "y": zero, "h": 0.0, "s": zero, "t": zero}
        self.arrays |= {f"{name}{k}": value for name, value in parts.items()}
        return k

    def cone(self, G: Array) -> int:
        """Add sum_j x_j G_j >> 0; G has one symmetric matrix for every column."""
        k, zero = len(self.facts["mix"]), np.zeros(G.shape[1:])
        self.facts["mix"].append([Fraction(0)] * len(G))
        parts = {"G": G, "Y": zero, "S": zero, "T": zero}
        self.arrays |= {f"{name}{k}": value for name, value in parts.items()}
        return k

    def set_witness(self, k: int, **witness: Any) -> None:
        """Replace arrays of the risk, ball or cone k."""
        self.arrays |= {f"{name}{k}": value for name, value in witness.items()}

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the contents of "certificate.json" without claims, and the arrays of the file."""
        entries = [(i, j, v) for i, row in enumerate(self.rows) for j, v in zip(row[1], row[2], strict=True)]
        arrays = {
            "cost": self.cost,
            "offset": self.offset,
            "signs": np.array(self.signs, dtype=np.int64),
            "row": np.array([i for i, _, _ in entries], dtype=np.int64),
            "column": np.array([j for _, j, _ in entries], dtype=np.int64),
            "value": np.array([v for _, _, v in entries], dtype=float),
            "right": np.array([row[3] for row in self.rows], dtype=float),
            "equal": np.array([row[4] for row in self.rows], dtype=np.int64),
        } | self.arrays
        facts = {
            "format": FORMAT,
            "statement": self.text,
            "sense": self.sense,
            "infeasible": self.infeasible,
            "columns": self.columns,
            "rows": [row[0] for row in self.rows],
            "u": [str(v) for v in self.u],
            "x": [str(v) for v in self.x],
            "bias": self.facts["bias"],
            "balls": self.facts["balls"],
            "mix": [[str(v) for v in mix] for mix in self.facts["mix"]],
        }
        return facts, {k: as_stored(a) for k, a in arrays.items()}

    def bounds(self) -> tuple[Any, Any]:
        """Return the bounds of the user's problem that the witness proves, as fractions or infinite."""
        lower, upper = sorted(self.sense * bound for bound in checker().bounds(*self.contents()))
        return lower, upper

    def save(self, path: str | Path) -> Path:
        """Write the file, with the bounds rounded outward to doubles as its claims; return its path.

        It is an NPZ archive whose member "certificate.json" has everything but the arrays, and whose
        comment is the SHA-256 of all bytes before it.
        """
        facts, arrays = self.contents()
        lower, upper = self.bounds()
        facts |= {"lower": rounded(lower, -np.inf).hex(), "upper": rounded(upper, np.inf).hex()}
        facts |= {"shapes": {k: list(a.shape) for k, a in arrays.items()}}
        facts |= {"sha256": {k: hashlib.sha256(a.tobytes()).hexdigest() for k, a in arrays.items()}}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = b"0" * DIGITS
            members = {"certificate.json": json.dumps(facts, indent=1).encode()}
            members |= {f"{name}.npy": npy(array) for name, array in arrays.items()}
            for name, content in members.items():
                member = zipfile.ZipInfo(name)  # dated 1980, so that the file does not depend on the clock
                member.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(member, content)
        raw = packed.getvalue()[:-DIGITS]
        target = Path(path)
        target.write_bytes(raw + hashlib.sha256(raw).hexdigest().encode())
        return target


def as_stored(array: Any) -> Any:
    """Return an array as little-endian doubles or 64-bit integers, row by row."""
    plain = np.asarray(array)
    return np.asarray(plain, dtype="<i8" if plain.dtype.kind in "iub" else "<f8", order="C")


def npy(array: Array) -> bytes:
    """Return an array as the content of an NPY file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


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
    nearby = Fraction(p).limit_denominator(LARGEST_DENOMINATOR)
    if float(nearby) != p:
        raise ParameterError(
            f"p must be a fraction with a denominator of at most {LARGEST_DENOMINATOR} for exact arithmetic, "
            f"got {p!r} in Certificate.save. Take {float(nearby)!r}, which is {nearby}."
        )
    return str(nearby)
