"""l_p-norm multiple kernel learning: risks of one kernel, with weights in an l_p ball or of bounded trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np

from kernelopt.grams import Grams, join
from kernelopt.language.learner import Learner
from kernelopt.language.terms import Term, terms
from kernelopt.losses import Loss, Primal
from kernelopt.numerics.norms import conjugate_exponent, length_of_positive
from kernelopt.structure.affine import affine, single_entries
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.learning import one_risk, read_sets, weighted_risks
from kernelopt.structure.parts import Budget, gathered, split
from kernelopt.structure.powers import LpBall
from kernelopt.structure.structure import Point, RiskTerm, Structure, kept_in_structure
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class BallProblem:
    r"""A sum of risks and a price of the weights, minimised over an l_p ball of weights.

    .. math:: \min_\theta\ \mathrm{factor} \sum_k \mathrm{shares}_k\, \mathrm{risk}_k(K_\theta)
        + \mathrm{prices}'\theta + \mathrm{offset}

    The ball is :math:`\|\theta / \mathrm{reach}\|_p \le 1` with :math:`\theta \ge 0`. All risks have the
    kernel :math:`K_\theta = \sum_m \theta_m K_m`, on the same n labelled points. In most problems there is
    one risk, of share 1: then alpha and f below have shape (n,), and s has shape (m,). Of r > 1 risks they
    have shapes (r, n) and (r, m), with a row for each.

    The vector theta holds the entries of `variables`, one variable after the other. Several variables occur
    only under a trace constraint, where p = 1 and the reach of a kernel is the bound of the trace divided by
    its trace.

    The methods use the scaled weights :math:`w = \theta / \mathrm{reach}`, which lie in the unit l_p ball,
    and the scaled kernels :math:`\mathrm{reach}_m K_m` on the labelled points. With
    :math:`c_m = \mathrm{reach}_m\, \mathrm{prices}_m / \mathrm{factor}` the objective is factor (risk + c'w)
    + offset, where risk, l, loss and s are summed over the risks with their shares. For alpha in the domain
    of the dual, with :math:`1/p + 1/q = 1` and :math:`s_m = \alpha' \mathrm{reach}_m K_m \alpha`, weak
    duality bounds risk + c'w at the optimum by

    .. math:: \ell(\alpha) - \|(s / 2 - c)_+\|_q \le \mathrm{risk} + c'w
        \le \mathrm{loss}(K_w \alpha + b) + \tfrac12 w's + c'w.

    The norm is the maximum of :math:`(s / 2 - c)'w` over the ball. The prices are zero in most problems.

    Parameters
    ----------
    learners : tuple of r Learner
        The labels, the loss and the kernels of each risk.
    shares : tuple of r float > 0
        The first one is 1.
    whole : Grams of shape (m, N, N)
        The kernels K_m on all N points, one for each entry of theta.
    variables : tuple of cp.Variable
        Whose entries are theta.
    p : float in [1, inf]
        The exponent of the ball.
    reach : array of shape (m,)
        The largest value that each weight can have.
    factor, offset : float
        Of the objective.
    prices : array of shape (m,)
        Of the weights.

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
    """

    learners: tuple[Learner, ...]
    shares: tuple[float, ...]  # positive, the first is 1
    whole: Grams  # the kernels K_m on all N points, one for each entry of theta
    variables: tuple[cp.Variable, ...]
    p: float
    reach: Array
    factor: float
    offset: float
    prices: Array

    def point(self, theta: Array) -> Point:
        """Return the values of the variables at theta.

        Parameters
        ----------
        theta : array of shape (m,)
            The weights.
        """
        return split(self.variables, theta)

    def weights(self, point: Point) -> Array:
        """Return theta at the values of the variables.

        Parameters
        ----------
        point : dict from int to array
            The values, by the ids of the variables.
        """
        return gathered(self.variables, point)

    @cached_property
    def grams(self) -> Grams:
        """The kernels K_m on the labelled points, taken from `whole` at first use."""
        return self.whole.block(slice(0, self.n))

    @cached_property
    def n(self) -> int:
        """The number of labelled points."""
        return self.learners[0].y.size

    @cached_property
    def q(self) -> float:
        """The conjugate exponent of p: 1/p + 1/q = 1."""
        return conjugate_exponent(self.p)

    @cached_property
    def learner(self) -> Learner:
        """The data of the only risk."""
        (only,) = self.learners
        return only

    @cached_property
    def loss(self) -> Loss:
        """The loss of the only risk."""
        return self.learner.loss

    @cached_property
    def y(self) -> Array:
        """The labels or targets of the only risk."""
        return self.learner.y

    @property
    def bias(self) -> bool:
        """Whether the only risk has an intercept."""
        return self.learner.has_intercept

    @cached_property
    def linear(self) -> Array:
        """The vector c of the objective factor (risk + c'w) + offset, shape (m,)."""
        return np.asarray(self.reach * self.prices / self.factor)

    @cached_property
    def priced(self) -> bool:
        """Whether a price is not zero. Otherwise the objective decreases in every weight."""
        return bool(self.prices.any())

    @property
    def start(self) -> Array:
        r"""Equal weights with :math:`\|w\|_p = 1`.

        All are positive: a weight that is zero stays zero under the update of [1], eq. (17).
        """
        return np.full(self.reach.size, self.reach.size ** (-1 / self.p))

    def total(self, s: Array) -> Array:
        r"""Return :math:`\sum_k \mathrm{shares}_k\, s_k`, shape (m,).

        Parameters
        ----------
        s : array of shape (m,), or (r, m) for r > 1 risks
            :math:`\alpha' \mathrm{reach}_m K_m \alpha` of each risk.
        """
        return np.asarray(np.array(self.shares) @ np.atleast_2d(s))

    def lower(self, alpha: Array, s: Array) -> float:
        r"""Return :math:`offset + factor\, (\ell(\alpha) - \|(s/2 - c)_+\|_q)`, a lower bound.

        Parameters
        ----------
        alpha : array of shape (n,), or (r, n) for r > 1 risks
            In the domain of the dual.
        s : array of shape (m,), or (r, m)
            :math:`\alpha' \mathrm{reach}_m K_m \alpha` of each risk.
        """
        each = zip(self.shares, self.learners, np.atleast_2d(alpha), strict=True)
        value = sum(share * learner.loss.dual_value(a, learner.y) for share, learner, a in each)
        return self.offset + self.factor * (value - self.most(s))

    def most(self, s: Array) -> float:
        r"""Return :math:`\|(s / 2 - c)_+\|_q`, the maximum of (s / 2 - c)'w over the unit ball.

        Parameters
        ----------
        s : array of shape (m,), or (r, m) for r > 1 risks
            :math:`\alpha' \mathrm{reach}_m K_m \alpha` of each risk.
        """
        return length_of_positive(np.maximum(self.total(s) / 2 - self.linear, 0.0), self.q)

    def primals(self, f: Array, w: Array, s: Array) -> list[Primal]:
        r"""Return the best primal value of each machine with the predictors f = K_w alpha.

        Parameters
        ----------
        f : array of shape (n,), or (r, n) for r > 1 risks
            The predictors without the intercepts.
        w : array of shape (m,)
            The scaled weights.
        s : array of shape (m,), or (r, m)
            :math:`\alpha' \mathrm{reach}_m K_m \alpha` of each risk.
        """
        rows = zip(self.learners, np.atleast_2d(f), np.atleast_2d(s) @ w / 2, strict=True)
        return [d.loss.primal(row, float(penalty), d.y, d.has_intercept) for d, row, penalty in rows]

    def upper(
        self, f: Array, w: Array, s: Array, error: float | Array = 0.0, found: Sequence[Primal] = ()
    ) -> float:
        r"""Return the objective at weights w and the predictors f = K_w alpha, with the best intercepts.

        Parameters
        ----------
        f : array of shape (n,), or (r, n) for r > 1 risks
            The predictors without the intercepts.
        w : array of shape (m,)
            The scaled weights.
        s : array of shape (m,), or (r, m)
            :math:`\alpha' \mathrm{reach}_m K_m \alpha` of each risk.
        error : float, or array of shape (r,), default 0.0
            By how much entries of f may be wrong; then it is an upper bound of the objective.
        found : sequence of r Primal, optional
            The result of `primals`, where it is known.
        """
        found = found or self.primals(f, w, s)
        errors, penalties = np.broadcast_to(error, len(found)), np.atleast_2d(s) @ w / 2
        rows = zip(self.learners, np.atleast_2d(f), penalties, errors, found, strict=True)
        values = [
            d.loss.above(row, np.full(row.size, e), float(penalty), d.y, each.intercept / each.scale)
            if e > 0
            else each.value
            for d, row, penalty, e, each in rows
        ]
        value = sum(share * each for share, each in zip(self.shares, values, strict=True))
        return self.offset + self.factor * (value + float(self.linear @ w))


def read_ball(structure: Structure) -> BallProblem | str:
    """Return a problem of one risk, without prices, as a `BallProblem`, or a sentence why it is none.

    Parameters
    ----------
    structure : Structure
        Of the problem.

    Returns
    -------
    BallProblem or str
        The problem, or what stands in the way, for `Method.match`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> theta = cp.Variable(2, nonneg=True)
    >>> risk = ko.risk(ko.combine(theta, [np.eye(2), np.ones((2, 2))]), [1, -1], ko.hinge(1.0))
    >>> problem = cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2))
    >>> ball = ko.extend.read_ball(ko.Structure(problem))
    >>> ball.p, ball.reach.tolist()
    (2.0, [1.0, 1.0])
    """
    single = one_risk(structure)
    return single if isinstance(single, str) else read_risks_on_ball(structure)


@kept_in_structure
def read_risks_on_ball(structure: Structure) -> BallProblem | str:
    """Return a problem of one or several risks as a `BallProblem`, or a sentence why it is none."""
    read = weighted_risks(structure)
    if isinstance(read, str):
        return read
    part = read_weight_set(structure)
    if isinstance(part, str):
        return part
    variables, reach = structure.variables, np.concatenate([part.reach(v) for v in structure.variables])
    first, *others = read.risks
    if not all(have_same_kernel(first, other) for other in others):
        count = len(read.risks)
        wanted = "one kernel, and the same number of labelled points"
        return f"its risks must have {wanted}, which the {count} risks of the problem have not"
    whole = read_kernels(first.kernels, variables)
    if isinstance(whole, str):
        return whole
    prices = read.linear.over(variables).toarray()[0]
    learners, factor = tuple(risk.learner for risk in read.risks), read.factors[0]
    shares = tuple(each / factor for each in read.factors)
    return BallProblem(learners, shares, whole, variables, part.p, reach, factor, read.offset, prices)


def read_weight_set(structure: Structure) -> Budget | LpBall | str:
    """Return the feasible set as one l_p ball or trace of all weights, or a sentence why it is none."""
    for variable in structure.variables:
        if variable.ndim > 1 or not variable.is_nonneg():
            return f"{variable.name()} must be a vector with nonneg=True"
    sets = read_sets(structure)
    if isinstance(sets, str):
        return sets
    part = sets[0] if len(sets) == 1 else None
    if isinstance(part, Budget | LpBall):
        reach = np.concatenate([part.reach(v) for v in part.variables])
        if ((reach > 0) & np.isfinite(reach)).all():
            return part
    names = ", ".join(variable.name() for variable in structure.variables)
    constraints = [structure.lifted.constraints[i] for i in structure.active]
    found = f"{len(constraints)}: " + (", ".join(c.label or str(c) for c in constraints) or "none")
    return f"it needs one constraint, an l_p ball or a trace of {names}, the problem has {found}"


def read_kernels(kernels: tuple[cp.Expression, ...], variables: tuple[cp.Variable, ...]) -> Grams | str:
    """Return one kernel for each entry of the variables, or a sentence why the kernels are another."""
    found = kernels_by_variable(kernels[0]) if len(kernels) == 1 else None
    if found is None or set(found) != set(variables):
        return "its kernel must be a combination whose weights are the entries of its variables"
    return join([(1.0, found[variable]) for variable in variables])


def have_same_kernel(one: RiskTerm, two: RiskTerm) -> bool:
    """Whether two risks have one kernel on as many labelled points: the same weights of the same matrices."""
    K, L = one.kernels[0], two.kernels[0]
    first, second = ([(id(w), id(grams)) for w, grams in terms(each) or []] for each in (K, L))
    alone = len(one.kernels) == len(two.kernels) == 1
    return alone and one.learner.n == two.learner.n and (K is L or first == second != [])


def kernels_by_variable(K: cp.Expression) -> dict[cp.Variable, Grams] | None:
    """Return by variable the kernels of its entries, None where a term of K is not of that form."""
    found: dict[cp.Variable, Grams] = {}
    for part in terms(K) or []:
        if part.vanishes:
            continue
        read = weighted_kernels(part)
        if read is None or read[0] in found or read[0].ndim > 1 or beside_cone(read[0]):
            return None
        found[read[0]] = read[1]
    return found or None


def weighted_kernels(term: Term) -> tuple[cp.Variable, Grams] | None:
    """Return a term sum_m w_m K_m as (x, kernels) with term = sum_m x_m kernels_m, or None.

    Every weight must be w_m = c_m x_j(m) with a number c_m > 0, one variable x, and indices j(m) that are all
    different. The kernels returned are the c_m K_m. Otherwise the result is None.
    """
    if isinstance(term.weights, cp.Variable):
        return term.weights, term.grams
    read = affine(term.weights)
    if read is None or read.constant.any() or len(read.matrices) != 1:
        return None
    ((variable, matrix),) = read.matrices.items()
    factors = single_entries(matrix)
    if factors is None or not (factors > 0).all() or matrix.min() < 0:
        return None
    return variable, join([(factors, term.grams.subset(matrix.argmax(axis=0)))])
