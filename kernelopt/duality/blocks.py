"""The parts of a Lagrangian that belong to cones and to a quadratic objective."""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import PSD, SOC, ExpCone, NonNeg, PowCone3D, PowConeND, Zero
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.canonical import Cone, ConeForm
from kernelopt.duality.closed import gradient_of, shrunk
from kernelopt.duality.forms import Given, Multiplier
from kernelopt.duality.model import Model, Piece, Row
from kernelopt.duality.products import labelled, parametric_expression, positive_factor, times
from kernelopt.errors import DualizationError
from kernelopt.validation import Array


def add_cones(
    model: Model, form: ConeForm, names: list[str], user: dict[int, cp.Parameter], signs: set[int]
) -> None:
    """Add the multipliers of all cones and the linear objective of a cone form.

    `names` holds the name of each constraint of the user, and `user` the user's parameters by id. The
    constraints at the positions `signs` are those of symmetric matrices that are non-negative by entries.
    """
    for column in form.columns:
        row = model.row_of(column.variable)
        for part in form.parts:
            if part.parameter is None:
                row.form.add_given(part.c[column.columns])
            elif part.c[column.columns].any():
                add_entry(row.form, part.c[column.columns], user[part.parameter.id], part.entry)
    scales = [scale_of(part, user) for part in form.parts]
    for part, scale in zip(form.parts, scales, strict=True):
        if part.d:
            if scale is None:
                model.linear.add_given(np.array([part.d]))
            else:
                model.linear.add_given(np.array([[part.d]]), scale)
    for cone in form.cones:
        parts = add_cone(model, cone, names, cone.position in signs)
        if cone.position is not None:
            model.of_constraints[-1 - cone.position] = values_of(parts)
        sign = 1.0 if isinstance(cone.constraint, Zero) else -1.0
        where = names[cone.position] if cone.position is not None else cone.atom
        for multiplier, rows in zip(parts, cone.rows, strict=True):
            for part, scale in zip(form.parts, scales, strict=True):
                A = part.A[rows]
                for column in form.columns:
                    block = sp.csr_array(A[:, column.columns])
                    name = f"A[{where}, {column.variable.name()}]"
                    model.row_of(column.variable).form.add(sign * block.T, multiplier, scale, name)
            add_right_side(model, form, rows, sign, multiplier, scales, user, f"b[{where}]")


def values_of(multipliers: list[Multiplier]) -> Any:
    """Return a function that returns the values of multipliers."""
    return lambda: [np.asarray(multiplier.expression.value) for multiplier in multipliers]


def add_entry(form: Any, vector: Array, parameter: cp.Parameter, entry: tuple[int, ...]) -> None:
    """Add vector * parameter[entry] to a form, as a column of a matrix times the parameter."""
    at = int(np.ravel_multi_index(entry, parameter.shape, order="F")) if parameter.ndim else 0
    matrix = sp.lil_array((vector.size, parameter.size))
    matrix[:, [at]] = vector[:, None]
    form.add_given(sp.csr_array(matrix), parameter)


def scale_of(part: Any, user: dict[int, cp.Parameter]) -> cp.Expression | None:
    """Return the entry of the user's parameter, None for the constant part."""
    if part.parameter is None:
        return None
    parameter = user[part.parameter.id]
    return parameter if parameter.ndim == 0 else parameter[part.entry]


def add_right_side(
    model: Model,
    form: ConeForm,
    rows: slice,
    sign: float,
    multiplier: Multiplier,
    scales: list[Any],
    user: dict[int, cp.Parameter],
    name: str,
) -> None:
    """Add sign * <b, multiplier>; a vector parameter in b stays a vector."""
    vectors: dict[int, sp.csr_array] = {}
    for part, scale in zip(form.parts, scales, strict=True):
        b = part.b[rows]
        if not b.any():
            continue
        if part.parameter is not None and part.parameter.size > 1 and multiplier.size > 1:
            parameter = user[part.parameter.id]
            at = int(np.ravel_multi_index(part.entry, parameter.shape, order="F"))
            column = sp.csr_array(
                (sign * b, (np.arange(b.size), np.full(b.size, at))), (b.size, parameter.size)
            )
            vectors[parameter.id] = vectors.get(parameter.id, 0 * column) + column
            continue
        model.linear.add(sign * b[None, :], multiplier, scale, name)
    for id_, matrix in vectors.items():
        multiplier.parametric = True
        given = Given(sp.csr_array(matrix), user[id_], name)
        model.pieces.append(Piece(partial(along, given, multiplier)))


def along(given: Given, multiplier: Multiplier) -> cp.Expression:
    """Return (matrix @ vec(parameter))'vec(multiplier)."""
    y = multiplier.expression
    return cp.sum(cp.multiply(parametric_expression(given.matrix, given.parameter, y.shape, given.name), y))


def add_cone(model: Model, cone: Cone, names: list[str], symmetric: bool = False) -> list[Multiplier]:
    """Return new multipliers for the arguments of a cone, constrained to the dual cone.

    That of a linear cone is a symmetric matrix where `symmetric` says so.
    """
    constraint, user = cone.constraint, cone.position is not None
    label = names[cone.position] if cone.position is not None else cone.atom
    of = f"the constraint {label}" if user else f"the atom {label}"
    options: dict[str, Any] = {"auxiliary": not user}
    shapes = [tuple(arg.shape) for arg in constraint.args]
    if isinstance(constraint, Zero):
        return [model.multiplier(f"y[{label}]", shapes[0], of, symmetric=cone.symmetric, **options)]
    if isinstance(constraint, NonNeg):
        more = {"symmetric": True} if symmetric else {}
        return [model.multiplier(f"y[{label}]", shapes[0], of, nonneg=True, **more, **options)]
    if isinstance(constraint, PSD):
        if len(shapes[0]) != 2:
            raise DualizationError(
                f"a matrix inequality must be of one matrix, got shape {shapes[0]} in {of}. Write one "
                "constraint for each."
            )
        return [model.multiplier(f"y[{label}]", shapes[0], of, PSD=True, **options)]
    if isinstance(constraint, SOC) and constraint.args[0].size == 1:
        shapes = [(), (constraint.args[1].size,)]
    letters = {SOC: "ty", ExpCone: "uvw", PowCone3D: "uvw", PowConeND: "Wz"}[type(constraint)]
    parts = [
        model.multiplier(f"{letter}[{label}]", shape, of, **options)
        for letter, shape in zip(letters, shapes, strict=True)
    ]
    if isinstance(constraint, SOC) and constraint.args[0].size == 1:
        model.pieces.append(Piece(floor=(parts[0], lambda: cp.norm2(parts[1].expression)), label=label))
        return parts
    dual_cone = {SOC: dual_soc, ExpCone: dual_exponential, PowCone3D: dual_power, PowConeND: dual_powers}
    build = dual_cone[type(constraint)]
    model.pieces.append(
        Piece(
            domain=lambda: [
                labelled(build(constraint, [p.expression for p in parts]), f"dual cone of {label}")
            ]
        )
    )
    return parts


def dual_soc(constraint: Any, y: list[cp.Expression]) -> Constraint:
    """Return the dual of the second-order cone, itself."""
    return SOC(y[0], y[1], axis=constraint.axis)


def dual_exponential(constraint: Any, y: list[cp.Expression]) -> Constraint:
    """Return the dual of {v exp(u / v) <= w}: -u exp(v / u) <= e w."""
    return ExpCone(-y[1], -y[0], np.e * y[2])


def dual_power(constraint: Any, y: list[cp.Expression]) -> Constraint:
    """Return the dual of {u^a v^(1 - a) >= |w|}: the same for u / a and v / (1 - a)."""
    a = constraint.alpha.value
    u, v, w = (cp.reshape(part, (1,), order="F") if part.ndim == 0 else part for part in y)
    return PowCone3D(cp.multiply(1 / a, u), cp.multiply(1 / (1 - a), v), w, a)


def dual_powers(constraint: Any, y: list[cp.Expression]) -> Constraint:
    """Return the dual of {prod_i W_i^(a_i) >= |z|}: the same for W_i / a_i."""
    a = constraint.alpha.value
    return PowConeND(cp.multiply(1 / a, y[0]), y[1], a, axis=constraint.axis)


def add_squares(model: Model, form: ConeForm) -> None:
    """Add the quadratic part 1/2 x'Px of the objective.

    Where P is diagonal and positive in a variable, the minimum over x of 1/2 x'Px + g'x is
    -1/2 sum_j g_j^2 / P_jj, with the positive part of -g_j for x_j >= 0. Elsewhere the dual keeps a vector
    z, as that of Dorn does: its gradient is g + Pz, and its value has the term -1/2 z'Pz.
    """
    P = form.P
    if not P.nnz:
        return
    kept = []
    for column in form.columns:
        rows = sp.csr_array(P[column.columns])
        if not rows.nnz:
            continue
        row = model.row_of(column.variable)
        own = sp.csr_array(rows[:, column.columns])
        diagonal = own.diagonal()
        alone = own.nnz == rows.nnz == np.count_nonzero(diagonal) == diagonal.size
        if (
            alone
            and row.kind in ("free", "nonneg", "nonpos")
            and (not row.symmetric or np.ptp(diagonal) == 0)
        ):
            row.curvature = diagonal
            model.pieces.append(Piece(partial(minus_square, row), label="square"))
        else:
            kept.append(column)
    if not kept:
        return
    zs = [
        model.multiplier(
            f"z[{c.variable.name()}]", c.variable.shape, f"the point {c.variable.name()} of Dorn's dual",
            symmetric=model.row_of(c.variable).symmetric,
        )
        for c in kept
    ]  # fmt: skip
    for column in kept:
        for other, z in zip(kept, zs, strict=True):
            block = sp.csr_array(P[column.columns][:, other.columns])
            model.row_of(column.variable).form.add(block, z, None, "P")
    indices = np.concatenate([np.arange(c.columns.start, c.columns.stop) for c in kept])
    square = P[indices][:, indices].toarray()

    def value() -> cp.Expression:
        flat = [z.expression if z.variable.ndim == 1 else cp.vec(z.expression, order="F") for z in zs]
        whole = flat[0] if len(flat) == 1 else cp.hstack(flat)
        return -0.5 * cp.quad_form(whole, cp.Constant(square, name="P"), assume_PSD=True)

    model.pieces.append(Piece(value, label="square"))


def minus_square(row: Row) -> cp.Expression:
    """Return -1/2 sum_j g_j^2 / P_jj, the minimum of 1/2 x'Px + g'x for a diagonal P."""
    diagonal: Any = row.curvature
    expression = gradient_of(row)
    if row.ball is not None:
        expression = shrunk(expression, row.ball, row.kind)
    elif row.kind != "free":
        expression = cp.pos(expression)
    flat = cp.vec(expression, order="F") if expression.ndim == 2 else expression
    if np.ptp(diagonal) == 0:
        factor, flat = positive_factor(flat)
        return times(-(factor**2) / (2 * float(diagonal[0])), cp.sum_squares(flat))
    roots = cp.Constant(1 / np.sqrt(2 * diagonal), name="R")
    return -cp.sum_squares(cp.multiply(roots, flat))
