"""Exact witnesses for the cone sum_j x_j G_j >> 0: a multiplier, and a point inside."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    EPS,
    SLACKS,
    checker,
    exact_solution,
    on_grid,
    verified_factor,
)
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.threads import quietly
from kernelopt.validation import Array, Mask

DEPENDENT = 1e-14  # relative singular values below this are rounding
LARGE_STEPS = (1e-2, 0.1, 1.0)  # towards the centre, where none of the margins for rounding is enough
PROJECTIONS = 50  # alternating: they reduce the error of a multiplier from 1e-8 to round-off
DOUBLINGS = 40  # of the multiple of I, from round-off on


def linear_over_cone(
    cost: Array, G: Array, constraints: Callable[[Any], list[cp.Constraint]]
) -> tuple[Array, Array] | None:
    """Return a solver's x and cone multiplier for min cost'x over sum_j x_j G_j >> 0 and `constraints`."""
    with quietly():
        x = cp.Variable(len(G))
        size = float(np.abs(G).max())
        cone = cp.reshape((G.reshape(len(G), -1) / size).T @ x, G.shape[1:], order="C") >> 0
        problem = cp.Problem(cp.Minimize(cost @ x), [cone, *constraints(x)])
    for attempt in ladder(linear=False, order=len(G[0])):
        run_solver(problem, attempt)
        if x.value is not None and cone.dual_value is not None and np.isfinite(cone.dual_value).all():
            return np.asarray(x.value), np.asarray(cone.dual_value) / size
    return None


def set_multiplier(
    statement: Statement, k: int, Y: Array, chosen: Mask, target: Callable[[Array], Array]
) -> None:
    """Set the multiplier of cone k to one near Y with exact values <Y, G_j> for the chosen columns j.

    First alternating projections (von Neumann) between the cone and the equations make Y accurate to
    round-off. The multiplier is Y_0 + sum_j mix_j G_j: Y_0 is Y plus a multiple of I that keeps the sum in
    the cone, and the fractions mix solve the equations exactly. `target` maps the numbers <Y_0, G_j> to the
    values they must have: in doubles during the projections, and in fractions at the end.
    """
    G = statement.arrays[f"G{k}"]
    flat = G[chosen].reshape(int(chosen.sum()), -1)
    for _ in range(PROJECTIONS):
        values, vectors = np.linalg.eigh((Y + Y.T) / 2)
        S = on_grid(vectors * np.sqrt(np.maximum(values, 0.0)))
        Y = S @ S.T
        forms = flat @ Y.ravel()
        missing = np.asarray(target(forms), dtype=float) - forms
        change = np.tensordot(np.linalg.lstsq(flat @ flat.T, missing, rcond=DEPENDENT)[0], G[chosen], 1)
        Y = Y + change
    product = checker().product
    products = product(flat, flat.T).tolist()
    smallest = float(np.abs(change).sum(axis=0).max()) + 4 * len(Y) * EPS * float(np.abs(Y).max(initial=0.0))
    for power in range(DOUBLINGS):
        tilted = S @ S.T + smallest * 2.0**power * np.eye(len(S))
        tilted = (tilted + tilted.T) / 2
        forms = product(flat, tilted.ravel())
        solution = exact_solution(products, target(forms) - forms)
        if solution is None:
            return
        mix = np.full(len(G), Fraction(0))
        mix[chosen] = solution
        if checker().semidefinite(product([Fraction(1), *mix], [tilted, *G]), S):
            statement.set_witness(k, Y=tilted, S=S)
            statement.mix[k] = mix.tolist()
            return


def witness_towards(G: Array, x: Array, centre: Array) -> tuple[Array, Array] | None:
    """Return (x, T) where T proves sum_j x_j G_j >> 0, with x moved towards `centre` as little as needed."""
    for t in (0.0, *SLACKS, *LARGE_STEPS):
        nearby = (1 - t) * x + t * centre
        M = np.tensordot(nearby, G, 1)
        if np.linalg.eigvalsh(M)[0] <= 0:
            continue
        found = verified_factor(M, checker().product(nearby, G), ridges=False)
        if found is not None:
            return nearby, found[1]
    return None


def interior_witness(
    G: Array, x: Array, centre: Array, constraints: Callable[[Any], list[cp.Constraint]]
) -> tuple[Array, Array] | None:
    """Return `witness_towards` the centre, or towards the point with the largest smallest eigenvalue."""
    found = witness_towards(G, x, centre)
    if found is not None:
        return found
    with_identity = np.concatenate([G, -np.eye(len(G[0]))[None]])
    bound = float(np.abs(np.tensordot(x, G, 1)).max())
    solution = linear_over_cone(
        np.append(np.zeros(x.size), -1.0), with_identity, lambda z: [*constraints(z[:-1]), z[-1] <= bound]
    )
    return None if solution is None else witness_towards(G, x, solution[0][:-1])
