"""Kernels with the eigenvectors of similarities, at new points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.similarity_data import as_similarities
from formulations.similarity.transforms import is_one_matrix
from kernelopt.extend import Array, as_float_array

VANISHING = 1e-11  # eigenvalues of S below this share of the largest count as zero, as in factors of kernels
AGREEMENT = 1e-6  # largest difference of K and V diag(mu) V', over the largest entry: rounding is far below


def spectral_extension(
    learned: ko.Solution | ArrayLike | str, similarities: ko.Grams | ArrayLike, S_new: ArrayLike
) -> Array:
    r"""The kernel between new points and the N points, for kernels with the eigenvectors of S.

    .. math::

        k(x)' = s(x)' V \operatorname{diag}(\mu_j / \lambda_j) V', \qquad s(x) = (S(x, x_1), \dots, S(x, x_N))

    over the eigenvalues :math:`\lambda_j \neq 0` of S. At the N points themselves k(x) is a row of
    :math:`K = V \operatorname{diag}(\mu) V'`, provided that :math:`\mu_j = 0` wherever :math:`\lambda_j = 0`.
    "denoise" and "flip" are repairs of `kernelopt.repair`, which leave what s(x) has in the null space of S.

    Parameters
    ----------
    learned : Solution of `restricted_spectral`, "denoise", "flip", or mu of shape (m, N), (N,) for m = 1
        The eigenvalues mu of K, or what they are made from.
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
        For "shift", which changes the diagonal only. For a solution whose kernel does not have the
        eigenvectors of the similarities, such as that of `single_kernel`: it is known on the N points only.
        Learn with the new points among the N, unlabelled, after the labelled ones.

    Notes
    -----
    Where :math:`|\lambda_j|` is small, :math:`\mu_j / \lambda_j` enlarges the noise in s(x). The kernel among
    new points need not be positive semidefinite.

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
    new = as_float_array(S_new, "S_new")
    new = new[None] if single and new.ndim == 2 else new
    if new.ndim != 3 or new.shape[::2] != (len(S), S.shape[1]) or not new.size:
        raise ko.errors.ShapeError(
            f"S_new must be finite of shape (m, n_new, N) with m = {len(S)} and N = {S.shape[1]}, got "
            f"{new.shape}. One row per new point: its similarities to the N points."
        )
    if isinstance(learned, str):
        rows = ko.repair(S, repair_named(learned)).transform(new)
        return np.asarray(rows[0] if single else rows)
    lam, V = np.linalg.eigh(S)
    mu = learned_spectrum(learned, lam, V)
    present = np.abs(lam) > VANISHING * np.abs(lam).max(axis=1, keepdims=True)
    ratios = np.divide(mu, lam, out=np.zeros_like(lam), where=present)
    rows = (new @ V * ratios[:, None, :]) @ V.transpose(0, 2, 1)
    if isinstance(learned, ko.Solution):
        return np.asarray(rows.sum(axis=0))
    return np.asarray(rows[0] if single else rows)


def repair_named(learned: str) -> ko.Repair:
    """Return the repair that a transform with a rule at new points is."""
    if learned not in ("denoise", "flip"):
        raise ko.InputError(
            "learned must be 'denoise', 'flip', mu or a solution of restricted_spectral, got "
            f"{learned!r}. The shift has no rule at new points: it changes the diagonal only."
        )
    return "clip" if learned == "denoise" else "flip"


def learned_spectrum(learned: ko.Solution | ArrayLike, lam: Array, V: Array) -> Array:
    """Return the learned spectrum mu of shape (m, N), or raise an error that says why there is none."""
    if not isinstance(learned, ko.Solution):
        mu = as_float_array(learned, "mu, the learned spectrum,")
        mu = mu[None] if mu.ndim == 1 and len(lam) == 1 else mu
        if mu.shape != lam.shape:
            raise ko.errors.ShapeError(
                f"mu must be finite of shape (m, N) = {lam.shape}, got {mu.shape}. Pass learned= one "
                "eigenvalue "
                "for each of the similarities, ascending as from numpy.linalg.eigh."
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
