"""`join`: the kernels of several stacks as one stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.grams import Grams, as_grams
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.storage import Storage
from kernelopt.validation import Array, as_float_array, as_list, shown


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
        itself. `subset` and `block` of the stack are joined from the subsets and blocks of the parts.

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
    scaled = [multiplied(grams.storage, as_factors(factor, len(grams))) for factor, grams in parts]
    if len(scaled) == 1:
        return parts[0][1] if scaled[0] is parts[0][1].storage else Grams(scaled[0])
    flat = [p for part in scaled for p in (part.parts if isinstance(part, JoinedStorage) else [part])]
    return Grams(JoinedStorage(flat))


def multiplied(part: Storage, c: Array) -> Storage:
    """Return the matrices times their positive factors c, shape (m,); by ones, the storage itself."""
    if (c == 1).all():
        return part
    if isinstance(part, JoinedStorage):
        return JoinedStorage([multiplied(each, c[cut]) for each, cut in part.pieces()])
    return ScaledStorage(part, 1 / c)


def as_factors(factor: ArrayLike, m: int) -> Array:
    """Return one positive factor for each of m kernels, shape (m,)."""
    c = as_float_array(factor, "the factor of a stack in join", ndim=(0, 1))
    if c.ndim and c.shape != (m,):
        raise ShapeError(
            f"the factor of a stack must be one number or one per kernel, shape ({m},), got shape "
            f"{c.shape} in join. Pass one number for all kernels of the stack."
        )
    if not (c > 0).all():
        raise ParameterError(
            f"the factor of a stack must be positive, got {c.min():g} in join. Leave out kernels of factor "
            "zero with grams.subset(indices); put a sign into the weights."
        )
    return np.broadcast_to(c, (m,))
