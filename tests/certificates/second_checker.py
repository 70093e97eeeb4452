"""A second checker of certificate files, written from ``docs/certificates.md`` alone.

It needs Python's standard library, computes in fractions, and is slow: ``python second_checker.py FILE``.
It shares no line with the first, ``kernelopt/certificates/check.py``, so that an error of one of them, or an
ambiguity of the page, shows as a disagreement.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import zlib
from fractions import Fraction
from math import gcd, inf, isfinite, isnan, lcm, prod
from pathlib import Path
from typing import Any

COUNT, ORDER = 2**31, 2**15
DIGITS, ALL_DIGITS, POWERS, FACTOR_BITS = 20_000, 10**9, 2**48, 120
INTEGERS = ("signs", "row", "column", "equal", "at")


class Invalid(Exception):
    """The file fails a demand of the page."""


def demand(holds: Any, what: str) -> None:
    if not holds:
        raise Invalid(what)


# -- the archive -----------------------------------------------------------------------------------


def members(file: bytes) -> dict[str, bytes]:
    """The members of the archive by name, which fill the file up to the directory in its order."""
    end = len(file) - 64 - 22
    demand(
        end >= 0 and file[end : end + 8] == b"PK\5\6\0\0\0\0",
        "the archive ends in a record with a comment of 64 bytes",
    )
    here, total, size, start, comment = struct.unpack("<HHIIH", file[end + 8 : end + 22])
    demand(
        comment == 64 and here == total and start + size == end,
        "one directory, directly before the last record",
    )
    demand(
        file[-64:] == hashlib.sha256(file[:-64]).hexdigest().encode(),
        "the comment is the SHA-256 of the bytes before it",
    )
    found: dict[str, bytes] = {}
    place, entry = 0, start
    for _ in range(total):
        demand(entry + 46 <= end and file[entry : entry + 4] == b"PK\1\2", "the directory holds the members")
        fields = file[entry + 8 : entry + 32]  # the same bytes in both headers
        flags, method, _, _, crc, packed, length, name, extra = struct.unpack("<HHHHIIIHH", fields)
        note, _, _, _, offset = struct.unpack("<HHHII", file[entry + 32 : entry + 46])
        demand(flags == method == extra == note == 0 and packed == length, "members are stored as they are")
        demand(offset == place and place + 30 + name + length <= start, "members stand one after another")
        title = file[entry + 46 : entry + 46 + name]
        local = file[place : place + 30 + name]
        demand(
            local[:4] == b"PK\3\4" and local[6:30] == fields and local[30:] == title,
            "each member begins as the directory says",
        )
        place += 30 + name + length
        entry += 46 + name
        demand(title.isascii() and title.decode() not in found, "each member is there once")
        found[title.decode()] = file[place - length : place]
        demand(zlib.crc32(found[title.decode()]) == crc, "the CRC-32 of a member")
    demand(place == start and entry == end, "no bytes are between the members and around the directory")
    return found


# -- the two documents -----------------------------------------------------------------------------


def document(data: bytes) -> Any:
    """A document in canonical JSON."""
    value = json.loads(data.decode("ascii"))
    demand(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == data, "JSON is canonical")
    return value


def is_object(value: Any, *keys: str) -> bool:
    return type(value) is dict and set(value) == set(keys)


def is_list(value: Any, length: int | None = None) -> bool:
    return type(value) is list and (length is None or len(value) == length)


def is_integer(value: Any, low: int, above: int) -> bool:
    return type(value) is int and low <= value < above


def integer(digits: str) -> int:
    """The integer of decimal digits, in pieces: Python limits how many digits it converts at once."""
    value = 0
    for first in range(0, len(digits), 4000):
        piece = digits[first : first + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return value


def ratio(text: Any, digits: int) -> tuple[int, int, str | None]:
    """Numerator, denominator, and the text of the denominator, where there is one."""
    parts = re.fullmatch(r"(-?)(0|[1-9][0-9]*)(?:/([1-9][0-9]*))?", text) if type(text) is str else None
    demand(parts and max(len(parts[2]), len(parts[3] or "")) <= digits, "text of a fraction")
    sign, above, below = parts.groups()  # type: ignore[union-attr]
    return (-1 if sign else 1) * integer(above), integer(below or "1"), below


def fractions(texts: Any, length: int) -> list[Fraction]:
    demand(is_list(texts, length), f"a list of {length} fractions")
    return [Fraction(*ratio(text, DIGITS)[:2]) for text in texts]


def common(lists: list[list[Fraction]], s: Any) -> tuple[list[list[int]], int]:
    """Integers and their common denominator, with no more digits than the largest matrix allows."""
    sizes = [1, s["columns"], s["rows"], *(ball["rows"] for ball in s["balls"])]
    sizes += [n * n for n in [risk["points"] for risk in s["risks"]] + [cone["order"] for cone in s["cones"]]]
    limit, below = 10 ** min(DIGITS, ALL_DIGITS // max(sizes)), 1
    for v in (v for values in lists for v in values):
        below = lcm(below, v.denominator)
        demand(below < limit, "few digits of the common denominator")
    integers = [[v.numerator * (below // v.denominator) for v in values] for values in lists]
    demand(all(abs(v) < limit for values in integers for v in values), "few digits over it")
    return integers, below


def exponent(text: Any) -> Fraction | float:
    """The exponent p of a ball: infinity or a fraction."""
    if text == "inf":
        return inf
    above, below, written = ratio(text, 5)
    demand(
        below <= above <= 10_000 and below <= 64 and gcd(above, below) == 1 and written != "1",
        "an exponent in lowest terms",
    )
    return Fraction(above, below)


def claim(text: Any) -> Fraction | float:
    """The exact number of a claim, or an infinity."""
    value = float.fromhex(text) if type(text) is str else float("nan")
    demand(not isnan(value) and value.hex() == text, "a claim in the spelling of float.hex")
    return Fraction(value) if isfinite(value) else value


def check_statement(s: Any) -> None:
    keys = ("format", "sense", "columns", "rows", "entries", "risks", "balls", "cones")
    demand(
        is_object(s, *keys) and s["format"] == "kernelopt-certificate/2",
        "the keys and the format of the statement",
    )
    demand(type(s["sense"]) is int and s["sense"] in (1, -1), "the sense is 1 or -1")
    demand(all(is_integer(s[key], 0, COUNT) for key in ("columns", "rows", "entries")), "counts")
    demand(all(is_list(s[key]) for key in ("risks", "balls", "cones")), "lists of risks, balls and cones")
    for risk in s["risks"]:
        demand(is_object(risk, "kernels", "points", "bias") and type(risk["bias"]) is bool, "a risk")
        demand(all(is_integer(risk[key], 1, ORDER) for key in ("kernels", "points")), "orders of a risk")
    for ball in s["balls"]:
        demand(is_object(ball, "rows", "p") and is_integer(ball["rows"], 1, ORDER), "a ball")
        exponent(ball["p"])
    for cone in s["cones"]:
        demand(is_object(cone, "order") and is_integer(cone["order"], 1, ORDER), "a cone")


def check_witness(w: Any, s: Any) -> None:
    demand(is_object(w, "lower", "upper", "infeasible", "u", "x", "mix", "names"), "the keys of the witness")
    demand(type(w["infeasible"]) is bool and is_list(w["mix"], len(s["cones"])), "infeasible and mix")
    demand(is_object(w["names"], "columns", "rows"), "the names")
    for key in ("columns", "rows"):
        demand(
            is_list(w["names"][key], s[key]) and all(type(name) is str for name in w["names"][key]),
            "a name for each",
        )


# -- the arrays ------------------------------------------------------------------------------------


def schema(s: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Names and shapes of the arrays of data, in the order of the digest, and of the witness."""
    c, r, e = s["columns"], s["rows"], s["entries"]
    data: dict[str, tuple[int, ...]] = {
        "cost": (c,),
        "offset": (),
        "signs": (c,),
        "row": (e,),
        "column": (e,),
        "value": (e,),
    }
    data |= {"right": (r,), "equal": (r,)}
    witness: dict[str, tuple[int, ...]] = {}
    for k, risk in enumerate(s["risks"]):
        m, n = risk["kernels"], risk["points"]
        data |= {f"K{k}": (m, n, n), f"at{k}": (m,), f"curve{k}": (3, n), f"ends{k}": (2, n), f"price{k}": ()}
        witness |= {f"alpha{k}": (n,), f"beta{k}": (n,), f"b{k}": (), f"ridge{k}": (), f"L{k}": (n, n)}
    for k, ball in enumerate(s["balls"]):
        d = ball["rows"]
        data |= {f"B{k}": (d, c), f"radius{k}": ()}
        witness |= {f"y{k}": (d,), f"h{k}": (), f"t{k}": (d,), f"s{k}": (d,)}
    for k, cone in enumerate(s["cones"]):
        n = cone["order"]
        data |= {f"G{k}": (c, n, n)}
        witness |= {f"Y{k}": (n, n), f"S{k}": (n, n), f"T{k}": (n, n)}
    return data, witness


def check_size(name: str, shape: tuple[int, ...], data: bytes) -> None:
    """The header of an array, and its length, before anything is made of its entries."""
    kind = "<i8" if name.rstrip("0123456789") in INTEGERS else "<f8"
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    demand(len(data) == 128 + 8 * prod(shape), f"{name} has the shape {shape}")
    demand(data[:128] == b"\x93NUMPY\x01\x00\x76\x00" + text.encode(), f"the header of {name}")


def entries(name: str, shape: tuple[int, ...], data: bytes) -> Any:
    """The entries as integers, or as fractions (ends may be infinite), in lists of the shape."""
    base = name.rstrip("0123456789")
    values: list[Any] = list(struct.unpack(f"<{prod(shape)}{'q' if base in INTEGERS else 'd'}", data[128:]))
    if base not in INTEGERS:
        demand(all(isfinite(v) or (base == "ends" and not isnan(v)) for v in values), f"{name} is finite")
        values = [Fraction(v) if isfinite(v) else v for v in values]
    return nested(values, shape) if shape else values[0]


def nested(values: list[Any], shape: tuple[int, ...]) -> list[Any]:
    if len(shape) == 1:
        return values
    size = prod(shape[1:])
    return [nested(values[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def symmetric(matrix: list[Any]) -> bool:
    return all(list(column) == row for column, row in zip(zip(*matrix, strict=True), matrix, strict=True))


def check_data(s: Any, a: dict[str, Any]) -> None:
    """The ranges of the data."""
    c, r = s["columns"], s["rows"]
    demand(all(v in (0, 1) for v in a["signs"] + a["equal"]), "signs and equal are 0 or 1")
    demand(all(0 <= v < r for v in a["row"]) and all(0 <= v < c for v in a["column"]), "places of A")
    for k in range(len(s["risks"])):
        demand(all(symmetric(matrix) for matrix in a[f"K{k}"]), "symmetric kernels")
        demand(
            all(0 <= v < c for v in a[f"at{k}"]) and a[f"price{k}"] > 0,
            "places of weights, and a positive price",
        )
        demand(
            all(v >= 0 for v in a[f"curve{k}"][1] + a[f"curve{k}"][2]), "curvature and l1 are not negative"
        )
        demand(
            all(low <= high and low < inf and high > -inf for low, high in zip(*a[f"ends{k}"], strict=True)),
            "ends in order",
        )
    demand(all(a[f"radius{k}"] >= 0 for k in range(len(s["balls"]))), "a radius is not negative")
    demand(
        all(symmetric(matrix) for k in range(len(s["cones"])) for matrix in a[f"G{k}"]),
        "symmetric cone matrices",
    )


# -- the proofs ------------------------------------------------------------------------------------


def dot(a: Any, b: Any) -> Fraction:
    """Sum of a_i b_i, over one denominator."""
    p, q = lcm(*(v.denominator for v in a)), lcm(*(v.denominator for v in b))
    terms = (
        v.numerator * (p // v.denominator) * w.numerator * (q // w.denominator)
        for v, w in zip(a, b, strict=True)
        if v and w
    )
    return Fraction(sum(terms), p * q)


def combination(weights: Any, matrices: Any, i: int, n: int) -> list[Fraction]:
    """Row i of the sum of weight times matrix, of order n."""
    return [dot(weights, [matrix[i][j] for matrix in matrices]) for j in range(n)]


def semidefinite(row: Any, scale: int, factor: Any) -> bool:
    """Whether M - scale factor factor' has a dominant diagonal, for a symmetric M with the rows row(i)."""
    n = len(factor)
    unit = lcm(*(v.denominator for line in factor for v in line))
    integers = [int(v * unit) for line in factor for v in line]
    lowest = gcd(*integers) & -gcd(*integers)
    if lowest and max(map(abs, integers)) >= 2**FACTOR_BITS * lowest:
        return False
    diagonal, others = [Fraction(0)] * n, [Fraction(0)] * n
    for i in range(n):
        m = row(i)
        for j in range(i + 1):
            rest = m[j] - scale * dot(factor[i], factor[j])
            if i == j:
                diagonal[i] = rest
            else:
                others[i] += abs(rest)
                others[j] += abs(rest)
    return all(d >= o for d, o in zip(diagonal, others, strict=True))


def in_ball(v: Any, h: Fraction, t: Any, p: Fraction | float) -> bool:
    """Whether the shares t show |v|_p <= h."""
    if h < 0 or isinstance(p, float):
        return h >= 0 and all(abs(value) <= h for value in v)
    a, b = p.numerator, p.denominator
    bits = [
        sum(z.numerator.bit_length() + z.denominator.bit_length() for z in (v_i, t_i, h))
        for v_i, t_i in zip(v, t, strict=True)
    ]
    if min(t) < 0 or dot(t, [1] * len(t)) > 1 or sum((a * length) ** 2 for length in bits) > POWERS:
        return False
    return all(abs(v_i) ** a <= t_i**b * h**a for v_i, t_i in zip(v, t, strict=True))


def peak(s: Fraction, curvature: Fraction, l1: Fraction, low: Any, high: Any) -> Any:
    """The maximum of s a - curvature a^2 / 2 - l1 |a| over low <= a <= high."""
    for end, slope in ((high, s - l1), (low, -s - l1)):
        if abs(end) == inf and (curvature < 0 or (curvature == 0 and slope > 0)):
            return inf
    places = [Fraction(0), low, high] + ([(s - l1) / curvature, (s + l1) / curvature] if curvature else [])
    return max(
        s * a - curvature * a * a / 2 - l1 * abs(a) for a in places if abs(a) < inf and low <= a <= high
    )


def lower_bound(s: Any, w: Any, a: dict[str, Any]) -> Any:
    lists = [fractions(w["u"], s["rows"]), *(fractions(mix, s["columns"]) for mix in w["mix"])]
    (u, *mixes), unit = common(lists, s)
    proved = all(multiplier >= 0 or equation for multiplier, equation in zip(u, a["equal"], strict=True))
    affine = [Fraction(0)] * s["columns"]
    for row, column, value in zip(a["row"], a["column"], a["value"], strict=True):
        affine[column] += value * u[row]
    rest = [cost + Fraction(sum_, unit) for cost, sum_ in zip(a["cost"], affine, strict=True)]
    bound = a["offset"] - dot(u, a["right"]) / unit
    ray = not any(a["cost"]) and a["offset"] == 0
    for k, risk in enumerate(s["risks"]):
        alpha, (linear, curvature, l1), (low, high) = a[f"alpha{k}"], a[f"curve{k}"], a[f"ends{k}"]
        proved &= all(x <= y <= z for x, y, z in zip(low, alpha, high, strict=True)) and not (
            risk["bias"] and sum(alpha)
        )
        squares = [x * x for x in alpha]
        bound += a[f"price{k}"] * (
            dot(linear, alpha) - dot(curvature, squares) / 2 - dot(l1, [abs(x) for x in alpha])
        )
        for kernel, place in zip(a[f"K{k}"], a[f"at{k}"], strict=True):
            form = dot(alpha, [dot(row, alpha) for row in kernel])
            rest[place] -= a[f"price{k}"] * form / 2
            ray &= form == 0
        ends = [high_i if x > 0 else low_i for x, low_i, high_i in zip(alpha, low, high, strict=True)]
        ray &= all(
            not x or (not kappa and abs(end) == inf)
            for x, kappa, end in zip(alpha, curvature, ends, strict=True)
        )
    for k, ball in enumerate(s["balls"]):
        p, y = exponent(ball["p"]), a[f"y{k}"]
        conjugate = Fraction(1) if isinstance(p, float) else inf if p == 1 else p / (p - 1)
        proved &= in_ball(y, a[f"h{k}"], a[f"t{k}"], conjugate)
        bound -= a[f"radius{k}"] * a[f"h{k}"]
        rest = [rest_j + dot(y, [row[j] for row in a[f"B{k}"]]) for j, rest_j in enumerate(rest)]
    for k, cone in enumerate(s["cones"]):
        mix, Y, G, n = mixes[k], a[f"Y{k}"], a[f"G{k}"], cone["order"]

        def multiplier_row(i: int, Y: Any = Y, G: Any = G, mix: Any = mix, n: int = n) -> list[Fraction]:
            return [unit * y + z for y, z in zip(Y[i], combination(mix, G, i, n), strict=True)]

        proved &= symmetric(Y) and semidefinite(multiplier_row, unit, a[f"S{k}"])
        for i in range(n):
            row = multiplier_row(i)
            rest = [rest_j - dot(row, G[j][i]) / unit for j, rest_j in enumerate(rest)]
    proved &= all(rest_j == 0 or (rest_j > 0 and sign) for rest_j, sign in zip(rest, a["signs"], strict=True))
    if w["infeasible"]:
        return inf if proved and ray and bound > 0 else -inf
    return bound if proved else -inf


def upper_bound(s: Any, w: Any, a: dict[str, Any]) -> Any:
    (x,), unit = common([fractions(w["x"], s["columns"])], s)
    affine = [Fraction(0)] * s["rows"]
    for row, column, value in zip(a["row"], a["column"], a["value"], strict=True):
        affine[row] += value * x[column]
    sides = zip(affine, a["right"], a["equal"], strict=True)
    proved = all(
        left == unit * right or (left < unit * right and not equation) for left, right, equation in sides
    )
    proved &= all(x_j >= 0 or not sign for x_j, sign in zip(x, a["signs"], strict=True))
    bound = a["offset"] + dot(a["cost"], x) / unit
    for k, risk in enumerate(s["risks"]):
        beta, b, ridge, K, n = a[f"beta{k}"], a[f"b{k}"], a[f"ridge{k}"], a[f"K{k}"], risk["points"]
        weights = [x[place] for place in a[f"at{k}"]]

        def kernel_row(
            i: int, K: Any = K, weights: Any = weights, shift: Any = unit * ridge, n: int = n
        ) -> list[Fraction]:
            return [v + shift * (i == j) for j, v in enumerate(combination(weights, K, i, n))]

        proved &= semidefinite(kernel_row, unit, a[f"L{k}"]) and ridge >= 0 and (b == 0 or risk["bias"])
        f = [dot(kernel_row(i), beta) / unit for i in range(n)]
        points = zip(*a[f"curve{k}"], *a[f"ends{k}"], f, strict=True)
        peaks = [
            peak(linear - f_i - b, kappa - ridge, l1, low, high)
            for linear, kappa, l1, low, high, f_i in points
        ]
        if inf in peaks:
            return inf
        bound += a[f"price{k}"] * (dot(beta, f) / 2 + sum(peaks))
    for k, ball in enumerate(s["balls"]):
        image = [dot(row, x) for row in a[f"B{k}"]]
        proved &= in_ball(image, unit * a[f"radius{k}"], a[f"s{k}"], exponent(ball["p"]))
    for k, cone in enumerate(s["cones"]):

        def cone_row(i: int, G: Any = a[f"G{k}"], n: int = cone["order"]) -> list[Fraction]:
            return combination(x, G, i, n)

        proved &= semidefinite(cone_row, unit, a[f"T{k}"])
    return bound if proved else inf


def judge(file: bytes) -> tuple[bool, str]:
    parts = members(file)
    demand("statement.json" in parts and "witness.json" in parts, "the two documents")
    s, w = document(parts["statement.json"]), document(parts["witness.json"])
    check_statement(s)
    data, witness = schema(s)
    shapes = data | witness
    demand(
        set(parts) == {"statement.json", "witness.json"} | {f"{name}.npy" for name in shapes},
        "exactly the members of the schema",
    )
    for name, shape in shapes.items():
        check_size(name, shape, parts[f"{name}.npy"])
    check_witness(w, s)
    a = {name: entries(name, shape, parts[f"{name}.npy"]) for name, shape in shapes.items()}
    check_data(s, a)
    claims = claim(w["lower"]), claim(w["upper"])
    bounds = lower_bound(s, w, a), upper_bound(s, w, a)
    demand(bounds[0] <= bounds[1], "the proved bounds contradict each other")
    if s["sense"] < 0:
        bounds = -bounds[1], -bounds[0]
    valid = claims[0] <= bounds[0] and bounds[1] <= claims[1]
    digest = hashlib.sha256(
        parts["statement.json"] + b"".join(parts[f"{name}.npy"][128:] for name in data)
    ).hexdigest()
    lower, upper = (float.fromhex(w[key]) for key in ("lower", "upper"))
    said = f"{'VALID:' if valid else 'INVALID: no proof of'} {lower!r} <= optimum <= {upper!r}"
    return valid, f"{said}\nSHA-256 of the statement: {digest}"


def verdict(path: str | Path) -> tuple[bool, str]:
    """Whether the file proves its claims, and the lines to print."""
    try:
        return judge(Path(path).read_bytes())
    except (Invalid, ValueError, OverflowError, RecursionError, OSError) as error:
        return False, f"INVALID: {error}"


if __name__ == "__main__":
    valid, text = verdict(sys.argv[1])
    print(text)
    sys.exit(0 if valid else 1)
