"""The Lagrangian of a problem, by one backward sweep from the objective and the constraints to the leaves.

A weight on an affine atom goes to its arguments by the adjoint. A weight u on a convex atom g becomes the
maximum over y of <y, a> - cost(y, u), and y is the weight on the argument. So a composition needs no epigraph
variable: y >= 0 where the argument is convex and not affine says all. An atom without an entry in the
table is cvxpy's cone form of that atom alone, swept by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.constraints import Inequality
from cvxpy.constraints.constraint import Constraint
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.adjoints import adjoint, uniform, value_of
from kernelopt.duality.conjugates import CONJUGATES, NUMBERS, SUPPORTS, New
from kernelopt.duality.equations import equation_of, implied_constraints, renamed
from kernelopt.duality.lagrangian import Multiplier, Term, pairing, times, total
from kernelopt.duality.written import fresh
from kernelopt.errors import DualizationError
from kernelopt.language.adapter import written_problem
from kernelopt.language.faces import facial_reduction
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_constraint, risks, visible_variables, with_args
from kernelopt.validation import Array, Mask

STACKS = ("AddExpression", "Hstack", "Vstack", "Concatenate")  # atoms in which every argument has a weight
PLUS = ("Inequality", "NonPos", "Equality", "Zero")  # constraints e <= 0 and e == 0
WORDS = {
    **dict.fromkeys(PLUS, "nu"),
    "Inequality": "lambda",
    "NonNeg": "lambda",
    "NonPos": "lambda",
    "PSD": "Z",
}
LETTERS = {
    "SOC": "ty",
    "ExpCone": "uvw",
    "PowCone3D": "uvw",
    "PowConeND": "Wz",
}  # of the multipliers of cones


class Swept:
    """The dual of a problem as one backward sweep states it, before any rule of the board.

    Parameters
    ----------
    problem : cp.Problem
        It is swept as a minimisation.
    structure : Structure
        The problem of the user.
    zero : dict from variable id to mask
        The entries that signs force to zero.

    Attributes
    ----------
    structure, primal, zero
        The parameters.
    sign : float
        -1.0 for a maximisation, which is swept as the minimum of minus its objective.
    names : dict from variable id to str
        The names in print of variables that have none of their own, also of cone forms.
    value : list of cvxpy expressions
        The parts of the Lagrangian that are free of the variables.
    gradient : dict from variable to list of cvxpy expressions
        The parts of the gradient by each variable of the problem, of the cone forms of atoms without an
        entry, and of the expressions of risks.
    terms : list of Term
    cones : list of cvxpy constraints
        The dual cones of the multipliers.
    multipliers : list of Multiplier
    equations : list of Equation
    own : list of Equation
        The equations of the variables of the problem.
    stated : list of Multiplier
        The multipliers of the constraints of the problem and of the bounds of its variables, not of parts of
        an atom.
    problem : cp.Problem
        The maximum over all multipliers; the variables are the multipliers of the gradient's equations.
    """

    def __init__(self, problem: cp.Problem, structure: Structure, zero: dict[int, Mask]) -> None:
        self.structure, self.primal, self.sign, self.zero = structure, problem, structure.sign, zero
        self.names, self.gradient = renamed(structure), dict[cp.Variable, list[cp.Expression]]()
        self.value, self.cones = list[cp.Expression](), list[Constraint]()
        self.terms, self.multipliers = list[Term](), list[Multiplier]()
        leaves = (*visible_variables(problem), *problem.parameters())
        self.new = New({leaf.name() for leaf in leaves} | set(self.names.values()))
        self.new.first = "1" if len(risks(problem)) > 1 else ""
        self.new.psd = [c.args[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
        self.visit(problem.objective.args[0], cp.Constant(self.sign))
        for i, (c, name) in enumerate(zip(problem.constraints, multiplier_names(problem), strict=True)):
            smaller, basis = facial_reduction(c)  # a matrix inequality of low rank is restricted to its range
            found = self.constrain(smaller, c.label or f"constraint {i}", name, "constraint ")
            found.constraint, found.basis = c, basis
        for label, c in implied_constraints(structure.user_variables, self.names, zero):
            self.constrain(c, label, f"y[{label}]")
        self.multipliers.sort(key=lambda m: not m.user)
        self.state(structure.user_variables)

    def state(self, variables: Sequence[cp.Variable]) -> None:
        """State the equations and the problem over the multipliers, once all parts have been visited."""
        order = {**dict.fromkeys(v for v in variables if v in self.gradient), **self.gradient}
        self.equations = [equation_of(v, self.names.get(v.id, v.name()), self.gradient[v]) for v in order]
        users = {v.id for v in variables}
        self.own = [e for e in self.equations if e.variable.id in users]
        self.stated = [
            m
            for m in self.multipliers
            if m.user or users >= {v.id for _, e in m.terms for v in e.variables()}
        ]
        value = [-t.cost for t in self.terms if not t.cost.is_zero()] + self.value
        constraints = [c for t in self.terms for c in t.domain] + self.cones
        constraints += [e.constraint for e in self.equations]
        self.problem = written_problem(cp.Maximize(total(value)), constraints)

    def point(self) -> dict[int, Array]:
        """Return the values of the variables by id, at the multipliers that the last solve has left.

        A variable that no term has is one where it must be positive, else zero.
        """
        unused = (v for v in self.structure.user_variables if v not in self.gradient)
        found = {v.id: np.full(v.shape, float(v.attributes["pos"])) for v in unused}
        found |= {e.variable.id: e.point() for e in self.equations}
        for key, mask in self.zero.items():
            found[key][mask.reshape(found[key].shape, order="F")] = 0.0
        return found

    def visit(self, e: Any, W: cp.Expression) -> None:
        """Add <W, e> to the Lagrangian, for a weight W of the shape of e."""
        weight = value_of(W)
        if weight is not None and not weight.any():
            return
        if isinstance(e, indicator):
            for c in e.args:
                self.constrain(c, "domain", "y[domain]")
        elif e.is_constant():
            self.value.append(pairing(W, e))
        elif isinstance(e, cp.Variable):
            self.gradient.setdefault(e, []).append(W)
        elif not self.by_table(e, W):
            if isinstance(e, AffAtom):
                self.visit_affine(e, W)
            else:
                self.cone_block(e, W)

    def visit_affine(self, e: Any, W: cp.Expression) -> None:
        """Add <W, e> for an affine atom: its arguments get their weights by the adjoint."""
        for k, a in enumerate(e.args):
            if not a.is_constant() or type(e).__name__ in STACKS:
                self.visit(a, adjoint(e, k, W))

    def by_table(self, g: Any, W: cp.Expression) -> bool:
        """Add <W, g> for an atom of the table; False where there is no entry for it."""
        entry, sign = CONJUGATES.get(name := type(g).__name__), 1.0 if g.is_atom_convex() else -1.0
        if entry is None:
            return False
        u = W if sign > 0 else -W
        w, called = uniform(u), term_name(g)
        number = name in NUMBERS and w is not None and not u.parameters()
        scaled = u.is_constant() and not number and name not in SUPPORTS
        self.new.of = "the fit of a risk" if isinstance(g, Risk) else f"the atom {called}"
        self.new.entrywise = scaled and w is None
        stated = entry(g, cp.Constant(np.ones(u.shape)) if scaled else u, self.new)
        if stated is None:
            return False
        pairs, cost = stated.pairs, cp.Expression.cast_to_const(stated.cost)
        if scaled:
            pairs = [(times(u, y, getattr(g, "axis", None)), a) for y, a in pairs]
            cost = pairing(u, cost)
        cost = cp.sum(cost) if cost.size > 1 else cost
        domain = [*stated.domain, *(c for y, a in pairs for c in monotone(y, a))]
        for c in domain:
            c.set_label(c.label or called)
        self.terms.append(Term(g, u, sign, pairs, cost, domain))
        for y, a in pairs:
            self.visit(a, y)
        return True

    def cone_block(self, g: Any, W: cp.Expression) -> None:
        """Add <W, g> for an atom without an entry, by the cone form of that atom alone."""
        convex, called = g.is_atom_convex(), term_name(g)
        inner = [a if a.is_constant() else cp.Variable(a.shape, **known_of(a)) for a in g.args]
        shown = with_args(g, inner)
        if type(g).__name__.endswith("Approx"):  # of many small cones, where its base class has one
            shown.__class__ = type(g).__base__
        try:
            form, _ = Dcp2Cone().apply(cp.Problem(cp.Minimize(cp.sum(shown if convex else -shown))))
        except Exception as error:  # cvxpy raises of many classes, such as AssertionError for suppfunc
            raise DualizationError(
                f"an atom must have a conjugate or a cone form, got {type(g).__name__}, which cvxpy writes "
                f"by none ({type(error).__name__}: {error}), in dualize. Write it with other atoms."
            ) from error
        own = {v.id for v in form.variables()} - {v.id for v in shown.variables()}
        self.names.update(dict.fromkeys(own, called))
        for c in form.constraints:
            below, above = (*c.args, None)[:2]
            while isinstance(above, Wrap):
                above = above.args[0]
            sign = isinstance(c, Inequality) and below.is_zero() and isinstance(above, cp.Variable)
            if sign and above.id in own:  # a sign of an auxiliary variable needs no multiplier
                above.attributes["nonneg"] = True
            else:
                self.constrain(c, called, "v", "atom ")
        self.visit(form.objective.args[0].args[0], W if convex else -W)
        for v, a in zip(inner, g.args, strict=True):
            if v is not a:
                y = total(self.gradient.pop(v, [cp.Constant(np.zeros(v.shape))]))
                self.cones += [c.set_label(called) for c in monotone(y, a)]
                self.visit(a, y)

    def constrain(self, c: Any, label: str, name: str, kind: str = "") -> Multiplier:
        """Add a constraint of the problem, of an atom, or of neither with its multipliers."""
        self.new.of = f"the {kind}{label.removeprefix('constraint ')}"
        cone, slacks, cones = type(c).__name__, c.args, list[Constraint]()
        if cone in LETTERS:
            inside = "" if name == "v" else f"[{name.removeprefix('y[').removesuffix(']')}]"
            letters = zip(slacks, LETTERS[cone], strict=True)
            y = [self.new(a.shape, letter + inside) for a, letter in letters]
            cones = [copied_constraint(c._dual_cone(), dict(zip(map(id, c.dual_variables), y, strict=True)))]
        elif cone in WORDS:
            e, word = getattr(c, "expr", slacks[0]), WORDS[cone]
            matrix, slacks = e.ndim == 2 and (word == "Z" or e.size > 1), [e]
            given = {"nonneg": word == "lambda", "PSD": word == "Z" and matrix}
            given["symmetric"] = word != "Z" and matrix and e.is_symmetric()
            y = [self.new(e.shape, name, **given)]
            cones = [y[0] >> 0] if word == "Z" and not matrix else []
        else:
            raise DualizationError(
                "the constraints of a problem must be in cones whose duals are known, got a "
                f"{cone} in {label} in dualize. Write it with other constraints."
            )
        self.cones += [dual.set_label(label) for dual in cones]
        terms = [(v if cone in PLUS else -v, e) for v, e in zip(y, slacks, strict=True)]
        multiplier = Multiplier(c, label, y, terms, user=kind == "constraint ")
        self.multipliers.append(multiplier)
        for W, e in terms:
            self.visit(e, W)
        return multiplier


def multiplier_names(problem: cp.Problem) -> list[str]:
    """Return y[label] for each constraint; lambda, nu or Z without one, numbered if several."""
    found = [f"y[{c.label}]" if c.label else WORDS.get(type(c).__name__, "nu") for c in problem.constraints]
    numbered, taken = {name for name in WORDS.values() if found.count(name) > 1}, set[str]()
    return [fresh(f"{name}1" if name in numbered else name, taken) for name in found]


def term_name(g: Any) -> str:
    """Return the kind of an atom with the names of its variables, without those that cvxpy gives."""
    kind = type(g).__name__.removesuffix("Approx").lower()
    names = [v.name() for v in visible_variables(cp.Problem(cp.Minimize(cp.sum(g))))]
    named = dict.fromkeys(name for name in names if not name.startswith("var"))
    return " ".join(["norm" if kind in ("pnorm", "norm1") else kind, *named][:4])


def monotone(y: cp.Expression, a: cp.Expression) -> list[Constraint]:
    """Return that the weight of a convex argument is not negative, and of a concave one not positive."""
    if a.is_affine() or (y.is_nonneg() if a.is_convex() else y.is_nonpos()):
        return []
    return [y >= 0 if a.is_convex() else y <= 0]


def known_of(a: cp.Expression) -> dict[str, bool]:
    """Return the attributes that cvxpy's rules need of the stand-in of an argument."""
    if a.ndim == 2 and a.size > 1 and a.is_symmetric():
        return {"PSD" if a.is_psd() else "symmetric": True}
    return {"nonneg": a.is_nonneg(), "nonpos": a.is_nonpos()}
