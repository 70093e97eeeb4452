"""Spectral transforms of similarities, and the kernels they give at new points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.setting import Array, as_similarities

VANISHING = 1e-11  # eigenvalues, relative to the largest, that count as zero
AGREEMENT = 1e-6  # of a learned kernel with the spectral form it should have


def denoise(similarities: ko.Grams | ArrayLike) -> Array:
    r"""The nearest positive semidefinite matrix (Frobenius norm): :math:`\lambda_j \to \max(\lambda_j, 0)`.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams

    Returns
    -------
    array of the same shape, also for `flip` and `shift`; a positive semidefinite matrix is left as it is

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
    r"""The square root of S'S: :math:`\lambda_j \to |\lambda_j|`. As `denoise`."""
    return transformed(similarities, "flip")


def shift(similarities: ko.Grams | ArrayLike) -> Array:
    r"""S plus a multiple of I: :math:`\lambda_j \to \lambda_j - \min(\lambda_{\min}, 0)`. As `denoise`."""
    return transformed(similarities, "shift")


def transformed(similarities: ko.Grams | ArrayLike, how: str) -> Array:
    """Return the similarities with their spectra transformed, one matrix as one matrix."""
    S = as_similarities(similarities)
    lam, V = np.linalg.eigh(S)
    K = (V * spectrum(lam, how)[:, None, :]) @ V.transpose(0, 2, 1)
    kept = lam[:, 0] >= 0  # what is positive semidefinite stays, to the last bit
    K[kept] = S[kept]
    K = (K + K.transpose(0, 2, 1)) / 2
    return np.asarray(K[0] if is_one_matrix(similarities) else K)


def spectrum(lam: Array, how: str) -> Array:
    """Return the transformed eigenvalues, shape (m, N), ascending ones in."""
    if how == "shift":
        return np.asarray(lam - np.minimum(lam[:, :1], 0.0))
    return np.maximum(lam, 0.0) if how == "denoise" else np.abs(lam)


def is_one_matrix(similarities: ko.Grams | ArrayLike) -> bool:
    """Whether one matrix was given, and not a stack."""
    return not isinstance(similarities, ko.Grams) and np.ndim(similarities) == 2


def spectral_extension(
    learned: ko.Solution | ArrayLike | str, similarities: ko.Grams | ArrayLike, S_new: ArrayLike
) -> Array:
    r"""The kernel between new points and the N points, for kernels with the eigenvectors of S.

    .. math::

        k(x)' = s(x)' V \operatorname{diag}(\mu_j / \lambda_j) V', \qquad s(x) = (S(x, x_1), \dots, S(x, x_N))

    over the eigenvalues :math:`\lambda_j \neq 0` of S. At the N points themselves these are the rows of
    :math:`K = V \operatorname{diag}(\mu) V'`, if mu vanishes where lambda does.

    Parameters
    ----------
    learned : Solution of `restricted_spectral`, "denoise", "flip", or mu of shape (m, N), (N,) for m = 1
    similarities : array of shape (m, N, N) or (N, N), or Grams
        S, as it was learned from.
    S_new : array of shape (m, n_new, N), or (n_new, N) for one similarity
        The similarities between the new points and the N.

    Returns
    -------
    array of shape (n_new, N) or (m, n_new, N)
        For a solution the one kernel of its machine: the predictions are
        ``rows[:, :n] @ solution.alpha + solution.intercept``. Otherwise one kernel per similarity.

    Raises
    ------
    InputError
        For "shift", which changes the diagonal only, and for the kernel of a solution that does not have
        the eigenvectors of the similarities, such as that of `single_kernel`: it is known on the N points
        only. Learn with the new points among them, unlabelled, after the labelled ones.

    Notes
    -----
    Where |lambda_j| is small, mu_j / lambda_j enlarges the noise in s(x). The kernel among new points
    need not be positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> S = np.array([[1.0, 2], [2, 1]])  # eigenvalues 3 and -1
    >>> similarity.spectral_extension("denoise", S, S[:1]), similarity.denoise(S)[0]
    (array([[1.5, 1.5]]), array([1.5, 1.5]))
    """
    S = as_similarities(similarities)
    single = is_one_matrix(similarities)
    new = ko.as_float_array(S_new, "S_new")
    new = new[None] if single and new.ndim == 2 else new
    if new.ndim != 3 or new.shape[::2] != (len(S), S.shape[1]) or not new.size:
        raise ko.ShapeError(
            f"S_new must be finite of shape (m, n_new, N) with m = {len(S)} and N = {S.shape[1]}, got "
            f"{new.shape}. One row per new point: its similarities to the N points."
        )
    lam, V = np.linalg.eigh(S)
    mu = learned_spectrum(learned, lam, V)
    present = np.abs(lam) > VANISHING * np.abs(lam).max(axis=1, keepdims=True)
    ratios = np.divide(mu, lam, out=np.zeros_like(lam), where=present)
    rows = (new @ V * ratios[:, None, :]) @ V.transpose(0, 2, 1)
    if isinstance(learned, ko.Solution):
        return np.asarray(rows.sum(axis=0))
    return np.asarray(rows[0] if single else rows)


def learned_spectrum(learned: ko.Solution | ArrayLike | str, lam: Array, V: Array) -> Array:
    """Return mu of shape (m, N), or say why there is none."""
    if isinstance(learned, str):
        if learned not in ("denoise", "flip"):
            raise ko.InputError(
                "learned must be 'denoise', 'flip', mu or a solution of restricted_spectral, got "
                f"{learned!r}. The shift has no rule at new points: it changes the diagonal only."
            )
        return spectrum(lam, learned)
    if not isinstance(learned, ko.Solution):
        mu = ko.as_float_array(learned, "mu, the learned spectrum,")
        mu = mu[None] if mu.ndim == 1 and len(lam) == 1 else mu
        if mu.shape != lam.shape:
            raise ko.ShapeError(
                f"mu must be finite of shape (m, N) = {lam.shape}, got {mu.shape}. Pass learned= one "
                "eigenvalue "
                "for each of the similarities, ascending as those of numpy.linalg.eigh."
            )
        return mu
    if np.size(learned.weights) == lam.size and learned.weights is not None:
        mu = np.asarray(learned.weights, dtype=float).reshape(lam.shape)
        K = ((V * mu[:, None, :]) @ V.transpose(0, 2, 1)).sum(axis=0)
        if np.abs(K - learned.kernel).max() <= AGREEMENT * np.abs(K).max():
            return mu
    raise ko.InputError(
        "the kernel must have the eigenvectors of the similarities, got a solution whose kernel has not: it "
        "is known on its own points only. Learn with the new points among them, unlabelled, after the "
        "labelled ones, or use restricted_spectral with the same similarities."
    )
