"""The empirical kernel map: similarities to reference points as features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ShapeError
from kernelopt.validation import Array, as_float_array


def empirical_map(S: ArrayLike, S_new: ArrayLike | None = None) -> Array:
    """Return K = S S', the linear kernel of the rows of S, which are similarities to r reference points.

    Parameters
    ----------
    S : array of shape (n, r) or (m, n, r)
    S_new : array of shape (n_new, r) or (m, n_new, r), optional
        The similarities of new points to the same references.

    Returns
    -------
    array of shape (n, n) or (m, n, n)
        With S_new the cross kernels S_new S', of shape (n_new, n) or (m, n_new, n).

    Raises
    ------
    ShapeError
        If S_new differs from S in more than the number of points.

    Examples
    --------
    >>> from kernelopt.kernels import empirical_map
    >>> empirical_map([[1.0, 2.0], [0.0, 1.0]]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    features = as_float_array(S, "S", ndim=(2, 3))
    new = features if S_new is None else as_float_array(S_new, "S_new", ndim=(2, 3))
    if new.shape[:-2] != features.shape[:-2] or new.shape[-1] != features.shape[-1]:
        raise ShapeError(
            f"S_new must differ from S {features.shape} in the number of points only, got {new.shape}. "
            "Compare the new points with the same references."
        )
    K = np.asarray(new @ np.swapaxes(features, -1, -2))
    return (K + np.swapaxes(K, -1, -2)) / 2 if S_new is None else K
