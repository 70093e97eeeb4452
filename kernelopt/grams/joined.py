"""Stacks composed of other stacks: some matrices of one stack, or all matrices of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.base import Grams, as_grams
from kernelopt.grams.caching import cached_array
from kernelopt.grams.normalized import KnownConstants, ScaledGrams
from kernelopt.grams.stored import IdentityGrams, RankOneGrams
from kernelopt.validation import Array, as_float_array, as_list, shown


class ChosenGrams(Grams):
    """Some matrices of a stack that cannot select several of its matrices at once."""

    def __init__(self, whole: Grams, chosen: NDArray[np.intp]) -> None:
        super().__init__(len(chosen), whole.n_points, [whole.names[i] for i in chosen])
        self._whole, self._chosen = whole, chosen

    def gram(self, i: int) -> Array:
        return self._whole.gram(int(self._chosen[i]))

    def factor(self, i: int) -> Array:
        return self._whole.factor(int(self._chosen[i]))

    @property
    def known_semidefinite(self) -> bool:
        return self._whole.known_semidefinite

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        bounds = self._whole.rank_bounds
        return tuple(bounds[i] for i in self._chosen)

    def block(self, rows: Any) -> Grams:
        return self._whole.block(rows).subset(self._chosen)

    def cross(self, X_new: Any) -> Array:
        return np.asarray(self._whole.cross(X_new)[self._chosen])

    def self_similarity(self, X_new: Any) -> Array:
        return np.asarray(self._whole.self_similarity(X_new)[self._chosen])


def join(parts: Sequence[tuple[ArrayLike, Grams]]) -> Grams:
    """Return one stack of all kernels of several stacks on the same points, each times its factor.

    Nothing is evaluated. Every method calls the same method of the parts, which use their own caches.

    Parameters
    ----------
    parts : sequence of pairs (factor, grams)
        The factor is a positive number, or an array of shape (m,) with one for each of the m kernels
        of that stack. A factor of one costs nothing.

    Returns
    -------
    Grams
        The kernels in the order of the parts, with their names. A single part with factor one is returned
        itself. `subset` and `block` of the stack are joined from those of the parts.

    Raises
    ------
    ShapeError
        If there is no part, the parts are on different numbers of points, or a factor has the wrong
        shape.
    ParameterError
        If a factor is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from kernelopt.grams import join
    >>> linear = ko.Grams.from_kernels([ko.linear()], [[1.0], [2.0]])
    >>> both = join([(3.0, linear), (1.0, ko.Grams.identity(2))])
    >>> both.names
    ('linear()', 'I')
    >>> both.combine([1.0, 10.0])
    array([[13.,  6.],
           [ 6., 22.]])
    """
    pairs = as_list(parts, "parts", "a list of pairs (factor, grams)")
    if not pairs:
        raise ShapeError("parts must hold at least one stack, got none in join. Pass (factor, grams) pairs.")
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ShapeError(
                f"parts must hold pairs (factor, grams), got {shown(pair)} in join. Pass 1.0 for no factor."
            )
    parts = [(factor, as_grams(grams, "the stack of a pair in parts")) for factor, grams in pairs]
    sizes = sorted({grams.n_points for _, grams in parts})
    if len(sizes) > 1:
        raise ShapeError(
            f"the stacks must be on the same points, got {sizes} points in join. "
            "Take the common ones of each with grams.block(rows)."
        )
    scaled = [multiplied(grams, factor) for factor, grams in parts]
    if len(scaled) == 1:
        return scaled[0]
    return JoinedGrams(
        [p for part in scaled for p in (part.parts if isinstance(part, JoinedGrams) else [part])]
    )


def multiplied(grams: Grams, factor: ArrayLike) -> Grams:
    """Return the stack with each matrix times its positive factor; by ones, the stack itself."""
    c = as_float_array(factor, "the factor of a stack in join", ndim=(0, 1))
    if c.ndim and c.shape != (len(grams),):
        raise ShapeError(
            f"the factor of a stack must be one number or one per kernel, shape ({len(grams)},), got shape "
            f"{c.shape} in join. Pass one number for all kernels of the stack."
        )
    if not (c > 0).all():
        raise ParameterError(
            f"the factor of a stack must be positive, got {c.min():g} in join. Leave out kernels of factor "
            "zero with grams.subset(indices); put a sign into the weights."
        )
    if (c == 1).all():
        return grams
    c = np.broadcast_to(c, (len(grams),))
    if isinstance(grams, JoinedGrams):
        return JoinedGrams([multiplied(part, c[cut]) for part, cut in grams.pieces()])
    return ScaledGrams(grams, KnownConstants(1 / c))


class JoinedGrams(Grams):
    """The matrices of several stacks on the same points, one stack after the other; made by `join`."""

    def __init__(self, parts: Sequence[Grams]) -> None:
        names = [name for part in parts for name in part.names]
        super().__init__(len(names), parts[0].n_points, names)
        self.parts = tuple(parts)
        self._cuts = np.cumsum([0, *map(len, parts)])

    def pieces(self) -> list[tuple[Grams, slice]]:
        """Return each part with the slice of its kernels in the stack."""
        cuts = self._cuts.tolist()
        return [(part, slice(*cuts[p : p + 2])) for p, part in enumerate(self.parts)]

    def _at(self, i: int) -> tuple[Grams, int]:
        p = int(np.searchsorted(self._cuts, i, side="right")) - 1
        return self.parts[p], i - int(self._cuts[p])

    def gram(self, i: int) -> Array:
        part, j = self._at(i)
        return part.gram(j)

    def factor(self, i: int) -> Array:
        part, j = self._at(i)
        return part.factor(j)

    def rows(self, indices: Any) -> Array:
        chosen = self._positions(indices)
        return np.concatenate([part.rows(chosen) for part in self.parts])

    def block(self, rows: Any) -> Grams:
        return JoinedGrams([part.block(rows) for part in self.parts])

    def _subset(self, chosen: NDArray[np.intp]) -> Grams:
        owners = np.searchsorted(self._cuts, chosen, side="right") - 1
        runs = [list(run) for _, run in groupby(range(chosen.size), key=lambda t: int(owners[t]))]
        found = [self.parts[p := int(owners[run[0]])].subset(chosen[run] - self._cuts[p]) for run in runs]
        return found[0] if len(found) == 1 else JoinedGrams(found)

    @cached_array
    def diagonals(self) -> Array:
        return np.concatenate([part.diagonals for part in self.parts])

    @property
    def magnitudes(self) -> Array:
        return np.concatenate([part.magnitudes for part in self.parts])

    @property
    def traces(self) -> Array:
        return np.concatenate([part.traces for part in self.parts])

    @cached_array
    def row_means(self) -> Array:
        return np.concatenate([part.row_means for part in self.parts])

    @property
    def known_semidefinite(self) -> bool:
        return all(part.known_semidefinite for part in self.parts)

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(bound for part in self.parts for bound in part.rank_bounds)

    def combine(self, weights: ArrayLike) -> Array:
        w = self._weights(weights)
        sums = (part.combine(w[cut]) for part, cut in self.pieces() if w[cut].any())
        total = np.zeros(self.shape[1:])
        for each in sums:
            total += each
        return total

    def _apply(self, a: Array) -> Array:
        return np.concatenate([part.apply(a) for part in self.parts])

    def forms(self, alpha: ArrayLike) -> Array:
        return np.concatenate([part.forms(alpha) for part in self.parts])

    def inner(self) -> Array:
        found = np.empty((len(self), len(self)))
        pieces = self.pieces()
        for p, (part, cut) in enumerate(pieces):
            found[cut, cut] = part.inner()
            for other, place in pieces[:p]:
                found[cut, place] = inner_between(part, other)
                found[place, cut] = found[cut, place].T
        return found

    def entries(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        return np.concatenate([part.entries(rows, columns) for part in self.parts])

    def vectorized(self) -> Array:
        return np.concatenate([part.vectorized() for part in self.parts], axis=1)

    def cross(self, X_new: Any) -> Array:
        return np.concatenate([part.cross(X_new) for part in self.parts])

    def self_similarity(self, X_new: Any) -> Array:
        return np.concatenate([part.self_similarity(X_new) for part in self.parts])


def inner_between(left: Grams, right: Grams) -> Array:
    """Return the Frobenius inner products of the matrices of two stacks, shape (m_left, m_right)."""
    if isinstance(left, IdentityGrams):
        return right.traces[None]  # <I, K> = tr K
    if isinstance(left, RankOneGrams):
        return np.stack([(left.V * (K @ left.V)).sum(axis=0) for K in right], axis=1)  # <vv', K> = v'Kv
    if isinstance(right, IdentityGrams | RankOneGrams):
        return inner_between(right, left).T
    flat = [np.asarray(grams).reshape(len(grams), -1) for grams in (left, right)]
    return np.asarray(flat[0] @ flat[1].T)
