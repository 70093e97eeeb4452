"""`check_fidelity`: the identities that relate the methods of a fidelity."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.methods.solve import solve
from kernelopt.testing.findings import Findings
from kernelopt.validation import Array, shown

ORDER = 4  # of the matrices
SCALES = np.geomspace(1e-3, 30.0, 8)  # of their entries: small and large beside the parameters of a fidelity
ROUNDING = 1e-9  # relative: the largest difference of two computations in double precision
SOLVER_ACCURACY = 1e-5  # relative, of a conic solve
LIFTED = 5  # the number of the matrix, with entries of size one, at which the conjugate is maximised
STEP = 0.7  # of the proximal operator: neither 1 nor a power of two, so that a missing factor shows
SMALLEST_DENOMINATOR = 1e-9  # of a relative difference: numbers below it are compared absolutely


def check_fidelity(fidelity: Fidelity, *, seed: int = 0) -> Findings:
    """Check the methods of a fidelity against each other.

    At random symmetric matrices D and U, and at zero, it is checked that

    * `expression` is convex and has the value of `value`, which is 0 at 0 and never negative;
    * L(D) + L*(U) >= <U, D> (Fenchel and Young) for every U that `project` returns, with equality at U =
      `subgradient` of D;
    * `conjugate_expression`, if it is stated, is convex and has the value of `conjugate`, its domain contains
      what `project` returns, and the largest <U, D> - L*(U) in it is L(D), at which duals use it;
    * `trace_bound` is at least <I, D>;
    * if the fidelity is `Radial`, the square of its `scale` is above L and touches it;
    * if it is `Proximal`, the objective of `proximal` is that of a conic solve, and `shares` returns
      subgradients with the given sum.

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
        With every statement that fails.
    ParameterError
        If it is not given a `Fidelity`.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_fidelity
    >>> len(check_fidelity(ko.fidelities.l1()).stated)
    14
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


def relative_difference(one: float, two: float) -> float:
    """Return the difference of two numbers, relative to their size; inf where one is not finite."""
    if not (np.isfinite(one) and np.isfinite(two)):
        return np.inf  # not NaN, which a maximum would lose
    return abs(one - two) / max(SMALLEST_DENOMINATOR, abs(one), abs(two))


def check_form(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check `expression` against `value`."""
    findings.state("the expression is convex", L.expression(cp.Variable((ORDER, ORDER))).is_convex())
    values = [L.value(D) for D in matrices]
    findings.state("L is 0 at 0 and never negative", values[0] == 0 and min(values) >= 0, min(values))
    written = [float(L.expression(cp.Constant(D)).value) for D in matrices]
    worst = max(map(relative_difference, values, written))
    findings.state("the expression has the value of L", worst <= ROUNDING, f"a difference of {worst:.1e}")


def check_fenchel_young(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check L(D) + L*(U) >= <U, D>, with equality at a subgradient."""
    excess, gap, skew = 0.0, 0.0, 0.0
    for D in matrices:
        V = L.subgradient(D)
        skew = max(skew, float(np.abs(V - V.T).max()))
        gap = max(gap, relative_difference(L.value(D) + L.conjugate(V), float(np.vdot(V, D))))
        for U in (L.project(V), *map(L.project, matrices)):
            product = float(np.vdot(U, D))
            excess = max(
                excess, (product - L.value(D) - L.conjugate(U)) / max(SMALLEST_DENOMINATOR, abs(product))
            )
    findings.state("subgradients are symmetric", skew == 0, f"a difference of {skew:.1e}")
    findings.state("L(D) + L*(U) >= <U, D> for projected U", excess <= ROUNDING, f"an excess of {excess:.1e}")
    findings.state("L(D) + L*(U) = <U, D> at the subgradient", gap <= ROUNDING, f"a gap of {gap:.1e}")


def check_projection(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check that `project` does not move subgradients, which are in the domain of the conjugate."""
    slopes = [L.subgradient(D) for D in matrices]
    worst = max(
        float(np.abs(L.project(U) - U).max()) / max(SMALLEST_DENOMINATOR, float(np.abs(U).max()))
        for U in slopes
    )
    findings.state("subgradients are not moved by `project`", worst <= ROUNDING, f"a move of {worst:.1e}")


def check_conjugate(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check `conjugate_expression`, if it is stated, against `conjugate` and `project`."""
    U = cp.Variable((ORDER, ORDER), symmetric=True)
    stated = L.conjugate_expression(U)
    if stated is None:
        return
    expression, domain = stated
    worst, outside = 0.0, 0.0
    for G in matrices:
        U.value = L.project(G)
        worst = max(worst, relative_difference(float(expression.value), L.conjugate(U.value)))
        outside = max(outside, *(float(np.max(c.violation())) for c in domain), 0.0)
    findings.state(
        "`conjugate_expression` has the value of `conjugate`",
        worst <= ROUNDING,
        f"a difference of {worst:.1e}",
    )
    findings.state("`project` returns points of its domain", outside <= ROUNDING, f"{outside:.1e} outside")
    findings.state("`conjugate_expression` is convex", expression.is_convex())
    D = matrices[LIFTED]
    pairing = cp.sum(cp.multiply(U, D))
    best = solve(cp.Problem(cp.Maximize(pairing - expression), domain), "exact").value
    close = relative_difference(best, L.value(D)) <= SOLVER_ACCURACY
    findings.state("L(D) is the largest <U, D> - `conjugate_expression`", close, best)


def check_trace(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check `trace_bound` for matrices and for spectra."""
    excess = -np.inf
    for A in (A for D in matrices for A in (D, -D, D[0])):
        identity = np.eye(ORDER) if A.ndim == 2 else np.ones(ORDER)
        reached = float(np.vdot(identity, A))
        excess = max(excess, reached - L.trace_bound(L.value(A), identity) - ROUNDING * abs(reached))
    findings.state("`trace_bound` is not below <I, D>", excess <= 0, f"an excess of {excess:.1e}")


def check_scale(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check L(X) <= L(D) + (|X|^2 - |D|^2) / (2 s) for s = scale(|D|)."""
    if not isinstance(L, Radial):
        return
    excess = 0.0
    for D in matrices[1:]:
        (s,) = L.scale(np.array([float(np.linalg.norm(D))]))
        for X in matrices:
            above = L.value(D) + (float(np.vdot(X, X)) - float(np.vdot(D, D))) / (2 * s)
            excess = max(excess, (L.value(X) - above) / (L.value(X) + L.value(D)))
    findings.state("the square of a `scale` touches L from above", excess <= ROUNDING, f"{excess:.1e} below")


def check_proximal(findings: Findings, L: Fidelity, matrices: list[Array]) -> None:
    """Check `proximal` against a conic solve, and the `shares` of its condition of optimality."""
    if not isinstance(L, Proximal):
        return
    V, S = matrices[-3], np.array(matrices[-2:-1])
    X, value = L.proximal(V, S, STEP)
    Z = cp.Variable((ORDER, ORDER))
    best = cp.Problem(cp.Minimize(STEP * L.expression(Z - S[0]) + cp.sum_squares(Z - V) / 2))
    solution = solve(best, "exact")
    ours = STEP * L.value(X - S[0]) + float(((X - V) ** 2).sum()) / 2
    findings.state(
        "the proximal operator finds the minimum",
        relative_difference(ours, solution.value) <= SOLVER_ACCURACY,
        ours,
    )
    (U,) = L.shares((V - X) / STEP, X, S)
    gap = relative_difference(value + L.conjugate(L.project(U)), float(np.vdot(U, X - S[0])))
    findings.state("`shares` returns subgradients", gap <= ROUNDING, f"a gap of {gap:.1e}")


CHECKS = {
    "the expression": check_form,
    "Fenchel-Young": check_fenchel_young,
    "the projection": check_projection,
    "the conjugate": check_conjugate,
    "the trace": check_trace,
    "the scale": check_scale,
    "the proximal operator": check_proximal,
}
