"""The learned kernel of fitted estimators, and features of it, for other models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelopt.estimators.precomputed import as_stack
from kernelopt.numerics.decompositions import RANK_TOLERANCE, eigenpairs
from kernelopt.validation import Array


class LearnedKernelMixin:
    """Adds `kernel` to estimators with weights of kernels."""

    def kernel(self: Any, X: Any, Z: Any = None) -> Array:
        r"""Return the learned kernel between samples.

        It is :math:`k(x, z) = \sum_m \theta_m k_m(x, z) / c_m` with the weights `weights_` and the constants
        of the normalisation on the training samples. Where each class or target has weights of its own, it
        is the sum of their kernels. It is what ``SVC(kernel="precomputed")`` takes: of the training samples
        for `fit`, and ``kernel(X_new, X_train)`` for `predict`.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, or KernelStack
        Z : samples as X, optional
            X by default.

        Returns
        -------
        array of shape (n, n_Z)

        Raises
        ------
        InputError
            If the model was fitted on a `KernelStack` and the samples are none of it.
        """
        check_is_fitted(self)
        X = self._read_new(X)
        weights = np.atleast_2d(self.weights_).sum(axis=0)
        if self.kernels_ is None:
            as_stack(X)
        other = self._trained.moved(X if Z is None else self._read_new(Z))
        return np.asarray(other.at(X, weights))


class KernelFeaturesMixin(LearnedKernelMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Adds `transform` to estimators whose machines are functions of the learned kernel."""

    def transform(self: Any, X: Any) -> Array:
        r"""Return features whose inner products are the learned kernel, exactly so at the support points.

        They are :math:`\Phi(x) = K_{SS}^{-1/2}\, (k(s_1, x), \dots, k(s_r, x))` with the support points s and
        the symmetric root of the pseudoinverse of their kernel matrix: Nyström's features, as those of
        scikit-learn's `Nystroem`, with the support points for a basis. So :math:`\Phi(x)'\Phi(z) = k(x, z)`
        where x or z is a support point or in the span of them. Elsewhere it is the inner product of the
        projections on this span, which holds the learned machine: f is linear in the features. The matrix
        of features has at most the rank of K_SS, whose eigenvalues below 1e-11 of the largest count as zero.

        Parameters
        ----------
        X : samples, as for `predict`
            Precomputed kernels must be a `KernelStack`, which has the kernels between the support points.

        Returns
        -------
        array of shape (n_new, n_support), or (n_new, k n_support)
            Where each class or target has weights of its own, their features stand side by side.
        """
        check_is_fitted(self)
        samples, trained = self._read_new(X), self._trained
        parts = [
            trained.at(samples, weights) @ inverse_root(trained.own(samples, weights))
            for weights in np.atleast_2d(self.weights_)
        ]
        return np.hstack(parts)

    @property
    def _n_features_out(self: Any) -> int:
        return len(np.atleast_2d(self.weights_)) * int(self.support_.size)


def inverse_root(K: Array) -> Array:
    """Return the symmetric root of the pseudoinverse of a positive semidefinite matrix."""
    values, V = eigenpairs(K)
    kept = values > RANK_TOLERANCE * values.max(initial=0.0)
    return np.asarray((V[:, kept] / np.sqrt(values[kept])) @ V[:, kept].T)
