"""The minimum of a Lagrangian over each block of variables, with the conjugate that it is."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from kernelopt.duality.assembly import stated
from kernelopt.duality.block_terms import (
    conjugates,
    constraint_parts,
    linear_parts,
    objective_parts,
    risk_parts,
)
from kernelopt.duality.dual import Dual
from kernelopt.duality.forms import Form, Multiplier
from kernelopt.duality.minimum import Minimum
from kernelopt.duality.model import Model
from kernelopt.duality.notation import Notation
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.written import (
    ZERO,
    Written,
    added,
    filled,
    name_of,
    negated,
)

OF_RISKS = ("the positive semidefinite kernel", "the weights of the kernels", "the block norm of the risk")
RISK_PIECES = ("loss", "fixed kernels", "fixed kernel")  # labels of the parts that the risks have


def variable_minima(dual: Dual, raw: Model, notation: Notation) -> list[Minimum]:
    """Return the minimum over every variable of the problem; those in a nonlinear objective are one block.

    `raw` is the model before multipliers are eliminated.
    """
    variables = dual.read.structure.variables
    curved = [v for v in variables if objective_parts(dual, [v], notation)[0]]
    blocks = [curved] if curved else []
    blocks += [[v] for v in variables if not any(v is w for w in curved)]
    return [block_minimum(dual, raw, block, block is curved, notation) for block in blocks]


def block_minimum(
    dual: Dual, raw: Model, block: list[cp.Variable], curved: bool, notation: Notation
) -> Minimum:
    """Return the minimum over a block of variables."""
    parts, kinds = objective_parts(dual, block, notation)
    linear = [part for v in block for part in linear_parts(raw.rows[v.id], notation)]
    bounded, conditions, more = constraint_parts(dual, block, notation)
    risks = [negated(part) for v in block for part in risk_parts(dual, v, notation)]
    reached = reached_names(raw, block)
    own = reached & {v.name() for v in dual.variables()}
    labels = {f"d/d {v.name()}" for v in block} | labels_of(raw, reached)
    conditions += [
        notation.constraint(c)
        for c in dual.constraints
        if c.variables() and (c.label in labels or own & names_of(c))
    ]
    conditions += bound_conditions(dual, block, notation)
    value = objective_value(dual, notation) if curved else atoms_value(dual, reached, notation)
    if curved and own:
        listed = [name_of(name) for name in sorted(own)]
        over = Written(", ".join(n.text for n in listed), ", ".join(n.tex for n in listed))
        value = filled("max over @0 of @1", r"\max_{@0}\ @1", over, value)
    function = added([*parts, *bounded, *linear, *risks])
    return Minimum(over_of(block, notation), function, value, conditions, conjugates(kinds | more))


def bound_conditions(dual: Dual, block: list[cp.Variable], notation: Notation) -> list[list[Written]]:
    """Return the conditions on the multipliers of bounds that were eliminated by them."""
    found = []
    for variable in block:
        row = dual.read.model.rows[variable.id]
        solved = row.solved
        if solved is not None and solved.bound:
            definition, solved.definition = solved.definition, None
            constraint = stated(row)
            solved.definition = definition
            found += [] if constraint is None else [notation.constraint(constraint)]
    return found


def over_of(block: list[cp.Variable], notation: Notation) -> Written:
    """Return the variables of a block with their signs."""
    texts = []
    for v in block:
        sign = next((s for name, s in SIGNS.items() if v.attributes[name] is True), ("", ""))
        texts.append(filled(f"@0 {sign[0]}".rstrip(), f"@0 {sign[1]}".rstrip(), notation(v)))
    return Written(", ".join(t.text for t in texts), ", ".join(t.tex for t in texts))


def names_of(expression: Any) -> set[str]:
    """Return the names of the variables of an expression or a constraint."""
    return {v.name() for v in expression.variables()}


def reached_names(raw: Model, block: list[cp.Variable]) -> set[str]:
    """Return the names of the multipliers that belong to the atoms and fidelities of a block."""
    ids, found = {v.id for v in block}, set[str]()
    while True:
        reached = {
            t.multiplier.variable.name()
            for id_, row in raw.rows.items()
            if id_ in ids
            for t in row.form.terms
            if not t.multiplier.shift and belongs_to_an_atom(t.multiplier)
        }
        reached |= {
            piece.floor[0].variable.name()
            for piece in raw.pieces
            if piece.floor and belongs_to_an_atom(piece.floor[0]) and names_of(piece.floor[1]()) & reached
        }
        wider = {
            id_ for id_, row in raw.rows.items()
            if not row.user and any(t.multiplier.variable.name() in reached for t in row.form.terms)
        }  # fmt: skip
        if wider <= ids and reached <= found:
            return found
        ids, found = ids | wider, found | reached


def labels_of(raw: Model, names: set[str]) -> set[str]:
    """Return the labels of the domains of multipliers of some names."""
    found = {c.label for piece in raw.pieces if piece.domain for c in piece.domain() if names_of(c) & names}
    return found | {
        piece.label for piece in raw.pieces if piece.floor and piece.floor[0].variable.name() in names
    }


def belongs_to_an_atom(multiplier: Multiplier) -> bool:
    """Whether a multiplier belongs to an atom or a fidelity, and not to a constraint or a risk."""
    return (
        multiplier.auxiliary
        and multiplier.of not in OF_RISKS
        and not multiplier.of.startswith("the value of risk")
    )


def objective_value(dual: Dual, notation: Notation) -> Written:
    """Return the part of the dual function that belongs to the nonlinear terms of the objective."""
    model = dual.read.model
    parts = [notation(p.value()) for p in model.pieces if p.value is not None and p.label not in RISK_PIECES]
    form = Form(
        1, [t for t in model.linear.terms if belongs_to_an_atom(t.multiplier)], list(model.linear.given)
    )
    if not form.is_zero:
        parts.append(notation(form.expression(())))
    return added(parts)


def atoms_value(dual: Dual, names: set[str], notation: Notation) -> Written:
    """Return the part of the dual function that belongs to nonlinear terms of a block in constraints."""
    own = [t for t in dual.read.model.linear.terms if t.multiplier.variable.name() in names]
    return notation(Form(1, own).expression(())) if own else ZERO
