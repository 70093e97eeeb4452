"""Forms of a kernel for the tests of the risk."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.every import every
from tests.problems import CASES, labels, points, positive_definite, sample_weights, solved, stack

N = 7
KS = stack(N + 2)[:, :N, :N]
LARGER = stack(N + 2)
RIDGED = KS + 0.2 * np.eye(N)
W = np.array([0.8, 0.5, 1.2])
C = sample_weights(N)
SUM = np.tensordot(W, KS, 1)
V = points(N, N, seed=3)
SPECTRUM = np.linspace(0.2, 1.4, N)
RANK_ONES = (V * SPECTRUM) @ V.T

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
finite = pytest.mark.parametrize("case", [c for c in CASES if c.name != "hard_margin"], ids=lambda c: c.name)
biases = every("bias", [False, True], ids=["no bias", "bias"])


class Form(NamedTuple):
    """A kernel or a list of them, variable in a set over which the least risk is at known matrices.

    The risk decreases in the PSD order, so `mu <= w` puts the optimum at w, with a Slater point.
    """

    kernel: Any
    matrices: tuple[np.ndarray, ...]
    set: tuple[cp.Constraint, ...] = ()
    point: tuple[tuple[cp.Variable, Any], ...] = ()
    norm: float = 2


def weights(size=3, **attributes):
    return cp.Variable(size, **attributes)


def combination(equal=False, grams=KS):
    mu = weights(nonneg=True)
    return Form(ko.combine(mu, grams), (SUM,), ((mu == W) if equal else (mu <= W),), ((mu, W),))


def zero_kernel():
    mu = weights(4, nonneg=True)
    K = ko.combine(mu, np.concatenate([KS, 0 * KS[:1]]))
    at = np.append(W, 1.0)
    return Form(K, (SUM,), (mu <= at,), ((mu, at),))


def free_sign():
    mu = weights()
    K = ko.combine(mu, KS)
    return Form(K, (SUM,), (SUM - K >> 0,), ((mu, W),))


def psd_variable(equal=False):
    K = cp.Variable((N, N), PSD=True)
    return Form(K, (SUM,), ((K == SUM) if equal else (SUM - K >> 0),), ((K, SUM),))


def rank_ones(make):
    mu = weights(N, nonneg=True)
    return Form(make(mu), (RANK_ONES,), (mu <= SPECTRUM,), ((mu, SPECTRUM),))


def with_ridge(free=False):
    mu, tau = weights(nonneg=not free), cp.Variable(nonneg=not free)
    K, bound = ko.combine(mu, KS) + tau * np.eye(N), SUM + 0.3 * np.eye(N)
    return Form(K, (bound,), (bound - K >> 0,) if free else (mu <= W, tau <= 0.3), ((mu, W), (tau, 0.3)))


def variable_list(norm):
    mu, scale = weights(nonneg=True), cp.Variable(nonneg=True)
    kernels = [ko.combine(mu, KS), scale * RIDGED[1], RIDGED[2]]
    point = ((mu, W), (scale, 2.0))
    return Form(kernels, (SUM, 2 * RIDGED[1], RIDGED[2]), (mu <= W, scale <= 2), point, norm)


def semidefinite_list(norm):
    K, L = free_sign(), combination()
    return Form([K.kernel, L.kernel], (SUM, SUM), K.set + L.set, K.point + L.point, norm)


FORMS = {
    "matrix": lambda: Form(SUM, (SUM,)),
    "matrix on more points": lambda: Form(np.tensordot(W, LARGER, 1), (SUM,)),
    "constant weights": lambda: Form(ko.combine(W, KS), (SUM,)),
    "combination": combination,
    "combination at given weights": lambda: combination(equal=True),
    "combination on more points": lambda: combination(grams=LARGER),
    "with a zero kernel": zero_kernel,
    "spectral": lambda: rank_ones(lambda mu: V @ cp.diag(mu) @ V.T),
    "rank-one stack": lambda: rank_ones(lambda mu: ko.combine(mu, ko.Grams.rank_one(V))),
    "with ridge": with_ridge,
    "free sign": free_sign,
    "free sign with ridge": lambda: with_ridge(free=True),
    "PSD variable": psd_variable,
    "PSD variable at a given matrix": lambda: psd_variable(equal=True),
    **{
        f"fixed list, norm {r}": lambda r=r: Form(list(RIDGED), tuple(RIDGED), norm=r)
        for r in (1, 1.5, 3, np.inf)
    },
    **{f"variable list, norm {r}": lambda r=r: variable_list(r) for r in (2, 3, np.inf)},
    **{f"semidefinite list, norm {r}": lambda r=r: semidefinite_list(r) for r in (3, np.inf)},
}


def roots(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def dual_value(case, name, bias):
    form = FORMS[name]()
    return maximum(case, tuple(K.tobytes() for K in form.matrices), bias, form.norm)


@cache
def maximum(case, matrices, bias, norm):
    """max l(a) - 1/2 |(sqrt(a'K_m a))_m|_s^2 with 1/s + 1/norm = 1, and 1'a = 0 with an intercept."""
    Ks = [np.frombuffer(K).reshape(N, N) for K in matrices]
    a = cp.Variable(N)
    gain, domain = case.dual(a, case.y(N), C)
    lengths = cp.hstack([cp.norm2(roots(K).T @ a) for K in Ks])
    s = np.inf if norm == 1 else 1.0 if norm == np.inf else norm / (norm - 1)
    size = {1.0: cp.norm1, np.inf: cp.norm_inf}.get(s, lambda x: cp.pnorm(x, s, approx=False))(lengths)
    balance = [cp.sum(a) == 0] if bias else []
    return solved(cp.Problem(cp.Maximize(gain - cp.square(size) / 2), domain + balance))


def ball_problem(objective, *extra, y=None, loss=None):
    """Return a problem in the l_2 ball of weights, and its risk."""
    theta = weights(nonneg=True)
    risk = ko.risk(ko.combine(theta, RIDGED), labels(N) if y is None else y, loss or ko.hinge(C))
    constraints = [*ko.lp_ball(theta, 2), *(constraint(risk, theta) for constraint in extra)]
    return cp.Problem(objective(risk, theta), constraints), risk, theta


def valued(values, **attributes):
    """A variable that holds these values."""
    variable = cp.Variable(np.shape(values), **attributes)
    variable.save_value(np.asarray(values, dtype=float))
    return variable


A, FUNCTIONS = np.array([0.7, -1.2, 0.4]), [ko.linear(), ko.gaussian(1.0), ko.identity()]
LAZY = ko.Grams.from_kernels(FUNCTIONS, points(N))
EVALUATED = np.array([kernel(points(N)) for kernel in FUNCTIONS])
FULL = stack(N)
OTHER = positive_definite(N, seed=5)
ORTHONORMAL = np.linalg.qr(points(N, N))[0][:, :4]
AT = np.tensordot(A, FULL, 1)
EIGHTS = np.arange(1.0, 5.0)


def sum_of_all(grams=FULL):
    K, other = ko.combine(valued(A), grams), valued(-1.5)
    return 2 * K + other * grams[0] + grams[1] / 4 + K / 2, 2.5 * np.tensordot(A, grams, 1) + (
        -1.5 * grams[0] + grams[1] / 4
    )


KERNELS = {  # a kernel expression with values, and the matrix that it stands for
    "combination": lambda: (ko.combine(valued(A), FULL), AT),
    "nonneg": lambda: (ko.combine(valued(abs(A), nonneg=True), FULL), np.tensordot(abs(A), FULL, 1)),
    "lazy kernels": lambda: (ko.combine([1.0, -2.0, 0.5], LAZY), np.tensordot([1.0, -2, 0.5], EVALUATED, 1)),
    "learned weights of lazy kernels": lambda: (ko.combine(valued(A), LAZY), np.tensordot(A, EVALUATED, 1)),
    "with ridge": lambda: (
        ko.combine(valued(A), FULL) + valued(0.7, nonneg=True) * np.eye(N),
        AT + 0.7 * np.eye(N),
    ),
    "sum": sum_of_all,
    "two stacks and a ridge": lambda: (
        ko.combine(valued(A), FULL)
        + ko.combine(valued([-0.3, 0.5]), np.array([OTHER, np.diag(np.arange(1.0, N + 1))]))
        + valued(0.6, nonneg=True) * np.eye(N),
        AT - 0.3 * OTHER + 0.5 * np.diag(np.arange(1.0, N + 1)) + 0.6 * np.eye(N),
    ),
    "leading block": lambda: tuple(K[:N, :N] for K in sum_of_all(stack(N + 3))),
    "difference": lambda: (2 * ko.combine(valued(A), FULL) / 3 - OTHER, 2 * AT / 3 - OTHER),
    "spectral": lambda: (
        ORTHONORMAL @ cp.diag(valued(EIGHTS, nonneg=True)) @ ORTHONORMAL.T,
        (ORTHONORMAL * EIGHTS) @ ORTHONORMAL.T,
    ),
    "parameters as weights": lambda: (ko.combine(cp.Parameter(3, value=A), FULL), AT),
    "parameter times": lambda: (cp.Parameter(nonneg=True, value=3.0) * ko.combine(valued(A), FULL), 3 * AT),
    "principal block": lambda: tuple(K[1 : N + 1, 1 : N + 1] for K in sum_of_all(stack(N + 2))),
    "rank one": lambda: (
        ko.combine(valued(EIGHTS), ko.Grams.rank_one(ORTHONORMAL)),
        (ORTHONORMAL * EIGHTS) @ ORTHONORMAL.T,
    ),
    "rank one, constant weights": lambda: (
        ko.combine(np.arange(4.0), ko.Grams.rank_one(ORTHONORMAL)),
        (ORTHONORMAL * np.arange(4.0)) @ ORTHONORMAL.T,
    ),
    "identity": lambda: (ko.combine(2.0 * np.ones(1), ko.Grams.identity(N)), 2 * np.eye(N)),
    "constant": lambda: (cp.Constant(FULL[1]), FULL[1]),
    "PSD variable": lambda: (valued(OTHER, PSD=True), OTHER),
    "sum with a PSD variable": lambda: (valued(OTHER, PSD=True) + ko.combine(valued(A), FULL), OTHER + AT),
    "entrywise": lambda: (cp.multiply(FULL[0], valued(OTHER, PSD=True)), FULL[0] * OTHER),
    "transposed": lambda: (ko.combine(valued(A), FULL).T, AT.T),
    "array": lambda: (FULL[0], FULL[0]),
    "parameter": lambda: (cp.Parameter((N, N), PSD=True, value=FULL[0]), FULL[0]),
}
SUMS = list(KERNELS)[:17]  # read as sums of Gram matrices
kernels = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
