"""Check a certificate in exact fractions: `python check.py FILE [DIGEST]` says VALID or INVALID.

The status is 0 or 1. With the digest of a statement, a proof of another problem is INVALID too.

docs/certificates.md has the file, the statement and the proof. This file needs Python and numpy only. It
trusts Python's integers, fractions, `hashlib`, `json` and `zlib`, and numpy's comparisons, sums and
products of integers. It trusts nothing in the certificate: `opened` demands the names, types, shapes and
ranges that the statement determines before anything is computed.
"""

import hashlib
import json
import re
import struct
import sys
import zlib
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import inf, lcm, prod
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "kernelopt-certificate/2"
DIGITS = 20_000  # of a numerator and of a denominator in the witness
ALL_DIGITS = 10**9  # of the entries of a combination of matrices or rows, all together
LARGEST_ORDER = 2**15 - 1  # of a matrix: sums of so many products of 24-bit digits are below 2^63
LARGEST_NUMERATOR, LARGEST_DENOMINATOR = 10_000, 64  # of the exponent p of a ball
POWERS = 2**48  # sum of the squares of the bits of all powers that one test computes
FACTOR_BITS = 120  # from the lowest to the highest bit of the entries of a factor
FLOATING = "claimed without a proof in fractions: rigorous in floating point (Jansson, Chaykin and Keil 2007)"
SEAL = 64  # hexadecimal digits at the end of a file
NUMBER = re.compile(rf"-?(0|[1-9][0-9]{{0,{DIGITS - 1}}})(/[1-9][0-9]{{0,{DIGITS - 1}}})?")
EXPONENT = re.compile(r"[1-9][0-9]{0,4}(/[1-9][0-9]?)?")


def demand(holds: Any, message: str) -> None:
    """Raise a ValueError with a message unless something holds."""
    if not holds:
        raise ValueError(message)


def exponent(v: Any) -> bool:
    """Whether v is the text of an exponent in lowest terms, of at least 1."""
    p = Fraction(v) if EXPONENT.fullmatch(v) else Fraction(1, 2)
    fits = p.numerator <= LARGEST_NUMERATOR and p.denominator <= LARGEST_DENOMINATOR
    return v == "inf" or (str(p) == v and p >= 1 and fits)


TESTS: dict[str, Any] = {  # of a value in JSON: its type, and what holds for it
    "boolean": (bool, lambda v: True),
    "count": (int, lambda v: 0 <= v < 2**31),
    "double": (str, lambda v: len(v) < 30 and v != "nan" and float.fromhex(v).hex() == v),
    "exponent": (str, exponent),
    "format": (str, lambda v: v == FORMAT),
    "fraction": (str, NUMBER.fullmatch),
    "name": (str, lambda v: True),
    "order": (int, lambda v: 1 <= v <= LARGEST_ORDER),
    "sense": (int, lambda v: abs(v) == 1),
}
STATEMENT = {
    "format": "format",
    "sense": "sense",
    "columns": "count",
    "rows": "count",
    "entries": "count",
} | {
    "risks": ({"kernels": "order", "points": "order", "bias": "boolean"}, None),
    "balls": ({"rows": "order", "p": "exponent"}, None),
    "cones": ({"order": "order"}, None),
}


def witness_form(S: Any) -> Any:
    """Return the form of "witness.json" for a statement."""
    names = {"columns": ("name", S["columns"]), "rows": ("name", S["rows"])}
    claims = {"lower": "double", "upper": "double", "infeasible": "boolean"}
    x = ("fraction", S["columns"])
    return {**claims, "names": names, "u": ("fraction", S["rows"]), "x": x, "mix": (x, len(S["cones"]))}


def schema(S: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the shapes of all arrays of the data and of the witness by name, in their order."""
    c, r, e = S["columns"], S["rows"], S["entries"]
    data: dict[str, Any] = {"cost": (c,), "offset": (), "signs": (c,), "row": (e,), "column": (e,)}
    data |= {"value": (e,), "right": (r,), "equal": (r,)}
    witness: dict[str, Any] = {}
    for k, risk in enumerate(S["risks"]):
        m, n = risk["kernels"], risk["points"]
        data |= {f"K{k}": (m, n, n), f"at{k}": (m,), f"curve{k}": (3, n), f"ends{k}": (2, n), f"price{k}": ()}
        witness |= {f"alpha{k}": (n,), f"beta{k}": (n,), f"b{k}": (), f"ridge{k}": (), f"L{k}": (n, n)}
    for k, ball in enumerate(S["balls"]):
        d = ball["rows"]
        data |= {f"B{k}": (d, c), f"radius{k}": ()}
        witness |= {f"y{k}": (d,), f"h{k}": (), f"t{k}": (d,), f"s{k}": (d,)}
    for k, cone in enumerate(S["cones"]):
        n = cone["order"]
        data[f"G{k}"] = (c, n, n)
        witness |= {f"Y{k}": (n, n), f"S{k}": (n, n), f"T{k}": (n, n)}
    return data, witness


def dtype(name: str) -> str:
    """Return the type of an array: little-endian integers or doubles of 64 bits."""
    return "<i8" if name.rstrip("0123456789") in ("signs", "row", "column", "equal", "at") else "<f8"


def in_range(name: str, a: Any, S: Any) -> Any:
    """Whether the entries of an array are in their range; NaN satisfies no comparison."""
    name = name.rstrip("0123456789")
    tops = {"signs": 2, "equal": 2, "row": S["rows"], "column": S["columns"], "at": S["columns"]}
    if name in tops:
        return (a >= 0).all() and (a < tops[name]).all()
    if name == "ends":
        return (a[0] <= a[1]).all() and (a[0] < inf).all() and (a[1] > -inf).all()
    if not np.isfinite(a).all() or (name in ("K", "G") and not (a == a.transpose(0, 2, 1)).all()):
        return False
    return (a[1:] >= 0).all() if name == "curve" else a > 0 if name == "price" else name != "radius" or a >= 0


def conform(value: Any, form: Any, where: str) -> None:
    """Demand a form of a JSON value: a dict of forms, a list as (form of an entry, length), or a test."""
    if isinstance(form, dict):
        demand(type(value) is dict and value.keys() == form.keys(), f"{where} needs the keys {sorted(form)}")
        for key in form:
            conform(value[key], form[key], f"{where}: {key}")
    elif isinstance(form, tuple):
        long = type(value) is list and form[1] in (None, len(value))
        demand(long, f"{where} must be a list{f' of length {form[1]}' if form[1] is not None else ''}")
        for v in value:
            conform(v, form[0], where)
    else:
        demand(type(value) is TESTS[form][0] and TESTS[form][1](value), f"{where} is no {form}")


def canonical(document: Any) -> bytes:
    """Return the one text of a JSON document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def members(raw: bytes) -> dict[str, bytes]:
    """Return the members of a file, which is made of them and of their directory alone."""
    found: dict[str, bytes] = {}
    heads, place = [], 0
    while raw[place : place + 4] == b"PK\3\4":
        head = raw[place + 6 : place + 30]
        flags, method, _, crc, packed, size, length, extra = struct.unpack("<HHIIIIHH", head)
        demand(method == 0 and packed == size, "no member may be compressed")
        name = raw[place + 30 : place + 30 + length]
        heads.append((head, struct.pack("<I", place) + name))
        place += 30 + length + size
        body = raw[place - size : place]
        demand(flags == extra == 0 and zlib.crc32(body) == crc, "every member must have its CRC-32")
        demand(name.decode() not in found, "no member may be there twice")
        found[name.decode()] = body
    start = place
    for head, tail in heads:
        entry = raw[place : place + 42 + len(tail)]
        same = entry[:4] == b"PK\1\2" and entry[8:34] == head + b"\0\0" and entry[42:] == tail
        demand(same, "the directory must say what the headers of the members say")
        place += len(entry)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(heads), len(heads), place - start, start, SEAL)
    demand(raw[place:-SEAL] == end, "it must be a ZIP archive without other bytes")
    return found


def read_json(text: bytes, name: str, form: Any) -> Any:
    """Return a canonical document of a form; no key is doubled in it."""
    document = json.loads(text)
    demand(canonical(document) == text, f"{name} must be canonical")
    conform(document, form, name)
    return document


def header(name: str, shape: Any) -> bytes:
    """Return the 128 bytes before the data of an array in the NPY format, version 1.0."""
    text = f"{{'descr': '{dtype(name)}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def opened(raw: bytes) -> tuple[Any, Any, Any]:
    """Return the statement, the witness and the arrays of a file in which all demands of the schema hold."""
    demand(hashlib.sha256(raw[:-SEAL]).hexdigest().encode() == raw[-SEAL:], "it must end with its SHA-256")
    files = members(raw)
    demand("certificate.json" not in files, f"it must have the format {FORMAT}, not 1: save it again")
    if "floating.json" in files:
        claims = read_json(files["floating.json"], "floating.json", {"lower": "double", "upper": "double"})
        low, high = (float.fromhex(claims[k]) for k in ("lower", "upper"))
        raise ValueError(f"{low!r} <= optimum <= {high!r} is {FLOATING}")
    S = read_json(files["statement.json"], "statement.json", STATEMENT)
    W = read_json(files["witness.json"], "witness.json", witness_form(S))
    shapes = {name: shape for part in schema(S) for name, shape in part.items()}
    names = {"statement.json", "witness.json", *(f"{name}.npy" for name in shapes)}
    demand(files.keys() == names, f"its members must be the members of the statement: {len(names)}")
    A = {}
    for name, shape in shapes.items():
        body, head = files[f"{name}.npy"], header(name, shape)
        fits = body.startswith(head) and len(body) == len(head) + 8 * prod(shape)
        demand(fits, f"{name} must be of type {dtype(name)} and shape {shape}, row by row")
        A[name] = np.frombuffer(body, dtype(name), offset=len(head)).reshape(shape)
        demand(in_range(name, A[name], S), f"every entry of {name} must be in its range")
    W |= {key: [fraction(v) for v in W[key]] for key in ("u", "x")}
    return S, W | {"mix": [[fraction(v) for v in mix] for mix in W["mix"]]}, A


def digest(S: Any, A: Any) -> str:
    """Return the SHA-256 of the canonical statement and of the data of its arrays."""
    return hashlib.sha256(canonical(S) + b"".join(A[name].tobytes() for name in schema(S)[0])).hexdigest()


def fraction(text: str) -> Fraction:
    """Return a fraction; `Decimal` reads integers of any length."""
    p, _, q = text.partition("/")
    return Fraction(int(Decimal(p)), int(Decimal(q or "1")))


# ------------------------------------------------------------------------------------------ the proof


def common(lists: Any, S: Any) -> tuple[list[list[int]], int]:
    """Return integers and a denominator d with lists = integers / d, of few digits for a large statement."""
    sizes = [S["columns"], S["rows"], *(ball["rows"] for ball in S["balls"])]
    orders = [risk["points"] for risk in S["risks"]] + [cone["order"] for cone in S["cones"]]
    digits = min(DIGITS, ALL_DIGITS // max(1, *sizes, *(n**2 for n in orders)))
    limit, d = 10**digits, 1
    for v in (v for part in lists for v in part):
        d = lcm(d, v.denominator) if d < limit else d
    integers = [[v.numerator * (d // v.denominator) for v in part] for part in lists]
    longest = max(abs(v) for v in (d, *(v for part in integers for v in part)))
    message = f"over their common denominator the fractions of the proof must have at most {digits} digits"
    demand(longest < limit, f"{message}, got {Decimal(longest).adjusted() + 1}")
    return integers, d


def exact(a: Any) -> Any:
    """Return the entries of an array of doubles as fractions."""
    return np.frompyfunc(Fraction, 1, 1)(a)


def whole(a: Any) -> tuple[Any, int]:
    """Return integers A and a common denominator d with a = A / d."""
    ratios = [v.as_integer_ratio() for v in np.array(a, dtype=object).ravel().tolist()]
    d = lcm(*{q for _, q in ratios})
    return np.array([p * (d // q) for p, q in ratios], dtype=object).reshape(np.shape(a)), d


def product(a: Any, b: Any, axes: int = 1) -> Any:
    """Return the sum over the last axes of a and the equal first ones of b, in fractions."""
    (A, c), (B, d) = whole(a), whole(b)
    demand(A.shape[A.ndim - axes :] == B.shape[:axes], f"shapes {A.shape} and {B.shape} have no product")
    return np.frompyfunc(Fraction, 2, 1)(np.tensordot(A, B, axes), c * d)


def semidefinite(M: Any, L: Any, scale: int = 1) -> bool:
    """Whether R = M - scale LL' is symmetric with R_ii >= sum_j |R_ij|: M is then positive semidefinite."""
    if L.shape != M.shape or L.ndim != 2 or len(L) > LARGEST_ORDER:
        return False
    (A, c), (B, d) = whole(M), whole(L)  # B in digits of base 2^24: sums of products are below 2^63
    bits = reduce(or_, abs(B).ravel().tolist(), 0)
    low, top = max(0, (bits & -bits).bit_length() - 1), bits.bit_length()
    if top - low > FACTOR_BITS:
        return False
    digits = [(k, (abs(B) // 2**k % 2**24 * np.sign(B)).astype(np.int64)) for k in range(low, top, 24)]
    pairs = [(x @ y.T, i + j) for i, x in digits for j, y in digits]
    R = A * d * d - sum(xy.astype(object) * 2**k for xy, k in pairs) * c * scale
    return bool((R == R.T).all() and (2 * R.diagonal() >= abs(R).sum(axis=0)).all())


def within(x: Any, h: Any, p: str, t: Any) -> bool:
    """Whether t proves |x|_p <= h: (|x_i| / h)^p <= t_i and sum t <= 1."""
    if p == "inf":
        return h >= 0 and all(abs(v) <= h for v in x)
    a, b = Fraction(p).as_integer_ratio()
    bits = [
        sum(n.bit_length() for u in (v, h, w) for n in u.as_integer_ratio())
        for v, w in zip(x, t, strict=True)
    ]
    if min([h, *t]) < 0 or sum(t) > 1 or sum((a * n) ** 2 for n in bits) > POWERS:
        return False
    fits = []
    for v, w in zip(x, t, strict=True):
        left, right = abs(v.numerator) * h.denominator, h.numerator * v.denominator
        fits.append(left**a * w.denominator**b <= w.numerator**b * right**a)
    return all(fits)


def peak(slope: Any, curvature: Any, l1: Any, low: Any, high: Any) -> Any:
    """Return the maximum of slope a - curvature/2 a^2 - l1 |a| over low <= a <= high, None if infinite."""
    far = [s * slope - l1 for s, end in ((1, high), (-1, low)) if abs(end) == inf]
    if far and (curvature < 0 or (curvature == 0 and max(far) > 0)):
        return None
    ends = {0, low, high, *((slope + k) / curvature for k in (l1, -l1) if curvature)}
    inside = [Fraction(a) for a in ends if low <= a <= high and abs(a) < inf]
    return max(slope * a - curvature * a * a / 2 - l1 * abs(a) for a in inside)


def conjugate(p: str) -> str:
    """Return q with 1/p + 1/q = 1."""
    return {"1": "inf", "inf": "1"}.get(p) or str(Fraction(p) / (Fraction(p) - 1))


def bounds(S: Any, W: Any, A: Any) -> tuple[Any, Any]:
    """Return the bounds of the optimum that the witness proves, infinite where it proves none."""
    (first, *mixes), c = common((W["u"], *W["mix"]), S)  # all that follows is multiplied by c or by d
    (point,), d = common((W["x"],), S)
    u: Any = np.array(first, dtype=object)
    x: Any = np.array(point, dtype=object)
    cost, right, value, offset = (exact(A[name]) for name in ("cost", "right", "value", "offset"))
    equal, signs, row, column = A["equal"] == 1, A["signs"] == 1, A["row"], A["column"]
    lower, upper = c * offset - sum(u * right), d * offset + sum(cost * x)
    rest, excess = c * cost, -d * right
    np.add.at(rest, column, u[row] * value)
    np.add.at(excess, row, value * x[column])
    dual = [((u >= 0) | equal).all()]
    primal = [((excess == 0) | ((excess < 0) & ~equal)).all(), ((x >= 0) | ~signs).all()]
    for k, risk in enumerate(S["risks"]):
        K, at, alpha, beta = A[f"K{k}"], A[f"at{k}"], exact(A[f"alpha{k}"]), exact(A[f"beta{k}"])
        price, b, ridge = (exact(A[f"{name}{k}"]) for name in ("price", "b", "ridge"))
        (slope, curvature, l1), (low, high) = exact(A[f"curve{k}"]), A[f"ends{k}"]
        forms = (product(K, alpha) * alpha).sum(axis=1)
        np.subtract.at(rest, at, c * price * forms / 2)
        lower += c * price * sum(slope * alpha - curvature * alpha * alpha / 2 - l1 * abs(alpha))
        inside = [low <= alpha, alpha <= high]
        if W["infeasible"]:  # alpha is a ray: l grows linearly along it
            inside += [curvature * alpha == 0, (alpha == 0) | np.isinf(np.where(alpha > 0, high, low))]
            inside.append(forms == 0)
        dual += [np.all(part) for part in inside] + [not risk["bias"] or sum(alpha) == 0]
        M = product(x[at], K)
        M[np.diag_indices(len(M))] += d * ridge
        f = product(M, beta)
        ends = [[v if abs(v) == inf else d * Fraction(v) for v in end.tolist()] for end in (low, high)]
        peaks = list(map(peak, d * (slope - b) - f, curvature - ridge, d * l1, *ends))
        upper += price * (sum(beta * f) / 2 + sum((v or 0 for v in peaks), Fraction(0)) / d)
        primal += [risk["bias"] or b == 0, ridge >= 0, None not in peaks, semidefinite(M, A[f"L{k}"], d)]
    for k, ball in enumerate(S["balls"]):
        B, y, s, t = A[f"B{k}"], *(exact(A[f"{name}{k}"]) for name in "yst")
        radius, h = exact(A[f"radius{k}"]), exact(A[f"h{k}"])
        rest += c * product(y, B)
        lower -= c * radius * h
        dual.append(within(y, h, conjugate(ball["p"]), t))
        primal.append(within(product(B, x), d * radius, ball["p"], s))
    for k, mix in enumerate(mixes):
        G = A[f"G{k}"]
        Y = product([c, *mix], [A[f"Y{k}"], *G])
        rest -= product(G, Y, 2)
        dual.append(semidefinite(Y, A[f"S{k}"], c))
        primal.append(semidefinite(product(x, G), A[f"T{k}"], d))
    dual.append(((rest == 0) | ((rest > 0) & signs)).all())
    if W["infeasible"]:
        dual += [lower > 0, not cost.any(), offset == 0]
    low = (inf if W["infeasible"] else lower / c) if all(dual) else -inf
    high = upper / d if all(primal) else inf
    demand(low <= high, "the proved bounds contradict each other: lower > upper. Report this file")
    return (low, high) if S["sense"] > 0 else (-high, -low)


def sentence(S: Any, A: Any) -> str:
    """Return the statement in words."""
    parts = [f"{'minimum' if S['sense'] > 0 else 'maximum'} over {S['columns']} variables"]
    parts += [f"non-negative: {sum(A['signs'].tolist())}", f"linear constraints: {S['rows']}"]
    parts += [f"risk of {r['kernels']} kernels on {r['points']} points" for r in S["risks"]]
    parts += [f"ball of {b['rows']} entries with p = {b['p']}" for b in S["balls"]]
    parts += [f"cone of order {c['order']}" for c in S["cones"]]
    return ", ".join(parts)


def verdict(path: Any, expected: str | None = None) -> tuple[bool, str]:
    """Return whether a file proves its claims, of an expected statement, and what is to be said."""
    try:
        S, W, A = opened(Path(path).read_bytes())
        found = digest(S, A)
        demand(expected in (None, found), f"it states another problem, of the SHA-256 {found}")
        low, high = (float.fromhex(W[k]) for k in ("lower", "upper"))
        lower, upper = bounds(S, W, A)
        valid = low <= lower and upper <= high
        claim = f"{'' if valid else 'no proof of '}{low!r} <= optimum <= {high!r}"
        return valid, f"{claim}\nstatement: {sentence(S, A)}\nSHA-256 of the statement: {found}"
    except Exception as error:  # an unreadable file proves nothing
        return False, ascii(str(error) or repr(error))[1:-1]


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: python check.py FILE [DIGEST]")
    valid, said = verdict(*sys.argv[1:])
    print(f"{'VALID' if valid else 'INVALID'}: {said}")
    sys.exit(not valid)
