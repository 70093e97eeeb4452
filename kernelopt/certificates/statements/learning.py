"""The statement of one risk of a combination of kernels, with weights in a ball or under a trace."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.statements.lifting import give_multiplier, held, linear_over_cone
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import factor, fractions, in_ball, long_enough, on_grid, slacks
from kernelopt.grams import Grams, join
from kernelopt.language.terms import Term, terms
from kernelopt.losses import Loss, hard_margin
from kernelopt.losses.base import project_zero_sum
from kernelopt.structure.ball import one_risk, weighted_kernels
from kernelopt.structure.structure import Structure, is_zero, once
from kernelopt.structure.trees import short
from kernelopt.validation import Array

Variables = tuple[tuple[str, int, bool], ...]  # name, number of entries, whether they have a sign
Cone = tuple[tuple[int, Grams], ...]  # columns, each with its matrix


@dataclass(frozen=True, eq=False)
class Size:
    """What bounds the weights x: row'x == total, row'x <= total, or |x|_p <= total where there is no row."""

    name: str
    total: float
    row: Array | None = None
    equal: bool = False
    p: float = 1.0


@dataclass(frozen=True, eq=False)
class Learning:
    """min price * risk(sum_j x_j K_j) + offset over weights x of a size, those of free sign in a cone.

    Attributes
    ----------
    words : str
    variables : those whose entries are x, in order
    kernels : Grams on the labelled points, one for each x_j
    cone : the matrices G_j of sum_j x_j G_j >> 0 on all points, empty where no cone is needed
    """

    words: str
    variables: Variables
    kernels: Grams
    cone: Cone
    y: Array
    loss: Loss
    bias: bool
    price: float
    offset: float
    size: Size

    def statement(self, certificate: Any) -> Statement:
        """Return the problem with a witness near the point and the dual variable of a certificate."""
        columns, signs = column_names(self.variables)
        stated = Statement(self.words, columns, signs, offset=self.offset)
        linear, curvature, l1, low, high = self.loss.curve(self.y)
        K = np.asarray(self.kernels)
        curve, ends = np.array([linear, curvature, l1]), np.array([low, high])
        stated.risk(K, range(len(K)), curve, ends, self.price, self.bias)
        if self.size.row is None:
            stated.ball(np.eye(len(K)), self.size.total, self.size.p)
        else:
            row = self.size.row.tolist()
            stated.row(self.size.name, range(len(K)), row, self.size.total, self.size.equal)
        if self.cone:
            stated.cone(padded(self.cone, len(K)))
        if certificate.alphas:
            self.prove_lower(stated, np.asarray(certificate.alphas[0]))
        if certificate.feasible and certificate.machines:
            x = np.concatenate([np.ravel(value) for value in certificate.point.values()])
            self.prove_upper(stated, x, np.asarray(certificate.machines[0].alpha))
        return stated

    def prove_lower(self, stated: Statement, alpha: Array) -> None:
        """Put alpha on a grid in its domain, and pay its forms with multipliers of the size and the cone."""
        low, high = stated.arrays["ends0"]
        near = project_zero_sum(alpha, low, high) if self.bias else np.clip(alpha, low, high)
        alpha = on_grid(near, low, high, self.bias)
        stated.give(0, alpha=alpha)
        a, K = fractions(alpha), fractions(stated.arrays["K0"])
        paid = [Fraction(self.price) * (a @ G @ a) / 2 for G in K]
        if self.size.row is None:
            y = np.array([np.nextafter(max(float(v), 0.0), np.inf) if v > 0 else 0.0 for v in paid])
            h, t = long_enough(y, conjugate(stated.facts["balls"][0]))
            stated.give(0, y=y, h=h, t=t)
            return
        row = fractions(self.size.row)
        if not self.cone:
            slope = max(v / r for v, r in zip(paid, row, strict=True))
            stated.u[0] = slope if self.size.equal else max(Fraction(0), slope)
            return
        free = np.array([not sign for sign in stated.signs])
        found = linear_over_cone(-np.array(paid, dtype=float), stated.arrays["G0"], self.sides(stated))
        if found is None:
            return

        def wanted(forms: Any) -> Any:
            ask = [v + f for v, f in zip(np.array(paid)[free], forms, strict=True)]
            slope = float(sum(r * v for r, v in zip(row[free], ask, strict=True)) / sum(row[free] ** 2))
            needed = [v / r for v, r in zip(np.array(paid)[~free], row[~free], strict=True)]
            stated.u[0] = max([Fraction(slope), *needed])
            return [stated.u[0] * r - v for r, v in zip(row[free], np.array(paid)[free], strict=True)]

        give_multiplier(stated, 0, found[1], free, wanted)

    def sides(self, stated: Statement) -> Any:
        """Return the constraints beside the cone, as a function of the weights."""
        signed = np.flatnonzero(stated.signs)
        return lambda x: [self.size.row @ x == self.size.total, *([x[signed] >= 0] if signed.size else [])]

    def prove_upper(self, stated: Statement, x: Array, beta: Array) -> None:
        """Scale the weights into the set exactly, and show the kernels there positive semidefinite."""
        x = np.where(stated.signs, np.maximum(x, 0.0), x)
        if self.cone:
            row = np.asarray(self.size.row)
            centre = np.full(x.size, self.size.total / row.sum())
            inner = held(stated.arrays["G0"], x, centre, self.sides(stated))
            if inner is None:
                return
            x, T = inner
            stated.give(0, T=T)
        if self.size.row is None:
            x, s = in_ball(x, stated.arrays["B0"], self.size.total, stated.facts["balls"][0])
            stated.give(0, s=s)
        point = fractions(x)
        if self.size.row is not None:
            size = sum(point * fractions(self.size.row))
            if self.size.equal or size > self.size.total:
                point = point * (Fraction(self.size.total) / size)
        exactly = np.tensordot(point, fractions(stated.arrays["K0"]), 1)
        M = np.array(exactly, dtype=float)
        shown = factor((M + M.T) / 2, exactly)
        if shown is None:
            return
        ridge, L = shown
        stated.x = point.tolist()
        f = M @ beta + ridge * beta
        b = self.loss.intercept(f, self.y) if self.bias else 0.0
        stated.give(0, ridge=ridge, L=L, beta=beta, b=b)
        if isinstance(self.loss, hard_margin):
            reached = float((self.y * (f + b)).min())
            for slack in slacks():
                scale = (1 + slack) / reached if reached > 0 else 1.0
                stated.give(0, beta=beta * scale, b=b * scale)
                if reached <= 0 or stated.sense * stated.bounds()[1] < np.inf:
                    return


def conjugate(p: str) -> str:
    """Return q with 1/p + 1/q = 1 as a fraction in words."""
    if p in ("1", "inf"):
        return "inf" if p == "1" else "1"
    return str(Fraction(p) / (Fraction(p) - 1))


@once
def read_learning(structure: Structure) -> Learning | str:
    """Read a problem of one risk, or say what stands in the way."""
    single = one_risk(structure)
    if isinstance(single, str):
        return single
    risk, learner = single.risk, single.risk.learner
    if not learner.loss.quadratic:
        return f"the conjugate of {learner.loss!r} has no exact value in fractions"
    found = combined(terms(risk.kernels[0])) if len(risk.kernels) == 1 else None
    if found is None or set(found) != set(structure.variables):
        return "its kernel must be a combination whose weights are the entries of its variables"
    size = read_size(structure)
    if isinstance(size, str):
        return size
    cone = read_cone(structure)
    if isinstance(cone, str):
        return cone
    variables = structure.variables
    if not all(v.is_nonneg() for v in variables) and not cone:
        return "weights of free sign need the constraint K >> 0"
    if cone and (size.row is None or not size.equal):
        return "weights of free sign need a trace, r'x == c"
    # A parameter C is taken at its value of now, since the certificate is saved later.
    moving = any(isinstance(v, cp.Parameter) for v in vars(learner.loss).values())
    loss = learner.loss.scaled(1.0) if moving else learner.loss
    whole = join([(1.0, found[v]) for v in variables])
    return Learning(
        words(structure),
        read_variables(structure),
        whole.block(slice(0, learner.n)) if learner.n < whole.n_points else whole,
        cone,
        learner.y,
        loss,
        learner.bias is not None,
        single.factor,
        single.offset,
        size,
    )


def combined(parts: list[Term] | None) -> dict[cp.Variable, Grams] | None:
    """Return the kernel of every entry of every variable, None where that is not the form."""
    found: dict[cp.Variable, Grams] = {}
    for part in parts or []:
        if is_zero(part.grams):
            continue
        read = weighted_kernels(part)
        if read is None or read[0] in found or read[0].ndim > 1 or read[0].attributes["bounds"] is not None:
            return None
        found[read[0]] = read[1]
    return found or None


def read_size(structure: Structure) -> Size | str:
    """Return the one constraint that bounds the weights."""
    constraints = structure.lifted.constraints
    chosen = [i for i in structure.active if not isinstance(constraints[i], cp.constraints.PSD)]
    if len(chosen) != 1:
        return f"it needs one constraint that bounds the weights, the problem has {len(chosen)}"
    constraint, read = constraints[chosen[0]], structure.affines[chosen[0]]
    name = constraint.label or short(constraint)
    sphere = structure.norm_balls[chosen[0]]
    if sphere is not None and sphere.radius > 0 and structure.variables == (sphere.variable,):
        if sphere.p > 1:
            return Size(name, sphere.radius, p=sphere.p)
        return Size(name, sphere.radius, np.ones(sphere.variable.size))
    if not isinstance(constraint, Equality | Inequality) or read is None or read.constant.size != 1:
        return f"the constraint {name} is not an l_p ball or a trace"
    row = np.concatenate([read.gradient(v) for v in structure.variables])
    total, equal = -float(read.constant[0]), isinstance(constraint, Equality)
    if equal and total < 0:
        row, total = -row, -total
    if not (total > 0 and (row > 0).all()):
        return f"the constraint {name} is not an l_p ball or a trace of all weights"
    return Size(name, total, row, equal)


def column_names(variables: Variables) -> tuple[list[str], list[bool]]:
    """Return the names and the signs of all entries."""
    names = [f"{name}[{i}]" for name, entries, _ in variables for i in range(entries)]
    return names, [sign for _, entries, sign in variables for _ in range(entries)]


def padded(cone: Cone, size: int) -> Array:
    """Return one matrix for every column, zero for those that do not stand in the cone."""
    order = cone[0][1].n_points
    G = np.zeros((size, order, order))
    for j, gram in cone:
        G[j] = gram.gram(0)
    return G


def read_variables(structure: Structure) -> Variables:
    """Return what is kept of the variables."""
    return tuple((v.name(), v.size, bool(v.is_nonneg())) for v in structure.variables)


def read_cone(structure: Structure) -> Cone | str:
    """Return the columns and matrices of K >> 0, none where there is no such constraint."""
    cones = [c for c in structure.lifted.constraints if isinstance(c, cp.constraints.PSD)]
    cones = [c for c in [*cones, *structure.domains] if not c.args[0].is_psd()]
    if not cones:
        return ()
    found = combined(terms(cones[0].args[0])) if len(cones) == 1 else None
    if found is None or any(v.is_nonneg() for v in found):
        return "its semidefinite constraint must be one combination of kernels with weights of free sign"
    starts = first_columns(structure)
    if any(not v.is_nonneg() and v not in found for v in structure.variables):
        return "all weights of free sign must stand in K >> 0"
    return tuple((starts[v.id] + i, grams.subset([i])) for v, grams in found.items() for i in range(v.size))


def first_columns(structure: Structure) -> dict[int, int]:
    """Return the place of the first entry of every variable, by id."""
    ends = np.cumsum([v.size for v in structure.variables])
    return {v.id: int(end) - v.size for v, end in zip(structure.variables, ends, strict=True)}


def words(structure: Structure) -> str:
    """Return the problem in words."""
    return " ".join(str(structure.problem).split())
