"""Kernels of a closed form on points of R^d; scikit-learn computes their Gram matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import pairwise

from kernelopt.kernels.base import Kernel
from kernelopt.kernels.profile import Metric, Profile
from kernelopt.validation import Array, positive, whole

SMALLEST_WIDTH = 1e-100  # the square of smaller numbers is close to the smallest normal number


@dataclass(frozen=True)
class _Radial(Kernel):
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive(self.width, "width"))

    def _centred(self, X: Array, Z: Array | None) -> tuple[Array, Array | None]:
        """Return the points in units of the width, less the mean of X.

        The kernels depend on x - z alone. scikit-learn computes |x - z|^2 as |x|^2 - 2 x'z + |z|^2, which
        loses digits where the points are far from the origin.
        """
        centre = X.mean(axis=0)
        return (X - centre) / self.width, None if Z is None else (Z - centre) / self.width

    def _profile(self, metric: Metric, power: int, rate: float) -> Profile | None:
        """Return exp(-rate d / width^power); None for a width whose square is no normal number."""
        if not SMALLEST_WIDTH < self.width < 1 / SMALLEST_WIDTH:
            return None
        rate /= self.width**power
        return Profile(metric, lambda d: np.exp(d * -rate), 1.0)


@dataclass(frozen=True)
class gaussian(_Radial):
    """The Gaussian kernel, k(x, z) = exp(-|x - z|^2 / (2 width^2)), width > 0 in units of x.

    Examples
    --------
    >>> from kernelopt.kernels import gaussian
    >>> gaussian(width=2.0)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.rbf_kernel(*self._centred(X, Z), gamma=0.5))

    def profile(self) -> Profile | None:
        return self._profile("sqeuclidean", 2, 0.5)


@dataclass(frozen=True)
class laplacian(_Radial):
    """The Laplacian kernel, k(x, z) = exp(-|x - z|_1 / width), width > 0 in units of x."""

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.laplacian_kernel(*self._centred(X, Z), gamma=1.0))

    def profile(self) -> Profile | None:
        return self._profile("cityblock", 1, 1.0)


@dataclass(frozen=True)
class polynomial(Kernel):
    """The polynomial kernel, k(x, z) = (x'z + offset)^degree, with a degree >= 1 and an offset >= 0.

    Its rank is at most the number of monomials: comb(d + degree, degree), or
    comb(d + degree - 1, degree) where the offset is zero.
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", wanted="an integer >= 1"))
        object.__setattr__(self, "offset", positive(self.offset, "offset", allow_zero=True))

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.polynomial_kernel(X, Z, degree=self.degree, gamma=1.0, coef0=self.offset))

    def gram_rank(self, X: Array) -> int:
        return math.comb(X.shape[1] + self.degree - (self.offset == 0), self.degree)


@dataclass(frozen=True)
class linear(polynomial):
    """The linear kernel, k(x, z) = x'z, of rank at most d."""

    degree: int = field(default=1, init=False, repr=False)
    offset: float = field(default=0.0, init=False, repr=False)


@dataclass(frozen=True)
class identity(Kernel):
    """The identity kernel: 1 between a point and itself, 0 between two points.

    A point is its row number, not its coordinates: `identity()(X)` is the identity matrix even where
    rows are equal, and `identity()(X, Z)` is zero, even where Z is X: new points are other points.
    """

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.eye(len(X)) if Z is None else np.zeros((len(X), len(Z)))

    def profile(self) -> Profile:
        return Profile.constant(0.0, 1.0)
