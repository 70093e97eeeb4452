"""What is true of a statement: a second checker, values at points in 320 bits, the optimum of a solver."""

from __future__ import annotations

import re
import warnings
from math import inf
from typing import Any

import cvxpy as cp
import numpy as np
from mpmath import mp, mpf

from tests.certificates import second_checker

BITS = 320
EXACT = mpf(10) ** -60  # a violation below it is rounding of 320 bits
ACCURACY = 1e-5  # of the optimum of a solver, relative
LARGE = 1e6  # data beyond which no solver is believed

number: Any = np.frompyfunc(mpf, 1, 1)


def exact(a):
    """Return an array of numbers of 320 bits; text is a fraction."""
    if isinstance(a, list):
        ratios = [v.partition("/") for v in a]
        return np.array([mpf(p) / mpf(q or "1") for p, _, q in ratios] or [], dtype=object)
    return number(a) if np.ndim(a) else mpf(a.item())


def row_matrix(facts, arrays):
    """Return A as a dense array of numbers of 320 bits."""
    A = number(np.zeros((facts["statement"]["rows"], facts["statement"]["columns"])))
    for i, j, v in zip(arrays["row"], arrays["column"], arrays["value"], strict=True):
        A[i, j] += mpf(v)
    return A


def smallest_eigenvalue(M):
    """Return the smallest eigenvalue of a symmetric array of numbers of 320 bits."""
    return min(mp.eigsy(mp.matrix(M.tolist()), eigvals_only=True))


def length(v, p):
    """Return |v|_p."""
    sizes = [abs(x) for x in v]
    if p == inf:
        return max(sizes)
    return mp.fsum(x**p for x in sizes) ** (1 / p)


def power(p):
    """Return the exponent of a ball as a number."""
    top, _, bottom = p.partition("/")
    return inf if p == "inf" else mpf(top) / mpf(bottom or "1")


def combined(weights, matrices):
    """Return sum_j weights_j matrices_j in 320 bits."""
    return sum(
        (w * exact(G) for w, G in zip(weights, matrices, strict=True)), number(np.zeros(matrices[0].shape))
    )


def largest(slope, curvature, l1, low, high):
    """Return the maximum of slope a - curvature/2 a^2 - l1 |a| for low <= a <= high."""

    def value(a):
        return slope * a - curvature * a * a / 2 - l1 * abs(a)

    for end, sign in ((high, 1), (low, -1)):
        if abs(end) == inf and (curvature < 0 or (curvature == 0 and sign * slope > l1)):
            return inf
    turns = [(slope - l1) / curvature, (slope + l1) / curvature] if curvature else []
    return max(value(a) for a in (mpf(0), mpf(low), mpf(high), *turns) if low <= a <= high and abs(a) < inf)


def primal_value(facts, arrays, x, machines):
    """Return (a value that the optimum is at most, the violation of the constraints at x)."""
    A, stated = row_matrix(facts, arrays), facts["statement"]
    excess = A @ x - exact(arrays["right"])
    violations = [mpf(0), *(abs(v) if e else v for v, e in zip(excess, arrays["equal"], strict=True))]
    violations += [-v for v, s in zip(x, arrays["signs"], strict=True) if s]
    value = exact(arrays["offset"]) + sum(exact(arrays["cost"]) * x)
    for k, (beta, b) in enumerate(machines):
        M = combined(x[arrays[f"at{k}"]], arrays[f"K{k}"])
        ridge = max(mpf(0), EXACT - smallest_eigenvalue(M))
        f = M @ beta + ridge * beta
        ends = arrays[f"ends{k}"].tolist()
        peaks = [
            largest(s - z - b, c - ridge, l1, low, high)
            for z, s, c, l1, low, high in zip(f, *exact(arrays[f"curve{k}"]), *ends, strict=True)
        ]
        value += exact(arrays[f"price{k}"]) * (sum(beta * f) / 2 + sum(peaks))
        violations += [] if stated["risks"][k]["bias"] else [abs(b)]
    for k, ball in enumerate(stated["balls"]):
        violations.append(length(exact(arrays[f"B{k}"]) @ x, power(ball["p"])) - exact(arrays[f"radius{k}"]))
    for k in range(len(stated["cones"])):
        violations.append(-smallest_eigenvalue(combined(x, arrays[f"G{k}"])))
    return value, max(violations)


def dual_value(facts, arrays, u, alphas, ys, Ys):
    """Return (a value that the optimum is at least, the violation of the constraints of the dual)."""
    stated = facts["statement"]
    value = exact(arrays["offset"]) - sum(u * exact(arrays["right"]))
    rest = exact(arrays["cost"]) + row_matrix(facts, arrays).T @ u
    violations = [mpf(0), *(-v for v, e in zip(u, arrays["equal"], strict=True) if not e)]
    for k, a in enumerate(alphas):
        price, (s, c, l1) = exact(arrays[f"price{k}"]), exact(arrays[f"curve{k}"])
        value += price * sum(s * a - c * a * a / 2 - l1 * abs(a))
        low, high = arrays[f"ends{k}"]
        violations += [mpf(lo) - v for v, lo in zip(a, low, strict=True)]
        violations += [v - mpf(hi) for v, hi in zip(a, high, strict=True)]
        violations += [abs(sum(a))] if stated["risks"][k]["bias"] else []
        for j, K in zip(arrays[f"at{k}"], arrays[f"K{k}"], strict=True):
            rest[j] -= price * (a @ exact(K) @ a) / 2
    for k, (ball, y) in enumerate(zip(stated["balls"], ys, strict=True)):
        p = power(ball["p"])
        dual = mpf(1) if p == inf else inf if p == 1 else p / (p - 1)
        value -= exact(arrays[f"radius{k}"]) * length(y, dual)
        rest = rest + exact(arrays[f"B{k}"]).T @ y
    for k, Y in enumerate(Ys):
        rest = rest - np.array([(Y * exact(G)).sum() for G in arrays[f"G{k}"]], dtype=object)
        violations.append(-smallest_eigenvalue(Y))
    violations += [-v if s else abs(v) for v, s in zip(rest, arrays["signs"], strict=True)]
    return value, max(violations)


def solved(facts, arrays):
    """Return the optimum of a conic solver, infinite where it says so, None where it cannot be believed."""
    stated = facts["statement"]
    sizes = np.concatenate([np.abs(a[np.isfinite(a)]) for a in arrays.values()])
    if sizes.max() > LARGE:
        return None
    x = cp.Variable(stated["columns"])
    A = np.array(row_matrix(facts, arrays), dtype=float).reshape(stated["rows"], stated["columns"])
    equal, signs = arrays["equal"] > 0, arrays["signs"] > 0
    objective = arrays["offset"].item() + arrays["cost"] @ x
    constraints = [x[np.flatnonzero(signs)] >= 0] if signs.any() else []
    if equal.any():
        constraints.append(A[equal] @ x == arrays["right"][equal])
    if not equal.all():
        constraints.append(A[~equal] @ x <= arrays["right"][~equal])
    for k, risk in enumerate(stated["risks"]):
        n, at = risk["points"], arrays[f"at{k}"]
        slope, curvature, l1 = arrays[f"curve{k}"]
        low, high = arrays[f"ends{k}"]
        f, b = cp.Variable(n), cp.Variable() if risk["bias"] else 0.0
        over, under, kink, bend = (
            cp.Variable(n, nonneg=True),
            cp.Variable(n, nonneg=True),
            cp.Variable(n),
            cp.Variable(n),
        )
        K = sum(x[int(j)] * G for j, G in zip(at, arrays[f"K{k}"], strict=True))
        # max_a (slope - z) a - curvature/2 a^2 - l1 |a| over [low, high], by duality
        constraints += [slope - f - b == over - under + kink + bend, cp.abs(kink) <= l1]
        constraints += [over[np.isinf(high)] == 0, under[np.isinf(low)] == 0, bend[curvature == 0] == 0]
        bent = np.where(curvature > 0, np.where(curvature > 0, curvature, 1.0) ** -0.5, 0.0)
        peaks = np.where(np.isinf(high), 0, high) @ over - np.where(np.isinf(low), 0, low) @ under
        objective += arrays[f"price{k}"].item() * (
            cp.matrix_frac(f, K) / 2 + peaks + cp.sum_squares(cp.multiply(bent, bend)) / 2
        )
    for k, ball in enumerate(stated["balls"]):
        constraints.append(
            cp.pnorm(arrays[f"B{k}"] @ x, float(power(ball["p"]))) <= arrays[f"radius{k}"].item()
        )
    for k in range(len(stated["cones"])):
        constraints.append(sum(x[j] * G for j, G in enumerate(arrays[f"G{k}"])) >> 0)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for solver in (cp.CLARABEL, cp.CVXOPT):
        try:
            with warnings.catch_warnings():  # an inaccurate answer has another status, and proves nothing
                warnings.simplefilter("ignore")
                problem.solve(solver=solver)
        except cp.SolverError:
            continue
        if problem.status in ("optimal", "infeasible", "unbounded"):
            return {"optimal": problem.value, "infeasible": inf, "unbounded": -inf}[problem.status]
    return None


def refuted(facts, arrays, points):
    """Return why the claims of a file are false, empty where nothing refutes them.

    Parameters
    ----------
    facts, arrays : dict
        As `forgeries.read` returns them.
    points : list of (facts, arrays)
        Files of the same shapes, whose witnesses are tried as points of this statement: where they are
        feasible up to the rounding of 320 bits, claims are compared with their values to the last digit.
    """
    sense = facts["statement"]["sense"]
    claims = [float.fromhex(facts["witness"][k]) for k in ("lower", "upper")]
    low, high = claims if sense > 0 else (-claims[1], -claims[0])
    with mp.workprec(BITS):
        for other, A in points:
            w, stated = other["witness"], other["statement"]
            x = exact(w["x"])
            machines = [(exact(A[f"beta{k}"]), exact(A[f"b{k}"])) for k in range(len(stated["risks"]))]
            value, violation = primal_value(facts, arrays, x, machines)
            if violation <= EXACT and low > value + EXACT:
                return f"lower is {low}, and a feasible point has the value {float(value)}"
            alphas = [exact(A[f"alpha{k}"]) for k in range(len(stated["risks"]))]
            ys = [exact(A[f"y{k}"]) for k in range(len(stated["balls"]))]
            Ys = [exact(A[f"Y{k}"]) + combined(exact(mix), A[f"G{k}"]) for k, mix in enumerate(w["mix"])]
            value, violation = dual_value(facts, arrays, exact(w["u"]), alphas, ys, Ys)
            if violation <= EXACT and high < value - EXACT:
                return f"upper is {high}, and a dual point has the value {float(value)}"
    optimum = solved(facts, arrays)
    if optimum is None or (np.isinf(low) and np.isinf(high) and low < high):
        return ""
    size = ACCURACY * (1 + abs(optimum)) if np.isfinite(optimum) else 0.0
    if low > optimum + size or high < optimum - size:
        return f"the claims are {low} and {high}, and a solver finds {optimum}"
    return ""


def second_opinion(path, valid, said):
    """Assert that the second checker has the verdict of the first, and prints the same digest."""
    digests = re.compile(r"SHA-256 of the statement: [0-9a-f]{64}")
    again, text = second_checker.verdict(path)
    assert (again, digests.findall(text)) == (valid, digests.findall(said)), (said, text)
