"""The Lagrangian of a problem, by one backward sweep from the objective and the constraints to the leaves.

A weight on an affine atom goes to its arguments by the adjoint. A weight u on a convex atom g becomes the
maximum over y of <y, a> - cost(y, u), and y is the weight on the argument. So a composition needs no epigraph
variable: y >= 0 where the argument is convex and not affine says all. An atom without an entry in the
table is cvxpy's cone form of that atom alone, swept by the same code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.constraints.constraint import Constraint
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.adjoints import adjoint, uniform, value_of
from kernelopt.duality.cones import multipliers, slacks
from kernelopt.duality.conjugates import CONJUGATES, NUMBERS, SUPPORTS, New
from kernelopt.duality.lagrangian import Lagrangian, Multiplier, Term, pairing, times, total
from kernelopt.duality.written import fresh
from kernelopt.errors import DualizationError
from kernelopt.language.faces import facial_reduction
from kernelopt.language.risk import Risk
from kernelopt.structure.trees import visible_variables, with_args

STACKS = ("AddExpression", "Hstack", "Vstack", "Concatenate")  # atoms in which every argument has a weight


class Sweep:
    """One backward sweep over a problem; `found` is its Lagrangian, as that of a minimisation.

    Parameters
    ----------
    problem : cp.Problem
    names : dict from variable id to str
        The names in print of variables that have none of their own.
    bounds : sequence of (name, constraint)
        Constraints that the attributes of variables state, or that follow from the others.
    superfluous : sequence of int
        The positions of constraints that follow from those: their multipliers are zero.
    """

    def __init__(
        self,
        problem: cp.Problem,
        names: dict[int, str],
        bounds: Sequence[tuple[str, Constraint]] = (),
        superfluous: Sequence[int] = (),
    ) -> None:
        leaves = (*visible_variables(problem), *problem.parameters())
        self.new = New({leaf.name() for leaf in leaves} | set(names.values()))
        self.new.psd = [c.args[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
        self.found = Lagrangian()
        self.inner: list[Multiplier] = []  # of the cones of atoms
        sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
        self.visit(problem.objective.args[0], cp.Constant(sign))
        given = zip(problem.constraints, multiplier_names(problem), strict=True)
        found = [self.reduced(c, name, i, i in superfluous) for i, (c, name) in enumerate(given)]
        found += [self.constrain(c, f"y[{name}]", name, user=False) for name, c in bounds]
        self.found.multipliers = found + self.inner

    def visit(self, e: Any, W: cp.Expression) -> None:
        """Add <W, e> to the Lagrangian, for a weight W of the shape of e."""
        weight = value_of(W)
        if weight is not None and not weight.any():
            return
        if isinstance(e, indicator):
            for constraint in e.args:
                self.inner.append(self.constrain(constraint, "y[domain]", "domain", user=False))
        elif e.is_constant():
            self.found.value.append(pairing(W, e))
        elif isinstance(e, cp.Variable):
            self.found.gradient.setdefault(e, []).append(W)
        elif not self.by_table(e, W):
            if isinstance(e, AffAtom):
                self.visit_affine(e, W)
            else:
                self.cone_block(e, W)

    def visit_affine(self, e: Any, W: cp.Expression) -> None:
        """Add <W, e> for an affine atom: its arguments get their weights by the adjoint."""
        inner = e.args[0]
        if type(e).__name__ == "Trace" and type(inner).__name__ == "MulExpression":
            A, X = inner.args
            if A.is_constant() and A.ndim == X.ndim == 2:  # <w, tr A X> = <w A', X>
                self.visit(X, uniform(W) * A.T)
                return
        for k, a in enumerate(e.args):
            if not a.is_constant() or type(e).__name__ in STACKS:
                self.visit(a, adjoint(e, k, W))

    def by_table(self, g: Any, W: cp.Expression) -> bool:
        """Add <W, g> for an atom of the table; False where there is no entry for it."""
        name, sign = type(g).__name__, 1.0 if g.is_atom_convex() else -1.0
        if name not in CONJUGATES:
            return False
        u = W if sign > 0 else -W
        number = name in NUMBERS and uniform(u) is not None and not u.parameters()
        scaled = u.is_constant() and not number and name not in SUPPORTS
        self.new.of = "the fit of a risk" if isinstance(g, Risk) else f"the atom {term_name(g)}"
        self.new.entrywise = scaled and uniform(u) is None
        stated = CONJUGATES[name](g, cp.Constant(np.ones(u.shape)) if scaled else u, self.new)
        if stated is None:
            return False
        pairs, cost, domain = stated
        cost = cp.Expression.cast_to_const(cost)
        if scaled:
            pairs = [(times(u, y, getattr(g, "axis", None)), a) for y, a in pairs]
            cost = pairing(u, cost)
        cost = cp.sum(cost) if cost.size > 1 else cost
        domain = [*domain, *(c for y, a in pairs for c in monotone(y, a))]
        for constraint in domain:
            constraint.set_label(constraint.label or term_name(g))
        self.found.terms.append(Term(g, u, sign, pairs, cost, domain))
        for y, a in pairs:
            self.visit(a, y)
        return True

    def cone_block(self, g: Any, W: cp.Expression) -> None:
        """Add <W, g> for an atom without an entry: the cone form of g <= t in the place of g."""
        gradient, convex, kind = self.found.gradient, g.is_atom_convex(), type(g).__name__
        inner = [a if a.is_constant() else cp.Variable(a.shape, **known_of(a)) for a in g.args]
        t, shown = cp.Variable(g.shape), with_args(g, inner)
        given = cp.Problem(cp.Minimize(0), [shown <= t if convex else -shown <= t])
        try:
            form, _ = Dcp2Cone(quad_obj=False).apply(given)
        except Exception as error:  # cvxpy raises of many classes, such as AssertionError for suppfunc
            raise DualizationError(
                f"an atom must have a conjugate or a cone form, got {kind}, which cvxpy writes by none "
                f"({type(error).__name__}: {error}), in dualize. Write it with other atoms."
            ) from error
        gradient[t] = [W if convex else -W]
        for c in form.constraints:
            self.inner.append(self.constrain(c, f"y[{kind}]", kind, user=False))
        for v, a in zip(inner, g.args, strict=True):
            if v is not a:
                y = total(gradient.pop(v, [cp.Constant(np.zeros(v.shape))]))
                self.found.cones += [c.set_label(kind) for c in monotone(y, a)]
                self.visit(a, y)

    def reduced(self, constraint: Any, name: str, i: int, superfluous: bool) -> Multiplier:
        """Add a constraint of the problem; a matrix inequality of low rank is restricted to its range."""
        label = constraint.label or f"constraint {i}"
        if superfluous:
            shape = constraint.dual_variables[0].shape
            zero = cp.Variable(shape, name=fresh(name, self.new.taken), value=np.zeros(shape))
            return Multiplier(constraint, label, [zero], [])
        smaller, basis = facial_reduction(constraint)
        return replace(self.constrain(smaller, name, label), constraint=constraint, basis=basis)

    def constrain(self, c: Any, wanted: str, label: str, user: bool = True) -> Multiplier:
        """Add a constraint with its multipliers."""
        kind = type(c).__name__
        self.new.of = f"the {'constraint ' * user}{label.removeprefix('constraint ')}"
        found = multipliers(c, wanted, self.new)
        if found is None:
            raise DualizationError(
                f"the constraints of a problem must be in cones whose duals are known, got a {kind} in "
                f"{label} in dualize. Write it with other constraints."
            )
        variables, cones = found
        self.found.cones += [cone.set_label(label) for cone in cones]
        plus = kind in ("Inequality", "NonPos", "Equality", "Zero")
        terms = [(v if plus else -v, e) for v, e in zip(variables, slacks(c), strict=True)]
        for W, e in terms:
            self.visit(e, W)
        return Multiplier(c, label, variables, terms, user=user)


def multiplier_names(problem: cp.Problem) -> list[str]:
    """Return y[label] for each constraint; lambda, nu or Z without one, numbered if several."""
    words = {"Inequality": "lambda", "NonNeg": "lambda", "NonPos": "lambda", "PSD": "Z"}
    found = [f"y[{c.label}]" if c.label else words.get(type(c).__name__, "nu") for c in problem.constraints]
    counts, numbers = Counter(found), {word: count(1) for word in found}
    several = (w in ("lambda", "nu", "Z") and counts[w] > 1 for w in found)
    return [f"{w}{next(numbers[w])}" if many else w for w, many in zip(found, several, strict=True)]


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


def known_of(a: cp.Expression) -> dict[str, Any]:
    """Return the attributes that cvxpy's rules need of the stand-in of an argument."""
    if a.ndim == 2 and a.size > 1 and a.is_symmetric():
        return {"PSD": True} if a.is_psd() else {"symmetric": True}
    return {"nonneg": True} if a.is_nonneg() else {"nonpos": True} if a.is_nonpos() else {}
