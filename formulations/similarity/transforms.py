"""Spectral transforms: positive semidefinite matrices with the eigenvectors of similarities.

They are three of the repairs of `kernelopt.repair`, under the names of the experiments of the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.similarity_data import as_similarities
from kernelopt.extend import Array, parameters_of


def denoise(similarities: ko.Grams | ArrayLike) -> Array:
    r"""The nearest positive semidefinite matrix in Frobenius norm: :math:`\lambda_j \to \max(\lambda_j, 0)`.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams
        Symmetric to 1e-8 relative, of any signature.

    Returns
    -------
    array of the same shape
        A positive semidefinite matrix is returned unchanged, also by `flip` and `shift`.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> transforms = similarity.denoise, similarity.flip, similarity.shift
    >>> [transform(np.diag([2.0, -1])).diagonal().round(9).tolist() for transform in transforms]
    [[2.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    """
    return transformed(similarities, "clip")


@parameters_of(denoise)
def flip(similarities: ko.Grams | ArrayLike) -> Array:
    r"""The square root of :math:`S'S`: :math:`\lambda_j \to |\lambda_j|`.

    Parameters
    ----------
    similarities
        As for `denoise`.

    Returns
    -------
    array of the same shape
        Positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> similarity.flip(np.diag([2.0, -1])).round(9).tolist()
    [[2.0, 0.0], [0.0, 1.0]]

    """
    return transformed(similarities, "flip")


@parameters_of(denoise)
def shift(similarities: ko.Grams | ArrayLike) -> Array:
    r"""S plus a multiple of I: :math:`\lambda_j \to \lambda_j - \min(\lambda_{\min}, 0)`.

    Parameters
    ----------
    similarities
        As for `denoise`.

    Returns
    -------
    array of the same shape
        Positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> similarity.shift(np.diag([2.0, -1])).round(9).tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """
    return transformed(similarities, "shift")


def transformed(similarities: ko.Grams | ArrayLike, how: ko.Repair) -> Array:
    """Return the repaired similarities; one matrix where one matrix was given."""
    K = np.array(ko.repair(as_similarities(similarities), how).grams)
    return np.asarray(K[0] if is_one_matrix(similarities) else K)


def is_one_matrix(similarities: ko.Grams | ArrayLike) -> bool:
    """Whether one matrix was given, and not a stack."""
    return not isinstance(similarities, ko.Grams) and np.ndim(similarities) == 2
