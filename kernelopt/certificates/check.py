"""Check a certificate in exact fractions: `python check.py FILE` says VALID or INVALID, with status 0 or 1.

It needs Python and numpy only. docs/certificates.md has the statement, the proof and the names.
"""

import hashlib
import io
import json
import sys
from fractions import Fraction
from math import inf, lcm
from typing import Any

import numpy as np


def whole(a: Any) -> tuple[Any, int]:
    """Return integers A and a common denominator d with a = A / d."""
    ratios = [v.as_integer_ratio() for v in np.ravel(a).tolist()]
    d = lcm(*{q for _, q in ratios})
    return np.array([p * (d // q) for p, q in ratios], dtype=object).reshape(np.shape(a)), d


def product(a: Any, b: Any, axes: int = 1) -> Any:
    """Return np.tensordot(a, b, axes) in fractions, by a product of integers."""
    (A, c), (B, d) = whole(a), whole(b)
    return np.frompyfunc(Fraction, 2, 1)(np.tensordot(A, B, axes), c * d)


def semidefinite(M: Any, L: Any) -> bool:
    """Whether R = M - LL' is symmetric with R_ii >= sum_j |R_ij|, so that M is positive semidefinite."""
    if L.shape != M.shape or L.ndim != 2 or len(L) >= 2**15:
        return False
    (A, c), (B, d) = whole(M), whole(L)  # B in digits of base 2^24: sums of products are below 2^63
    top = max(abs(B).ravel().tolist(), default=0).bit_length()
    digits = [(abs(B) // 2**k % 2**24 * np.sign(B)).astype(np.int64) for k in range(0, top, 24)]
    pairs = [(x @ y.T, 24 * (i + j)) for i, x in enumerate(digits) for j, y in enumerate(digits)]
    R = A * d * d - sum(xy.astype(object) * 2**k for xy, k in pairs) * c
    return bool((R == R.T).all() and (2 * R.diagonal() >= abs(R).sum(axis=0)).all())


def within(x: Any, h: Any, p: Any, t: Any) -> Any:
    """Whether t proves |x|_p <= h: (|x_i| / h)^p <= t_i and sum t <= 1."""
    if p == "inf":
        return h >= 0 and (abs(x) <= h).all()
    a, b = Fraction(p).as_integer_ratio()
    fits = [abs(v) ** a <= w**b * h**a for v, w in zip(x, t, strict=True)]
    return min([h, *t]) >= 0 and sum(t) <= 1 and all(fits)


def peak(slope: Any, curvature: Any, l1: Any, low: Any, high: Any) -> Any:
    """Return the maximum of slope a - curvature/2 a^2 - l1 |a| over low <= a <= high."""
    far = [s * slope - l1 for s, end in ((1, high), (-1, low)) if abs(end) == inf]
    if far and (curvature < 0 or (curvature == 0 and max(far) > 0)):
        return inf
    ends = {0, low, high, *((slope + k) / curvature for k in (l1, -l1) if curvature)}
    inside = [Fraction(a) for a in ends if low <= a <= high and abs(a) < inf]
    return max(slope * a - curvature * a * a / 2 - l1 * abs(a) for a in inside)


def bounds(f: Any, Z: Any) -> tuple[Any, Any]:
    """Return the lower and the upper bound that the witness proves, infinite where it proves none."""
    exact = np.frompyfunc(Fraction, 1, 1)
    A = {k: a if k[0] in "KLBGYST" or k[:4] == "ends" else exact(a) for k, a in Z.items()}
    u, x, equal, signs = exact(f["u"]), exact(f["x"]), A["equal"] > 0, A["signs"] > 0
    rest, excess = A["cost"].copy(), -A["right"]
    lower, upper = A["offset"] + sum(u * excess), A["offset"] + sum(A["cost"] * x)
    for i, j, v in zip(Z["row"], Z["column"], A["value"], strict=True):
        rest[j], excess[i] = rest[j] + u[i] * v, excess[i] + v * x[j]
    dual, primal = [(u >= 0) | equal], [(excess == 0) | ((excess < 0) & ~equal), (x >= 0) | ~signs]
    for k, bias in enumerate(f["bias"]):
        names = ("price", "K", "curve", "ends", "alpha", "beta", "b", "ridge", "L")
        price, K, curve, (low, high), alpha, beta, b, ridge, L = (A[f"{name}{k}"] for name in names)
        at, forms = Z[f"at{k}"], product(K, alpha) @ alpha
        M = product(x[at], K)
        M[np.diag_indices(len(alpha))] += ridge
        f_beta = product(M, beta)
        np.subtract.at(rest, at, price * forms / 2)
        for a, t, (slope, curvature, l1), *box in zip(alpha, f_beta + b, curve.T, low, high, strict=True):
            lower += price * peak(slope, curvature, l1, a, a)
            upper += price * peak(slope - t, curvature - ridge, l1, *box)
        upper += price * (beta @ f_beta) / 2
        dual += [price > 0, not bias or sum(alpha) == 0, alpha >= low, alpha <= high]
        primal += [price > 0, bias or b == 0, semidefinite(M, L)]
        if f["infeasible"]:  # alpha is a ray: l grows linearly along it
            ends = np.where(alpha > 0, high, low)
            dual += [forms == 0, curve[1] * alpha == 0, (alpha == 0) | (abs(ends) == inf)]
    for k, p in enumerate(f["balls"]):
        B, radius, y, h, s, t = (A[f"{name}{k}"] for name in ("B", "radius", "y", "h", "s", "t"))
        rest, lower, q = rest + product(y, B), lower - radius * h, {"1": "inf", "inf": "1"}.get(p)
        dual += [p == "inf" or Fraction(p) >= 1, within(y, h, q or Fraction(p) / (Fraction(p) - 1), t)]
        primal += [within(product(B, x), radius, p, s)]
    for k, mix in enumerate(f["mix"]):
        G, Y, S, T = (A[f"{name}{k}"] for name in ("G", "Y", "S", "T"))
        Y = product(exact([1, *mix]), [Y, *G])
        rest = rest - product(G, Y, 2)
        dual, primal = [*dual, semidefinite(Y, S)], [*primal, semidefinite(product(x, G), T)]
    dual += [(rest == 0) | ((rest > 0) & signs)]
    if f["infeasible"]:
        lower, dual = inf, [*dual, lower > 0, A["cost"] == 0, A["offset"] == 0]
    shown = [all(np.all(holds) for holds in proof) for proof in (dual, primal)]
    return lower if shown[0] else -inf, upper if shown[1] else inf


if __name__ == "__main__":
    try:
        raw = np.fromfile(sys.argv[1], np.uint8).tobytes()
        Z = dict(np.load(io.BytesIO(raw)))
        f = json.loads(Z.pop("certificate.json"))
        intact = hashlib.sha256(raw[:-64]).hexdigest().encode() == raw[-64:]  # 64 digits at the end
        intact &= f["sha256"] == {k: hashlib.sha256(a.tobytes()).hexdigest() for k, a in Z.items()}
        found = bounds(f, Z) if intact else (-inf, inf)
        lower, upper = sorted(bound if f["sense"] > 0 else -bound for bound in found)
        low, high = (float.fromhex(f[k]) for k in ("lower", "upper"))
        valid, text = intact and low <= lower and upper <= high, f"{low!r} <= optimum <= {high!r}"
    except Exception as error:  # an unreadable file proves nothing
        valid, text = False, repr(error)
    print(f"{'VALID' if valid else 'INVALID'}: {text}")
    sys.exit(not valid)
