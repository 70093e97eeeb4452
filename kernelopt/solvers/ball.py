"""The problem that the analytic methods solve: one risk of a combination, its weights in an l_p ball."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.boxes import affine, ball
from kernelopt.certificates.closed import trivially_true
from kernelopt.grams import Grams
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.losses import Loss
from kernelopt.norms import conjugate_exponent, lp_length
from kernelopt.reading import coefficient, number, risks, unset
from kernelopt.solvers.solution import VANISHED
from kernelopt.validation import Array

ALIKE = 1e-8  # gaps closer than this are the same


@dataclass(frozen=True)
class Ball:
    """min factor * risk(sum_m theta_m K_m) + offset over theta >= 0, |theta / reach|_p <= 1.

    Methods work with w = theta / reach in the unit ball and with the kernels reach_m K_m on the labelled
    points, where the bounds are

        lower = l(alpha) - 1/2 |s|_q,       s_m = alpha' reach_m K_m alpha,
        upper = loss(K_w alpha + b) + 1/2 w's.
    """

    risk: Risk
    whole: Grams  # on all points
    theta: cp.Variable
    p: float
    reach: Array
    factor: float
    offset: float

    @cached_property
    def grams(self) -> Grams:
        """The kernels on the labelled points: taken when a method runs, not when a problem is read."""
        n = self.y.size
        return self.whole.block(slice(0, n)) if n < self.whole.n_points else self.whole

    @property
    def loss(self) -> Loss:
        """The loss of the risk."""
        return self.risk.learner.loss

    @property
    def y(self) -> Array:
        """The labels or targets."""
        return self.risk.learner.y

    @property
    def bias(self) -> bool:
        """Whether there is an intercept."""
        return self.risk.learner.bias is not None

    @property
    def start(self) -> Array:
        """Equal weights on the boundary of the unit ball: a zero weight would stay zero."""
        return np.full(self.reach.size, self.reach.size ** (-1 / self.p))

    def lower(self, alpha: Array, s: Array) -> float:
        """Return the lower bound of the problem from alpha in the dual domain and its forms s."""
        return self.offset + self.factor * (
            self.loss.conjugate(alpha, self.y) - lp_length(s, conjugate_exponent(self.p)) / 2
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


def read_ball(problem: cp.Problem) -> Ball | str:
    """Read a problem as a `Ball`, or say what stands in the way."""
    found = risks(problem)
    if len(found) != 1:
        return f"it needs one risk, the problem has {len(found)}"
    if unset(problem):
        return unset(problem)
    risk = found[0]
    parts = terms(risk.learner.kernels[0]) if len(risk.learner.kernels) == 1 else None
    if parts is None or len(parts) != 1 or not isinstance(parts[0].weights, cp.Variable):
        return "its kernel must be combine(theta, grams) with a variable theta"
    share = coefficient(problem.objective.args[0], risk)
    rest = problem.objective.args[0].tree_copy({id(risk): cp.Constant(0.0)})
    minimised = isinstance(problem.objective, cp.Minimize)
    if not minimised or share is None or rest.variables() or not number(share) > 0:
        return "its objective must be a positive multiple of the risk, plus a constant"
    theta, grams = parts[0]
    if not theta.is_nonneg():
        return f"{theta.name()} must be a variable with nonneg=True"
    if theta.attributes["bounds"] is not None:
        return f"{theta.name()} has bounds beside nonneg=True"
    others = [c for c in problem.constraints if not trivially_true(c)]
    if len(others) != 1:
        listed = ", ".join(c.label or str(c) for c in others)
        return f"it needs one constraint, an l_p ball or a trace, the problem has {len(others)}: {listed}"
    size = scaled_ball(others[0], theta)
    if size is None:
        return (
            f"the constraint {others[0].label or others[0]} is not an l_p ball or a trace of {theta.name()}"
        )
    return Ball(risk, grams, theta, *size, number(share), number(rest))


def scaled_ball(constraint: cp.Constraint, theta: cp.Variable) -> tuple[float, Array] | None:
    """Read |theta / reach|_p <= 1 as (p, reach).

    It is a ball, or r'theta <= c, or r'theta == c, with r > 0: then p is one.
    """
    sphere = ball(constraint)
    if sphere is not None and sphere[0] is theta and sphere[2] > 0:
        return sphere[1], np.full(theta.size, sphere[2])
    if not isinstance(constraint, Inequality | Equality) or constraint.size != 1:
        return None
    had = theta.value
    theta.save_value(np.zeros(theta.shape))
    edge = affine(constraint.expr) if constraint.variables() == [theta] else None
    theta.save_value(had)
    if edge is None:
        return None
    row, total = edge.matrices[theta].toarray()[0], -float(edge.constant[0])
    reach = np.divide(total, row, out=np.full(row.size, -1.0), where=row != 0)
    signed = row.sum() > 0 or isinstance(constraint, Equality)
    return (1.0, reach) if signed and (reach > 0).all() else None


def obstacles(problem: cp.Problem) -> list[str]:
    """Return what stands in the way of reading a problem as a `Ball`."""
    read = read_ball(problem)
    return [read] if isinstance(read, str) else []


def exponent(problem: cp.Problem) -> float | None:
    """Return p where the problem is one risk in an l_p ball or under a trace."""
    read = read_ball(problem)
    return None if isinstance(read, str) else read.p


def evened(problem: cp.Problem, certificate: Certificate) -> Certificate:
    """Return the certificate at equal weights where f = 0 is optimal, so that any weights are."""
    read = read_ball(problem)
    if isinstance(read, str) or not certificate.feasible:
        return certificate
    alpha = certificate.alphas[0]
    if float((read.reach * read.start) @ read.grams.forms(alpha)) > VANISHED * max(
        1.0, abs(certificate.upper)
    ):
        return certificate
    equal = certify(problem, {read.theta: read.reach * read.start}, alpha=alpha)
    return equal if equal.gap <= certificate.gap + ALIKE else certificate
