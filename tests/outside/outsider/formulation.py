"""Quantile regression with a kernel that is learned."""

from functools import partial

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt import Formulation
from kernelopt.extend import Entry, as_grams, as_vector, norms
from outsider.kernel import cauchy
from outsider.loss import quantile


def quantile_regression(grams, y, C=1.0, share=0.5, p=2.0):
    """Quantile regression over kernels sum_m theta_m K_m with |theta|_p <= 1.

    min over theta, f, b of sum_i C quantile(f_i + b, y_i) + 1/2 |f|_K^2
    """
    grams, y, loss = as_grams(grams), as_vector(y, "y"), quantile(C, share)
    theta = cp.Variable(len(grams), nonneg=True, name="theta")
    K = ko.combine(theta, grams)
    return Formulation(
        name="outsider.quantile_regression",
        problem=cp.Problem(cp.Minimize(ko.risk(K, y, loss)), ko.lp_ball(theta, p)),
        kernel=K,
        weights=theta,
        dual=partial(dual, grams, y, loss, norms.conjugate_exponent(p)),
        claim="equal",
        reference="Takeuchi et al. (2006), with the kernels of Kloft et al. (2011)",
    )


def dual(grams, y, loss, q):
    """Return max y'a - 1/2 |(a'K_m a)_m|_q over -(1 - share) C <= a <= share C with sum a = 0."""
    a = cp.Variable(y.size, name="alpha")
    forms = cp.hstack([cp.sum_squares(grams.factor(m).T @ a) for m in range(len(grams))])
    box = [-(1 - loss.share) * loss.C <= a, a <= loss.share * loss.C]
    return cp.Problem(cp.Maximize(y @ a - cp.norm(forms, q) / 2), [*box, cp.sum(a) == 0])


def example(rng):
    """Return the first quartile of twelve noisy points of a line and a wave."""
    X = np.sort(rng.uniform(-2, 2, size=(12, 1)), axis=0)
    y = X[:, 0] + np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=12)
    grams = ko.Grams.from_kernels([cauchy(0.5), cauchy(2.0), ko.linear()], X)
    return quantile_regression(grams, y, C=2.0, share=0.25)


CATALOGUE = [Entry("outsider.quantile_regression", quantile_regression, "targets", example)]
