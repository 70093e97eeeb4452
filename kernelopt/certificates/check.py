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


def semidefinite(M: Any, L: Any) -> Any:
    """Whether R = M - LL' is symmetric with R_ii >= sum_j |R_ij|, so that M is positive semidefinite."""
    D = lcm(*(v.denominator for v in L.ravel()))
    R = M - (L * D // 1) @ (L.T * D // 1) * Fraction(1, D * D)  # the product is one of integers
    return R.shape == M.shape and (R == R.T).all() and (2 * R.diagonal() >= abs(R).sum(axis=0)).all()


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
    A = {k: a if k[:4] == "ends" else exact(a) for k, a in Z.items()}
    u, x, equal, signs = exact(f["u"]), exact(f["x"]), A["equal"] > 0, A["signs"] > 0
    rest, excess = A["cost"].copy(), -A["right"]
    lower, upper = A["offset"] + sum(u * excess), A["offset"] + sum(A["cost"] * x)
    for i, j, v in zip(Z["row"], Z["column"], A["value"], strict=True):
        rest[j], excess[i] = rest[j] + u[i] * v, excess[i] + v * x[j]
    dual, primal = [(u >= 0) | equal], [(excess == 0) | ((excess < 0) & ~equal), (x >= 0) | ~signs]
    for k, bias in enumerate(f["bias"]):
        names = ("price", "K", "curve", "ends", "alpha", "beta", "b", "ridge", "L")
        price, K, curve, (low, high), alpha, beta, b, ridge, L = (A[f"{name}{k}"] for name in names)
        at, forms, one = Z[f"at{k}"], K @ alpha @ alpha, np.eye(len(alpha), dtype=int)
        M = np.tensordot(x[at], K, 1) + ridge * one
        np.subtract.at(rest, at, price * forms / 2)
        for a, t, (slope, curvature, l1), *box in zip(alpha, M @ beta + b, curve.T, low, high, strict=True):
            lower += price * peak(slope, curvature, l1, a, a)
            upper += price * peak(slope - t, curvature - ridge, l1, *box)
        upper += price * (beta @ M @ beta) / 2
        dual += [price > 0, not bias or sum(alpha) == 0, alpha >= low, alpha <= high]
        primal += [price > 0, bias or b == 0, semidefinite(M, L)]
        if f["infeasible"]:  # alpha is a ray: l grows linearly along it
            ends = np.where(alpha > 0, high, low)
            dual += [forms == 0, curve[1] * alpha == 0, (alpha == 0) | (abs(ends) == inf)]
    for k, p in enumerate(f["balls"]):
        B, radius, y, h, s, t = (A[f"{name}{k}"] for name in ("B", "radius", "y", "h", "s", "t"))
        rest, lower, q = rest + y @ B, lower - radius * h, {"1": "inf", "inf": "1"}.get(p)
        dual += [p == "inf" or Fraction(p) >= 1, within(y, h, q or Fraction(p) / (Fraction(p) - 1), t)]
        primal += [within(B @ x, radius, p, s)]
    for k, mix in enumerate(f["mix"]):
        G, Y, S, T = (A[f"{name}{k}"] for name in ("G", "Y", "S", "T"))
        Y = Y + np.tensordot(exact(mix), G, 1)
        rest = rest - (G * Y).sum(axis=(1, 2))
        dual, primal = [*dual, semidefinite(Y, S)], [*primal, semidefinite(np.tensordot(x, G, 1), T)]
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
