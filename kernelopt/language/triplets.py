"""Relative comparisons and diagonal dominance of a kernel, as expressions of its weights."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import Wrap
from numpy.typing import ArrayLike

from kernelopt.comparisons import as_triplets, comparisons
from kernelopt.errors import ConditionWarning
from kernelopt.grams import Grams
from kernelopt.language.combination import as_kernel
from kernelopt.language.measures import entries
from kernelopt.language.sets import Constraints
from kernelopt.language.terms import terms
from kernelopt.validation import Array, Index, as_indices, positive


class TripletGains(Wrap):  # type: ignore[misc]
    """The expression K_ij - K_ik for every triplet, with its triplets as data; made by `triplet_gains`."""

    def __init__(self, expression: cp.Expression, triplets: Index) -> None:
        self.triplets = triplets
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.triplets]


def triplet_gains(K: Any, triplets: ArrayLike) -> TripletGains:
    """The differences K_ij - K_ik for the comparisons "i is more similar to j than to k".

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.
    triplets : integer array of shape (T, 3), rows (i, j, k) of different points in 0..N-1
        Point i is more similar to point j than to point k.

    Returns
    -------
    TripletGains
        An affine cvxpy expression of shape (T,). For a combination it is a (T, m) matrix times its weights.

    Warns
    -----
    ConditionWarning
        If the triplets contradict each other. `explain` shows the contradictions.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> K = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.1], [0.2, 0.1, 1.0]])
    >>> ko.triplet_gains(K, [[0, 1, 2], [2, 0, 1]]).value.round(6)
    array([0.7, 0.1])
    """
    K = as_kernel(K)
    rows = as_triplets(triplets, K.shape[0])
    compared = comparisons(rows)
    if not compared.consistent:
        warnings.warn(
            ConditionWarning(
                "the triplets contradict each other, so no kernel respects all of them: "
                f"{compared.describe(compared.contradictions[0])}. comparisons(triplets).feedback lists "
                f"{len(compared.feedback)} whose removal is enough."
            ),
            stacklevel=2,
        )
    parts = terms(K)
    if parts is None:
        i, j, k = rows.T
        return TripletGains(K[i, j] - K[i, k], rows)
    return TripletGains(cp.sum([differences(grams, rows) @ weights for weights, grams in parts]), rows)


def differences(grams: Grams, triplets: Index) -> Array:
    """Return K_p(i, j) - K_p(i, k) for checked triplets, shape (T, m); every pair of points is read once."""
    i, j, k = triplets.T
    ends = [np.minimum(i, other) * grams.n_points + np.maximum(i, other) for other in (j, k)]
    pairs, at = np.unique(np.concatenate(ends), return_inverse=True)
    chosen = np.ascontiguousarray(grams.entries(pairs // grams.n_points, pairs % grams.n_points).T)
    return np.asarray(chosen[at[: i.size]] - chosen[at[i.size :]])


def triplet_hinge(K: Any, triplets: ArrayLike, margin: float = 1.0) -> cp.Expression:
    r"""The hinge of relative comparisons "i is more similar to j than to k", one number per triplet.

    .. math:: \big(\rho - (K_{ij} - K_{ik})\big)_+

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.
    triplets : integer array of shape (T, 3), rows (i, j, k) of different points in 0..N-1
        Point i is more similar to point j than to point k.
    margin : float > 0, default 1.0
        rho, in units of the kernel. With no margin the zero kernel would respect everything.

    Returns
    -------
    cvxpy expression of shape (T,), convex and non-negative
        Its sum is the loss of the comparisons.

    References
    ----------
    .. [1] Fung, Rosales, Rao, "Feature Selection and Kernel Design via Linear Programming", IJCAI 2007.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> K = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.1], [0.2, 0.1, 1.0]])
    >>> ko.triplet_hinge(K, [[0, 1, 2], [2, 0, 1]]).value.round(6)
    array([0.3, 0.9])
    """
    return cp.pos(positive(margin, "margin") - triplet_gains(K, triplets))


def diagonally_dominant(K: Any, points: ArrayLike | None = None) -> list[cp.Constraint]:
    r"""The set of kernels that are diagonally dominant, and therefore positive semidefinite, on some points.

    .. math:: K_{ii} \ge \sum_{j \ne i} |K_{ij}| \qquad (i, j \in S)

    The set is polyhedral, unlike {K >> 0}, but much smaller: smooth kernels on many points are far from it.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.
    points : integer array of shape (n_S,), optional
        S, different points in 0..N-1; by default all.

    Returns
    -------
    list of constraints, labelled "above", "below" and "dominance"
        They contain a variable `r` with r_ij >= |K_ij|, one for each pair of points. For a combination they
        need n_S (n_S + 1) / 2 x m numbers.

    References
    ----------
    .. [1] Fung, Rosales, Rao, IJCAI 2007.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> w = cp.Variable(2)
    >>> K = ko.combine(w, np.array([np.eye(3), np.ones((3, 3))]))
    >>> problem = cp.Problem(cp.Maximize(w[1]), [*ko.diagonally_dominant(K), w[0] == 1])
    >>> round(float(problem.solve(solver=cp.CLARABEL)), 5)
    1.0
    """
    K = as_kernel(K)
    S = np.arange(K.shape[0]) if points is None else as_indices(points, K.shape[0], "points", unique=True)
    first, second = np.triu_indices(S.size, 1)
    diagonal = entries(K, S, S)
    if not first.size:
        return Constraints([(diagonal >= 0).set_label("dominance")])
    pair = np.arange(first.size)
    ends = (np.concatenate([first, second]), np.concatenate([pair, pair]))
    incident = sp.csr_array((np.ones(2 * first.size), ends), shape=(S.size, first.size))
    off = entries(K, S[first], S[second])
    r = cp.Variable(first.size, name="r")
    return Constraints(
        [
            (off <= r).set_label("above"),
            (-off <= r).set_label("below"),
            (incident @ r <= diagonal).set_label("dominance"),
        ]
    )
