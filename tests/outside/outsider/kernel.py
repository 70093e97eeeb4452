"""The Cauchy kernel."""

from dataclasses import dataclass

from kernelopt import Kernel
from kernelopt.extend import positive


@dataclass(frozen=True)
class cauchy(Kernel):
    """The Cauchy kernel, k(x, z) = 1 / (1 + |x - z|^2 / width^2)."""

    width: float = 1.0

    def gram(self, X, Z):
        differences = X[:, None] - (X if Z is None else Z)[None]
        return 1 / (1 + (differences**2).sum(axis=2) / positive(self.width, "width") ** 2)
