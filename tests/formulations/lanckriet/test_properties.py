"""Lanckriet 3.3, 4.5, 7.3, 8.2 and 8.3 (docs/theory) on random small problems.

Scaling, permutations, duplicates, zero and constant kernels, label flips: the value does not change.
Any alpha in A_C gives a lower bound, any mu >= 0 an upper bound, and any garbage a true certificate.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelopt as ko
from formulations import lanckriet
from tests.formulations.lanckriet.cases import close, omega
from tests.formulations.lanckriet.test_sdp import balanced

settings.register_profile("lanckriet", max_examples=4, derandomize=True, deadline=None)
few = settings(settings.get_profile("lanckriet"))
C = 0.4
CRITERIA = [
    {"C": np.inf, "tau": 0.0},
    {"C": C, "tau": 0.0},
    {"C": np.inf, "tau": 0.5},
    {"C": C, "tau": 0.5},
    {"C": np.inf, "tau": "learned"},
]
criteria = st.sampled_from(CRITERIA)
both = st.sampled_from(["nonnegative", "free"])


@st.composite
def problems(draw):
    """Kernels of trace 1 to 20 on N points and the labels of the first n; the first kernel separates."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = draw(st.integers(4, 8)), draw(st.integers(1, 3))
    N = n + draw(st.integers(0, 2))
    V = rng.normal(size=(m, N, draw(st.integers(1, 4))))
    Ks = V @ V.transpose(0, 2, 1)
    Ks[0] += np.eye(N)
    Ks *= rng.uniform(1, 20, (m, 1, 1)) / np.trace(Ks, axis1=1, axis2=2)[:, None, None]
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Ks, y, rng


def value(Ks, y, criterion, weights="nonnegative", trace=10.0):
    """The value, certified to 1e-6."""
    solution = lanckriet.margin(Ks, y, **criterion, weights=weights, trace=trace).solve(tol=1e-6)
    assert solution.gap <= 1e-6
    return solution.value


def same(one, two, weights):
    # the QCQP's value is far better than its gap; for the LMI two gaps of 1e-6 may add up
    assert one == close(two, 1e-6 if weights == "nonnegative" else 2e-6)


@few
@given(problems(), criteria, both)
def test_what_does_not_change_the_value(problem, criterion, weights):
    """All at once, and each alone in test_qcqp.py.

    Kernels in other units, one of them twice, a zero kernel, kernels and points in another order, and the
    classes renamed.
    """
    Ks, y, rng = problem
    n, N = y.size, len(Ks[0])
    scaled = 10 ** rng.uniform(-1, 1, (len(Ks), 1, 1)) * Ks
    more = np.concatenate([scaled, rng.uniform(0.2, 5) * Ks[-1:], np.zeros_like(Ks[:1])])
    order = np.concatenate([rng.permutation(n), n + rng.permutation(N - n)])
    moved = more[rng.permutation(len(more))][:, order][:, :, order]
    same(value(moved, -y[order[:n]], criterion, weights), value(Ks, y, criterion, weights), weights)


@few
@given(problems(), criteria)
def test_the_constant_kernel_is_worth_nothing(problem, criterion):
    Ks, y, _ = problem
    more = np.concatenate([Ks, np.ones_like(Ks[:1])])
    same(value(more, y, criterion), value(Ks, y, criterion), "nonnegative")


@few
@given(problems(), criteria, both)
def test_more_kernels_and_more_trace_never_hurt(problem, criterion, weights):
    Ks, y, rng = problem
    here = value(Ks, y, criterion, weights)
    v = rng.normal(size=len(Ks[0]))
    assert value(np.concatenate([Ks, [np.outer(v, v)]]), y, criterion, weights) <= here * (1 + 2e-6)
    assert value(Ks, y, criterion, weights, trace=12.0) <= here * (1 + 2e-6)


@few
@given(problems(), criteria)
def test_free_signs_are_never_worse(problem, criterion):
    Ks, y, _ = problem
    assert value(Ks, y, criterion, "free") <= value(Ks, y, criterion) * (1 + 2e-6)


def feasible(rng, y, criterion):
    """A random member of A_C, of any size."""
    bound = criterion["C"]
    return balanced(10 ** rng.uniform(-2, 1) * rng.exponential(size=y.size), y, bound)


@few
@given(problems(), criteria)
def test_any_alpha_gives_a_lower_bound(problem, criterion):
    Ks, y, rng = problem
    N, c, r = len(Ks[0]), 10.0, np.trace(Ks, axis1=1, axis2=2)
    best = value(Ks, y, criterion)
    for _ in range(10):
        a = feasible(rng, y, criterion)
        forms = np.array([(a * y) @ K[: y.size, : y.size] @ (a * y) for K in Ks]) / r
        if criterion["tau"] == "learned":
            lower = 2 * a.sum() - c * max(forms.max(), a @ a / N)
        else:
            lower = 2 * a.sum() - criterion["tau"] * a @ a - c * forms.max()
        assert lower <= best * (1 + 1e-9)


@few
@given(problems(), criteria)
def test_any_weights_give_an_upper_bound(problem, criterion):
    Ks, y, rng = problem
    N, c, r = len(Ks[0]), 10.0, np.trace(Ks, axis1=1, axis2=2)
    best = value(Ks, y, criterion)
    for _ in range(3):
        shares = c * rng.dirichlet(np.ones(len(Ks) + 1))
        tau = shares[-1] / N if criterion["tau"] == "learned" else criterion["tau"]
        mu = shares[:-1] if criterion["tau"] == "learned" else c * shares[:-1] / shares[:-1].sum()
        assert omega(np.tensordot(mu / r, Ks, 1), y, criterion["C"], tau) >= best * (1 - 1e-6)


@few
@given(problems(), criteria, both)
def test_any_garbage_gets_a_true_certificate(problem, criterion, weights):
    Ks, y, rng = problem
    words = lanckriet.margin(Ks, y, **criterion, weights=weights, trace=10.0).problem
    best = value(Ks, y, criterion, weights)
    garbage = {
        v: np.asarray(rng.normal(size=v.shape)) for v in words.variables() if v.name() in ("mu", "tau")
    }
    found = ko.certify(words, garbage, alpha=10 ** rng.uniform(-2, 2) * rng.normal(size=y.size))
    assert found.lower <= best * (1 + 2e-6) and found.upper >= best * (1 - 2e-6)
    assert found.lower <= found.upper


@few
@given(problems(), st.sampled_from(["nonnegative", "free"]))
def test_alignment_of_any_weights_is_a_lower_bound(problem, weights):
    Ks, y, rng = problem
    solution = lanckriet.alignment(Ks, y, weights=weights).solve(tol=1e-6)
    assert solution.gap <= 1e-6
    for _ in range(5):
        K = np.tensordot(rng.exponential(size=len(Ks)), Ks, 1)
        assert y @ K[: y.size, : y.size] @ y / np.linalg.norm(K) <= solution.upper * (1 + 1e-9)
