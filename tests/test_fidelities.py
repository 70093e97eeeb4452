"""Fidelities: their identities, the word `fidelity`, and a new one that is a class and nothing else."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import xlog1py

import kernelopt as ko
from formulations import similarity
from kernelopt.errors import NotFiniteError, NotSymmetricError, ParameterError, ShapeError
from kernelopt.extend import Ball, as_fidelity
from kernelopt.structure.nearness import read_fidelity
from kernelopt.structure.trees import weighted_terms
from kernelopt.testing import check_fidelity
from tests.problems import other, solved, why_not

RNG = np.random.default_rng(0)
N = 8
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
NOISE = 0.3 * RNG.normal(size=(2, N, N))
S = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) + (NOISE + NOISE.transpose(0, 2, 1))
RHO, TRACE, DELTA = 0.3, float(N), 0.4
SOLVER = 1e-6  # relative, of an optimum by Clarabel at its own tolerances


@dataclass(frozen=True)
class entrywise_huber(ko.Fidelity):  # a fidelity of a user's own: all that it takes
    """The sum of d^2 / 2 where |d| <= delta, and of delta |d| - delta^2 / 2 elsewhere."""

    delta: float

    def expression(self, D):
        return cp.sum(cp.huber(D, self.delta)) / 2

    def subgradient(self, D):
        return np.clip(D, -self.delta, self.delta)

    def conjugate(self, U):
        return float(np.vdot(U, U)) / 2

    def project(self, U):
        return np.clip(U, -self.delta, self.delta)

    def conjugate_expression(self, U):
        return cp.sum_squares(cp.vec(U, order="F")) / 2, [cp.abs(U) <= self.delta]


@dataclass(frozen=True)
class proximal_huber(entrywise_huber):
    """The same with its proximal operator, around one matrix."""

    def proximal(self, V, S, step):
        D = V - S[0]
        D = np.where(np.abs(D) <= self.delta * (1 + step), D / (1 + step), D - step * self.delta * np.sign(D))
        return S[0] + D, self.value(D)

    def shares(self, P, X, S):
        return [P]


@dataclass(frozen=True)
class radial_huber(ko.Fidelity):
    """The function of Huber at the Frobenius norm of D."""

    delta: float

    def expression(self, D):
        return cp.huber(cp.pnorm(D, 2), self.delta) / 2

    def subgradient(self, D):
        return D / self.scale(np.linalg.norm(D))

    def conjugate(self, U):
        return float(np.vdot(U, U)) / 2

    def project(self, U):
        return U / max(1.0, (1 + 1e-12) * float(np.linalg.norm(U)) / self.delta)

    def conjugate_expression(self, U):
        return cp.sum_squares(cp.vec(U, order="F")) / 2, [cp.pnorm(U, 2) <= self.delta]

    def scale(self, lengths):
        return np.maximum(1.0, lengths / self.delta)


GIVEN = [as_fidelity(name) for name in ("l1", "frobenius", "squared_frobenius")]
OWN = [entrywise_huber(DELTA), radial_huber(DELTA)]
every = pytest.mark.parametrize("L", [*GIVEN, *OWN, proximal_huber(DELTA)], ids=repr)


def symmetric(rng, scale=1.0):
    D = scale * rng.normal(size=(4, 4))
    return D + D.T


@every
def test_the_parts_belong_together(L):
    assert "subgradient" in str(check_fidelity(L, seed=1))


@dataclass(frozen=True)
class log_cosh(ko.Fidelity):
    """The sum of log cosh d, whose conjugate sums two terms of 1e-7 to one of 1e-14 at u = 1e-7."""

    def expression(self, D):
        return cp.sum(cp.logistic(2 * D) - D) - D.size * np.log(2)

    def value(self, D):
        return float((np.logaddexp(D, -D) - np.log(2)).sum())

    def subgradient(self, D):
        return np.tanh(D)

    def project(self, U):
        return np.clip(U, -1.0, 1.0)

    def conjugate(self, U):
        return float((xlog1py(1 + U, U) + xlog1py(1 - U, -U)).sum()) / 2


class honest(log_cosh):
    """The same with the rounding of its two terms."""

    def bounded_conjugate(self, U):
        return Ball.computed(self.conjugate(U), np.abs(U).sum(), U.size + 64)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_errors_that_are_larger_than_stated_are_found(seed):
    """The series u^2/2 + u^4/12 is exact to 1e-28 at u = 1e-7."""
    u = np.full(1, 1.23456789e-7)
    exact = Fraction(u[0]) ** 2 / 2 + Fraction(u[0]) ** 4 / 12
    assert not log_cosh().bounded_conjugate(u).below <= exact <= log_cosh().bounded_conjugate(u).above
    assert honest().bounded_conjugate(u).below <= exact <= honest().bounded_conjugate(u).above
    with pytest.raises(AssertionError, match="errors of `conjugate` are not larger than .* states: not so"):
        check_fidelity(log_cosh(), seed=seed)
    assert any("rounding errors" in line for line in check_fidelity(honest(), seed=seed).stated)


class valued(entrywise_huber):
    """With a value that does not come from the subgradient and the conjugate."""

    def value(self, D):
        return float(self.expression(cp.Constant(D)).value)


def squares_within(bound):
    """The conjugate expression of Huber's function on the domain of another bound."""
    return lambda right, U: (cp.sum_squares(cp.vec(U, order="F")) / 2, [cp.abs(U) <= bound])


WRONG = {
    "steep": (other(valued, DELTA, subgradient=lambda right, D: np.clip(2 * D, -DELTA, DELTA)),
              "= <U, D> at the subgradient: not so"),
    "cheap": (other(valued, DELTA, conjugate=lambda right, U: 0.9 * right.conjugate(U)),
              r"L\(D\) \+ L\*\(U\) >= <U, D> for projected U: not so"),
    "undefined": (other(entrywise_huber, DELTA, conjugate=lambda right, U: np.nan),
                  "= <U, D> at the subgradient: not so, got an error of nan"),
    "unbounded": (other(entrywise_huber, DELTA, project=lambda right, U: U),
                  r"L\(D\) \+ L\*\(U\) >= <U, D> for projected U: not so"),
    "far": (other(entrywise_huber, DELTA, expression=lambda right, D: 2 * right.expression(D)),
            "the expression has the value of L: not so"),
    "loose": (other(entrywise_huber, DELTA, conjugate_expression=squares_within(DELTA / 2)),
              "`project` returns points of its domain: not so"),
    "wide": (other(entrywise_huber, DELTA, conjugate_expression=squares_within(2 * DELTA)),
             r"L\(D\) is the largest <U, D> - `conjugate_expression`: not so"),
    "small": (other(entrywise_huber, DELTA, trace_bound=lambda right, *given: right.trace_bound(*given) / 2),
              "`trace_bound` is not below <I, D>: not so"),
    "flat": (other(radial_huber, DELTA, scale=lambda right, lengths: 2 * right.scale(lengths)),
             "the square of a `scale` touches L from above: not so"),
    "short": (other(proximal_huber, DELTA, proximal=lambda right, V, S, t: right.proximal(V, S, 0.9 * t)),
              "the proximal operator finds the minimum: not so"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG)
def test_what_does_not_belong_together_is_found(wrong, said):
    with pytest.raises(AssertionError, match=said):
        check_fidelity(wrong)
    with pytest.raises(ParameterError, match="takes a Fidelity, got .*<class"):
        check_fidelity(type(wrong))


@every
def test_conjugates_are_within_their_bound(L):
    """Of what the built-in ones and Huber's are, sums of squares: against exact arithmetic."""
    G = np.random.default_rng(3).normal(size=(9, 9))
    U = L.project(G + G.T)
    square = sum(Fraction(float(u)) ** 2 for u in U.flat)
    exact = {ko.fidelities.l1: 0, ko.fidelities.frobenius: 0, ko.fidelities.squared_frobenius: square / 4}
    known = L.bounded_conjugate(U)
    assert known.below <= exact.get(type(L), square / 2) <= known.above
    assert known.rad <= 1e-13 * known.mid


@pytest.mark.parametrize("L", GIVEN, ids=repr)
def test_the_bound_by_the_conjugate_is_about_that_in_closed_form(L):
    for value in (1e-3, 1.0, 50.0):
        closed, found = (f(L, value, np.eye(5)) for f in (type(L).trace_bound, ko.Fidelity.trace_bound))
        assert closed * (1 - 1e-12) <= found <= 2 * closed


def test_projected_matrices_are_in_the_unit_ball_in_exact_arithmetic():
    for seed in range(40):
        G = np.random.default_rng(seed).normal(size=(7, 7))
        for given in (G, G / np.linalg.norm(G), 1e9 * G):
            U = ko.fidelities.frobenius().project(given)
            square = sum(Fraction(float(u)) ** 2 for u in U.flat)
            assert 1 - 1e-12 < square <= 1 or np.array_equal(U, given)
            assert square <= 1


# ------------------------------------------------------------------------------------------ the word

K = cp.Variable((N, N), PSD=True, name="K")
PLAIN = {
    "l1": lambda D: cp.sum(cp.abs(D)),
    "frobenius": lambda D: cp.norm(D, "fro"),
    "squared_frobenius": cp.sum_squares,
}


def near(expression):
    """The fidelity that an expression states."""
    ((weights, e),) = weighted_terms(expression, np.ones(1))
    return read_fidelity(weights, e)


@pytest.mark.parametrize("name", PLAIN)
def test_both_spellings_are_read_alike(name):
    word, plain = ko.fidelity(K, S[0], name), PLAIN[name](K - S[0])
    assert word.is_convex() and word.is_nonneg() and word.is_dcp()
    ours, theirs = near(3.0 * word), near(3.0 * plain)
    assert (
        (ours.fidelity, ours.price, ours.variable) == (theirs.fidelity, 3.0, K) == (as_fidelity(name), 3.0, K)
    )
    assert np.array_equal(ours.target, theirs.target) and ours.target == pytest.approx(S[0])
    with pytest.raises(cp.error.DCPError):
        cp.Problem(cp.Maximize(word)).solve()


def test_an_object_of_ones_own_is_read_with_its_target():
    L = entrywise_huber(DELTA)
    read = near(2.0 * ko.fidelity(K, S[0], L))
    assert (read.fidelity, read.price, read.variable) == (L, 2.0, K)
    assert read.target == pytest.approx(S[0])
    mu, lam = cp.Variable(N, nonneg=True), np.linalg.eigvalsh(S[0])
    spectral = near(2.0 * ko.fidelity(mu, lam, L))
    assert spectral.variable is mu and spectral.target == pytest.approx(lam)
    assert "K + " in str(ko.fidelity(K, S[0], L)) and "entrywise_huber(delta=0.4)" in str(
        ko.fidelity(K, S[0], L)
    )


@pytest.mark.parametrize("L", [*GIVEN, *OWN], ids=repr)
def test_the_distance_of_combinations(L):
    """For functions of the Frobenius norm it is made of few numbers, and has the same value."""
    grams = np.array([np.eye(N), X @ X.T])
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(N, N)))[0]
    for shape, kernel in ((2, lambda w: ko.combine(w, grams)), (N, lambda w: V @ cp.diag(w) @ V.T)):
        mu = cp.Variable(shape, nonneg=True)
        for expression in (kernel(mu), kernel(mu) + 0.5 * np.eye(N)):
            distance = ko.fidelity(expression, S[0], L)
            mu.value = np.linspace(0.3, 0.8, shape)
            assert float(distance.value) == pytest.approx(L.value(expression.value - S[0]))
            few = isinstance(L, ko.fidelities.Radial)
            assert distance.difference.size <= shape + 2 if few else distance.difference.shape == (N, N)


def test_the_target_is_copied():
    given = S[0].copy()
    distance = ko.fidelity(np.eye(N), given, "l1")
    before = float(distance.value)
    given[:] = 0.0
    assert float(distance.value) == before == pytest.approx(np.abs(np.eye(N) - S[0]).sum())


def written(expression):
    """A fidelity with another expression of D."""
    return other(entrywise_huber, 1.0, expression=lambda right, D: expression(D))


curved = written(lambda D: -cp.sum_squares(D))
hidden = written(lambda D: cp.sum(cp.Variable(nonneg=True, name="t")) + cp.sum(cp.abs(D)))
constant = written(lambda D: cp.Constant(1.0))


@pytest.mark.parametrize(("given", "error", "said"), [
    ((K, S[0][:3, :3]), ShapeError, r"S must have the shape of K, \(8, 8\), got \(3, 3\) in fidelity"),
    ((K, np.arange(N * N).reshape(N, N)), NotSymmetricError, "S must be symmetric"),
    ((K, np.full((N, N), np.nan)), NotFiniteError, "S must be finite"),
    ((K[:3], S[0]), ShapeError, "K must be a square matrix"),
    ((K, S), ShapeError, r"S must have the shape of K, \(8, 8\), got \(2, 8, 8\)"),
    ((cp.diag(K), S[0]), ShapeError, r"S must have the shape of K, \(8,\), got \(8, 8\)"),
    ((K, S[0], "l2"), ParameterError, "kind must be 'l1', 'frobenius', 'squared_frobenius' or .* got 'l2'"),
    ((K, S[0], cp.sum_squares), ParameterError, "an object of a class of Fidelity, got <function"),
    ((K, S[0], ko.fidelities.l1), ParameterError, r"got the class l1\. Create one first: l1\(\.\.\.\)\.$"),
    ((K, S[0], curved), ParameterError, "must be convex with one entry"),
    ((K, S[0], hidden), ParameterError, "without variables of its own"),
    ((K, S[0], constant), ParameterError, "must be made of D = K - S alone"),
])  # fmt: skip
def test_what_is_wrong_is_said(given, error, said):
    with pytest.raises(error, match=said):
        ko.fidelity(*given)


# ------------------------------------------------------------------ the seam: a fidelity of one's own


def spelled_out(L, targets, trace=TRACE):
    """The optimum of the learning problem without a word of the language."""
    kernel, f, b, t = cp.Variable((N, N), PSD=True), cp.Variable(N), cp.Variable(), cp.Variable((1, 1))
    column = cp.reshape(f, (N, 1), order="F")
    below = cp.bmat([[kernel, column], [column.T, t]]) >> 0
    far = sum(cp.sum(cp.huber(kernel - target, L.delta)) / 2 for target in targets)
    objective = cp.sum(cp.pos(1 - cp.multiply(Y, f + b))) + t[0, 0] / 2 + RHO * far
    problem = cp.Problem(cp.Minimize(objective), [below, cp.trace(kernel) == trace])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its last digits are not asked for: see SOLVER
        return float(problem.solve(solver=cp.CLARABEL))


def learning(L, targets, trace=TRACE):
    kernel = cp.Variable((N, N), PSD=True, name="K")
    objective = ko.risk(kernel, Y, ko.hinge()) + RHO * sum(
        ko.fidelity(kernel, target, L) for target in targets
    )
    return cp.Problem(cp.Minimize(objective), [] if trace is None else [cp.trace(kernel) == trace])


@pytest.mark.parametrize(("m", "delta"), [(1, 1.0), (2, DELTA)])
def test_a_new_fidelity_is_one_class(m, delta):
    L = entrywise_huber(delta)
    optimum, problem = spelled_out(L, S[:m]), learning(L, S[:m])
    exact = ko.solve(problem, "exact")
    assert exact.value == pytest.approx(optimum, rel=SOLVER) and exact.gap <= 1e-5
    steps = ko.solve(problem, "mirror-descent", tol=1e-3)
    assert steps.gap <= 1e-3 and steps.value == pytest.approx(optimum, rel=1e-3)
    certificates = (
        exact.certificate,
        steps.certificate,
        ko.certify(problem, exact),
        ko.certify(problem, alpha=steps.certificate.alphas[0]),
    )
    for certificate in certificates:
        assert optimum * (1 - 2e-3) <= certificate.lower <= optimum * (1 + SOLVER)
        assert optimum * (1 - SOLVER) <= certificate.upper


def test_poor_duals_of_a_new_fidelity_are_true_bounds():
    from kernelopt.certificates.lower.closed import bound_over
    from kernelopt.methods.mirror_descent.composite import read_composite

    def lower(dual):
        return bound_over(read.pieces, read.minorant(dual)).value

    L, rng = entrywise_huber(DELTA), np.random.default_rng(3)
    optimum, read = spelled_out(L, S), read_composite(ko.Structure(learning(L, S)))
    for scale in (1e-3, 0.1, 1.0, 30.0):
        kernel = rng.normal(size=(N, N))
        kernel = kernel @ kernel.T
        found = read.evaluate([kernel * TRACE / np.trace(kernel)], None, 1e-3)
        slopes = [
            U + scale * (noise + noise.T)
            for U, noise in zip(found.dual.subgradients, rng.normal(size=S.shape), strict=True)
        ]
        assert lower(found.dual) <= found.value
        assert lower(found.dual._replace(subgradients=slopes)) <= optimum <= found.value * (1 + SOLVER)


@pytest.mark.parametrize("L", OWN, ids=repr)
def test_a_new_fidelity_has_the_duals_by_hand(L):
    for build, targets in ((similarity.single_kernel, S), (similarity.restricted_spectral, S[:1])):
        formulation = build(targets, Y, rho=RHO, trace=TRACE, fidelity=L)
        solution = formulation.solve("exact")
        bound = solved(formulation.dual())
        assert bound == pytest.approx(solution.value, rel=2e-5)


def test_problems_with_a_radial_fidelity_are_planted():
    """From what its class states, on both pieces of Huber's function; other fidelities are refused."""
    for name in ("similarity.single_kernel", "similarity.kernel_per_similarity"):
        make = ko.catalogue()[name].planted
        for delta in (0.4, 3.0):  # distances are between 0.5 and 2
            planted = make(np.random.default_rng(0), fidelity=radial_huber(delta))
            found = ko.certify(planted.formulation.problem, dict(planted.point), alpha=list(planted.alphas))
            assert found.upper == pytest.approx(planted.value, rel=1e-9)
            assert found.lower == pytest.approx(planted.value, rel=1e-6)
        with pytest.raises(ParameterError, match="fidelity must be a function of the Frobenius norm"):
            make(np.random.default_rng(0), fidelity=entrywise_huber(DELTA))


def test_a_fidelity_without_a_conjugate_expression_says_so():
    class bare(entrywise_huber):
        def conjugate_expression(self, U):
            return None

    with pytest.raises(ko.InputError, match=r"got none from .*State `conjugate_expression` in its class"):
        similarity.single_kernel(S, Y, rho=RHO, trace=TRACE, fidelity=bare(DELTA)).dual()


def test_first_order_dual_asks_what_a_class_states():
    missing = why_not("first-order-dual", learning(entrywise_huber(DELTA), S))
    assert "entrywise_huber(delta=0.4) states neither a scale nor a proximal operator" in missing
    near = RHO * (ko.fidelity(K, S[0], proximal_huber(DELTA)) + ko.fidelity(K, S[1], proximal_huber(1.0)))
    mixed = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge()) + near), [cp.trace(K) == TRACE])
    assert "fidelities of one kind and price" in why_not("first-order-dual", mixed)


@pytest.mark.parametrize("trace", [TRACE, None], ids=["traced", "free"])
@pytest.mark.parametrize(
    ("L", "m"), [(radial_huber(DELTA), 2), (radial_huber(30.0), 1), (proximal_huber(DELTA), 1)], ids=repr
)
def test_first_order_dual_solves_what_has_a_scale_or_a_proximal_operator(L, m, trace):
    problem = learning(L, S[:m], trace)
    optimum = ko.solve(learning(L, S[:m], trace), "exact")
    solution = ko.solve(problem, "first-order-dual", tol=1e-5)
    assert solution.gap <= 1e-5
    assert solution.lower <= optimum.upper and optimum.lower <= solution.upper
    again = ko.certify(problem, solution)
    assert again.lower <= optimum.upper and again.gap <= 1e-4
