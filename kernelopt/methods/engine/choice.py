"""The choice of the provider for the kernels of a problem."""

from __future__ import annotations

from kernelopt.methods.control import Control
from kernelopt.methods.engine.precomputed import Precomputed
from kernelopt.methods.engine.provider import Provider
from kernelopt.structure.ball import BallProblem


def provider_name(read: BallProblem) -> str:
    """Return the name of the provider that `choose_provider` takes."""
    return Precomputed.name


def choose_provider(read: BallProblem, memory: float | None, control: Control) -> Provider:
    """Return the provider of the kernels of a problem within `memory` bytes."""
    return Precomputed(read.whole, read.reach, read.y.size)
