"""`join`: the kernels of several stacks as one stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ShapeError
from kernelopt.grams.grams import Grams
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.storage import Storage
from kernelopt.validation import Array


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
        If the parts are on different numbers of points.

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
    sizes = sorted({grams.n_points for _, grams in parts})
    if len(sizes) > 1:
        raise ShapeError(
            f"the stacks must be on the same points, got {sizes} points in join. "
            "Take the common ones of each with grams.block(rows)."
        )
    scaled = [
        multiplied(grams.storage, np.broadcast_to(np.asarray(factor, dtype=float), len(grams)))
        for factor, grams in parts
    ]
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
