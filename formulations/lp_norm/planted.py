"""Problems of l_p-norm multiple kernel learning with a known optimum.

Each form of the kernel set relates the optimal weights theta to the numbers s_m = alpha'K_m alpha. One
side is chosen, the other follows, and kernels with these s_m are made (`formulations.planting.weighted`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

import kernelopt as ko
from formulations.lp_norm.block_norm import block_norm
from formulations.lp_norm.elastic_net import elastic_net
from formulations.lp_norm.multiple_kernel_data import HINGE, ball_exponent
from formulations.lp_norm.non_isotropic import non_isotropic
from formulations.lp_norm.one_class import one_class
from formulations.lp_norm.primal import primal
from formulations.lp_norm.tikhonov import tikhonov
from formulations.planting import Knobs, entry, labelled_kernels, machine, weighted
from kernelopt.extend import Array, Planted, exponent, norms

INTERACTIONS = np.array([[2.0, 0.8, -0.3], [0.8, 1.5, 0.4], [-0.3, 0.4, 1.0]])


def forms_of(rng: np.random.Generator, knobs: Knobs) -> Array:
    """Return positive numbers s_m, up to their common size, for the stack."""
    return np.asarray(rng.uniform(0.5, 1.5, knobs.m)[knobs.owners])


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


def of_ball(rng: np.random.Generator, knobs: Knobs, *, p: float = 4 / 3, loss: ko.Loss = HINGE) -> Planted:
    """Return a constrained problem with a known optimum; its value is l(alpha) - 1/2 |s|_q."""
    loss = ko.hard_margin() if knobs.infeasible else loss
    m, build = machine(rng, loss, knobs), partial(primal, p=p, loss=loss)
    if p > 1:
        s = forms_of(rng, knobs)
        return weighted(rng, knobs, m, ball_weights(s, p), s, build)
    theta = knobs.active[knobs.owners] / knobs.active[knobs.owners].sum()  # where the forms are largest
    return weighted(rng, knobs, m, theta, knobs.level[knobs.owners], build)


def of_tikhonov(
    rng: np.random.Generator,
    knobs: Knobs,
    *,
    p: float = 3.0,
    penalty: float = 0.5,
    loss: ko.Loss | None = None,
) -> Planted:
    """Return a penalised problem with a known optimum.

    At theta = tau d with |d|_p = 1 it has s_m = 4 mu tau d_m^(p - 1), so that theta's = 4 mu tau^2.
    """
    loss = loss or ko.logistic(1.0)
    m, d = machine(rng, loss, knobs), forms_of(rng, knobs)
    d /= norms.lp_length(d, p)
    tau = np.sqrt(m.form / (4 * penalty))
    build = partial(tikhonov, p=p, penalty=penalty, loss=loss)
    return weighted(rng, knobs, m, tau * d, d ** (p - 1), build, price=penalty * tau**2)


def of_block_norm(
    rng: np.random.Generator, knobs: Knobs, *, r: float = 1.5, loss: ko.Loss | None = None
) -> Planted:
    """Return a block-norm problem with a known optimum.

    For r <= 2 it is the problem on the ball with p = r / (2 - r). For r > 2 the machine is
    f = sum_m K_m alpha / theta_m with theta_m = s_m^(1 / (p + 1)), up to |theta|_p = 1, and p = r / (r - 2).
    """
    loss = loss or ko.huberized_hinge(1.0, 0.5)
    m, s, build = machine(rng, loss, knobs), forms_of(rng, knobs), partial(block_norm, r=r, loss=loss)
    if exponent(r, "r") <= 2:
        return weighted(rng, knobs, m, ball_weights(s, ball_exponent(r)), s, build)
    p = 1.0 if np.isinf(r) else r / (r - 2)
    powers = s ** (1 / (p + 1))
    return weighted(rng, knobs, m, norms.lp_length(powers, p) / powers, s, build)


def of_ellipsoid(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a problem over an ellipsoid of weights with a known optimum.

    With theta'E theta = 1 it has s_m = (E theta)_m theta's where theta_m > 0, and at most that elsewhere.
    """
    count, owners = knobs.owners.size, knobs.owners
    root = rng.uniform(0.0, 1.0, (count, count))
    E = root @ root.T / count + np.eye(count)
    if knobs.duplicates:  # the same row and column, so that both copies are used alike
        E = E[np.ix_(owners, owners)] + np.eye(count)
    theta = np.where(knobs.active, rng.uniform(0.5, 1.5, knobs.m), 0.0)[owners]
    theta /= np.sqrt(theta @ E @ theta)
    m = machine(rng, HINGE, knobs)
    return weighted(rng, knobs, m, theta, knobs.level[owners] * (E @ theta), partial(non_isotropic, E=E))


def of_elastic_net(rng: np.random.Generator, knobs: Knobs, *, l2: float = 0.5) -> Planted:
    """Return an elastic-net problem with a known optimum.

    It has s_m = (l1 / (1 - l2 theta_m))^2 where theta_m > 0, and at most l1^2 elsewhere; l1 follows from
    theta's = alpha'K alpha.
    """
    loss = ko.squared_hinge(1.0)
    m = machine(rng, loss, knobs)
    filled = np.where(knobs.active, rng.uniform(0.2, 0.6, knobs.m), 0.0)[knobs.owners]  # l2 theta
    shape, theta = knobs.level[knobs.owners] / (1 - filled) ** 2, filled / l2
    l1 = float(np.sqrt(m.form / (theta @ shape)))
    price = l1**2 / (2 * l2) * float((1 / (1 - filled) - 1).sum())
    return weighted(rng, knobs, m, theta, shape, partial(elastic_net, l1=l1, l2=l2, loss=loss), price=price)


def of_one_class(rng: np.random.Generator, knobs: Knobs, *, p: float = 2.0) -> Planted:
    """Return a one-class problem in the nu form with a known value, - 1/2 alpha'K alpha.

    A learner of the C form at C = 1 with alpha and f is one of the nu form at nu = 1'alpha / n, with
    alpha / 1'alpha and f / 1'alpha.
    """
    knobs = replace(knobs, unlabelled=0)
    m, s = machine(rng, ko.one_class(1.0), knobs), forms_of(rng, knobs)
    total = float(m.alpha.sum())
    m = replace(m, z=m.z / total, g=m.g / total, form=m.form / total**2, gain=0.0)
    nu = total / knobs.n
    return weighted(rng, knobs, m, ball_weights(s, p), s, lambda stack, y: one_class(stack, p=p, nu=nu))


CATALOGUE = [
    entry(primal, "labels", of_ball, lambda rng: primal(*labelled_kernels(rng), p=4 / 3), True),
    entry(
        tikhonov,
        "labels",
        of_tikhonov,
        lambda rng: tikhonov(*labelled_kernels(rng), p=3, penalty=0.5, loss=ko.logistic(1.0)),
    ),
    entry(
        block_norm,
        "labels",
        of_block_norm,
        lambda rng: block_norm(*labelled_kernels(rng), r=1.5, loss=ko.huberized_hinge(1.0, 0.5)),
    ),
    entry(
        non_isotropic,
        "labels",
        of_ellipsoid,
        lambda rng: non_isotropic(*labelled_kernels(rng), E=INTERACTIONS),
    ),
    entry(
        elastic_net,
        "labels",
        of_elastic_net,
        lambda rng: elastic_net(*labelled_kernels(rng), l1=0.5, l2=0.5, loss=ko.squared_hinge(1.0)),
    ),
    entry(one_class, "none", of_one_class, lambda rng: one_class(labelled_kernels(rng)[0], p=2, nu=0.3)),
]
