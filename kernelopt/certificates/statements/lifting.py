"""Exact witnesses for cones of combinations with weights of free sign: a multiplier, and a point inside."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import EPS, checker, factor, fractions, slacks, solved
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.threads import quietly
from kernelopt.validation import Array

ROUNDS = 50  # of alternating projections, which take a multiplier from 1e-8 to round-off


def linear_over_cone(
    cost: Array, G: Array, sides: Callable[[Any], list[cp.Constraint]]
) -> tuple[Array, Array] | None:
    """Return a solver's x and multiplier of the cone, for min cost'x over sum_j x_j G_j >> 0 and `sides`."""
    with quietly():
        x = cp.Variable(len(G))
        size = float(np.abs(G).max())
        cone = cp.reshape((G.reshape(len(G), -1) / size).T @ x, G.shape[1:], order="C") >> 0
        problem = cp.Problem(cp.Minimize(cost @ x), [cone, *sides(x)])
    for attempt in ladder(linear=False, order=len(G[0])):
        run_solver(problem, attempt)
        if x.value is not None and cone.dual_value is not None and np.isfinite(cone.dual_value).all():
            return np.asarray(x.value), np.asarray(cone.dual_value) / size
    return None


def give_multiplier(stated: Statement, k: int, Y: Array, free: Array, wanted: Callable[[Any], Any]) -> None:
    """Give cone k a multiplier near Y with <Y, G_j> as wanted for the free columns, exactly.

    It is Y_0 + sum_j mix_j G_j, with fractions mix that solve the equations, and a multiple of I in Y_0
    that keeps it in the cone. `wanted` maps the numbers <Y_0, G_j> to those that are to be: an array of
    doubles on the way, a list of fractions at last.
    """
    G = stated.arrays[f"G{k}"]
    at = np.flatnonzero(free)
    flat = G[at].reshape(at.size, -1)
    for _ in range(ROUNDS):
        values, vectors = np.linalg.eigh((Y + Y.T) / 2)
        S = vectors * np.sqrt(np.maximum(values, 0.0))
        Y = S @ S.T
        forms = flat @ Y.ravel()
        step = np.linalg.lstsq(flat @ flat.T, np.asarray(wanted(forms), dtype=float) - forms, rcond=1e-14)[0]
        change = np.tensordot(step, G[at], 1)
        Y = Y + change
    exact = fractions(G[at]).reshape(at.size, -1)
    products = (exact @ exact.T).tolist()
    least = float(np.abs(change).sum(axis=0).max()) + 4 * len(Y) * EPS * float(np.abs(Y).max(initial=0.0))
    for factor_of_two in range(40):
        tilted = S @ S.T + least * 2.0**factor_of_two * np.eye(len(S))
        tilted = (tilted + tilted.T) / 2
        forms = (exact @ fractions(tilted.ravel())).tolist()
        mix = solved(products, [w - v for w, v in zip(wanted(forms), forms, strict=True)])
        if mix is None:
            return
        whole = [Fraction(0)] * len(G)
        for j, v in zip(at.tolist(), mix, strict=True):
            whole[j] = v
        moved = fractions(tilted) + np.tensordot(np.array(whole), fractions(G), 1)
        if checker().semidefinite(moved, fractions(S)):
            stated.give(k, Y=tilted, S=S)
            stated.facts["mix"][k] = whole
            return


def inside(G: Array, x: Array, centre: Array) -> tuple[Array, Array] | None:
    """Return (x, T) that show sum_j x_j G_j >> 0, with x moved towards the centre as far as that asks."""
    for share in (0.0, *slacks(), 1e-2, 0.1, 1.0):
        near = (1 - share) * x + share * centre
        M = np.tensordot(near, G, 1)
        if np.linalg.eigvalsh(M)[0] <= 0:
            continue
        found = factor(M, np.tensordot(fractions(near), fractions(G), 1), ridges=False)
        if found is not None:
            return near, found[1]
    return None


def held(
    G: Array, x: Array, centre: Array | None, sides: Callable[[Any], list[cp.Constraint]]
) -> tuple[Array, Array] | None:
    """Return `inside` towards the centre, or towards the point whose smallest eigenvalue is largest."""
    found = None if centre is None else inside(G, x, centre)
    if found is not None:
        return found
    deeper = np.concatenate([G, -np.eye(len(G[0]))[None]])
    cap = float(np.abs(np.tensordot(x, G, 1)).max())
    deepest = linear_over_cone(
        np.append(np.zeros(x.size), -1.0), deeper, lambda z: [*sides(z[:-1]), z[-1] <= cap]
    )
    return None if deepest is None else inside(G, x, deepest[0][:-1])
