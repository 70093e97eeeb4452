"""Problems whose certificates travel, of every kind that can be stated, and the verdict of both checkers."""

import time
from fractions import Fraction
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations import lanckriet, lp_norm, triplet_lp
from kernelopt.certificates import check
from tests.certificates.forgeries import read
from tests.certificates.judging import second_opinion

N = 10


def data(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    kernels = [ko.gaussian(1.0), ko.gaussian(3.0), ko.polynomial(2)]
    return ko.Grams.from_kernels(kernels, X).normalize("multiplicative"), y


GRAMS, Y = data()
TARGETS = np.asarray(GRAMS)[0] @ np.linspace(-1, 1, N)
COMPARED = np.array([*np.asarray(GRAMS)[:2] ** 8, np.eye(N)])
TRIPLETS = ko.sample_triplets(Y, 10, 0)


def over(constrain, free=False, prices=0.0):
    """A risk over a set that no formulation has."""
    mu = cp.Variable(3, nonneg=not free)
    K = ko.combine(mu, GRAMS)
    objective = ko.risk(K, Y, ko.hinge()) + prices * cp.sum(mu)
    return cp.Problem(cp.Minimize(objective), [*constrain(mu, K), *([K >> 0] if free else [])])


def linear():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 1])


def signs():
    """A third is no double: the optimum 1/3 is between two neighbours."""
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Maximize(x[0] - x[1]), [3 * x[0] + x[2] <= 1, x[2] >= 0])


def second_order():
    """3 y_0 + 4 y_1 over the unit disc."""
    y = cp.Variable(2)
    return cp.Problem(cp.Maximize(3 * y[0] + 4 * y[1] + 1), [cp.norm(y) <= 1])


def rows_and_columns():
    """Cones along both axes: each row of norm 1 and each column of norm at most 2."""
    Z = cp.Variable((2, 3))
    cost = np.array([[3.0, 0.0, 4.0], [5.0, 12.0, 0.0]])
    cones = [cp.norm(Z, 2, axis=1) <= 1, cp.norm(Z, 2, axis=0) <= 2]
    return cp.Problem(cp.Maximize(cp.sum(cp.multiply(cost, Z))), cones)


def max_cut():
    cycle, X = np.roll(np.eye(5), 1, axis=0), cp.Variable((5, 5), PSD=True)
    laplacian = (2 * np.eye(5) - cycle - cycle.T) / 4
    return cp.Problem(cp.Maximize(cp.trace(laplacian @ X)), [cp.diag(X) == 1])


def eigenvalue():
    """The largest eigenvalue of a matrix with entries that are no multiples of a power of two."""
    t = cp.Variable()
    return cp.Problem(cp.Minimize(t), [t * np.eye(3) >> np.full((3, 3), 0.1)])


def squares():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])


OPTIMA = {  # of programmes without risks
    "linear": Fraction(1, 2),
    "signs": Fraction(1, 3),
    "second_order": 6,
    "rows_and_columns": 18,
    "max_cut": 5 * (5 + np.sqrt(5)) / 8,
    "eigenvalue": Fraction(3 * Fraction(0.1)),
    "squares": Fraction(1, 2),
}
LEARNING = {
    **{f"l_{p:.3g}": lambda p=p: lp_norm.primal(GRAMS, Y, p=p) for p in (1, 2, np.inf, 4 / 3, 3.0)},
    "squared hinge": lambda: lp_norm.primal(GRAMS, Y, loss=ko.squared_hinge(2.0)),
    "huberized hinge": lambda: lp_norm.primal(GRAMS, Y, loss=ko.huberized_hinge(1.0, 0.3)),
    "squared": lambda: lp_norm.primal(GRAMS, TARGETS, loss=ko.squared(3.0)),
    "epsilon insensitive": lambda: lp_norm.primal(GRAMS, TARGETS, loss=ko.epsilon_insensitive(2.0, 0.05)),
    "one class": lambda: lp_norm.primal(GRAMS, None, loss=ko.one_class(0.4)),
    "qcqp": lambda: lanckriet.qcqp(GRAMS, Y, C=1.0),
    "qcqp, hard margin": lambda: lanckriet.qcqp(GRAMS, Y),
    "qcqp, learned tau": lambda: lanckriet.qcqp(GRAMS, Y, tau="learned"),
    "qcqp, transduction": lambda: lanckriet.qcqp(GRAMS, Y[:8], C=1.0),
    "sdp": lambda: lanckriet.sdp(GRAMS, Y, C=1.0),
    "sdp, transduction": lambda: lanckriet.sdp(GRAMS, Y[:8], C=1.0),
    "sdp, learned tau": lambda: lanckriet.sdp(GRAMS, Y, tau="learned"),
    "alignment": lambda: lanckriet.alignment(GRAMS, Y),
    "alignment, free": lambda: lanckriet.alignment(GRAMS, Y, weights="free"),
    "alignment, train": lambda: lanckriet.alignment(GRAMS, Y[:8], weights="free", norm="train"),
    "triplets": lambda: triplet_lp.kernel_design(COMPARED, TRIPLETS, gamma1=0.05, gamma2=0.02),
    "triplets, nonnegative": lambda: triplet_lp.kernel_design(
        COMPARED, TRIPLETS, gamma1=0.05, gamma2=0.02, cone="nonnegative"
    ),
    "features": lambda: triplet_lp.feature_selection(COMPARED, TRIPLETS, [0, 0, 1], gamma1=0.05, gamma2=0.02),
    "prices": lambda: over(lambda mu, K: ko.lp_ball(mu, 2), prices=0.3),
    "prices, free": lambda: over(lambda mu, K: [ko.trace(K) <= N], free=True, prices=0.3),
    "frobenius": lambda: over(lambda mu, K: [ko.frobenius(K) <= N]),
    "frobenius, free": lambda: over(lambda mu, K: [ko.frobenius(K) <= N], free=True),
    "ball, free": lambda: over(lambda mu, K: [cp.norm(mu, 2) <= 1], free=True),
}
PROBLEMS = LEARNING | {
    make.__name__: make
    for make in (linear, signs, second_order, rows_and_columns, max_cut, eigenvalue, squares)
}
KINDS = ["l_1.33", "qcqp", "sdp", "alignment, free", "triplets"]  # one of every kind with kernels


class Saved(NamedTuple):
    """A certificate, the value that was found, and the file with its documents and arrays."""

    certificate: Any
    value: float
    path: Any
    facts: dict[str, Any]
    arrays: dict[str, Any]


def save(made, path):
    """Solve a formulation or a problem, and save its certificate; programmes are certified after a solve."""
    if isinstance(made, cp.Problem) and not ko.Structure(made).risks:
        made.solve(solver="CLARABEL")
        certificate, value = ko.certify(made), made.value
    else:
        solution = ko.solve(made) if isinstance(made, cp.Problem) else made.solve()
        certificate, value = solution.certificate, solution.value
    certificate.save(path)
    return Saved(certificate, value, path, *read(path))


def verdict(path):
    """Return the verdict of both checkers; each takes less than five seconds."""
    began = time.process_time()
    valid, said = check.verdict(path)
    first = time.process_time() - began
    second_opinion(path, valid, said)
    assert first < 5 and time.process_time() - began - first < 5
    return valid, said
