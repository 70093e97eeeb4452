"""Triplets (i, j, k), "i is more similar to j than to k": validation, sampling from labels, and a score."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import LabelError, NotFiniteError, ParameterError, ShapeError
from kernelopt.validation import as_classes, as_generator, as_symmetric, boolean, plain, whole

Triplets: TypeAlias = NDArray[np.intp]

SIZE = "an integer of at least 1"
LARGEST_INDEX = 2**53 - 1  # the largest integer up to which floats are exact


def as_triplets(triplets: ArrayLike, n_points: int | None = None) -> Triplets:
    """Return relative comparisons as an integer array, or say which one is wrong.

    Parameters
    ----------
    triplets : array of shape (T, 3), T >= 1
        Rows (i, j, k) of three different points, numbered from zero: i is more similar to j than to k.
        Floats must be whole numbers.
    n_points : int, optional
        Indices must be below it.

    Examples
    --------
    >>> from kernelopt.comparisons import as_triplets
    >>> as_triplets([[0.0, 1.0, 2.0]]).tolist()
    [[0, 1, 2]]
    >>> as_triplets([[0, 1, 2], [3, 1, 3]])
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: triplets must hold three different points each, got (3, 1, 3) in row 1 \
(1 such row). Drop it: a point compared with itself says nothing.
    """
    try:
        array = plain(triplets, "triplets")
    except ShapeError as error:
        raise ShapeError(
            f"triplets must be an array of shape (T, 3), got a {type(triplets).__name__}: "
            f"{error.__cause__ or error} Give every row three points."
        ) from error
    if array.ndim != 2 or array.shape[1] != 3 or len(array) == 0:
        raise ShapeError(
            f"triplets must have shape (T, 3) with T >= 1, got {array.shape}. "
            "Stack rows (i, j, k), and write [[i, j, k]] for one triplet."
        )
    if array.dtype.kind not in "iuf":
        raise ShapeError(
            f"triplets must hold integers, got {array.dtype}, row 0 is {_row(array, 0)}. "
            "Number the points from zero and convert with numpy.asarray(triplets, dtype=int)."
        )
    finite = np.isfinite(array)
    if not finite.all():
        raise NotFiniteError(f"triplets must be finite, got {_first(array, ~finite)}. Drop such rows.")
    integral = array == np.floor(array)
    if not integral.all():
        raise ParameterError(
            f"triplets must hold whole numbers, got {_first(array, ~integral)}. "
            "They are indices of points: numpy.searchsorted finds them in a sorted list of names."
        )
    largest = LARGEST_INDEX if n_points is None else whole(n_points, "n_points", wanted=SIZE) - 1
    outside = (array < 0) | (array > largest)
    if outside.any():
        raise ParameterError(
            f"triplets must hold indices in 0..{largest}, got {_first(array, outside)}. "
            "Number the points from zero, in the order of the kernel's rows."
        )
    rows = array.astype(np.intp)
    i, j, k = rows.T
    repeated = (i == j) | (j == k) | (i == k)
    if repeated.any():
        raise ParameterError(
            f"triplets must hold three different points each, got {_first(rows, repeated[:, None])}. "
            "Drop it: a point compared with itself says nothing."
        )
    return rows


def sample_triplets(
    y: ArrayLike,
    size: int,
    random_state: int | np.random.Generator | None = None,
    both_anchors: bool = False,
) -> Triplets:
    """Draw triplets from labels: two points of one class, and a third point of another class.

    Three different points are drawn uniformly among the sets of three in which exactly two share their class.
    The third point is k. One of the other two, at random, is the anchor i. Draws are independent, so triplets
    may repeat.

    Parameters
    ----------
    y : array of shape (N,)
        Labels of any type that can be sorted. Replace a real target by a threshold, such as y > median.
    size : int >= 1
        Number of draws.
    random_state : int, Generator or None, default None
        The seed of the draws.
    both_anchors : bool, default False
        Whether each triplet (i, j, k) is followed by (j, i, k).

    Returns
    -------
    integer array of shape (size, 3), or (2 size, 3) with both anchors
        Rows (i, j, k): point i is of the class of j, and not of the class of k.

    Examples
    --------
    >>> from kernelopt.comparisons import sample_triplets
    >>> sample_triplets(["a", "b", "a"], 1, random_state=0, both_anchors=True).tolist()
    [[2, 0, 1], [0, 2, 1]]
    """
    size, labels = whole(size, "size", wanted=SIZE), as_classes(y)
    both_anchors = boolean(both_anchors, "both_anchors")
    _, classes, members = np.unique(labels, return_inverse=True, return_counts=True)
    threes = members * (members - 1) // 2 * (len(labels) - members)
    if not threes.any():
        raise LabelError(
            "y must hold a class of at least two points and a point of another class, got "
            f"{len(members)} class(es) on {len(labels)} point(s), the largest of {members.max(initial=0)}. "
            "Add points of another class, or threshold a real target: y > numpy.median(y)."
        )
    rng = as_generator(random_state)
    ends = np.cumsum(threes)
    of = np.searchsorted(ends, rng.integers(ends[-1], size=size), side="right")
    n, start = members[of], (np.cumsum(members) - members)[of]
    first = rng.integers(n)
    second = (first + rng.integers(1, n)) % n
    odd = rng.integers(len(labels) - n)
    odd += n * (odd >= start)
    near, far, other = np.argsort(classes, kind="stable")[[start + first, start + second, odd]]
    draws = [[near, far, other], [far, near, other]] if both_anchors else [[near, far, other]]
    return np.ascontiguousarray(np.array(draws, dtype=np.intp).transpose(2, 0, 1)).reshape(-1, 3)


def triplet_score(K: ArrayLike, triplets: ArrayLike, distance: bool = False) -> float:
    r"""The fraction of triplets that a kernel respects, in [0, 1].

    .. math:: \frac 1 T \left|\{(i, j, k) : K_{ij} > K_{ik}\}\right|

    Parameters
    ----------
    K : symmetric array of shape (N, N)
        The kernel, or any similarity.
    triplets : integer array of shape (T, 3)
        Rows (i, j, k): point i is more similar to point j than to point k.
    distance : bool, default False
        Compare the squared distances, K_ii + K_jj - 2 K_ij < K_ii + K_kk - 2 K_ik. For a constant diagonal
        both comparisons are the same.

    Notes
    -----
    A tie counts as not respected, so the zero kernel scores 0. Numbers are compared exactly; near-ties are
    decided by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.comparisons import triplet_score
    >>> K = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
    >>> triplet_score(K, [[0, 1, 2], [1, 0, 2]]), triplet_score(K, [[0, 1, 2], [1, 0, 2]], distance=True)
    (0.0, 0.5)
    """
    K = as_symmetric(K, "K")
    i, j, k = as_triplets(triplets, len(K)).T
    near, far = K[i, j], K[i, k]
    if boolean(distance, "distance"):
        diagonal = np.diag(K)
        near, far = 2 * near - diagonal[j], 2 * far - diagonal[k]
    return float(np.mean(near > far))


def _first(array: NDArray[np.generic], wrong: NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(wrong.any(axis=1))
    return f"{_row(array, rows[0])} in row {rows[0]} ({len(rows)} such row{'s' * (len(rows) > 1)})"


def _row(array: NDArray[np.generic], row: int) -> str:
    return f"({', '.join(str(x) for x in array[row].tolist())})"
