"""The catalogue of this module: every builder with a small example."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.examples import labelled_kernels
from formulations.lp_norm.block_norm import block_norm
from formulations.lp_norm.elastic_net import elastic_net
from formulations.lp_norm.non_isotropic import non_isotropic
from formulations.lp_norm.one_class import one_class
from formulations.lp_norm.planted import (
    of_ball,
    of_block_norm,
    of_elastic_net,
    of_ellipsoid,
    of_one_class,
    of_tikhonov,
)
from formulations.lp_norm.primal import primal
from formulations.lp_norm.tikhonov import tikhonov
from kernelopt.extend import Entry

INTERACTIONS = np.array([[2.0, 0.8, -0.3], [0.8, 1.5, 0.4], [-0.3, 0.4, 1.0]])


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
