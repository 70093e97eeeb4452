"""`kernelopt.testing`: what is right passes, what is wrong is said, and records refuse wrong fields."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.extend import Entry, Profile, Programme, as_grams
from kernelopt.kernels.profile import squared_distances
from kernelopt.methods.exact.method import Exact
from kernelopt.testing import (
    assert_certified,
    check_fidelity,
    check_formulation,
    check_kernel,
    check_loss,
    check_method,
)
from tests.every import every
from tests.formulations.test_formulations import ENTRIES
from tests.problems import other


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
    with pytest.raises(AssertionError, match="the claimed value must lie between the bounds, got 0.2600"):
        assert_certified(replace(solution, value=0.26001))


def test_a_stranger_s_values_are_certified_too():
    problem, mu = small()
    problem.solve(solver=cp.CLARABEL)
    assert_certified(problem, rtol=1e-5)
    mu.value = [1.0, 1.0]
    with pytest.raises(AssertionError, match="the gap must be at most 1e-05, got .* <= optimum <= "):
        assert_certified(problem, rtol=1e-5)


# --------------------------------------------------------------------------- check_formulation


def two_risks(grams, y, second):
    """Two tasks that share the weights of their kernels."""
    mu = cp.Variable(len(grams), nonneg=True, name="mu")
    K = ko.combine(mu, grams)
    risk = ko.risk(K, y, ko.hinge(1.0)) + 2 * ko.risk(K, second, ko.squared_hinge(1.0))
    problem = cp.Problem(cp.Minimize(risk), [(ko.trace(K) == 8).set_label("trace")])
    dual = partial(two_risks_dual, grams, y, second)
    return ko.Formulation("own.two_risks", problem, K, mu, dual, "equal", "own (2024)")


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


def two_risks_example(rng, **fields):
    X, y = points(rng)
    K = np.array([np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / w) for w in (0.5, 4.0)])
    right = two_risks(as_grams(K), y, np.where(X[:, 1] > np.median(X[:, 1]), 1.0, -1.0))
    return replace(right, **{name: of(right) for name, of in fields.items()})


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


def shifted(right):
    """A dual that is off by one."""
    dual = right.dual()
    return lambda: cp.Problem(cp.Maximize(dual.objective.args[0] + 1), dual.constraints)


def broken(right):
    """A programme that raises."""
    return {"half": lambda: 1 / 0}


def beside(rng, **knobs):
    """A planted value that is off by a hundredth."""
    right = ENTRIES["lanckriet.alignment"].planted(rng, **knobs)
    return replace(right, value=right.value * 1.01)


WRONG_EXAMPLES = {
    "dual": (replace(OWN, example=partial(two_risks_example, dual=shifted)), (0, 1), [
        "own.two_risks: 2 of", "statements fail",
        "seed 0: the dual: is 'equal': not so, got [", "seed 1: the dual: is 'equal': not so, got [",
    ]),
    "programme": (replace(OWN, example=partial(two_risks_example, programmes=broken)), (0,), [
        "raised ZeroDivisionError: division by zero"
    ]),
    "planted": (replace(ENTRIES["lanckriet.alignment"], planted=beside), (), [
        "the planted value: is between the bounds: not so"
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "seeds", "said"), WRONG_EXAMPLES.values(), ids=WRONG_EXAMPLES)
def test_all_that_is_wrong_with_a_formulation_is_said_at_once(entry, seeds, said):
    with pytest.raises(AssertionError) as raised:
        check_formulation(entry, seeds=seeds, methods=False)
    assert all(text in str(raised.value) for text in said)


QUICK = ["lanckriet.alignment", "linear_functional.functional_strategy", "triplet_lp.kernel_design"]
SLOW = [pytest.param(name, False, marks=pytest.mark.slow) for name in ENTRIES if name not in QUICK]


@pytest.mark.parametrize(("name", "methods"), [*((name, True) for name in QUICK), *SLOW])
def test_the_formulations_of_the_catalogue_pass(name, methods):
    """That the methods of the slow ones agree is a test of tests/methods/test_every_method.py."""
    assert not check_formulation(ENTRIES[name], seeds=(0,), methods=methods).wrong


# -------------------------------------------------------------------- check_loss, check_kernel

OURS = [
    *((check_loss, loss, 19) for loss in (
        ko.squared_hinge(2.0), ko.hard_margin(), ko.epsilon_insensitive(1.0, 0.1), ko.one_class(1.0),
        ko.squared(0.5),
    )),
    (check_loss, ko.logistic(1.0), 20),  # with a second derivative
    *((check_kernel, kernel, 10) for kernel in (
        ko.laplacian(0.5), ko.polynomial(3), ko.linear(), ko.identity(), ko.normalized(ko.polynomial(2)),
        ko.on_columns(ko.gaussian(1.0), [0, 2]), ko.linear() + 2 * ko.gaussian(1.0) * ko.linear(),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("check", "ours", "stated"), OURS, ids=[repr(ours) for _, ours, _ in OURS])
def test_our_losses_and_kernels_pass(check, ours, stated):
    assert len(check(ours).stated) == stated


def without_upper(right, alpha, y, weight=None):
    """A perspective that forgets an end of the domain, which every value inside still has."""
    gain, domain = right.dual_perspective(alpha, y, weight)
    return gain, [c for c in domain if c.label != "upper"]


def narrow(right, alpha, y, weight=None):
    """A perspective with half of its domain."""
    gain, domain = right.dual_perspective(2 * alpha, y, weight)
    return gain / 2, domain


PERSPECTIVE = "`dual_perspective` with a weight has"
WRONG_LOSSES = {
    "expression": (
        other(ko.hinge, 1.0, expression=lambda right, fit, y: right.expression(fit, y) + 0.1),
        ["the expression has the value of the loss, by its curve unless `quadratic = False`: not so, got"],
    ),
    "curve": (
        other(ko.hinge, 1.0, curve=lambda right, y: right.curve(y)._replace(l1=0.0)),
        ["`l1` is an array of shape (8,)", "got float of"],
    ),
    "intercept": (
        other(ko.hinge, 1.0, intercept=lambda right, f, y: right.intercept(f, y) + 3.0),
        ["no other intercept has a smaller loss: not so"],
    ),
    "derivatives": (
        other(
            ko.logistic, 1.0,
            dual_gradient=lambda right, alpha, y: right.dual_gradient(alpha, y) + 1e-4,
            hessian_diag=lambda right, t, y: 1.01 * right.hessian_diag(t, y),
        ),
        ["2 of 20", "`dual_gradient` is the derivative of `dual_value`: not so", "`hessian_diag` is the"],
    ),
    # `dualize` uses a loss through its perspective, and no other part of the package does
    "perspective without the weight": (
        other(ko.squared_hinge, 1.0, dual_perspective=lambda right, a, y, w=0: right.dual_perspective(a, y)),
        [f"{PERSPECTIVE} the value of w l(a / w): not so"],
    ),
    "perspective without an end": (
        other(ko.hinge, 1.0, dual_perspective=without_upper),
        [f"the dual of {PERSPECTIVE} w times the value at a kernel: not so"],
    ),
    "perspective on half of the domain": (
        other(ko.hinge, 1.0, dual_perspective=narrow),
        [f"the domain of {PERSPECTIVE} the points of `project`: not so"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_LOSSES)
def test_a_loss_whose_parts_do_not_fit_is_found(name):
    loss, said = WRONG_LOSSES[name]
    with pytest.raises(AssertionError) as raised:
        check_loss(loss)
    assert all(text in str(raised.value) for text in said)
    wrong = [line for line in str(raised.value).splitlines() if line.startswith("*")]
    assert all("`dual_perspective`" in line for line in wrong) or "perspective" not in name


def test_a_dual_that_is_not_quadratic_is_not_taken_from_the_curve():
    """It would be another function, and every bound from it would be false."""
    said = "Curved, .* must state .*, got none for dual_value, dual_express"
    stated = {"responder": lambda self, y: lambda t: t, "dual_gradient": lambda self, alpha, y: alpha}
    with pytest.raises(ko.InputError, match=said):
        type("Curved", (ko.hinge,), {"quadratic": False, **stated})


def kernel_of(gram, **hooks):
    """An object of a kernel with other hooks; `gram` is a function of the points and the other points."""
    stated = {"gram": lambda self, X, Z: gram(X, X if Z is None else Z), "__repr__": lambda self: "own()"}
    return type("own", (ko.Kernel,), stated | hooks)()


def inner(X, Z):
    return X @ Z.T


def shifting(X, Z):
    X += 1.0
    return inner(X, Z)


def wendland(d):
    """Return a kernel on R^3 that is zero beyond a distance, hence not completely monotone."""
    r = np.sqrt(d) / 4
    return np.maximum(1 - r, 0) ** 4 * (4 * r + 1)


def with_profile(function, *, of=None, **claims):
    """A kernel of the squared distance with a profile."""
    profile = Profile("sqeuclidean", function, 1.0, **claims)
    return kernel_of(lambda X, Z: (of or function)(squared_distances(X, Z)), profile=lambda self: profile)


BLOCK = "k(X, Z) is a block of the Gram matrix of X and Z: not so"
WRONG_KERNELS = {
    "indefinite": (kernel_of(lambda X, Z: -inner(X, Z)), "is positive semidefinite: not so"),
    "not symmetric": (kernel_of(lambda X, Z: inner(X + 1, Z)), BLOCK),
    "of the sample": (kernel_of(lambda X, Z: inner(X - X.mean(0), Z - Z.mean(0))), BLOCK),
    "of the order": (
        kernel_of(lambda X, Z: inner(X - X[0], Z - X[0])),
        "reordered points have the reordered Gram matrix: not so",
    ),
    "shape": (kernel_of(lambda X, Z: inner(X, Z)[1:, 1:]), "the Gram matrix has shape (12, 12): not"),
    "diagonal": (
        kernel_of(inner, gram_diagonal=lambda self, X: (X**2).sum(1) + 1e-6),
        "`gram_diagonal` is the diagonal of the Gram matrix: not so",
    ),
    "rank": (kernel_of(inner, gram_rank=lambda self, X: 2), "the rank is at most its bound: not so"),
    "profile": (
        with_profile(lambda d: np.exp(-d), of=lambda d: np.exp(-d / 2)),
        "the profile, if there is one, gives the Gram matrix: not so",
    ),
    "profile that is not monotone": (
        with_profile(wendland, completely_monotone=True),
        "it is completely monotone: not so",
    ),
    "changed points": (kernel_of(shifting), "X is not changed: not so"),
    "infinite": (kernel_of(lambda X, Z: inner(X, Z) / 0), "raised NotFiniteError: values of own"),
}


@pytest.mark.parametrize(("kernel", "said"), WRONG_KERNELS.values(), ids=WRONG_KERNELS)
def test_a_kernel_that_is_none_is_found(kernel, said):
    with pytest.raises(AssertionError, match=re.escape(said)):
        check_kernel(kernel)


@every(
    ("call", "said"),
    [
        *(
            (partial(assert_certified, wrong), "takes a cp.Problem, a Formulation, a Solution")
            for wrong in (3.0, "optimal", None)
        ),
        (partial(check_formulation, two_risks), "check_formulation takes an Entry, got function"),
        (partial(check_loss, "hinge"), "check_loss takes a Loss, got str"),
        (partial(check_fidelity, "l1"), "check_fidelity takes a Fidelity, got str"),
        (partial(check_kernel, "gaussian"), "check_kernel takes a Kernel, got str"),
        (partial(check_kernel, ko.linear(), [[1.0], [2.0]]), "X must have at least four points, got 2"),
        (partial(check_method, "simplex"), "method must be 'auto' or one of 'exact'"),
    ],
)
def test_what_cannot_be_checked_is_refused(call, said):
    with pytest.raises((ko.errors.ParameterError, ko.errors.MethodError), match=said):
        call()


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


def test_a_method_that_tells_false_brackets_or_takes_nothing_is_found():
    with pytest.raises(AssertionError, match="the bounds of every report contain .*: not so, got "):
        check_method(Optimist(), TRIED[:1])
    with pytest.raises(AssertionError, match="at least one problem is accepted: not so"):
        check_method("least-squares", TRIED)


# ------------------------------------------------------------------------------------- records

right = two_risks_example(np.random.default_rng(0))
BUILT = cp.Problem(cp.Minimize(0))


@every(
    ("record", "fields", "said"),
    [
        (right, {"claim": "eqal"}, "claim must be 'equal', 'upper', 'lower' or 'relaxation', got 'eqal'"),
        (right, {"dual": BUILT}, "dual must be a function .* got Problem"),
        (right, {"problem": two_risks_dual}, "problem must be a cp.Problem.* got function"),
        (right, {"kernel": np.eye(2)}, "kernel must be a cvxpy expression, got ndarray"),
        (right, {"weights": np.ones(2)}, "weights must be a cvxpy expression or None"),
        (right, {"programmes": {"qp": BUILT}}, r"programmes\['qp'\] must be a function"),
        (right, {"programmes": [two_risks]}, "programmes must be a dict"),
        (OWN, {"takes": "label"}, "takes must be 'labels', .* got 'label'"),
        (OWN, {"name": "two_risks"}, "name must be of the form 'package.builder', got 'two_risks'"),
        (OWN, {"build": right}, "build must be a function .* got Formulation"),
        (OWN, {"example": right}, "example must be a function of a numpy Generator"),
        (OWN, {"planted": 3.0}, "planted must be a function of a numpy Generator"),
        (Programme(BUILT, dict), {"claim": "exact"}, "claim must be one of"),
        (Programme(BUILT, dict), {"problem": two_risks}, "problem must be a cp.Problem, got function"),
        (Programme(BUILT, dict), {"recover": {}}, "recover must be a function without arguments, got dict"),
    ],
)
def test_a_wrong_record_is_refused_when_made(record, fields, said):
    with pytest.raises(ko.errors.ParameterError, match=said):
        replace(record, **fields)
