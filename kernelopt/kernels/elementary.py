"""Kernels of a closed form on points of R^d."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelopt.kernels.base import Kernel
from kernelopt.kernels.profile import Metric, Profile, distances, row_blocks
from kernelopt.validation import Array, positive, whole

SMALLEST_WIDTH = 1e-100  # the square of smaller numbers is close to the smallest normal number


def exponential(d: Array, rate: float) -> Array:
    """Return exp(rate d) as a new array."""
    exponents = np.multiply(d, rate)
    return np.exp(exponents, out=exponents)


@dataclass(frozen=True)
class _Radial(Kernel):
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive(self.width, "width"))

    def _distances(self, X: Array, Z: Array | None, metric: Metric) -> Array:
        """Return the distances of points in units of the width; the mean of X does not matter for them."""
        centre = X.mean(axis=0)
        return distances((X - centre) / self.width, None if Z is None else (Z - centre) / self.width, metric)

    def _profile(self, metric: Metric, function: Callable[[Array], Array]) -> Profile | None:
        """Return the profile with own value one; None for a width whose square is no normal number."""
        moderate = SMALLEST_WIDTH < self.width < 1 / SMALLEST_WIDTH
        return Profile(metric, function, 1.0, completely_monotone=True) if moderate else None


@dataclass(frozen=True)
class gaussian(_Radial):
    r"""The Gaussian kernel, a function of the Euclidean distance.

    .. math:: k(x, z) = \exp\Big(-\frac{\|x - z\|^2}{2\, \mathrm{width}^2}\Big)

    Parameters
    ----------
    width : float > 0
        In units of x.

    Examples
    --------
    >>> from kernelopt.kernels import gaussian
    >>> gaussian(width=2.0)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        return exponential(self._distances(X, Z, "sqeuclidean"), -0.5)

    def profile(self) -> Profile | None:
        return self._profile("sqeuclidean", lambda d: exponential(d, -0.5 / self.width**2))


@dataclass(frozen=True)
class laplacian(_Radial):
    r"""The Laplacian kernel, a function of the sum of the absolute differences.

    .. math:: k(x, z) = \exp\Big(-\frac{\|x - z\|_1}{\mathrm{width}}\Big)

    Parameters
    ----------
    width : float > 0
        In units of x.
    """

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        return exponential(self._distances(X, Z, "cityblock"), -1.0)

    def profile(self) -> Profile | None:
        return self._profile("cityblock", lambda d: exponential(d, -1 / self.width))


@dataclass(frozen=True)
class polynomial(Kernel):
    r"""The polynomial kernel, a power of the inner product plus an offset.

    .. math:: k(x, z) = (x'z + \mathrm{offset})^{\mathrm{degree}}

    Its rank is at most the number of monomials: :math:`\binom{d + degree}{degree}`,
    or :math:`\binom{d + degree - 1}{degree}` where the offset is zero.

    Parameters
    ----------
    degree : int >= 1, default 2
        The largest degree of the monomials.
    offset : float >= 0, default 1.0
        Without it all monomials have this degree.
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", wanted="an integer >= 1"))
        object.__setattr__(self, "offset", positive(self.offset, "offset", allow_zero=True))

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        products = np.asarray(X @ (X if Z is None else Z).T)
        return self.of_products(products, products)

    def of_products(self, products: Array, out: Array | None = None) -> Array:
        """Return the kernel of given inner products.

        Parameters
        ----------
        products : array
            The inner products x_i'z_j.
        out : array of the same shape, optional
            Where the kernel is written.
        """
        if self.degree == 1 and not self.offset:
            return products
        K = np.empty_like(products) if out is None else out
        for part in row_blocks(K):
            np.add(products[part], self.offset, out=K[part])
            K[part] **= self.degree
        return K

    def gram_rank(self, X: Array) -> int:
        return math.comb(X.shape[1] + self.degree - (self.offset == 0), self.degree)


@dataclass(frozen=True)
class linear(polynomial):
    """The linear kernel, which is the inner product x'z of two points; its rank is at most d."""

    degree: int = field(default=1, init=False, repr=False)
    offset: float = field(default=0.0, init=False, repr=False)


@dataclass(frozen=True)
class identity(Kernel):
    """The identity kernel: 1 between a point and itself, 0 between two points.

    A point is its row number, not its coordinates: `identity()(X)` is the identity matrix even where
    rows are equal, and `identity()(X, Z)` is zero, even where Z is X: new points are other points.
    """

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        return np.eye(len(X)) if Z is None else np.zeros((len(X), len(Z)))

    def profile(self) -> Profile:
        return Profile.constant(0.0, 1.0)
