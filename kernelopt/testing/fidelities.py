"""`check_fidelity`: a fidelity of one's own, by the identities that tie its parts together."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.methods.solve import solve
from kernelopt.testing.findings import Findings
from kernelopt.validation import Array, shown

ORDER = 4  # of the matrices
SCALES = np.geomspace(1e-3, 30.0, 8)  # of their entries
CLOSE = 1e-9  # relative, of two computations in doubles
SOLVED = 1e-5  # relative, of a conic solve
STEP = 0.7  # of the proximal operator


def check_fidelity(fidelity: Fidelity, *, seed: int = 0) -> Findings:
    """Check a fidelity: its value, cvxpy form, subgradient, conjugate and projection, and what else it has.

    Stated are, at random symmetric matrices D and U and at zero:

    * form: `expression` is convex, and has the value of `value`, which is 0 at 0 and never negative;
    * Fenchel-Young: L(D) + L*(U) >= <U, D> for what `project` returns, with equality at `subgradient`;
    * conjugate: `conjugate_expression`, where it is stated, has the value of `conjugate` and its domain;
    * trace: `trace_bound` is not below <I, D>;
    * scale, of a `Radial` fidelity: the square that it describes touches L from above;
    * proximal operator, of a `Proximal` fidelity: its value is that of a conic solve, and the `shares` are
      subgradients of the right sum.

    Parameters
    ----------
    fidelity : Fidelity
    seed : int, default 0

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails, in words.
    ParameterError
        If it is not given a `Fidelity`.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_fidelity
    >>> len(check_fidelity(ko.fidelities.l1()).stated)
    12
    """
    if not isinstance(fidelity, Fidelity):
        raise ParameterError(
            f"check_fidelity takes a Fidelity, got {shown(fidelity)}. Create one, such as "
            "kernelopt.fidelities.l1()."
        )
    rng = np.random.default_rng(seed)
    drawn = [scale * rng.normal(size=(ORDER, ORDER)) for scale in SCALES]
    D = [np.zeros((ORDER, ORDER)), *(G + G.T for G in drawn)]
    findings = Findings(repr(fidelity))
    for what, check in CHECKS.items():
        with findings.part(what):
            check(findings, fidelity, D)
    findings.raise_if_wrong()
    return findings


def apart(one: float, two: float) -> float:
    """Return the difference of two numbers, relative to their size; inf where one is not finite."""
    if not (np.isfinite(one) and np.isfinite(two)):
        return np.inf  # NaN is no larger than any other number, and would be lost in a maximum
    return abs(one - two) / max(1e-9, abs(one), abs(two))


def check_form(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check the cvxpy form against the value."""
    findings.state("the expression is convex", L.expression(cp.Variable((ORDER, ORDER))).is_convex())
    values = [L.value(D) for D in matrices]
    findings.state("L is 0 at 0 and never negative", values[0] == 0 and min(values) >= 0, min(values))
    written = [float(L.expression(cp.Constant(D)).value) for D in matrices]
    worst = max(map(apart, values, written))
    findings.state("the expression has the value of L", worst <= CLOSE, f"a difference of {worst:.1e}")


def check_fenchel_young(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check L(D) + L*(U) >= <U, D>, with equality at a subgradient."""
    excess, gap, skew = 0.0, 0.0, 0.0
    for D in matrices:
        V = L.subgradient(D)
        skew = max(skew, float(np.abs(V - V.T).max()))
        gap = max(gap, apart(L.value(D) + L.conjugate(V), float(np.vdot(V, D))))
        for U in (L.project(V), *map(L.project, matrices)):
            product = float(np.vdot(U, D))
            excess = max(excess, (product - L.value(D) - L.conjugate(U)) / max(1e-9, abs(product)))
    findings.state("subgradients are symmetric", skew == 0, f"a difference of {skew:.1e}")
    findings.state("L(D) + L*(U) >= <U, D> for projected U", excess <= CLOSE, f"an excess of {excess:.1e}")
    findings.state("L(D) + L*(U) = <U, D> at the subgradient", gap <= CLOSE, f"a gap of {gap:.1e}")


def check_projection(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check that subgradients are in the domain of the conjugate, and so are not moved."""
    slopes = [L.subgradient(D) for D in matrices]
    worst = max(float(np.abs(L.project(U) - U).max()) / max(1e-9, float(np.abs(U).max())) for U in slopes)
    findings.state("subgradients are not moved by `project`", worst <= CLOSE, f"a move of {worst:.1e}")


def check_conjugate(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check the conjugate's expression and domain, where they are stated."""
    U = cp.Variable((ORDER, ORDER), symmetric=True)
    stated = L.conjugate_expression(U)
    if stated is None:
        return
    expression, domain = stated
    worst, outside = 0.0, 0.0
    for G in matrices:
        U.value = L.project(G)
        worst = max(worst, apart(float(expression.value), L.conjugate(U.value)))
        outside = max(outside, *(float(np.max(c.violation())) for c in domain), 0.0)
    findings.state("the conjugate's expression has its value", worst <= CLOSE, f"a difference of {worst:.1e}")
    findings.state("what is projected lies in its domain", outside <= CLOSE, f"{outside:.1e} outside")


def check_trace(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check the bounds of <I, D> for matrices and for spectra."""
    excess = -np.inf
    for A in (A for D in matrices for A in (D, -D, D[0])):
        identity = np.eye(ORDER) if A.ndim == 2 else np.ones(ORDER)
        reached = float(np.vdot(identity, A))
        excess = max(excess, reached - L.trace_bound(L.value(A), identity) - CLOSE * abs(reached))
    findings.state("`trace_bound` is not below <I, D>", excess <= 0, f"an excess of {excess:.1e}")


def check_scale(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check that |X|^2 / (2 s) plus a constant touches L from above."""
    if not isinstance(L, Radial):
        return
    excess = 0.0
    for D in matrices[1:]:
        (s,) = L.scale(np.array([float(np.linalg.norm(D))]))
        for X in matrices:
            above = L.value(D) + (float(np.vdot(X, X)) - float(np.vdot(D, D))) / (2 * s)
            excess = max(excess, (L.value(X) - above) / (L.value(X) + L.value(D)))
    findings.state("the square of a `scale` touches L from above", excess <= CLOSE, f"{excess:.1e} below")


def check_proximal(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check the proximal operator around one matrix by a conic solve, and its condition of optimality."""
    if not isinstance(L, Proximal):
        return
    V, S = matrices[-3], np.array(matrices[-2:-1])
    X, value = L.proximal(V, S, STEP)
    Z = cp.Variable((ORDER, ORDER))
    best = cp.Problem(cp.Minimize(STEP * L.expression(Z - S[0]) + cp.sum_squares(Z - V) / 2))
    solution = solve(best, "exact")
    ours = STEP * L.value(X - S[0]) + float(((X - V) ** 2).sum()) / 2
    findings.state("the proximal operator finds the minimum", apart(ours, solution.value) <= SOLVED, ours)
    (U,) = L.shares((V - X) / STEP, X, S)
    gap = apart(value + L.conjugate(L.project(U)), float(np.vdot(U, X - S[0])))
    findings.state("its shares are subgradients", gap <= CLOSE, f"a gap of {gap:.1e}")


CHECKS = {
    "the expression": check_form,
    "Fenchel-Young": check_fenchel_young,
    "the projection": check_projection,
    "the conjugate": check_conjugate,
    "the trace": check_trace,
    "the scale": check_scale,
    "the proximal operator": check_proximal,
}
