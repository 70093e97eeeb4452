"""`check_fidelity`: a fidelity of one's own, by the identities that tie its parts together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.language import fidelity as distance
from kernelopt.testing.findings import Findings
from kernelopt.validation import Array

ORDER = 4
SIZES = np.geomspace(1e-3, 30.0, 6)  # of the entries of D: a fidelity may change its form with them
CLOSE = 1e-9  # relative to the terms of an identity
STEP = 0.7  # of the proximal operator


def check_fidelity(fidelity: Fidelity, *, seed: int = 0) -> Findings:
    """Check a fidelity: its value, its cvxpy form, its subgradient, its conjugate and its domain.

    Stated are, at differences D, symmetric matrices and vectors of many sizes, and at U in the domain of L*:

    * form: `expression` is convex, is made of D alone and has the value of `value`;
    * sign: L(0) = 0 and L(D) >= 0;
    * Fenchel-Young: L(D) + L*(U) >= <U, D>, with equality at `subgradient`, which has the shape and the
      symmetry of D;
    * domain: `project` leaves subgradients, and what it returns itself, as they are;
    * bounds: `bounded_conjugate` holds L*(U), and `trace_bound` bounds <I, D>;
    * dual: where it is stated, `conjugate_expression` is convex and has the value of `conjugate`, and its
      domain holds what `project` returns;
    * methods: a `scale` gives squares that touch L from above, and `proximal` and `shares` meet the
      condition of optimality, around one matrix and around two.

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
    16
    """
    if not isinstance(fidelity, Fidelity):
        raise ParameterError(
            f"check_fidelity takes a Fidelity, got {type(fidelity).__name__}: {fidelity!r:.60}. Create one, "
            "such as kernelopt.fidelities.l1()."
        )
    findings = Findings(repr(fidelity))
    for what, check in CHECKS.items():
        with findings.part(what):
            check(findings, fidelity, np.random.default_rng(seed))
    findings.raise_if_wrong()
    return findings


def differences(rng: np.random.Generator) -> Iterator[Array]:
    """Yield symmetric matrices and vectors of all sizes, zero among them."""
    for size in (0.0, *SIZES):
        D = size * rng.normal(size=(ORDER, ORDER))
        yield D + D.T
        yield size * rng.normal(size=ORDER)


def off(one: float, two: float, *terms: float) -> float:
    """Return the difference of two numbers, relative to the largest of them and of the terms, or to 1e-12."""
    return abs(one - two) / max(1e-12, abs(one), abs(two), *map(abs, terms))


def beyond(one: float, two: float, *terms: float) -> float:
    """Return by how much the first number is above the second, relative to the terms, or to 1e-12."""
    return (one - two) / max(1e-12, *map(abs, terms))


def check_form(findings: Findings, L: Fidelity, rng: np.random.Generator) -> None:
    """Check the cvxpy form against the value, and the value against zero."""
    K = cp.Variable((ORDER, ORDER), PSD=True)
    findings.state("the expression is convex", L.expression(K).is_convex())
    with findings.part("the expression is made of D alone"):
        distance(K, np.eye(ORDER), L)
        findings.state("the expression is made of D alone", True)
    drawn = list(differences(rng))
    values = [L.value(D) for D in drawn]
    written = [float(L.expression(cp.Constant(D)).value) for D in drawn]
    missed = [off(one, two, np.abs(D).max() ** 2) for one, two, D in zip(written, values, drawn, strict=True)]
    largest(findings, "the expression has the value of the fidelity", missed)
    findings.state("no value is negative", min(values) >= 0, min(values))
    zero = L.value(np.zeros((ORDER, ORDER)))
    findings.state("the value at zero is zero", zero == 0, zero)


def largest(findings: Findings, statement: str, errors: Sequence[float], limit: float = CLOSE) -> None:
    """State what holds if no error is above its limit, and none is NaN."""
    worst = float(np.max(errors))
    findings.state(statement, worst <= limit, f"an error of {worst:.1e}")


def check_fenchel_young(findings: Findings, L: Fidelity, rng: np.random.Generator) -> None:
    """Check L(D) + L*(U) >= <U, D>, with equality at the subgradient."""
    excess, gaps, shaped = [], [], True
    for D in differences(rng):
        V = L.subgradient(D)
        shaped &= V.shape == D.shape and np.array_equal(V, V.T)
        gaps.append(off(L.value(D) + L.conjugate(V), float(np.vdot(V, D))))
    for G in differences(rng):
        U = L.project(G)
        conjugate = L.conjugate(U)
        drawn = [D for D in differences(rng) if D.shape == G.shape]
        for D in (*drawn, *(size * A for A in (G, U) for size in SIZES)):  # along U its product is large
            value, product = L.value(D), float(np.vdot(U, D))
            excess.append(beyond(product, value + conjugate, product, value))
    findings.state("a subgradient has the shape and the symmetry of D", shaped)
    largest(findings, "L(D) + L*(U) >= <U, D>", excess)
    largest(findings, "L(D) + L*(U) = <U, D> at the subgradient", gaps)


def check_domain(findings: Findings, L: Fidelity, rng: np.random.Generator) -> None:
    """Check that what belongs to the domain is left as it is, and the bounds of L* and of the trace."""
    moves, traces, outside = [], [], 0
    for D in differences(rng):
        for U in (L.subgradient(D), L.project(D)):
            moves.append(float(np.abs(L.project(U) - U).max()) / max(1e-12, float(np.abs(U).max())))
            known = L.bounded_conjugate(U)
            outside += not known.below <= L.conjugate(U) <= known.above
        identity = np.eye(ORDER) if D.ndim == 2 else np.ones(ORDER)
        total = float(np.vdot(identity, D))
        traces.append(beyond(total, L.trace_bound(L.value(D), identity), total))
    largest(findings, "what is in the domain stays where it is", moves)
    findings.state("the bounds of the conjugate hold it", outside == 0, f"{outside} that do not")
    largest(findings, "a value bounds the trace", traces)


def check_dual(findings: Findings, L: Fidelity, rng: np.random.Generator) -> None:
    """Check the conjugate's expression and domain, where they are stated."""
    if L.conjugate_expression(cp.Variable((ORDER, ORDER), symmetric=True)) is None:
        return
    missed, outside, convex = [], 0, True
    for U in map(L.project, differences(rng)):
        stated = L.conjugate_expression(cp.Constant(U))
        if stated is None:
            findings.state("the conjugate's expression is stated of matrices and vectors", False)
            return
        value, domain = stated
        convex &= value.is_convex()
        missed.append(off(float(value.value), L.conjugate(U), np.abs(U).max() ** 2))
        outside += not all(np.max(c.violation(), initial=0.0) <= CLOSE for c in domain)
    findings.state("the conjugate's expression is convex", convex)
    largest(findings, "the conjugate's expression has its value", missed)
    findings.state("what is projected lies in its domain", outside == 0, f"{outside} outside")


def check_methods(findings: Findings, L: Fidelity, rng: np.random.Generator) -> None:
    """Check what "first-order-dual" asks for, where it is stated."""
    if isinstance(L, Radial):
        excess = []
        for D in (D for D in differences(rng) if D.any()):
            (s,), value, square = L.scale(np.array([np.linalg.norm(D)])), L.value(D), float(np.vdot(D, D))
            for Z in (Z for Z in differences(rng) if Z.shape == D.shape):
                above = value + (float(np.vdot(Z, Z)) - square) / (2 * s)
                excess.append(beyond(L.value(Z), above, above, value))
        largest(findings, "squares by the scale lie above", excess)
    if isinstance(L, Proximal):
        for m in (1, 2):
            errors = [proximal_error(L, L, rng, m) for _ in SIZES]
            largest(findings, f"the proximal point around {m} is optimal", errors)


def proximal_error(L: Fidelity, operator: Proximal, rng: np.random.Generator, m: int) -> float:
    """Return how far a proximal point is from the condition of optimality, around m matrices."""
    V, *S = (G + G.T for G in rng.normal(size=(m + 1, ORDER, ORDER)))
    X, value = operator.proximal(V, np.array(S), STEP)
    P = (V - X) / STEP
    shares = operator.shares(P, X, np.array(S))
    errors = [off(value, sum(L.value(X - target) for target in S)), float(np.abs(sum(shares) - P).max())]
    for U, target in zip(shares, S, strict=True):
        D = X - target
        errors.append(off(L.value(D) + L.conjugate(U), float(np.vdot(U, D)), 1.0))
        errors.append(float(np.abs(L.project(U) - U).max()))
    return float(np.max(errors))


CHECKS: dict[str, Any] = {
    "the expression": check_form,
    "Fenchel-Young": check_fenchel_young,
    "the domain": check_domain,
    "the dual": check_dual,
    "the methods": check_methods,
}
