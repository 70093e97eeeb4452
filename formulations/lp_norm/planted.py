"""Problems of l_p-norm multiple kernel learning with a known optimum.

Each form of the kernel set relates the optimal weights theta to the numbers s_m = alpha'K_m alpha. One
side is chosen, the other follows, and kernels with these s_m are made (`formulations.planting.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.lp_norm.block_norm import block_norm
from formulations.lp_norm.elastic_net import elastic_net
from formulations.lp_norm.multiple_kernel_data import HINGE, ball_exponent
from formulations.lp_norm.non_isotropic import non_isotropic
from formulations.lp_norm.one_class import one_class
from formulations.lp_norm.primal import primal
from formulations.lp_norm.tikhonov import tikhonov
from formulations.planting import (
    Knobs,
    Machine,
    begun,
    contradicting,
    kernels,
    labelled_kernels,
    machine,
    planted,
)
from kernelopt.extend import Array, Entry, Planted, exponent, norms

INTERACTIONS = np.array([[2.0, 0.8, -0.3], [0.8, 1.5, 0.4], [-0.3, 0.4, 1.0]])

LOGISTIC, HUBERIZED = ko.logistic(1.0), ko.huberized_hinge(1.0, 0.5)


def forms_of(rng: np.random.Generator, knobs: Knobs) -> Array:
    """Return positive numbers s_m, up to their common size, for the m kernels."""
    return np.asarray(rng.uniform(0.5, 1.5, knobs.m))


def ball_weights(s: Array, p: float) -> Array:
    """Return the theta of the l_p ball with the largest theta's: (s_m / |s|_q)^(q - 1), and 1 at p = inf.

    At p = 1 it is one of several where the largest s_m occurs more than once: equal shares.
    """
    if np.isinf(p):
        return np.ones(s.size)
    if p == 1:
        largest = s == s.max()
        return np.asarray(largest / largest.sum())
    powers = (s / s.max()) ** (1 / (p - 1))  # q - 1 = 1 / (p - 1)
    return np.asarray(powers / norms.lp_length(powers, p))


def learned(
    rng: np.random.Generator,
    knobs: Knobs,
    m: Machine,
    theta: Array,
    s: Array,
    build: Callable[..., ko.Formulation],
    price: float = 0.0,
) -> Planted:
    """Return the problem whose kernels have the weights theta and the forms s, both with the duplicates."""
    weights: Array = np.bincount(knobs.owners, weights=theta).astype(float)
    stack = kernels(rng, knobs, m.z, m.g, weights, s[: knobs.m])[knobs.owners]
    if knobs.infeasible:
        return planted(build(contradicting(stack), m.y), np.inf, None)
    formulation = build(stack, m.y)
    point = {"theta": theta} if isinstance(formulation.weights, cp.Variable) else {}
    return planted(formulation, m.risk + price, m.alpha if formulation.risks else None, **point)


def of_ball(rng: np.random.Generator, *, p: float = 4 / 3, loss: ko.Loss = HINGE, **chosen: Any) -> Planted:
    """Return a constrained problem with a known optimum; its value is l(alpha) - 1/2 |s|_q."""
    knobs = Knobs(**chosen)
    if knobs.infeasible:
        loss = ko.hard_margin()
    m = machine(rng, loss, knobs)
    s = forms_of(rng, knobs)
    if p == 1:  # weights where the forms are largest
        s = np.where(knobs.active, s.max(), s if not knobs.degenerate else s.max())
    s = s[knobs.owners]
    theta = ball_weights(s, p)
    if p == 1:
        theta = np.where(knobs.active[knobs.owners], theta, 0.0)
        theta /= theta.sum()
    return learned(rng, knobs, m, theta, s, partial(primal, p=p, loss=loss))


def of_tikhonov(
    rng: np.random.Generator,
    *,
    p: float = 3.0,
    penalty: float = 0.5,
    loss: ko.Loss = LOGISTIC,
    **chosen: Any,
) -> Planted:
    """Return a penalised problem with a known optimum.

    At theta = tau d with |d|_p = 1 it has s_m = 4 mu tau d_m^(p - 1), so that theta's = 4 mu tau^2.
    """
    knobs, m = begun(rng, loss, chosen, "tikhonov")
    d = forms_of(rng, knobs)[knobs.owners]
    d /= norms.lp_length(d, p)
    tau = np.sqrt(m.form / (4 * penalty))
    build = partial(tikhonov, p=p, penalty=penalty, loss=loss)
    s = 4 * penalty * tau * d ** (p - 1)
    return learned(rng, knobs, m, tau * d, s, build, penalty * tau**2)


def of_block_norm(
    rng: np.random.Generator, *, r: float = 1.5, loss: ko.Loss = HUBERIZED, **chosen: Any
) -> Planted:
    """Return a block-norm problem with a known optimum.

    For r <= 2 it is the problem on the ball with p = r / (2 - r). For r > 2 the machine is
    f = sum_m K_m alpha / theta_m with theta_m = s_m^(1 / (p + 1)), up to |theta|_p = 1, and p = r / (r - 2).
    """
    knobs, m = begun(rng, loss, chosen, "block_norm")
    s, build = forms_of(rng, knobs)[knobs.owners], partial(block_norm, r=r, loss=loss)
    if exponent(r, "r") <= 2:
        return learned(rng, knobs, m, ball_weights(s, ball_exponent(r)), s, build)
    p = 1.0 if np.isinf(r) else r / (r - 2)
    powers = s ** (1 / (p + 1))
    return learned(rng, knobs, m, norms.lp_length(powers, p) / powers, s, build)


def of_ellipsoid(rng: np.random.Generator, **chosen: Any) -> Planted:
    """Return a problem over an ellipsoid of weights with a known optimum.

    With theta'E theta = 1 it has s_m = (E theta)_m theta's where theta_m > 0, and at most that elsewhere.
    """
    knobs, m = begun(rng, HINGE, chosen, "non_isotropic")
    count = knobs.owners.size
    root = rng.uniform(0.0, 1.0, (count, count))
    E = root @ root.T / count + np.eye(count)
    if knobs.duplicates:  # the same row and column, so that both copies are used alike
        E = E[np.ix_(knobs.owners, knobs.owners)] + np.eye(count)
    theta = np.where(knobs.active, rng.uniform(0.5, 1.5, knobs.m), 0.0)[knobs.owners]
    theta /= np.sqrt(theta @ E @ theta)
    level = np.where(knobs.active, 1.0, 1.0 if knobs.degenerate else 0.5)[knobs.owners]
    return learned(rng, knobs, m, theta, level * (E @ theta), partial(non_isotropic, E=E))


def of_elastic_net(rng: np.random.Generator, *, l2: float = 0.5, **chosen: Any) -> Planted:
    """Return an elastic-net problem with a known optimum.

    It has s_m = (l1 / (1 - l2 theta_m))^2 where theta_m > 0, and at most l1^2 elsewhere; l1 follows from
    theta's = alpha'K alpha.
    """
    loss = ko.squared_hinge(1.0)
    knobs, m = begun(rng, loss, chosen, "elastic_net")
    filled = np.where(knobs.active, rng.uniform(0.2, 0.6, knobs.m), 0.0)[knobs.owners]  # l2 theta
    level = np.where(knobs.active, 1.0, 1.0 if knobs.degenerate else 0.5)[knobs.owners]
    shape = level / (1 - filled) ** 2
    theta = filled / l2
    l1 = float(np.sqrt(m.form / (theta @ shape)))
    price = l1**2 / (2 * l2) * float((1 / (1 - filled) - 1).sum())
    return learned(rng, knobs, m, theta, shape, partial(elastic_net, l1=l1, l2=l2, loss=loss), price)


def of_one_class(rng: np.random.Generator, *, p: float = 2.0, **chosen: Any) -> Planted:
    """Return a one-class problem in the nu form with a known value, - 1/2 alpha'K alpha.

    A learner of the C form at C = 1 with alpha and f is one of the nu form at nu = 1'alpha / n, with
    alpha / 1'alpha and f / 1'alpha.
    """
    knobs, m = begun(rng, ko.one_class(1.0), {**chosen, "unlabelled": 0}, "one_class")
    total = float(m.alpha.sum())
    m = replace(m, z=m.z / total, g=m.g / total, form=m.form / total**2, gain=0.0)
    s = forms_of(rng, knobs)[knobs.owners]
    nu = total / knobs.n
    return learned(rng, knobs, m, ball_weights(s, p), s, lambda stack, y: one_class(stack, p=p, nu=nu))


CATALOGUE = [
    Entry("lp_norm.primal", primal, "labels", lambda rng: primal(*labelled_kernels(rng), p=4 / 3), of_ball),
    Entry(
        "lp_norm.tikhonov",
        tikhonov,
        "labels",
        lambda rng: tikhonov(*labelled_kernels(rng), p=3, penalty=0.5, loss=ko.logistic(1.0)),
        of_tikhonov,
    ),
    Entry(
        "lp_norm.block_norm",
        block_norm,
        "labels",
        lambda rng: block_norm(*labelled_kernels(rng), r=1.5, loss=ko.huberized_hinge(1.0, 0.5)),
        of_block_norm,
    ),
    Entry(
        "lp_norm.non_isotropic",
        non_isotropic,
        "labels",
        lambda rng: non_isotropic(*labelled_kernels(rng), E=INTERACTIONS),
        of_ellipsoid,
    ),
    Entry(
        "lp_norm.elastic_net",
        elastic_net,
        "labels",
        lambda rng: elastic_net(*labelled_kernels(rng), l1=0.5, l2=0.5, loss=ko.squared_hinge(1.0)),
        of_elastic_net,
    ),
    Entry(
        "lp_norm.one_class",
        one_class,
        "none",
        lambda rng: one_class(labelled_kernels(rng)[0], p=2, nu=0.3),
        of_one_class,
    ),
]
