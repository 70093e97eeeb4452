"""The cone form of a cvxpy problem with the names of its parts: the only module that runs cvxpy's reductions.

cvxpy compiles a problem by a chain of reductions and keeps no record of which atom made which auxiliary
constraint. A dual without that record cannot be read. The module therefore runs two links of the chain
itself, `Dcp2Cone` and `ConeMatrixStuffing`, and overrides `canonicalize_expr` of the first, which cvxpy
calls for every atom, to note the atom. Attributes of variables are not turned into constraints: they become
signs of the rows of the dual. The module is tested with the oldest and the newest supported cvxpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import (
    PSD,
    SOC,
    Equality,
    ExpCone,
    Inequality,
    NonNeg,
    NonPos,
    PowCone3D,
    PowConeND,
    Zero,
)
from cvxpy.constraints.constraint import Constraint
from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
from cvxpy.utilities.solver_context import SolverInfo

from kernelopt.errors import DualizationError
from kernelopt.structure.trees import copied_constraint, replaced, short
from kernelopt.validation import Array

CONES = (Zero, NonNeg, SOC, PSD, ExpCone, PowCone3D, PowConeND)
SHORT = {"quad_over_lin": "square", "pnorm": "norm"}  # names of atoms in a dual, in the place of cvxpy's
MOST_PARAMETER_ENTRIES = 200  # each entry of a parameter that multiplies a variable is a matrix of its own


@dataclass(frozen=True, eq=False)
class Column:
    """A variable of the cone form: one of the problem, or an auxiliary one of an atom."""

    variable: cp.Variable
    columns: slice
    atom: str  # empty for a variable of the problem


@dataclass(frozen=True, eq=False)
class Cone:
    """A constraint of the cone form: (A_1 x + b_1, A_2 x + b_2, ...) in a cone.

    Attributes
    ----------
    constraint : cp.Constraint
        As cvxpy states it: Zero, NonNeg, SOC, PSD, ExpCone, PowCone3D or PowConeND.
    rows : tuple of slice, one for each argument
    position : int or None
        The position of the user's constraint that it states, None for one of an atom.
    atom : str
        The atom of an auxiliary constraint.
    symmetric : bool
        Whether its multiplier is a symmetric matrix.
    """

    constraint: Constraint
    rows: tuple[slice, ...]
    position: int | None
    atom: str
    symmetric: bool = False


@dataclass(frozen=True, eq=False)
class Part:
    """The coefficients of one entry of a parameter, or the constant ones (parameter None)."""

    parameter: cp.Parameter | None
    entry: tuple[int, ...]
    c: Array
    d: float
    A: sp.csr_array
    b: Array

    @property
    def scale(self) -> cp.Expression | None:
        """The entry of the parameter; None stands for one."""
        if self.parameter is None:
            return None
        return self.parameter if self.parameter.ndim == 0 else self.parameter[self.entry]


@dataclass(frozen=True, eq=False)
class ConeForm:
    """min 1/2 x'Px + c'x + d over the cones; c, d, A and b are affine in the parameters."""

    columns: tuple[Column, ...]
    cones: tuple[Cone, ...]
    parts: tuple[Part, ...]
    P: sp.csr_array


class TracingDcp2Cone(Dcp2Cone):  # type: ignore[misc]
    """`Dcp2Cone` with a record of the atom that made each auxiliary constraint and variable.

    `symmetric` has the constraints X == R of the squares |X|^2 of symmetric matrices, whose multipliers are
    symmetric: cvxpy's R has no attributes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.atoms: dict[int, str] = {}
        self.symmetric: set[int] = set()

    def canonicalize_expr(self, expr: Any, args: list[Any], affine_above: bool) -> Any:
        """Return cvxpy's result, after noting the atom of all that is new in it."""
        result, constraints = super().canonicalize_expr(expr, args, affine_above)
        if constraints:
            name = type(expr).__name__.removesuffix("Approx").lower()
            name = SHORT.get(name, name)
            known = {v.id for arg in args if hasattr(arg, "variables") for v in arg.variables()}
            whole = getattr(expr, "axis", None) is None
            if name == "square" and whole and args[0].ndim == 2 and args[0].is_symmetric():
                self.symmetric |= {constraint.id for constraint in constraints}
            for constraint in constraints:
                self.atoms.setdefault(constraint.id, name)
                for variable in constraint.variables():
                    if variable.id not in known:
                        self.atoms.setdefault(variable.id, name)
        return result, constraints


def cone_form(objective: cp.Expression, constraints: Sequence[Constraint]) -> ConeForm:
    """Return the cone form of min objective subject to the constraints.

    Parameters stay parameters where the problem is DPP; elsewhere they take their values. The objective keeps
    its quadratic part unless that depends on parameters.

    Raises
    ------
    DualizationError
        If a constraint lies in a cone without a dual here.
    """
    problem = cp.Problem(cp.Minimize(objective), [as_nonneg(c) for c in constraints])
    keep = all_kept(problem)
    if not keep:
        values = {id(p): cp.Constant(p.value) for p in problem.parameters()}
        problem = cp.Problem(
            cp.Minimize(replaced(problem.objective.args[0], values)),
            [copied_constraint(c, values) for c in problem.constraints],
        )
    quadratic = bool(problem.objective.expr.has_quadratic_term())
    form = compiled(problem, quadratic)
    return form if form is not None else compiled(problem, False)  # type: ignore[return-value]


def as_nonneg(constraint: Constraint) -> Constraint:
    """Return x <= 0 of the class NonPos as -x >= 0, which the cone form has; others as they are."""
    return NonNeg(-constraint.args[0]) if isinstance(constraint, NonPos) else constraint


def all_kept(problem: cp.Problem) -> bool:
    """Whether the parameters can stay: the problem is DPP, and they are few and without structure."""
    parameters = problem.parameters()
    plain = not any(
        p.attributes["diag"] or p.attributes["sparsity"] or p.attributes["symmetric"] or p.attributes["PSD"]
        for p in parameters
    )
    return plain and problem.is_dpp() and sum(p.size for p in parameters) <= MOST_PARAMETER_ENTRIES


def compiled(problem: cp.Problem, quadratic: bool) -> ConeForm | None:
    """Return the cone form, None where the quadratic part of the objective depends on parameters."""
    supported = SolverInfo(solver="DUALIZE", supported_constraints=frozenset(CONES))
    tracing = TracingDcp2Cone(quad_obj=quadratic, solver_context=supported)
    conic, inverse = tracing.apply(problem)
    position = {inverse.cons_id_map[c.id]: i for i, c in enumerate(problem.constraints)}
    conic = cp.Problem(conic.objective, [c for c in conic.constraints if c.size])
    variables = conic.variables()
    plain = {id(v): cp.Variable(v.shape, name=v.name()) for v in variables}
    originals = {plain[id(v)].id: v for v in variables}
    constraints, places, atoms, symmetric = [], dict[int, int | None](), dict[int, str](), set[int]()
    for constraint in conic.constraints:
        check_cone(constraint, tracing.atoms.get(constraint.id, ""))
        copy = constraint.copy([replaced(arg, plain) for arg in constraint.args])
        places[copy.id] = position.get(constraint.id)
        atoms[copy.id] = tracing.atoms.get(constraint.id, "")
        symmetric |= {copy.id} if constraint.id in tracing.symmetric else set()
        constraints.append(copy)
    stuffed = ConeMatrixStuffing(quad_obj=quadratic)
    program, _ = stuffed.apply(cp.Problem(cp.Minimize(replaced(conic.objective.args[0], plain)), constraints))
    columns = tuple(
        Column(originals[id_], slice(at, at + originals[id_].size), tracing.atoms.get(originals[id_].id, ""))
        for id_, at in program.var_id_to_col.items()
    )
    cones, start = [], 0
    for constraint in program.constraints:
        rows = []
        for arg in constraint.args:
            rows.append(slice(start, start + arg.size))
            start += arg.size
        id_ = constraint.id
        cones.append(Cone(constraint, tuple(rows), places[id_], atoms[id_], id_ in symmetric))
    n = program.x.size
    P = sp.csr_array((n, n))
    if quadratic:
        if program.P is not None and sp.csc_array(program.P)[:, :-1].nnz:
            return None
        P = sp.csr_array(program.apply_parameters(id_to_param_value=zeros(program), quad_obj=True)[0])
        P.eliminate_zeros()
    return ConeForm(columns, tuple(cones), tuple(parts_of(program)), P)


def check_cone(constraint: Constraint, atom: str) -> None:
    """Raise for a constraint whose dual cone is not known here."""
    if not isinstance(constraint, (*CONES, Equality, Inequality)):
        where = f"the atom {atom}" if atom else f"the constraint {constraint.label or short(constraint)}"
        raise DualizationError(
            f"every cone must be linear, second-order, semidefinite, exponential or a power cone, got "
            f"{type(constraint).__name__} from {where}. Write it with other atoms."
        )


def zeros(program: Any) -> dict[int, Array]:
    """Return the value zero for every parameter."""
    return {p.id: np.zeros(p.shape) for p in program.parameters}


def parts_of(program: Any) -> list[Part]:
    """Return the constant coefficients, and those of every entry of the parameters."""
    c, d, A, b = program.apply_parameters(id_to_param_value=zeros(program))
    c, d, A, b = np.array(c), float(d), sp.csr_array(A).copy(), np.array(b)
    found = [Part(None, (), c, d, A, b)]
    for parameter in program.parameters:
        for entry in np.ndindex(*parameter.shape):
            one = zeros(program)
            one[parameter.id][entry] = 1.0
            c1, d1, A1, b1 = program.apply_parameters(id_to_param_value=one)
            moved = sp.csr_array(sp.csr_array(A1) - A)
            moved.eliminate_zeros()
            found.append(Part(parameter, entry, np.array(c1) - c, float(d1) - d, moved, np.array(b1) - b))
    return found
