"""The default kernels of an estimator, on standardised columns, and the texts that name one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.spatial.distance import pdist

from kernelopt.errors import ParameterError
from kernelopt.estimators.columns import means_and_deviations
from kernelopt.kernels import Kernel, gaussian, polynomial
from kernelopt.records import record
from kernelopt.validation import Array, as_generator, positive, shown

WIDTHS = tuple(2.0**k for k in range(-3, 4))
"""Widths of the default Gaussian kernels, as multiples of the median distance."""

DEGREES = (1, 2, 3)
"""Degrees of the default polynomial kernels; the first is linear."""

MEDIAN_POINTS = 1000
"""Points whose median distance is computed. Half a million distances determine it to a part in 500."""

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MEDIAN = re.compile(rf"\s*gaussian\(\s*({NUMBER})\s+median\s*\)\s*")
"""The names of the default Gaussian kernels, such as "gaussian(0.5 median)", of any width."""


@record("block")
@dataclass(frozen=True, eq=False)
class Block:
    """Columns of X with their origin and unit: (X[:, columns] - origin) / unit.

    Attributes
    ----------
    columns : tuple of int
    origin, unit : array of shape (len(columns),)
    """

    columns: Annotated[tuple[int, ...], "c"]
    origin: Annotated[Array, "c"]
    unit: Annotated[Array, "c"]

    def __post_init__(self) -> None:
        if min(self.columns, default=0) < 0:
            raise ParameterError(f"columns must be numbered from zero, got {shown(self.columns)}.")

    def of(self, X: Array) -> Array:
        """Return the columns of the points X in these units."""
        return np.asarray((X[:, self.columns] - self.origin) / self.unit)


def standardised(X: Array, columns: tuple[int, ...], weights: Array, names: Sequence[str] | None) -> Block:
    """Return the columns that are not constant, in units in which a point has mean square one."""
    X = X[:, columns]
    origin, spread = means_and_deviations(X, weights)
    varies = spread > 0
    if not varies.any():
        where = [names[j] for j in columns] if names is not None else list(columns)
        raise ParameterError(
            "the widths of the default kernels must be computed from columns that vary, got constant "
            f"columns {shown(where)} on {len(X)} points. Leave them out, or pass kernels with widths."
        )
    kept = tuple(c for c, v in zip(columns, varies, strict=True) if v)
    return Block(kept, origin[varies], spread[varies] * np.sqrt(varies.sum()))


def is_default(kernel: Any) -> bool:
    """Whether an argument stands for default kernels: None for all, or the name of a Gaussian one."""
    return kernel is None or (isinstance(kernel, str) and MEDIAN.fullmatch(kernel) is not None)


def default_kernels(given: str | None, Z: Array, weights: Array, random_state: Any = 0) -> dict[str, Kernel]:
    """Return the default kernels for standardised points, by name: all, or the Gaussian one that is named."""
    s = median_distance(Z, weights, random_state)
    named = None if given is None else MEDIAN.fullmatch(given)
    if named is None:
        kernels: dict[str, Kernel] = {f"gaussian({w:g} median)": gaussian(w * s) for w in WIDTHS}
        return kernels | {f"polynomial({k})": polynomial(k, 1.0) for k in DEGREES}
    w = positive(float(named[1]), f"the width of {given}")
    return {f"gaussian({w:g} median)": gaussian(w * s)}


def median_distance(Z: Array, weights: Array, random_state: Any = 0) -> float:
    """Return the median of the distances between different points; at least two must differ.

    A pair counts with the product of its weights. The median is the smallest distance up to which at least
    half of the pairs lie.
    """
    if len(Z) > MEDIAN_POINTS:
        chosen = as_generator(random_state).choice(len(Z), MEDIAN_POINTS, replace=False)
        Z, weights = Z[chosen], weights[chosen]
    i, j = np.triu_indices(len(Z), 1)
    distances, shares = pdist(Z), weights[i] * weights[j]
    order = np.argsort(distances)
    order = order[distances[order] > 0]
    sums = np.cumsum(shares[order])
    return float(distances[order][np.searchsorted(sums, sums[-1] / 2)])
