"""Spectral transforms: positive semidefinite matrices with the eigenvectors of similarities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.similarity_data import as_similarities
from kernelopt.extend import Array


def denoise(similarities: ko.Grams | ArrayLike) -> Array:
    r"""The nearest positive semidefinite matrix in Frobenius norm: :math:`\lambda_j \to \max(\lambda_j, 0)`.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams

    Returns
    -------
    array of the same shape
        A positive semidefinite matrix is returned unchanged, also by `flip` and `shift`.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> transforms = similarity.denoise, similarity.flip, similarity.shift
    >>> [transform(np.diag([2.0, -1])).diagonal().tolist() for transform in transforms]
    [[2.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    """
    return transformed(similarities, "denoise")


def flip(similarities: ko.Grams | ArrayLike) -> Array:
    r"""The square root of S'S: :math:`\lambda_j \to |\lambda_j|`. Arguments and result as for `denoise`."""
    return transformed(similarities, "flip")


def shift(similarities: ko.Grams | ArrayLike) -> Array:
    r"""S plus a multiple of I: :math:`\lambda_j \to \lambda_j - \min(\lambda_{\min}, 0)`.

    Arguments and result as for `denoise`.
    """
    return transformed(similarities, "shift")


def transformed(similarities: ko.Grams | ArrayLike, how: str) -> Array:
    """Return the similarities with transformed spectra; one matrix where one matrix was given."""
    S = as_similarities(similarities)
    lam, V = np.linalg.eigh(S)
    K = (V * spectrum(lam, how)[:, None, :]) @ V.transpose(0, 2, 1)
    kept = lam[:, 0] >= 0  # exactly as given, without the rounding of V diag(lam) V'
    K[kept] = S[kept]
    K = (K + K.transpose(0, 2, 1)) / 2
    return np.asarray(K[0] if is_one_matrix(similarities) else K)


def spectrum(lam: Array, how: str) -> Array:
    """Return the transformed eigenvalues, shape (m, N); `lam` has them in ascending order."""
    if how == "shift":
        return np.asarray(lam - np.minimum(lam[:, :1], 0.0))
    return np.maximum(lam, 0.0) if how == "denoise" else np.abs(lam)


def is_one_matrix(similarities: ko.Grams | ArrayLike) -> bool:
    """Whether one matrix was given, and not a stack."""
    return not isinstance(similarities, ko.Grams) and np.ndim(similarities) == 2
