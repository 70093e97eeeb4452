"""Every entry of the table at random points: the maximum over y of <y, a> - cost(y, u) is u g(a)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality.conjugates import CONJUGATES, Conjugate, New, conjugate
from kernelopt.duality.solving import solved
from kernelopt.duality.sweep import Swept
from kernelopt.structure.structure import Structure
from tests.every import every

rng = np.random.default_rng(0)
x, p, q = (cp.Variable(3, name=n) for n in "xpq")
X = cp.Variable((3, 3), symmetric=True, name="X")
M, s = cp.Variable((2, 3), name="M"), cp.Variable(name="s")
x.value, M.value, s.value = rng.normal(size=3), rng.normal(size=(2, 3)), 1.3
p.value, q.value = rng.uniform(0.3, 2, 3), rng.uniform(0.3, 2, 3)
B = rng.normal(size=(3, 3))
X.value = B @ B.T + 0.3 * np.eye(3)
B = B.T @ B
grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], rng.normal(size=(6, 2)))
theta = cp.Variable(2, nonneg=True, name="theta")
theta.value = np.array([0.7, 0.4])
K = cp.Variable((6, 6), PSD=True, name="K")
K.value = grams.gram(0) + 0.2 * np.eye(6)
signs = np.array([1.0, -1] * 3)
LOSSES = (ko.hinge(1.0), ko.logistic(0.7), ko.squared_hinge(2.0))
ATOMS = [
    cp.norm1(x), cp.norm1(M, axis=0), cp.norm_inf(x), cp.norm_inf(M, axis=1), cp.abs(x), cp.pnorm(x, 2),
    cp.pnorm(M, 2, axis=0),
    cp.pnorm(M, 2), cp.pnorm(X, 3, approx=False), cp.pnorm(x, 3, approx=False),
    cp.pnorm(p, 0.5, approx=False),
    cp.pnorm(p, -1, approx=False), cp.norm(X, "fro"), cp.sigma_max(M), cp.normNuc(M), cp.geo_mean(p),
    cp.geo_mean(p, [1, 2, 1]),
    cp.matrix_frac(x, X), cp.matrix_frac(M.T, X),
    cp.matrix_frac(x, B + np.eye(3)), cp.quad_over_lin(x, s), cp.sum_squares(M), cp.sum_squares(X),
    cp.quad_form(x, cp.psd_wrap(B)), cp.huber(x, 0.7), cp.square(x), cp.power(p, 3, approx=False),
    cp.power(x, 4),
    cp.power(p, 1.5, approx=False), cp.power(p, -1), cp.power(p, -0.5, approx=False), cp.sqrt(p),
    cp.power(p, 0.3, approx=False), cp.exp(x), cp.log(p), cp.log1p(p), cp.entr(p), cp.log_sum_exp(x),
    cp.log_sum_exp(M, axis=1), cp.logistic(x), cp.log_det(X), cp.tr_inv(X),
    *(ko.risk(ko.combine(theta, grams), signs, loss) for loss in LOSSES),
    *(ko.risk(K, signs, loss) for loss in LOSSES), ko.fidelity(K, grams.gram(1)), ko.fidelity(K,
    grams.gram(1), "l1"),
]  # fmt: skip
CONES = [  # without an entry, or without one for a multiplier: the cone form of the atom is its dual
    cp.max(x), cp.min(M, axis=0), cp.maximum(x, p, 0), cp.minimum(x, p), cp.sum_largest(x, 2),
    cp.lambda_max(X), cp.lambda_sum_largest(X, 2), cp.entr(p), cp.log_det(X), cp.cummax(x),
    cp.quad_over_lin(M, 1, axis=0), cp.dotsort(x, [1.0, 2, 0.5]), cp.rel_entr(p, q), cp.kl_div(p, q),
    cp.square(x), cp.power(p, 3, approx=False), cp.power(x, 4), cp.power(p, -1), cp.sqrt(p),
]  # fmt: skip

SCALED = (
    "Distance",
    "entr",
    "log_det",
    "huber",
    "Power",
    "PowerApprox",
)  # the atoms that a multiplier need not weigh


def maximum(g, weight, u):
    """The maximum that is stated for an atom with a weight: numbers, or a variable equal to u."""
    if weight.is_constant():
        price = cp.multiply(weight if g.is_atom_convex() else -weight, g)
        problem = cp.Problem(cp.Minimize(cp.sum(price)))
        stated = Swept(problem, Structure(problem), {}).terms[0]
    else:
        stated = CONJUGATES[type(g).__name__](g, weight, New({"x"}))
    if stated is None:
        return None
    value = sum(cp.sum(cp.multiply(y, a.value)) for y, a in stated.pairs)
    given = [] if weight.is_constant() else [weight == u]
    problem = cp.Problem(cp.Maximize(value - cp.sum(stated.cost)), [*stated.domain, *given])
    return solved(problem)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate", "ignore:The problem includes expressions")
@every("kind", ["number", "variable", "zero"])
def test_fenchel_young(kind):
    seen = set()
    for g in ATOMS:
        sign = 1.0 if g.is_atom_convex() else -1.0
        u = np.zeros(g.shape) if kind == "zero" else rng.uniform(0.3, 2, size=g.shape)
        weight = cp.Constant(u) if kind == "number" else cp.Variable(g.shape, nonneg=True)
        found = maximum(g, weight, u)
        seen.add(type(g).__name__)
        if found is None:
            assert kind != "number" and type(g).__name__ in SCALED
            continue
        exact = sign * float(np.sum(u * g.value))
        assert found == pytest.approx(exact, rel=1e-5, abs=1e-5), (g, kind)
    assert {n.removesuffix("Approx") for n in CONJUGATES} == {n.removesuffix("Approx") for n in seen}


@every("g", CONES, ids=lambda g: type(g).__name__)
def test_an_atom_without_an_entry_has_its_cone_form(g):
    sign, t = 1.0 if g.is_atom_convex() else -1.0, cp.Variable(g.shape)
    price = rng.uniform(0.3, 2, size=g.shape)
    exact, fixed = float(np.sum(price * g.value)), [v == v.value for v in g.variables()]
    for objective, bounds in ((sign * g, []), (t, [sign * g <= t])):
        problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(price, objective))), [*bounds, *fixed])
        assert solved(ko.dualize(problem)) == pytest.approx(sign * exact, rel=1e-5, abs=1e-5)


class cosh(cp.atoms.elementwise.elementwise.Elementwise):
    """An atom of a user's own."""

    def numeric(self, values):
        return np.cosh(values[0])

    def sign_from_args(self):
        return True, False

    def is_atom_convex(self):
        return True

    def is_atom_concave(self):
        return False

    def is_incr(self, idx):
        return False

    def is_decr(self, idx):
        return False

    def _grad(self, values):
        raise NotImplementedError


def test_an_atom_of_a_users_own_is_let_in(monkeypatch):
    """cosh x is (exp x + exp(-x)) / 2, whose conjugate is an infimal convolution of entropies."""
    monkeypatch.setitem(CONJUGATES, "cosh", None)  # the entry goes with the test

    @conjugate(cosh)
    def entropies(g, u, new):
        a, b = new(g.shape, "p", nonneg=True), new(g.shape, "p", nonneg=True)
        half = cp.Constant(np.full(g.shape, 0.5)) if u.is_constant() else u / 2
        half = cp.multiply(u, half) if u.is_constant() else half
        cost = cp.rel_entr(a, half) - a + cp.rel_entr(b, half) - b
        return Conjugate([(a - b, g.args[0])], cost)

    v = cp.Variable(2, name="v")
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum(cosh(v)) - v[0])))
    assert dual.solve(solver=cp.CLARABEL) == pytest.approx(1 + np.sqrt(2) - np.arcsinh(1), rel=1e-6)
