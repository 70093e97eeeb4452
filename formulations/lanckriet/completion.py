"""The completion of a kernel matrix of which some entries are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from kernelopt.extend import Array, as_symmetric


@dataclass(frozen=True, eq=False)
class PatternData:
    """Checked data of a completion.

    Attributes
    ----------
    known : boolean array of shape (N, N), symmetric, true on the diagonal
    fixed : array of shape (N, N), the known entries and zeros elsewhere
    S : array of shape (N, N), symmetric
    K : variable of shape (N, N), the completed matrix
    """

    known: NDArray[np.bool_]
    fixed: Array
    S: Array
    K: cp.Variable


def completion(matrix: ArrayLike, known: ArrayLike, S: ArrayLike | None = None) -> ko.Formulation:
    r"""The completion of a kernel matrix of which the diagonal and some other entries are known.

    .. math:: \min_{K \succ 0}\ \langle S, K \rangle - \log\det K \quad\text{s.t.}\quad
        K_{ij} = \bar K_{ij} \text{ for the known pairs } (i, j)

    Dual:

    .. math:: \max_M\ \log\det (S + M) + N - \langle M, \bar K \rangle \quad\text{s.t.}\quad
        M_{ij} = 0 \text{ for the unknown pairs}

    Statement: if some completion is positive definite, then the two have one value, and the optimum is the
    only completion with :math:`(K^{-1} - S)_{ij} = 0` at all unknown pairs. For S = 0 it is the completion of
    largest determinant, and a normal distribution with this covariance has the largest entropy.

    Parameters
    ----------
    matrix : array of shape (N, N)
        Symmetric. Its entries at unknown pairs are not read, but must be finite.
    known : array of bool of shape (N, N)
        Symmetric, and true on the diagonal.
    S : array of shape (N, N), default zeros
        Symmetric.

    Returns
    -------
    Formulation
        claim "equal". Its variable is K; it learns a kernel without a machine.

    Raises
    ------
    InputError
        For arrays that are not as above, and for a diagonal entry that is not positive.
    InfeasibleError
        On solving, with a proof, if no completion is positive semidefinite.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), outlook: the positive definite matrix completion problem.

    Notes
    -----
    One semidefinite cone of order 2 N: about a second at N = 20, a minute at 40.

    Examples
    --------
    Of a path of three points the missing entry is the product of the two others: K^-1 is zero there.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[1, 0.5, 0], [0.5, 1, 0.4], [0, 0.4, 1]])
    >>> solution = lanckriet.completion(K, K > 0).solve()
    >>> np.round([solution.kernel[0, 2], np.exp(-solution.value)], 4)  # the entry, the determinant
    array([0.2 , 0.63])
    """
    data = pattern_data(matrix, known, S)
    rows, columns = np.nonzero(np.triu(data.known))
    fixed = (data.K[rows, columns] == data.fixed[rows, columns]).set_label("known entries")
    return ko.Formulation(
        name="lanckriet.completion",
        problem=cp.Problem(cp.Minimize(cp.sum(cp.multiply(data.S, data.K)) - cp.log_det(data.K)), [fixed]),
        kernel=data.K,
        weights=None,
        dual=partial(dual, data),
        claim="equal",
        reference="Lanckriet et al. (2004), outlook",
    )


def pattern_data(matrix: ArrayLike, known: ArrayLike, S: ArrayLike | None) -> PatternData:
    """Return the data of a completion, with a new variable, after checking them."""
    K = as_symmetric(matrix, "matrix")
    given = as_symmetric(known, "known")
    mask = given > 0
    if given.shape != K.shape or not (given == mask).all():
        raise ko.InputError(
            f"known must be a symmetric array of bool of shape {K.shape}, got shape {given.shape} with "
            f"entries from {given.min():g} to {given.max():g}. Mark the pairs whose entries are known."
        )
    if not mask.diagonal().all() or not (K.diagonal() > 0).all():
        raise ko.InputError(
            "known must be true on the diagonal, and the diagonal of matrix positive, got "
            f"{int(mask.diagonal().sum())} known of {len(K)} entries, the least {K.diagonal().min():g}. "
            "Otherwise the optimum may be infinite."
        )
    price = np.zeros(K.shape) if S is None else as_symmetric(S, "S")
    if price.shape != K.shape:
        raise ko.errors.ShapeError(
            f"S must have the shape {K.shape} of matrix, got {price.shape}. Pass a price for every entry."
        )
    return PatternData(mask, np.where(mask, K, 0.0), price, cp.Variable(K.shape, symmetric=True, name="K"))


def dual(data: PatternData) -> cp.Problem:
    """Return the dual: a matrix that is zero at the unknown pairs."""
    M = cp.Variable(data.S.shape, symmetric=True, name="M")
    rows, columns = np.nonzero(np.triu(~data.known))
    objective = cp.log_det(data.S + M) + len(data.S) - cp.sum(cp.multiply(data.fixed, M))
    return cp.Problem(cp.Maximize(objective), [M[rows, columns] == 0] if rows.size else [])
