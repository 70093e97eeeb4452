"""`kernelopt.testing`: what is right passes, what is wrong is said, and records refuse wrong fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.extend import Entry, Profile, Programme, as_grams
from kernelopt.kernels.profile import squared_distances
from kernelopt.methods.exact.method import Exact
from kernelopt.testing import (
    assert_certified,
    check_formulation,
    check_kernel,
    check_loss,
    check_method,
)
from tests.collected import problems_built
from tests.every import every
from tests.formulations.test_formulations import ENTRIES
from tests.pages import printed_by, python_blocks

ROOT = Path(__file__).parents[2]


def points(rng):
    X = rng.normal(size=(8, 2))
    return X, np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)


# --------------------------------------------------------------------------- assert_certified


def small():
    mu = cp.Variable(2, nonneg=True)
    K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    return cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4]), mu


def test_a_solution_a_problem_and_a_certificate_are_certified():
    problem, _ = small()
    solution = ko.solve(problem)
    for result in (solution, problem, solution.certificate):
        assert assert_certified(result).gap <= 1e-6
    formulation = ENTRIES["lanckriet.qcqp"].example(np.random.default_rng(0))
    formulation.solve()
    assert assert_certified(formulation, rtol=1e-5).feasible


def test_a_stranger_s_values_are_certified_too():
    problem, mu = small()
    problem.solve(solver=cp.CLARABEL)
    assert_certified(problem, rtol=1e-5)
    mu.value = [1.0, 1.0]
    with pytest.raises(AssertionError, match="the gap must be at most 1e-05, got .* <= optimum <= "):
        assert_certified(problem, rtol=1e-5)


def test_a_value_outside_of_the_bracket_is_refused():
    problem, _ = small()
    solution = ko.solve(problem)
    with pytest.raises(AssertionError, match="the claimed value must lie between the bounds, got 0.2600"):
        assert_certified(replace(solution, value=0.26001))


@pytest.mark.parametrize("wrong", [3.0, "optimal", None])
def test_other_things_are_no_results(wrong):
    with pytest.raises(ko.errors.ParameterError, match="takes a cp.Problem, a Formulation, a Solution"):
        assert_certified(wrong)


# --------------------------------------------------------------------------- check_formulation


def two_risks(grams, y, second):
    """Two tasks that share the weights of their kernels."""
    mu = cp.Variable(len(grams), nonneg=True, name="mu")
    K = ko.combine(mu, grams)
    risk = ko.risk(K, y, ko.hinge(1.0)) + 2 * ko.risk(K, second, ko.squared_hinge(1.0))
    return ko.Formulation(
        name="own.two_risks",
        problem=cp.Problem(cp.Minimize(risk), [(ko.trace(K) == 8).set_label("trace")]),
        kernel=K,
        weights=mu,
        dual=partial(two_risks_dual, grams, y, second),
        claim="equal",
        reference="own (2024)",
    )


def two_risks_dual(grams, y, second):
    """max l1(a) + 2 l2(b) - t with 8 / r_i (a'K_i a / 2 + b'K_i b) <= t."""
    a, b, t = cp.Variable(y.size), cp.Variable(y.size), cp.Variable()
    one, domain = ko.hinge(1.0).dual_expression(a, y)
    two, more = ko.squared_hinge(1.0).dual_expression(b, second)
    caps = []
    for K in np.asarray(grams):
        L = np.linalg.cholesky(K + 1e-13 * np.eye(len(K)))
        form = cp.sum_squares(L.T @ a) / 2 + cp.sum_squares(L.T @ b)
        caps.append(8 / np.trace(K) * form <= t)
    return cp.Problem(cp.Maximize(one + 2 * two - t), [*domain, *more, *caps, cp.sum(a) == 0, cp.sum(b) == 0])


def two_risks_example(rng, build=two_risks):
    X, y = points(rng)
    K = np.array([np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / w) for w in (0.5, 4.0)])
    second = np.where(X[:, 1] > np.median(X[:, 1]), 1.0, -1.0)
    return build(as_grams(K), y, second)


OWN = Entry("own.two_risks", two_risks, "labels", two_risks_example)


def test_an_own_formulation_with_two_risks_and_shared_weights_passes():
    findings = check_formulation(OWN, seeds=(0, 1))
    text = str(findings)
    assert not findings.wrong and "seed 1: the dual: is 'equal'" in text
    assert "risk 0: predictions are finite" in text and "risk 1: predictions are finite" in text
    assert "'exact': has bounds around the same optimum" in text


def test_a_formulation_of_a_psd_kernel_in_an_expression_passes():
    """No weights, a sense of its own, no programme, and a dual that is only a bound."""

    def build(y):
        K = cp.Variable((4, 4), PSD=True, name="K")
        problem = cp.Problem(cp.Maximize(ko.alignment(K, y)), [(cp.trace(K) <= 1).set_label("trace")])
        dual = partial(lambda n: cp.Problem(cp.Minimize(cp.Variable(nonneg=True, name="t") + n)), 4.0)
        return ko.Formulation("own.nearest", problem, K, None, dual, "relaxation", "own (2024)")

    y = np.array([1.0, -1, 1, -1])
    entry = Entry("own.nearest", build, "labels", lambda rng: build(y * (1 - 2 * rng.integers(0, 2))))
    assert not check_formulation(entry, seeds=(0,)).wrong


def test_all_that_is_wrong_is_said_at_once():
    def build(grams, y, second):
        right = two_risks(grams, y, second)
        return replace(right, dual=partial(shifted, right))

    def shifted(right):
        dual = right.dual()
        return cp.Problem(cp.Maximize(dual.objective.args[0] + 1), dual.constraints)

    entry = Entry("own.wrong", build, "labels", partial(two_risks_example, build=build))
    with pytest.raises(AssertionError) as raised:
        check_formulation(entry, seeds=(0, 1), methods=False)
    text = str(raised.value)
    assert "own.wrong: 2 of" in text and "statements fail" in text
    assert all(f"seed {k}: the dual: is 'equal': not so, got [" in text for k in (0, 1))


def test_what_a_formulation_raises_is_said():
    def build(grams, y, second):
        return replace(two_risks(grams, y, second), programmes={"half": half})

    def half():
        raise ZeroDivisionError("half of nothing")

    entry = Entry("own.wrong", build, "labels", partial(two_risks_example, build=build))
    with pytest.raises(AssertionError, match="raised ZeroDivisionError: half of noth"):
        check_formulation(entry, seeds=(0,), methods=False)


def test_a_planted_value_that_is_wrong_is_found():
    entry = ENTRIES["lanckriet.alignment"]

    def wrong(rng, **knobs):
        right = entry.planted(rng, **knobs)
        return replace(right, value=right.value * 1.01)

    with pytest.raises(AssertionError, match="the planted value: is between the bounds: not so"):
        check_formulation(replace(entry, planted=wrong), seeds=(), methods=False)


QUICK = ["lanckriet.alignment", "linear_functional.functional_strategy", "triplet_lp.kernel_design"]


@pytest.mark.parametrize("name", QUICK)
def test_the_formulations_of_the_catalogue_pass(name):
    assert not check_formulation(ENTRIES[name], seeds=(0,)).wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in QUICK])
def test_all_other_formulations_of_the_catalogue_pass(name):
    """That their methods agree is a test of tests/methods/test_every_method.py."""
    assert not check_formulation(ENTRIES[name], seeds=(0,), methods=False).wrong


def test_a_formulation_is_checked_through_its_entry():
    with pytest.raises(ko.errors.ParameterError, match="check_formulation takes an Entry, got function"):
        check_formulation(two_risks)


# ---------------------------------------------------------------------------------- check_loss

LOSSES = {
    "squared_hinge": ko.squared_hinge(2.0),
    "logistic": ko.logistic(1.0),
    "hard_margin": ko.hard_margin(),
    "squared": ko.squared(0.5),
    "epsilon_insensitive": ko.epsilon_insensitive(1.0, 0.1),
    "one_class": ko.one_class(1.0),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_our_losses_pass(loss):
    smooth = loss.hessian_diag(np.zeros(2), np.ones(2)) is not None
    assert len(check_loss(loss).stated) == 18 + smooth


@dataclass(frozen=True, repr=False)
class Shifted(ko.hinge):
    """A hinge whose expression and conjugate do not belong together."""

    def expression(self, fit, y):
        return super().expression(fit, y) + 0.1


def test_a_loss_whose_parts_do_not_fit_is_found():
    with pytest.raises(
        AssertionError, match="the expression has the value of the loss: not so, got an error of"
    ):
        check_loss(Shifted(1.0))


class Flat(ko.hinge):
    """A hinge whose curve has a number for an array."""

    def curve(self, y):
        return super().curve(y)._replace(l1=0.0)


def test_the_fields_of_a_curve_are_arrays():
    with pytest.raises(AssertionError, match=r"`l1` is an array of shape \(8,\).*got float of"):
        check_loss(Flat(1.0))


@dataclass(frozen=True, repr=False)
class Unscaled(ko.squared_hinge):
    """A loss whose perspective forgets the weight, which only a risk inside another function uses."""

    def dual_perspective(self, alpha, y, weight=None):
        return super().dual_perspective(alpha, y)


@dataclass(frozen=True, repr=False)
class Unbounded(ko.hinge):
    """A loss whose perspective forgets an end of the domain, which every value inside still has."""

    def dual_perspective(self, alpha, y, weight=None):
        gain, domain = super().dual_perspective(alpha, y, weight)
        return gain, [c for c in domain if c.label != "upper"]


@dataclass(frozen=True, repr=False)
class Narrow(ko.hinge):
    """A loss whose perspective has half of its domain."""

    def dual_perspective(self, alpha, y, weight=None):
        gain, domain = super().dual_perspective(2 * alpha, y, weight)
        return gain / 2, domain


@every(
    "loss, said",
    [
        (Unscaled(1.0), "`dual_perspective` with a weight has the value of w l(a / w): not so"),
        (
            Unbounded(1.0),
            "the dual of `dual_perspective` with a weight has w times the value at a kernel: not so",
        ),
        (Narrow(1.0), "the domain of `dual_perspective` with a weight has the points of `project`: not so"),
    ],
)
def test_a_wrong_dual_perspective_is_found(loss, said):
    """`dualize` uses a loss through this method, and no other part of the package does."""
    with pytest.raises(AssertionError) as raised:
        check_loss(loss)
    assert said in str(raised.value)
    wrong = [line for line in str(raised.value).splitlines() if line.startswith("*")]
    assert all("`dual_perspective`" in line for line in wrong)


@dataclass(frozen=True, repr=False)
class Late(ko.hinge):
    """A hinge with an intercept that is off."""

    def intercept(self, f, y):
        return super().intercept(f, y) + 3.0


@dataclass(frozen=True, repr=False)
class Steep(ko.logistic):
    """A logistic loss with derivatives that are off."""

    def dual_gradient(self, alpha, y):
        return super().dual_gradient(alpha, y) + 1e-4

    def hessian_diag(self, t, y):
        return 1.01 * super().hessian_diag(t, y)


def test_derivatives_that_are_off_are_found():
    with pytest.raises(AssertionError) as raised:
        check_loss(Steep(1.0))
    said = (
        "2 of 19",
        "`dual_gradient` is the derivative of `dual_value`: not so",
        "`hessian_diag` is the second derivative",
    )
    assert all(text in str(raised.value) for text in said)


def test_a_dual_that_is_not_quadratic_is_not_taken_from_the_curve():
    """It would be another function, and every bound from it would be false."""
    with pytest.raises(
        ko.InputError, match="Curved, .* must state .*, got none for dual_value, dual_express"
    ):

        class Curved(ko.hinge):
            quadratic = False

            def responder(self, y):
                return lambda t: t

            def dual_gradient(self, alpha, y):
                return alpha


def test_an_intercept_that_is_not_the_best_is_found():
    with pytest.raises(AssertionError, match="no other intercept has a smaller loss: not so"):
        check_loss(Late(1.0))


def test_what_is_no_loss_is_refused():
    with pytest.raises(ko.errors.ParameterError, match="check_loss takes a Loss, got str"):
        check_loss("hinge")


# -------------------------------------------------------------------------------- check_kernel

OUR_KERNELS = [
    ko.laplacian(0.5),
    ko.polynomial(3),
    ko.linear(),
    ko.identity(),
    ko.normalized(ko.polynomial(2)),
    ko.on_columns(ko.gaussian(1.0), [0, 2]),
    ko.linear() + 2 * ko.gaussian(1.0) * ko.linear(),
]


@pytest.mark.parametrize("kernel", OUR_KERNELS, ids=repr)
def test_our_kernels_pass(kernel):
    assert len(check_kernel(kernel).stated) == 10


def kernel_of(gram, **hooks):
    """An object of a kernel with other hooks."""
    return type("own", (ko.Kernel,), {"gram": gram, "__repr__": lambda self: "own()", **hooks})()


def inner(self, X, Z):
    return X @ (X if Z is None else Z).T


def shifting(self, X, Z):
    X += 1.0
    return inner(self, X, Z)


def wendland(d):
    """Return a kernel on R^3 that is zero beyond a distance, hence not completely monotone."""
    r = np.sqrt(d) / 4
    return np.maximum(1 - r, 0) ** 4 * (4 * r + 1)


WRONG_KERNELS = {
    "indefinite": (kernel_of(lambda self, X, Z: -inner(self, X, Z)), "is positive semidefinite: not so"),
    "not symmetric": (
        kernel_of(lambda self, X, Z: (X + 1) @ (X if Z is None else Z).T),
        "k\\(X, Z\\) is a block of the Gram matrix of X and Z: not so",
    ),
    "of the sample": (
        kernel_of(
            lambda self, X, Z: inner(self, X - X.mean(0), X - X.mean(0) if Z is None else Z - Z.mean(0))
        ),
        "k\\(X, Z\\) is a block of the Gram matrix of X and Z: not so",
    ),
    "of the order": (
        kernel_of(lambda self, X, Z: inner(self, X - X[0], (X if Z is None else Z) - X[0])),
        "reordered points have the reordered Gram matrix: not so",
    ),
    "shape": (
        kernel_of(lambda self, X, Z: inner(self, X, Z)[1:, 1:]),
        "the Gram matrix has shape .12, 12.: not",
    ),
    "diagonal": (
        kernel_of(inner, gram_diagonal=lambda self, X: (X**2).sum(1) + 1e-6),
        "the diagonal is that of the Gram matrix: not so",
    ),
    "rank": (
        kernel_of(inner, gram_rank=lambda self, X: 2),
        "the rank is at most its bound: not so",
    ),
    "profile": (
        kernel_of(
            lambda self, X, Z: ko.gaussian(1.0).gram(X, Z),
            profile=lambda self: Profile("sqeuclidean", lambda d: np.exp(-d), 1.0),
        ),
        "the profile, if there is one, gives the Gram matrix: not so",
    ),
    "profile that is not monotone": (
        kernel_of(
            lambda self, X, Z: wendland(squared_distances(X, Z)),
            profile=lambda self: Profile("sqeuclidean", wendland, 1.0, completely_monotone=True),
        ),
        "it is completely monotone: not so",
    ),
    "changed points": (kernel_of(shifting), "X is not changed: not so"),
    "infinite": (kernel_of(lambda self, X, Z: inner(self, X, Z) / 0), "raised NotFiniteError: values of own"),
}


@pytest.mark.parametrize(("kernel", "said"), WRONG_KERNELS.values(), ids=WRONG_KERNELS)
def test_a_kernel_that_is_none_is_found(kernel, said):
    with pytest.raises(AssertionError, match=said):
        check_kernel(kernel)


def test_what_is_no_kernel_and_too_few_points_are_refused():
    with pytest.raises(ko.errors.ParameterError, match="check_kernel takes a Kernel, got str"):
        check_kernel("gaussian")
    with pytest.raises(ko.errors.ParameterError, match="X must have at least four points, got 2"):
        check_kernel(ko.linear(), [[1.0], [2.0]])


# -------------------------------------------------------------------------------- check_method

TRIED = [ENTRIES[name] for name in ("lp_norm.primal", "lanckriet.qcqp", "triplet_lp.kernel_design")]


@pytest.mark.parametrize("method", ["exact", "interleaved"])
def test_our_methods_pass(method):
    text = str(check_method(method, TRIED))
    assert "lp_norm.primal: the bounds contain" in text
    assert "lanckriet.qcqp: StopIteration of a callback ends the run" in text


class Optimist(Exact):
    """Tells brackets that are better than what it knows."""

    name = "optimist"

    def run(self, match, control):
        control.report(1e6, 1e6 + 1, point={})
        return super().run(match, control)


def test_a_method_that_tells_false_brackets_is_found():
    with pytest.raises(AssertionError, match="the bounds of every report contain .*: not so, got "):
        check_method(Optimist(), TRIED[:1])


def test_a_method_that_takes_nothing_is_found():
    with pytest.raises(AssertionError, match="at least one problem is accepted: not so"):
        check_method("least-squares", TRIED)


def test_an_unknown_method_is_refused():
    with pytest.raises(ko.errors.MethodError, match="method must be 'auto' or one of 'exact'"):
        check_method("simplex")


# ------------------------------------------------------------------------------------- records

right = two_risks_example(np.random.default_rng(0))
ALREADY_BUILT = cp.Problem(cp.Minimize(0))
WRONG_FORMULATIONS = {
    "claim": ({"claim": "eqal"}, "claim must be 'equal', 'upper', 'lower' or 'relaxation', got 'eqal'"),
    "dual is a problem": ({"dual": ALREADY_BUILT}, "dual must be a function .* got Problem"),
    "problem is a function": ({"problem": two_risks_dual}, "problem must be a cp.Problem.* got function"),
    "kernel is an array": ({"kernel": np.eye(2)}, "kernel must be a cvxpy expression, got ndarray"),
    "weights are an array": ({"weights": np.ones(2)}, "weights must be a cvxpy expression or None"),
    "programme is a problem": (
        {"programmes": {"qp": ALREADY_BUILT}},
        "programmes\\['qp'\\] must be a function",
    ),
    "programmes are a list": ({"programmes": [two_risks]}, "programmes must be a dict"),
}


@pytest.mark.parametrize(("fields", "said"), WRONG_FORMULATIONS.values(), ids=WRONG_FORMULATIONS)
def test_a_wrong_formulation_is_refused_when_made(fields, said):
    with pytest.raises(ko.errors.ParameterError, match=said):
        replace(right, **fields)


WRONG_ENTRIES = {
    "takes": ({"takes": "label"}, "takes must be 'labels', .* got 'label'"),
    "name": ({"name": "two_risks"}, "name must be of the form 'package.builder', got 'two_risks'"),
    "build": ({"build": right}, "build must be a function .* got Formulation"),
    "example": ({"example": right}, "example must be a function of a numpy Generator"),
    "planted": ({"planted": 3.0}, "planted must be a function of a numpy Generator"),
}


@pytest.mark.parametrize(("fields", "said"), WRONG_ENTRIES.values(), ids=WRONG_ENTRIES)
def test_a_wrong_entry_is_refused_when_made(fields, said):
    with pytest.raises(ko.errors.ParameterError, match=said):
        replace(OWN, **fields)


WRONG_PROGRAMMES = {
    "claim": ((ALREADY_BUILT, dict, "exact"), "claim must be one of"),
    "problem": ((two_risks, dict), "problem must be a cp.Problem, got function"),
    "recover": ((ALREADY_BUILT, {}), "recover must be a function without arguments, got dict"),
}


@pytest.mark.parametrize(("fields", "said"), WRONG_PROGRAMMES.values(), ids=WRONG_PROGRAMMES)
def test_a_wrong_programme_is_refused_when_made(fields, said):
    with pytest.raises(ko.errors.ParameterError, match=said):
        Programme(*fields)


def test_the_page_on_testing_runs_and_prints_what_it_says():
    blocks = python_blocks((ROOT / "docs" / "testing.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    namespace = {}
    with problems_built("testing.md") as built:
        for source, said in blocks:
            assert printed_by(source, "testing.md", namespace) == said
    assert not built.check_duals()
