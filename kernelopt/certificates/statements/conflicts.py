"""Proofs in exact fractions that a problem is infeasible, explained by the user's constraints."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality
from scipy.optimize import linprog

from kernelopt.certificates.statements.columns import (
    Trace,
    first_columns,
    matrices_by_column,
    read_columns,
    read_cone,
    read_weight_set,
)
from kernelopt.certificates.statements.lifting import linear_over_cone, set_multiplier
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import eliminated, fractions
from kernelopt.comparisons import comparisons
from kernelopt.language.triplets import TripletGains
from kernelopt.structure.powers import LpBall
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import constraint_name
from kernelopt.validation import Array

ZERO_TOLERANCE = 1e-9  # a multiplier of a solver below this, relative to the largest, is zero
MAX_ORDER = 3000  # rows or columns of a linear system: its dense matrix has up to 72 MB
MAX_LISTED = 6  # constraints or samples that a message names
MAX_MULTIPLICATIONS = 10**6  # of fractions in an elimination: a few seconds
MAX_DENOMINATOR = 10**6  # of the free entries of a null vector: a solver's accuracy


Conflict: TypeAlias = tuple[str, Any]
"""A sentence that names the contradiction, and a statement or a certificate that proves it."""


def conflict(structure: Structure) -> Conflict | None:
    """Return a contradiction of the constraints with an exact proof; cycles of comparisons come first."""
    return cycle(structure) or linear_conflict(structure) or cone_conflict(structure)


def proves_infeasibility(statement: Statement) -> bool:
    """Whether the witness of a statement proves that there is no feasible point."""
    return bool(statement.bounds()[0] == np.inf)


def cycle(structure: Structure) -> Conflict | None:
    """Return a cycle among the comparisons of a constraint with a positive margin."""
    for constraint in structure.problem.constraints:
        if not isinstance(constraint, Inequality):
            continue
        margin, gains = constraint.args
        is_margin = isinstance(gains, TripletGains) and margin.is_constant() and not margin.parameters()
        if not is_margin or not np.min(margin.value) > 0:
            continue
        compared = comparisons(gains.triplets)
        if compared.consistent:
            continue
        rows = compared.contradictions[0]
        text = f"the triplets contradict each other: {compared.describe(rows)}"
        return text, cycle_statement(gains.triplets[list(rows)], float(np.min(margin.value)))
    return None


def cycle_statement(triplets: Array, margin: float) -> Statement:
    """Return the T constraints s_ij >= s_ik + margin of a cycle, whose sum is 0 <= -T margin."""
    pairs = sorted({(min(i, v), max(i, v)) for i, j, k in triplets.tolist() for v in (j, k)})
    at = {pair: c for c, pair in enumerate(pairs)}
    statement = Statement([f"s({a}, {b})" for a, b in pairs], [False] * len(pairs), infeasible=True)
    for i, j, k in triplets.tolist():
        ends = [at[min(i, k), max(i, k)], at[min(i, j), max(i, j)]]
        statement.row(f"{i} is closer to {j} than to {k}", ends, [1.0, -1.0], -margin)
    statement.u = [Fraction(1)] * len(triplets)
    return statement


def linear_conflict(structure: Structure) -> Conflict | None:
    """Return a combination of affine constraints and signs that reads 0 <= a negative number."""
    statement = linear_part(structure)
    if not statement.rows or max(len(statement.rows), len(statement.columns)) > MAX_ORDER:
        return None
    right = np.array([row[3] for row in statement.rows])
    equal = np.array([row[4] for row in statement.rows])
    u = farkas_multipliers(statement.matrix.toarray(), right, equal, np.array(statement.signs))
    if u is None:
        return None
    statement.u = u
    if not proves_infeasibility(statement):
        return None
    used = [(v, row[0]) for v, row in zip(u, statement.rows, strict=True) if v]
    total = float(sum(v * Fraction(row[3]) for v, row in zip(u, statement.rows, strict=True)))
    listed = " + ".join(f"{float(v):.3g} x ({name})" for v, name in used[:MAX_LISTED])
    more = f" + {len(used) - MAX_LISTED} more" if len(used) > MAX_LISTED else ""
    return f"{listed}{more} reads 0 <= {total:.3g}", statement


def linear_part(structure: Structure) -> Statement:
    """Return a relaxation: the affine constraints, the signs, and x_j <= radius for the entries of balls."""
    names, signs = read_columns(structure)
    starts = first_columns(structure)
    for variable, start in starts.items():
        if variable.attributes["PSD"]:
            signs[start : start + variable.size] = (np.eye(variable.shape[0]).ravel() > 0).tolist()
    statement = Statement(names, signs, infeasible=True)
    for i, (constraint, read) in enumerate(zip(structure.lifted.constraints, structure.affines, strict=True)):
        name = constraint_name(i, constraint)
        ball = structure.sets[i]
        if isinstance(ball, LpBall) and ball.is_unit:
            for j in range(ball.variables[0].size):
                statement.row(name, [starts[ball.variables[0]] + j], [1.0], ball.level)
        if (
            read is None
            or not isinstance(constraint, Equality | Inequality)
            or not set(read.matrices) <= set(starts)
        ):
            continue
        labels = [name] if read.constant.size == 1 else [f"{name}[{r}]" for r in range(read.constant.size)]
        statement.add_rows(
            labels, read.over(structure.variables), -read.constant, isinstance(constraint, Equality)
        )
    return statement


def cone_conflict(structure: Structure) -> Conflict | None:
    """Return a proof that no positive semidefinite combination of the kernels has the given trace.

    It is a Y >> 0 with <Y, G_j> = u r_j for all j and u < 0: where r'x = c > 0,
    <Y, sum_j x_j G_j> = u c is negative, so that the combination is not positive semidefinite.
    """
    bound, cone = read_weight_set(structure), read_cone(structure)
    columns, signs = read_columns(structure)
    if not isinstance(bound, Trace) or not bound.equal or isinstance(cone, str) or not cone or any(signs):
        return None
    statement = Statement(columns, signs, infeasible=True)
    bound.state(statement)
    G = matrices_by_column(cone, len(columns))
    statement.cone(G)
    deeper = np.concatenate([G, -np.eye(len(G[0]))[None]])
    found = linear_over_cone(-np.eye(len(deeper))[-1], deeper, lambda z: bound.constraints(z[:-1]))
    if found is None:
        return None
    signed = np.array(signs)
    set_multiplier(statement, 0, found[1], ~signed, lambda forms: bound.cover(statement, forms, signed))
    text = f"no combination of the kernels with ({bound.name}) is positive semidefinite"
    return (text, statement) if proves_infeasibility(statement) else None


def farkas_multipliers(A: Array, right: Array, equal: Any, signs: Any) -> list[Fraction] | None:
    """Return exact Farkas multipliers near a solver's, None where none are found.

    A'u >= 0 for columns with a sign and A'u = 0 for the others, u >= 0 for inequalities, right'u < 0.
    """
    size = np.maximum(np.abs(A).max(axis=1, initial=0.0), np.finfo(float).tiny)
    scaled, scaled_right = A / size[:, None], right / size
    # The dual of phase one: min scaled_right'u over |u_i| <= 1.
    limits = [(-1.0 if e else 0.0, 1.0) for e in equal]
    balance = {"A_ub": -scaled.T[signs], "b_ub": np.zeros(int(signs.sum()))} if signs.any() else {}
    if not signs.all():
        balance |= {"A_eq": scaled.T[~signs], "b_eq": np.zeros(int((~signs).sum()))}
    found = linprog(scaled_right, bounds=limits, **balance)
    if found.status != 0 or not found.fun < 0:
        return None
    used = np.flatnonzero(np.abs(found.x) > ZERO_TOLERANCE)
    rest = scaled[used].T @ found.x[used]
    tight = ~signs | (np.abs(rest) <= ZERO_TOLERANCE)
    exact = null_vector(A[used][:, tight].T, found.x[used] / size[used])
    u = [Fraction(0)] * len(A)
    for i, v in zip(used.tolist(), exact or [], strict=False):
        u[i] = v
    return u if exact else None


def null_vector(M: Array, nearby: Array) -> list[Fraction] | None:
    """Return v with Mv = 0 exactly and near a given vector, by Gauss-Jordan elimination in fractions.

    None where only zero solves the equations, or where the elimination exceeds MAX_MULTIPLICATIONS.
    """
    if len(M) * nearby.size**2 > MAX_MULTIPLICATIONS:
        return None
    rows = fractions(M).tolist()
    pivots = eliminated(rows, nearby.size)
    free = [j for j in range(nearby.size) if j not in pivots]
    if not free:
        return None
    largest = float(np.abs(nearby).max())
    v = [Fraction(0)] * nearby.size
    for j in free:
        v[j] = Fraction(float(nearby[j]) / largest).limit_denominator(MAX_DENOMINATOR)
    for i, j in enumerate(pivots):
        v[j] = -sum((rows[i][k] * v[k] for k in free), Fraction(0))
    return v


def inseparable(Ks: Sequence[Array], y: Array, bias: bool, alpha: Array, *, nonneg: bool) -> Conflict | None:
    """Return a proof that no combination of the Ks separates some samples, None without one.

    Its weights are not negative (`nonneg`) or of any sign.
    `alpha` holds the signed convex weights of two points of the classes' hulls that coincide up to rounding.
    An exact alpha near it has K_m alpha = 0 for every m, y_i alpha_i >= 0 and, with an intercept,
    1'alpha = 0. Then sum_i |alpha_i| y_i f(x_i) = 0 for every machine f, while a hard margin demands that it
    is at least |alpha|_1.
    """
    used = np.flatnonzero(np.abs(alpha) > ZERO_TOLERANCE * np.abs(alpha).max())
    M = np.concatenate([*(K[:, used] for K in Ks), np.ones((int(bias), used.size))])
    exact = null_vector(M, alpha[used])
    if exact is None or any(v * int(s) < 0 for v, s in zip(exact, y[used], strict=True)):
        return None
    integers = [v * lcm(*(w.denominator for w in exact)) for v in exact]
    if max(integers) >= 2**53 or not any(integers):
        return None
    n, columns = y.size, [f"weight of kernel {m}" for m in range(len(Ks))]
    pairs = list(zip(integers, y[used], strict=True))
    samples = [used[[v != 0 and label == sign for v, label in pairs]] for sign in (1.0, -1.0)]
    listed = [
        f"{', '.join(map(str, part[:MAX_LISTED]))}{', ...' * (part.size > MAX_LISTED)}" for part in samples
    ]
    text = f"no kernel separates the samples {listed[0]} (+1) from {listed[1]} (-1)"
    statement = Statement(columns, [nonneg] * len(Ks), infeasible=True)
    ends = np.array([np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)])
    statement.risk(np.array(Ks), range(len(Ks)), np.array([y, 0 * y, 0 * y]), ends, 1.0, bias)
    weights = np.zeros(n)
    weights[used] = [float(v) for v in integers]
    statement.set_witness(0, alpha=weights)
    return (text, statement) if proves_infeasibility(statement) else None
