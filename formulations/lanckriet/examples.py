"""The catalogue of this module: every builder with a small example."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.lanckriet.alignment import alignment
from formulations.lanckriet.block_norm import block_norm
from formulations.lanckriet.hard_margin import hard_margin
from formulations.lanckriet.learned_tau import learned_tau
from formulations.lanckriet.margin import margin
from formulations.lanckriet.planted import (
    of_alignment,
    of_criterion,
    of_free_signs,
    of_learned_tau,
    of_rank_one,
)
from formulations.lanckriet.qcqp import qcqp
from formulations.lanckriet.rank_one import rank_one
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.setting import Array
from formulations.lanckriet.soft_margin import soft_margin
from formulations.lanckriet.soft_margin_squared import soft_margin_squared


def _data(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return three kernels on sixteen points, twelve of them labelled, and the labels."""
    X = rng.normal(size=(16, 2))
    kernels = [ko.gaussian(0.5), ko.gaussian(2.0), ko.linear()]
    y = np.where(X[:12, 0] + 0.3 * rng.normal(size=12) > np.median(X[:12, 0]), 1.0, -1.0)
    return np.asarray(ko.Grams.from_kernels(kernels, X)), y


CATALOGUE = [
    ko.Entry(
        "lanckriet.hard_margin",
        hard_margin,
        "labels",
        lambda rng: hard_margin(*_data(rng)),
        of_criterion(hard_margin, np.inf, 0.0),
    ),
    ko.Entry(
        "lanckriet.soft_margin",
        soft_margin,
        "labels",
        lambda rng: soft_margin(*_data(rng)),
        of_criterion(soft_margin, 1.0, 0.0),
    ),
    ko.Entry(
        "lanckriet.soft_margin_squared",
        soft_margin_squared,
        "labels",
        lambda rng: soft_margin_squared(*_data(rng)),
        of_criterion(soft_margin_squared, np.inf, 1.0),
    ),
    ko.Entry(
        "lanckriet.learned_tau",
        learned_tau,
        "labels",
        lambda rng: learned_tau(*_data(rng)),
        of_learned_tau(learned_tau),
    ),
    ko.Entry(
        "lanckriet.margin",
        margin,
        "labels",
        lambda rng: margin(*_data(rng), C=1.0, tau=0.5),
        of_criterion(margin, 1.0, 0.5, C=1.0, tau=0.5),
    ),
    ko.Entry("lanckriet.sdp", sdp, "labels", lambda rng: sdp(*_data(rng), C=1.0), of_free_signs),
    ko.Entry(
        "lanckriet.qcqp",
        qcqp,
        "labels",
        lambda rng: qcqp(*_data(rng), C=1.0),
        of_criterion(qcqp, 1.0, 0.0, C=1.0),
    ),
    ko.Entry(
        "lanckriet.block_norm",
        block_norm,
        "labels",
        lambda rng: block_norm(*_data(rng), C=1.0),
        of_criterion(block_norm, 1.0, 0.0, C=1.0),
    ),
    ko.Entry(
        "lanckriet.rank_one",
        rank_one,
        "labels",
        lambda rng: rank_one(rng.normal(size=(16, 5)), _data(rng)[1], C=1.0),
        of_rank_one,
    ),
    ko.Entry("lanckriet.alignment", alignment, "labels", lambda rng: alignment(*_data(rng)), of_alignment),
]
