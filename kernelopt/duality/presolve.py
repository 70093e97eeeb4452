"""The presolve of a dual: multipliers that are determined by others are eliminated.

Four rules are used.

* An equation of an auxiliary variable is solved for a multiplier. So is one of a user's variable for a
  multiplier that belongs to no constraint of the user, such as the matrix of a fidelity.
* y >= g, where g is convex and the rest of the dual does not gain by a larger y, becomes y = g. Such
  inequalities for the single entries of y are taken together.
* A gradient y - g >= 0, by a variable x >= 0, is such an inequality for y.
* Multipliers of norms and of reciprocals beside squares and quadratic forms are maximised by hand (`closed`).
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
from cvxpy.constraints import PSD

from kernelopt.duality.bounds import gather_floors, replace_by_bound
from kernelopt.duality.closed import close_reciprocal, shrink
from kernelopt.duality.forms import Form, Multiplier, Term
from kernelopt.duality.matrices import coefficient_of, multiple_of_identity
from kernelopt.duality.model import Model, Piece, Row
from kernelopt.duality.products import labelled


def presolve(model: Model) -> None:
    """Eliminate multipliers from a model by all three rules."""
    while any(solve_row(model, row) for row in model.active()):
        pass
    while shrink(model):
        pass
    while (
        any(replace_floor(model, piece) for piece in model.pieces)
        or any(replace_by_row(model, row) for row in model.active())
        or gather_floors(model)
    ):
        pass
    while shrink(model) or close_reciprocal(model):
        pass


def solve_row(model: Model, row: Row) -> bool:
    """Solve the equation of a free variable for a multiplier, and say whether it was done."""
    if row.kind != "free":
        return False
    candidates = [
        (rank, term, factor)
        for term in row.form.audible
        if (factor := coefficient_of(term.matrix, term.multiplier.variable, row.symmetric))
        and term.scale is None
        if len(row.form.of(term.multiplier)) == 1 and term.multiplier.definition is None
        if (rank := preference(model, row, term.multiplier)) is not None
        if not (model.dpp and multiplies_parameters(model, row, term.multiplier))
    ]
    if not candidates:
        return False
    _, term, factor = min(candidates, key=lambda candidate: candidate[0])
    rest = row.form.without(term.multiplier)
    solve_for(model, row, term, factor, rest)
    return True


def preference(model: Model, row: Row, multiplier: Multiplier) -> int | None:
    """Return the rank of a multiplier among those that a row may be solved for, None if it may not.

    The multiplier of absolute values comes after that of a norm, from which `shrink` can take it out.
    """
    if multiplier.variable.attributes["PSD"] and row.user:
        return None
    if multiplier.auxiliary and (multiplier.solvable or not row.user):
        return int(any(p.ball is not None and p.ball.u is multiplier and p.ball.p == 1 for p in model.pieces))
    return 2 if not row.user and multiplier.auxiliary is False and multiplier.size == 1 else None


def multiplies_parameters(model: Model, row: Row, multiplier: Multiplier) -> bool:
    """Whether a row has parameters besides a multiplier that other parts multiply by parameters.

    To solve the row for it would make products of parameters, which are not DPP.
    """
    forms = [model.linear, *(other.form for other in model.rows.values() if other is not row)]
    scaled = any(term.scale is not None for form in forms for term in form.of(multiplier))
    own = [term.scale for term in row.form.terms] + [one.parameter for one in row.form.given]
    return (scaled or multiplier.parametric) and any(part is not None for part in own)


def solve_for(model: Model, row: Row, term: Term, factor: float, rest: Form) -> None:
    """Put -rest / factor in the place of a multiplier, everywhere."""
    multiplier = term.multiplier
    definition = rest.times(-1 / factor)
    multiplier.definition = definition
    row.solved = multiplier
    for other in model.rows.values():
        if other is not row:
            other.form.substitute(multiplier, definition)
    model.linear.substitute(multiplier, definition)
    for known in model.multipliers:
        if known is not multiplier and isinstance(known.definition, Form):
            known.definition.substitute(multiplier, definition)
    attributes = multiplier.variable.attributes
    if attributes["nonneg"] and not multiplier.expression.is_nonneg():
        label = atom_of(multiplier)
        model.pieces.append(Piece(domain=lambda: [labelled(multiplier.expression >= 0, label)]))
    if attributes["PSD"]:
        label = atom_of(multiplier)
        model.pieces.append(Piece(domain=lambda: [labelled(PSD(multiplier.expression), label)]))


def atom_of(multiplier: Multiplier) -> str:
    """Return the atom of a multiplier, "maximum x" of u[maximum x]; the name of one without an atom."""
    name: str = multiplier.variable.name()
    return name.partition("[")[2].removesuffix("]") or name


def replace_floor(model: Model, piece: Piece) -> bool:
    """Replace the multiplier of a floor by its lower bound, and say whether it was done."""
    if piece.floor is None:
        return False
    multiplier, bound = piece.floor
    while isinstance(multiplier.definition, Form) and multiplier.definition.alias is not None:
        multiplier = multiplier.definition.alias
    if multiplier.definition is not None:
        return False
    if not replace_by_bound(model, multiplier, bound, (piece,)):
        return False
    piece.floor = None
    return True


def replace_by_row(model: Model, row: Row) -> bool:
    """Replace a multiplier u by g where a row states c u - g >= 0 with c > 0."""
    if row.kind not in ("nonneg", "nonpos"):
        return False
    side = 1.0 if row.kind == "nonneg" else -1.0
    for term in row.form.audible:
        factor = multiple_of_identity(term.matrix)
        multiplier = term.multiplier
        usable = (
            (multiplier.auxiliary or multiplier.bound)
            and multiplier.definition is None
            and term.scale is None
        )
        if not usable or factor is None or side * factor <= 0 or floors(model, multiplier):
            continue
        rest = row.form.without(multiplier)
        if len(row.form.of(multiplier)) > 1:
            continue
        if multiplier.norm and not only_in_its_norm(model, row, multiplier):
            continue

        def bound(rest: Form = rest, factor: float = factor, multiplier: Multiplier = multiplier) -> Any:
            g = rest.times(-1 / factor).expression(multiplier.variable.shape)
            nonneg = multiplier.norm or multiplier.variable.attributes["nonneg"]
            return cp.pos(g) if nonneg and not g.is_nonneg() else g

        if replace_by_bound(model, multiplier, bound, (row,)):
            row.solved = multiplier
            return True
    return False


def only_in_its_norm(model: Model, row: Row, multiplier: Multiplier) -> bool:
    """Whether a multiplier appears in one row and otherwise in its norm alone.

    Then (g)_+ is the best of all u >= g, also where g is negative. Elsewhere a negative u may be better.
    """
    forms = [model.linear, *(other.form for other in model.rows.values() if other is not row)]
    forms += [m.definition for m in model.multipliers if isinstance(m.definition, Form)]
    return not multiplier.parametric and not any(form.of(multiplier) for form in forms)


def floors(model: Model, multiplier: Multiplier) -> bool:
    """Whether a multiplier has a lower bound of its own."""
    return any(piece.floor is not None and piece.floor[0] is multiplier for piece in model.pieces)
