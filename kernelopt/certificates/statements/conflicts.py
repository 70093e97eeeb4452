"""Why a problem has no point, shown in fractions and told in the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality
from scipy.optimize import linprog

from kernelopt.certificates.statements.learning import (
    column_names,
    padded,
    read_cone,
    read_size,
    read_variables,
)
from kernelopt.certificates.statements.lifting import give_multiplier, linear_over_cone
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import fractions
from kernelopt.comparisons import comparisons
from kernelopt.language.triplets import TripletGains
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array

TINY = 1e-9
LARGEST = 3000  # rows and columns of a linear system that is looked at
LISTED = 6
WORK = 10**6  # multiplications of fractions in an elimination: a few seconds


class Conflict(NamedTuple):
    """What contradicts what, and the statement that shows it, which can be saved."""

    text: str
    statement: Statement


def conflict(structure: Structure) -> Conflict | None:
    """Return a contradiction of the constraints that is shown in exact arithmetic, the plainest first."""
    return cycle(structure) or linear_conflict(structure) or cone_conflict(structure)


def shown(statement: Statement) -> bool:
    """Whether the witness of a statement shows that there is no point."""
    return bool(statement.bounds()[0] == np.inf)


def cycle(structure: Structure) -> Conflict | None:
    """Return a cycle of the comparisons that a constraint asks for with a positive margin."""
    for constraint in structure.problem.constraints:
        if not isinstance(constraint, Inequality):
            continue
        margin, gains = constraint.args
        asked = isinstance(gains, TripletGains) and margin.is_constant() and not margin.parameters()
        if not asked or not np.min(margin.value) > 0:
            continue
        compared = comparisons(gains.triplets)
        if compared.consistent:
            continue
        rows = compared.contradictions[0]
        text = f"the triplets contradict each other: {compared.describe(rows)}"
        return Conflict(text, cyclic(gains.triplets[list(rows)], float(np.min(margin.value)), text))
    return None


def cyclic(triplets: Array, margin: float, text: str) -> Statement:
    """Return s_ij >= s_ik + margin around a cycle, whose T rows add up to 0 <= -T margin."""
    pairs = sorted({(min(i, v), max(i, v)) for i, j, k in triplets.tolist() for v in (j, k)})
    at = {pair: c for c, pair in enumerate(pairs)}
    stated = Statement(text, [f"s({a}, {b})" for a, b in pairs], [False] * len(pairs), infeasible=True)
    for i, j, k in triplets.tolist():
        ends = [at[min(i, k), max(i, k)], at[min(i, j), max(i, j)]]
        stated.row(f"{i} is closer to {j} than to {k}", ends, [1.0, -1.0], -margin)
    stated.u = [Fraction(1)] * len(triplets)
    return stated


def linear_conflict(structure: Structure) -> Conflict | None:
    """Return affine constraints and signs of variables that add up to 0 <= a negative number."""
    stated = linear_part(structure)
    if not stated.rows or max(len(stated.rows), len(stated.columns)) > LARGEST:
        return None
    A = np.zeros((len(stated.rows), len(stated.columns)))
    for i, (_, at, values, _, _) in enumerate(stated.rows):
        A[i, at] = values
    right = np.array([row[3] for row in stated.rows])
    equal = np.array([row[4] for row in stated.rows])
    u = farkas_multipliers(A, right, equal, np.array(stated.signs))
    if u is None:
        return None
    stated.u = u
    if not shown(stated):
        return None
    used = [(v, row[0]) for v, row in zip(u, stated.rows, strict=True) if v]
    total = float(sum(v * Fraction(row[3]) for v, row in zip(u, stated.rows, strict=True)))
    listed = " + ".join(f"{float(v):.3g} x ({name})" for v, name in used[:LISTED])
    more = f" + {len(used) - LISTED} more" if len(used) > LISTED else ""
    stated.words = f"{listed}{more} reads 0 <= {total:.3g}"
    return Conflict(stated.words, stated)


def linear_part(structure: Structure) -> Statement:
    """Return the affine constraints, the signs, and what balls say of each entry: a relaxation."""
    names: list[str] = []
    signs: list[bool] = []
    starts = {}
    for variable in structure.variables:
        starts[variable] = len(names)
        names += [f"{variable.name()}[{i}]" for i in range(variable.size)]
        diagonal = np.eye(variable.shape[0] if variable.ndim == 2 else 1).ravel(order="F") > 0
        signs += (
            diagonal.tolist() if variable.attributes["PSD"] else [bool(variable.is_nonneg())] * variable.size
        )
    stated = Statement("", names, signs, infeasible=True)
    for i, (constraint, read) in enumerate(zip(structure.lifted.constraints, structure.affines, strict=True)):
        name = constraint.label or f"constraint {i}: {short(constraint)}"
        sphere = structure.norm_balls[i]
        if sphere is not None:
            for j in range(sphere.variable.size):
                stated.row(name, [starts[sphere.variable] + j], [1.0], sphere.radius)
        if (
            read is None
            or not isinstance(constraint, Equality | Inequality)
            or not set(read.matrices) <= set(starts)
        ):
            continue
        for r, constant in enumerate(read.constant.tolist()):
            at: list[int] = []
            values: list[float] = []
            for variable, matrix in read.matrices.items():
                row = matrix[[r]].tocoo()
                at += (row.coords[-1] + starts[variable]).tolist()
                values += row.data.tolist()
            label = name if read.constant.size == 1 else f"{name}[{r}]"
            stated.row(label, at, values, -constant, isinstance(constraint, Equality))
    return stated


def cone_conflict(structure: Structure) -> Conflict | None:
    """Return a trace that no positive semidefinite combination of kernels has.

    Y >> 0 with <Y, G_j> = u r_j and u < 0 makes u c = <Y, sum_j x_j G_j> negative where r'x = c > 0.
    """
    size, cone = read_size(structure), read_cone(structure)
    if isinstance(size, str) or isinstance(cone, str) or not cone or size.row is None or not size.equal:
        return None
    columns, signs = column_names(read_variables(structure))
    if any(signs):
        return None
    text = f"no combination of the kernels with ({size.name}) is positive semidefinite"
    stated = Statement(text, columns, signs, infeasible=True)
    row = size.row
    stated.row(size.name, range(row.size), row.tolist(), size.total, equal=True)
    G = padded(cone, row.size)
    stated.cone(G)
    deeper = np.concatenate([G, -np.eye(len(G[0]))[None]])
    found = linear_over_cone(np.eye(row.size + 1)[-1] * -1.0, deeper, lambda z: [row @ z[:-1] == size.total])

    def wanted(forms: Any) -> Any:
        stated.u[0] = Fraction(
            float(sum(v * float(r) for v, r in zip(forms, row, strict=True)) / (row @ row))
        )
        return [stated.u[0] * Fraction(r) for r in row.tolist()]

    if found is None:
        return None
    give_multiplier(stated, 0, found[1], np.ones(row.size, dtype=bool), wanted)
    return Conflict(text, stated) if shown(stated) else None


def farkas_multipliers(A: Array, right: Array, equal: Any, signs: Any) -> list[Fraction] | None:
    """Return u with A'u >= 0 (== 0 without a sign), u >= 0 on inequalities, right'u < 0, near a solver's."""
    size = np.maximum(np.abs(A).max(axis=1, initial=0.0), np.finfo(float).tiny)
    scaled, sides = A / size[:, None], right / size
    # The dual of phase one: min sides'u with |u| at most one.
    limits = [(-1.0 if e else 0.0, 1.0) for e in equal]
    balance = {"A_ub": -scaled.T[signs], "b_ub": np.zeros(int(signs.sum()))} if signs.any() else {}
    if not signs.all():
        balance |= {"A_eq": scaled.T[~signs], "b_eq": np.zeros(int((~signs).sum()))}
    found = linprog(sides, bounds=limits, **balance)
    if found.status != 0 or not found.fun < 0:
        return None
    used = np.flatnonzero(np.abs(found.x) > TINY)
    rest = scaled[used].T @ found.x[used]
    tight = ~signs | (np.abs(rest) <= TINY)
    exact = null_vector(A[used][:, tight].T, found.x[used] / size[used])
    u = [Fraction(0)] * len(A)
    for i, v in zip(used.tolist(), exact or [], strict=False):
        u[i] = v
    return u if exact else None


def null_vector(M: Array, near: Array) -> list[Fraction] | None:
    """Return v with Mv = 0 exactly, near a given vector; None where there is only zero, or too much work."""
    if len(M) * near.size**2 > WORK:
        return None
    rows = fractions(M).tolist()
    pivots: list[int] = []
    for j in range(near.size):
        at = next((i for i in range(len(pivots), len(rows)) if rows[i][j]), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        pivot = [v / rows[top][j] for v in rows[top]]
        rows[top] = pivot
        for i, row in enumerate(rows):
            if i != top and row[j]:
                rows[i] = [u - row[j] * v for u, v in zip(row, pivot, strict=True)]
        pivots.append(j)
    free = [j for j in range(near.size) if j not in pivots]
    if not free:
        return None
    largest = float(np.abs(near).max())
    v = [Fraction(0)] * near.size
    for j in free:
        v[j] = Fraction(float(near[j]) / largest).limit_denominator(10**6)
    for i, j in enumerate(pivots):
        v[j] = -sum((rows[i][k] * v[k] for k in free), Fraction(0))
    return v


def inseparable(Ks: Sequence[Array], y: Array, bias: bool, alpha: Array) -> Conflict | None:
    """Return the samples that no kernel >= 0 of the matrices separates, from weights of meeting hulls.

    With K_m alpha = 0 for every m, y alpha >= 0 and, with an intercept, 1'alpha = 0, the sum over samples
    of |alpha_i| y_i f(x_i) vanishes for every machine f, where a hard margin asks for at least |alpha|_1.
    """
    used = np.flatnonzero(np.abs(alpha) > TINY * np.abs(alpha).max())
    M = np.concatenate([*(K[:, used] for K in Ks), np.ones((int(bias), used.size))])
    exact = null_vector(M, alpha[used])
    if exact is None or any(v * int(s) < 0 for v, s in zip(exact, y[used], strict=True)):
        return None
    whole = [v * lcm(*(w.denominator for w in exact)) for v in exact]
    if max(whole) >= 2**53 or not any(whole):
        return None
    n, columns = y.size, [f"weight of kernel {m}" for m in range(len(Ks))]
    sides = {s: used[[v != 0 and t == s for v, t in zip(whole, y[used], strict=True)]] for s in (1.0, -1.0)}
    listed = [
        f"{', '.join(map(str, side[:LISTED]))}{', ...' * (side.size > LISTED)}" for side in sides.values()
    ]
    text = f"no kernel separates the samples {listed[0]} (+1) from {listed[1]} (-1)"
    stated = Statement(text, columns, [True] * len(Ks), infeasible=True)
    ends = np.array([np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)])
    stated.risk(np.array(Ks), range(len(Ks)), np.array([y, 0 * y, 0 * y]), ends, 1.0, bias)
    weights = np.zeros(n)
    weights[used] = [float(v) for v in whole]
    stated.give(0, alpha=weights)
    return Conflict(text, stated) if shown(stated) else None
