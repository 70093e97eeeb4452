"""`certify` of extreme candidates: a true bracket, or an infinite bound with its reason, and no error."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.exact_fractions import quietly

N = 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = np.sign(X[:, 0])
Y[:2] = 1, -1
T = X[:, 0]
STACK = np.array([X @ X.T, np.eye(N), np.outer(X[:, 0], X[:, 0])])
NOISE = RNG.normal(size=N)

LOSSES = {
    "hinge": (ko.hinge(1.0), Y),
    "squared_hinge": (ko.squared_hinge(1.0), Y),
    "huberized_hinge": (ko.huberized_hinge(1.0, 0.5), Y),
    "hard_margin": (ko.hard_margin(), Y),
    "logistic": (ko.logistic(1.0), Y),
    "squared": (ko.squared(1.0), T),
    "epsilon_insensitive": (ko.epsilon_insensitive(1.0, 0.1), T),
    "one_class": (ko.one_class(1.0), None),
}

WEIGHTS = {
    "1": 1.0,
    "nan": np.nan,
    "inf": np.inf,
    "1e300": 1e300,
    "1e150": 1e150,
    "1e-300": 1e-300,
    "least": 5e-324,
    "-1": -1.0,
    "-1e300": -1e300,
    "0": 0.0,
}

ALPHAS = {
    "none": None,
    "y": Y,
    "-y": -Y,
    "nan": np.full(N, np.nan),
    "inf": np.full(N, np.inf),
    "-inf": np.full(N, -np.inf),
    "1e300": 1e300 * Y,
    "largest": np.full(N, 1.7e308),
    "1e160": 1e160 * NOISE,
    "1e20": 1e20 * NOISE,
    "1e12": 1e12 * NOISE,
    "1e-300": 1e-300 * Y,
    "least": 5e-324 * Y,
    "0": 0 * Y,
    "one entry": 1e10 * np.eye(N)[0],
    "mixed": np.array([1e300, -1e-300, np.nan, np.inf, 0, 1.0]),
}


def weighted(allowed, objective=lambda risk, mu: risk, nonneg=True):
    """A problem in the weights of the stack."""

    def build(loss, y):
        mu = cp.Variable(len(STACK), nonneg=nonneg, name="mu")
        K = ko.combine(mu, STACK)
        risk = ko.risk(K, y, loss)
        return cp.Problem(cp.Minimize(objective(risk, mu)), allowed(mu, K, risk)), mu

    return build


def matrix(allowed, penalty):
    """A problem in a PSD variable."""

    def build(loss, y):
        K = cp.Variable((N, N), PSD=True, name="K")
        return cp.Problem(cp.Minimize(ko.risk(K, y, loss) + penalty(K)), allowed(K)), K

    return build


def blocks(norm):
    """Constant kernels, no variable."""
    return lambda loss, y: (cp.Problem(cp.Minimize(ko.risk(list(STACK), y, loss, norm=norm))), None)


FORMS = {
    "ball": weighted(lambda mu, K, risk: ko.lp_ball(mu, 2)),
    "power ball": weighted(lambda mu, K, risk: ko.lp_ball(mu, 1.5)),
    "tiny ball": weighted(lambda mu, K, risk: ko.lp_ball(mu, 2, 1e-300)),
    "huge ball": weighted(lambda mu, K, risk: ko.lp_ball(mu, 2, 1e300)),
    "trace": weighted(lambda mu, K, risk: [ko.trace(K) == N]),
    "caps": weighted(lambda mu, K, risk: [cp.sum(mu) <= 1, mu[0] + 2 * mu[1] <= 1]),
    "tiny caps": weighted(lambda mu, K, risk: [cp.sum(mu) <= 1e-16, mu[0] + 2 * mu[1] <= 1e-16]),
    "price": weighted(lambda mu, K, risk: [], lambda risk, mu: risk + cp.sum_squares(mu)),
    "free signs": weighted(lambda mu, K, risk: [ko.trace(K) == N, K >> 0], nonneg=False),
    "constrained": weighted(lambda mu, K, risk: [risk <= 0.5], lambda risk, mu: cp.sum(mu)),
    "square": weighted(lambda mu, K, risk: [cp.sum(mu) <= 1], lambda risk, mu: cp.square(risk)),
    "spectrahedron": matrix(lambda K: [cp.trace(K) == N], lambda K: 0),
    "near": matrix(lambda K: [], lambda K: cp.sum_squares(K - np.eye(N))),
    "blocks": blocks(3.0),
    "few blocks": blocks(1.5),
}


class Extreme(NamedTuple):
    """A form with a loss, and what a stranger proposes for it."""

    form: str
    loss: str
    weights: str
    alpha: str
    retrain: bool

    def __str__(self):
        return "-".join([*self[:4], "trained" if self.retrain else "valued"])


SEEN = [  # each ended in a foreign traceback, in NaN or in crossing bounds
    Extreme("ball", "hard_margin", "1e-300", "mixed", False),  # ZeroDivisionError
    Extreme("ball", "squared", "1e300", "1e160", False),  # NaN for a bound
    Extreme("caps", "squared", "1e300", "1e160", False),  # RuntimeError: Factor is exactly singular
    Extreme("free signs", "hard_margin", "1", "1e20", True),  # a false proof of infeasibility
    Extreme("spectrahedron", "squared", "1e300", "1e160", False),  # LinAlgError
    Extreme("near", "logistic", "1e300", "1e20", False),  # brentq does not converge
    Extreme("square", "hard_margin", "1e-300", "y", True),  # Factor is exactly singular
    Extreme("power ball", "squared_hinge", "nan", "1e300", False),  # "y must be finite", but y was
    Extreme("constrained", "squared_hinge", "nan", "1e300", False),
    Extreme("blocks", "squared", "nan", "1e300", False),  # NaN for a lower bound
    Extreme("caps", "hard_margin", "-1e300", "largest", True),  # an infinite bound without a reason
    Extreme("price", "huberized_hinge", "1e300", "mixed", False),
    Extreme("near", "one_class", "1e300", "mixed", False),
    Extreme("free signs", "squared", "1", "1e160", True),  # Factor is exactly singular
    Extreme("blocks", "squared_hinge", "1", "1e160", False),  # NaN
    Extreme("constrained", "logistic", "1e300", "1e12", True),  # SolverError of the machine
    Extreme("square", "hard_margin", "1e-300", "mixed", False),  # ZeroDivisionError
]
THIN = [
    Extreme(form, loss, weights, alpha, retrain)
    for i, form in enumerate(FORMS)
    for j, (weights, alpha, retrain) in enumerate([("nan", "inf", False), ("1e300", "1e300", True)])
    for loss in [list(LOSSES)[(i + 3 * j) % len(LOSSES)]]
]
QUICK = list(dict.fromkeys([*SEEN, *THIN[::3]]))


@cache
def built(form: str, loss: str) -> tuple[Any, Any]:
    return FORMS[form](*LOSSES[loss])


@cache
def bracket(form: str, loss: str) -> tuple[float, float]:
    """Bounds of the optimum from a solve of a problem of its own; the widest where it fails."""
    try:
        with np.errstate(all="ignore"):
            found = quietly(ko.solve, FORMS[form](*LOSSES[loss])[0], "exact")
    except ko.KerneloptError:
        return -np.inf, np.inf
    return found.lower, found.upper


def wrong(extreme: Extreme) -> str:
    """What is wrong with the answer to a candidate, in words; empty where nothing is."""
    problem, variable = built(extreme.form, extreme.loss)
    candidate = None
    if variable is not None:
        size = WEIGHTS[extreme.weights]
        with np.errstate(invalid="ignore"):
            value = np.full(variable.shape, size) if variable.ndim == 1 else np.where(np.eye(N), size, 0.0)
        candidate = {variable: value}
    alpha = ALPHAS[extreme.alpha]
    try:
        certificate = quietly(ko.certify, problem, candidate, alpha=alpha, retrain=extreme.retrain)
    except Exception as error:  # candidates of right shapes deserve an answer
        return f"{type(error).__name__}: {error}"[:100]
    lower, upper = certificate.lower, certificate.upper
    least, most = bracket(extreme.form, extreme.loss)
    slack = 1e-9 * max(1.0, abs(most)) if np.isfinite(most) else 0.0
    if not lower <= upper:
        return f"lower {lower!r} > upper {upper!r}"
    if lower > most + slack or upper < least - slack:
        return f"[{lower!r}, {upper!r}] does not meet [{least!r}, {most!r}]"
    if not (np.isfinite(lower) and np.isfinite(upper)) and not certificate.reason:
        return f"[{lower!r}, {upper!r}] without a reason"
    return ""


@pytest.mark.parametrize("extreme", QUICK, ids=str)
def test_an_extreme_candidate_gets_an_honest_bracket(extreme):
    assert not wrong(extreme)


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_every_extreme_candidate_gets_an_honest_bracket(form, loss):
    """Every weight with a few alphas, every alpha with a few weights, trained and valued."""
    table = [
        Extreme(form, loss, weights, alpha, retrain)
        for weights in (WEIGHTS if built(form, loss)[1] is not None else ["1"])
        for alpha in ALPHAS
        for retrain in (True, False)
        if (weights in ("1", "1e300") or alpha in ("none", "1e300", "mixed")) and (retrain or alpha != "none")
    ]
    found = {str(extreme): reason for extreme in table if (reason := wrong(extreme))}
    assert not found, "\n".join(f"{name}: {reason}" for name, reason in found.items())
