"""One risk of a combination whose weights lie in an l_p ball or under a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.grams import Grams, join
from kernelopt.language.risk import Learner
from kernelopt.language.terms import Term, terms
from kernelopt.losses import Loss
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.structure.affine import affine
from kernelopt.structure.structure import Point, RiskTerm, Structure, once
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Ball:
    """min factor * risk(sum_m theta_m K_m) + offset over theta >= 0, |theta / reach|_p <= 1.

    theta is made of the entries of one variable or, under a trace, of several. Methods work with
    w = theta / reach in the unit ball and with the kernels reach_m K_m on the labelled points, where the
    bounds are

        lower = l(alpha) - 1/2 |s|_q,       s_m = alpha' reach_m K_m alpha,
        upper = loss(K_w alpha + b) + 1/2 w's.
    """

    learner: Learner
    whole: Grams  # on all points, one kernel for each entry of theta
    variables: tuple[cp.Variable, ...]
    p: float
    reach: Array
    factor: float
    offset: float

    def point(self, theta: Array) -> Point:
        """Return the values of the variables at theta."""
        cuts = np.cumsum([v.size for v in self.variables])[:-1]
        pairs = zip(self.variables, np.split(theta, cuts), strict=True)
        return {v.id: np.reshape(part, v.shape) for v, part in pairs}

    def weights(self, point: Point) -> Array:
        """Return theta at the values of the variables."""
        return np.concatenate([np.ravel(point[v.id]) for v in self.variables])

    @cached_property
    def grams(self) -> Grams:
        """The kernels on the labelled points: taken when a method runs, not when a problem is read."""
        n = self.y.size
        return self.whole.block(slice(0, n)) if n < self.whole.n_points else self.whole

    @property
    def loss(self) -> Loss:
        """The loss of the risk."""
        return self.learner.loss

    @property
    def y(self) -> Array:
        """The labels or targets."""
        return self.learner.y

    @property
    def bias(self) -> bool:
        """Whether there is an intercept."""
        return self.learner.bias is not None

    @property
    def start(self) -> Array:
        """Equal weights on the boundary of the unit ball: a zero weight would stay zero."""
        return np.full(self.reach.size, self.reach.size ** (-1 / self.p))

    def lower(self, alpha: Array, s: Array) -> float:
        """Return the lower bound of the problem from alpha in the dual domain and its forms s."""
        return self.offset + self.factor * (
            self.loss.dual_value(alpha, self.y) - lp_length(s, conjugate_exponent(self.p)) / 2
        )

    def upper(self, f: Array, w: Array, s: Array) -> float:
        """Return the value at weights w of the predictor f = K_w alpha, with its best intercept."""
        return self.offset + self.factor * self.loss.primal(f, float(w @ s) / 2, self.y, self.bias).value

    def analytic(self, w: Array, s: Array) -> Array:
        """Return the weights that are best for the block norms |w_m| = w_m sqrt(s_m): equation (17)."""
        lengths = w * np.sqrt(np.maximum(s, 0.0))
        return balanced(lengths, self.p, w)

    def best_response(self, w: Array, s: Array) -> Array:
        """Return the weights that maximise w's in the unit ball, for alpha held fixed: equation (21)."""
        if self.p == 1:
            top = (s >= s.max() * (1 - 1e-12)).astype(float)
            return np.asarray(top / top.sum())
        if np.isinf(self.p) or not s.max() > 0:
            return w
        q = conjugate_exponent(self.p)
        powers = (np.maximum(s, 0.0) / s.max()) ** (q - 1)
        best: Array = powers / lp_length(powers, self.p)
        return best


def balanced(lengths: Array, p: float, otherwise: Array) -> Array:
    """Return theta_m ~ |w_m|^(2/(p+1)) with |theta|_p = 1; `otherwise` where all lengths are zero."""
    if np.isinf(p):
        return np.ones(lengths.size)
    largest = float(lengths.max(initial=0.0))
    if not largest > 0:
        return otherwise
    powers = (lengths / largest) ** (2 / (p + 1))
    weights: Array = powers / lp_length(powers, p)
    return weights


@once
def read_ball(structure: Structure) -> Ball | str:
    """Read a problem as a `Ball`, or say what stands in the way."""
    single = one_risk(structure)
    if isinstance(single, str):
        return single
    size = read_set(structure)
    if isinstance(size, str):
        return size
    variables, p, reach = size
    whole = read_kernels(single.risk, variables)
    if isinstance(whole, str):
        return whole
    return Ball(single.risk.learner, whole, variables, p, reach, single.factor, single.offset)


class OneRisk(NamedTuple):
    """min factor * risk + offset with factor > 0."""

    risk: RiskTerm
    factor: float
    offset: float


def one_risk(structure: Structure) -> OneRisk | str:
    """Read the objective as a positive multiple of one risk plus a constant, or say what it is not."""
    if len(structure.risks) != 1:
        return f"it needs one risk, the problem has {len(structure.risks)}"
    if structure.unset:
        return structure.unset
    shares, rest = structure.objective.shares, structure.rest
    if structure.maximize or shares is None or rest is None or rest.matrices or not shares[0] > 0:
        return "its objective must be a positive multiple of the risk, plus a constant"
    return OneRisk(structure.risks[0], float(shares[0]), float(rest.constant[0]))


def read_set(structure: Structure) -> tuple[tuple[cp.Variable, ...], float, Array] | str:
    """Read the set of all variables as (variables, p, reach), or say what stands in the way."""
    for variable in structure.variables:
        if variable.ndim > 1 or not variable.is_nonneg():
            return f"{variable.name()} must be a vector with nonneg=True"
        if variable.attributes["bounds"] is not None:
            return f"{variable.name()} has bounds beside nonneg=True"
    constraints = [structure.lifted.constraints[i] for i in structure.active]
    if len(constraints) != 1:
        listed = ", ".join(c.label or str(c) for c in constraints)
        return (
            f"it needs one constraint, an l_p ball or a trace, the problem has {len(constraints)}: {listed}"
        )
    sphere, edge = structure.spheres[structure.active[0]], structure.edges[structure.active[0]]
    if sphere is not None and sphere.radius > 0 and len(structure.variables) == 1:
        return structure.variables, sphere.p, np.full(sphere.variable.size, sphere.radius)
    if edge is None or not (
        edge.total > 0 and edge.bounds_all and set(edge.rows) == set(structure.variables)
    ):
        names = ", ".join(variable.name() for variable in structure.variables)
        which = constraints[0].label or constraints[0]
        return f"the constraint {which} is not an l_p ball or a trace of {names}"
    return structure.variables, 1.0, np.concatenate([edge.reach(v) for v in structure.variables])


def read_kernels(risk: RiskTerm, variables: tuple[cp.Variable, ...]) -> Grams | str:
    """Return one kernel for each entry of the variables, or say what stands in the way."""
    parts = terms(risk.kernels[0]) if len(risk.kernels) == 1 else None
    wanted = "its kernel must be a combination whose weights are the entries of its variables"
    if parts is None:
        return wanted
    found: dict[cp.Variable, Grams] = {}
    for part in parts:
        read = weighed(part)
        if read is None or read[0] in found:
            return wanted
        found[read[0]] = read[1]
    if set(found) != set(variables):
        return wanted
    return join([(1.0, found[variable]) for variable in variables])


def weighed(term: Term) -> tuple[cp.Variable, Grams] | None:
    """Read a term as a variable and the kernel that each of its entries weighs; None if it is none.

    Every entry must weigh one kernel of its own, times a positive number.
    """
    if isinstance(term.weights, cp.Variable):
        return term.weights, term.grams
    read = affine(term.weights)
    if read is None or read.constant.any() or len(read.matrices) != 1:
        return None
    ((variable, matrix),) = read.matrices.items()
    matrix = matrix.tocsc()
    matrix.eliminate_zeros()
    single = (np.diff(matrix.indptr) == 1).all() and np.unique(matrix.indices).size == matrix.nnz
    if not single or not (matrix.data > 0).all():
        return None
    return variable, join([(matrix.data, term.grams.subset(matrix.indices))])
