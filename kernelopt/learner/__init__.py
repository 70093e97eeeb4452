"""Training at fixed kernels, one or several: the value of the risk, alpha and the intercept."""

from kernelopt.learner.blocks import block_lower_bound, blocks_at, learn_blocks
from kernelopt.learner.programs import half_square
from kernelopt.learner.single import Machine, learn, lower_bound, machine_at

__all__ = [
    "Machine",
    "block_lower_bound",
    "blocks_at",
    "half_square",
    "learn",
    "learn_blocks",
    "lower_bound",
    "machine_at",
]
