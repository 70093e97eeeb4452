"""`check_fidelity`: the identities that relate the methods of a fidelity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.methods.solve import solve
from kernelopt.testing.findings import Findings, Property, apart, excess, require
from kernelopt.testing.rounding import lines, not_convex
from kernelopt.validation import Array

ORDER = 4  # of the matrices
SCALES = np.geomspace(1e-3, 30.0, 8)  # of their entries: small and large beside the parameters of a fidelity
ROUNDING = 1e-9  # relative: the largest difference of two computations in double precision
SOLVER_ACCURACY = 1e-5  # relative, of a conic solve
LIFTED = 5  # the number of the matrix, with entries of size one, at which the conjugate is maximised
STEP = 0.7  # of the proximal operator: neither 1 nor a power of two, so that a missing factor shows
SMALLEST_DENOMINATOR = 1e-9  # of a relative difference: numbers below it are compared absolutely


def check_fidelity(fidelity: Fidelity, *, seed: int = 0) -> Findings:
    r"""Check the methods of a fidelity against each other.

    At random symmetric matrices D and U, and at zero, it is checked that

    * `expression` is convex and has the value of `value`, which is 0 at 0 and never negative;
    * :math:`L(D) + L^*(U) \ge \langle U, D \rangle` (Fenchel and Young) for every U that `project` returns,
      with equality at U = `subgradient` of D;
    * `conjugate_expression`, if it is stated, is convex and has the value of `conjugate`, its domain contains
      what `project` returns, and the largest :math:`\langle U, D \rangle - L^*(U)` in it is L(D), at which
      duals use it;
    * the intervals of `bounded_conjugate` at U - V, U and U + V contain values of a convex function, which
      has :math:`2 L^*(U) \le L^*(U - V) + L^*(U + V)`, in exact arithmetic. Rounding errors larger than they
      state break this, since the errors of close points differ;
    * `trace_bound` is at least :math:`\langle I, D \rangle`;
    * if the fidelity is `Radial`, the square of its `scale` is above L and touches it;
    * if it is `Proximal`, `proximal` has the objective of a conic solve, and `shares` returns
      subgradients with the given sum.

    Parameters
    ----------
    fidelity : Fidelity
        What is checked.
    seed : int, default 0
        Of the random matrices.

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
    15
    """
    require(fidelity, Fidelity, "check_fidelity", "Create one, such as kernelopt.fidelities.l1().")
    rng = np.random.default_rng(seed)
    drawn = [scale * rng.normal(size=(ORDER, ORDER)) for scale in SCALES]
    D = [np.zeros((ORDER, ORDER)), *(G + G.T for G in drawn)]
    return Findings(repr(fidelity)).state_all(properties(fidelity, D))


def properties(L: Fidelity, matrices: list[Array]) -> Iterator[Property]:
    """Yield the properties of a fidelity at symmetric matrices D, where the first is zero."""
    U, X = cp.Variable((ORDER, ORDER), symmetric=True), cp.Variable((ORDER, ORDER))
    yield "the expression is convex", 0, (not L.expression(Z).is_convex() for Z in [X])
    values = [L.value(D) for D in matrices]
    yield "L is 0 at 0 and never negative", 0, [abs(values[0]), -min(values)]
    written = (L.expression(cp.Constant(D)).value for D in matrices)
    yield "the expression has the value of L", ROUNDING, map(near, written, values)
    slopes = [L.subgradient(D) for D in matrices]
    pairs = list(zip(slopes, matrices, strict=True))
    yield "subgradients are symmetric", 0, (np.abs(V - V.T).max() for V in slopes)
    touching = (near(L.value(D) + L.conjugate(V), float(np.vdot(V, D))) for V, D in pairs)
    yield "L(D) + L*(U) = <U, D> at the subgradient", ROUNDING, touching
    projected = [L.project(V) for V in (*matrices, *slopes)]
    products = ((float(np.vdot(V, D)), L.value(D) + L.conjugate(V)) for V in projected for D in matrices)
    above = (excess(*both, SMALLEST_DENOMINATOR) for both in products)
    yield "L(D) + L*(U) >= <U, D> for projected U", ROUNDING, above
    what = "the rounding errors of `conjugate` are not larger than `bounded_conjugate` states"
    yield what, 0, not_convex(L.bounded_conjugate, lines(L.project, slopes[1:]))
    yield "subgradients are not moved by `project`", ROUNDING, (near(L.project(V), V) for V in slopes)
    traced = (
        excess(float(np.vdot(one, A)), L.trace_bound(L.value(A), one), SMALLEST_DENOMINATOR)
        for D in matrices
        for A, one in ((D, np.eye(ORDER)), (-D, np.eye(ORDER)), (D[0], np.ones(ORDER)))
    )
    yield "`trace_bound` is not below <I, D>", ROUNDING, traced
    stated = L.conjugate_expression(U)
    if stated is not None:
        yield from of_conjugate(L, matrices, U, *stated)
    if isinstance(L, Radial):
        yield "the square of a `scale` touches L from above", ROUNDING, of_scale(L, matrices)
    if isinstance(L, Proximal):
        V, S = matrices[-3], np.array(matrices[-2:-1])
        P, value = L.proximal(V, S, STEP)
        ours = STEP * L.value(P - S[0]) + float(((P - V) ** 2).sum()) / 2
        objective = STEP * L.expression(X - S[0]) + cp.sum_squares(X - V) / 2
        best = solve(cp.Problem(cp.Minimize(objective)), "exact")
        yield "the proximal operator finds the minimum", SOLVER_ACCURACY, [near(ours, best.value)]
        (share,) = L.shares((V - P) / STEP, P, S)
        gap = near(value + L.conjugate(L.project(share)), float(np.vdot(share, P - S[0])))
        yield "`shares` returns subgradients", ROUNDING, [gap]


def of_conjugate(
    L: Fidelity, matrices: list[Array], U: cp.Variable, expression: cp.Expression, domain: list[cp.Constraint]
) -> Iterator[Property]:
    """Yield the properties of a `conjugate_expression` of U with its domain."""

    def points() -> Iterator[Array]:
        for G in matrices:
            U.value = L.project(G)
            yield U.value

    values = (near(expression.value, L.conjugate(V)) for V in points())
    yield "`conjugate_expression` has the value of `conjugate`", ROUNDING, values
    outside = (np.max(c.violation()) for _ in points() for c in domain)
    yield "`project` returns points of its domain", ROUNDING, outside
    yield "`conjugate_expression` is convex", 0, [not expression.is_convex()]
    D = matrices[LIFTED]
    best = cp.Problem(cp.Maximize(cp.sum(cp.multiply(U, D)) - expression), domain)
    reached = (near(solve(problem, "exact").value, L.value(D)) for problem in [best])
    yield "L(D) is the largest <U, D> - `conjugate_expression`", SOLVER_ACCURACY, reached


def of_scale(L: Any, matrices: list[Array]) -> Iterator[float]:
    """Yield by how much L(X) is above L(D) + (|X|^2 - |D|^2) / (2 s) for s = scale(|D|)."""
    for D in matrices[1:]:
        (s,) = L.scale(np.array([float(np.linalg.norm(D))]))
        for X in matrices:
            above = L.value(D) + (float(np.vdot(X, X)) - float(np.vdot(D, D))) / (2 * s)
            yield (L.value(X) - above) / (L.value(X) + L.value(D))


def near(one: Any, two: Any) -> float:
    """Return the relative difference of numbers or arrays, absolute where both are almost zero."""
    return apart(one, two, SMALLEST_DENOMINATOR)
