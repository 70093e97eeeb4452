"""The catalogue of this module: every builder with a small example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernelopt as ko
from formulations.examples import labelled_kernels
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
from formulations.lanckriet.soft_margin import soft_margin
from formulations.lanckriet.soft_margin_squared import soft_margin_squared
from kernelopt.extend import Entry, Planted


def _entry(build: Callable[..., ko.Formulation], planted: Callable[..., Planted], **options: Any) -> Entry:
    """Return the entry of a builder, whose example has these options."""
    name = f"lanckriet.{build.__name__}"
    return Entry(name, build, "labels", lambda rng: build(*labelled_kernels(rng), **options), planted)


CATALOGUE = [
    _entry(hard_margin, of_criterion(hard_margin, np.inf, 0.0)),
    _entry(soft_margin, of_criterion(soft_margin, 1.0, 0.0)),
    _entry(soft_margin_squared, of_criterion(soft_margin_squared, np.inf, 1.0)),
    _entry(learned_tau, of_learned_tau(learned_tau)),
    _entry(margin, of_criterion(margin, 1.0, 0.5, C=1.0, tau=0.5), C=1.0, tau=0.5),
    _entry(sdp, of_free_signs, C=1.0),
    _entry(qcqp, of_criterion(qcqp, 1.0, 0.0, C=1.0), C=1.0),
    _entry(block_norm, of_criterion(block_norm, 1.0, 0.0, C=1.0), C=1.0),
    Entry(
        "lanckriet.rank_one",
        rank_one,
        "labels",
        lambda rng: rank_one(rng.normal(size=(16, 5)), labelled_kernels(rng)[1], C=1.0),
        of_rank_one,
    ),
    _entry(alignment, of_alignment),
]
