"""`KernelTransformer`: what the transformers to a learned kernel share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from kernelopt.estimators.base import KernelEstimator
from kernelopt.methods.solution import Solution
from kernelopt.records import Digest
from kernelopt.validation import Array, Index


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base class of the estimators that learn a kernel and no machine.

    `transform` returns the kernel with the training samples, as estimators with ``kernel="precomputed"``
    take it.
    """

    fitted_forms: ClassVar[dict[str, Any]] = {
        "_checksum": Digest,
        "_rows": Annotated[Index, "s"],
        "weights_": Annotated[Array, "m"],
        "n_samples_fit_": int,
    }

    def keep_kernel(self, solution: Solution, weights: Array) -> None:
        """Keep a solution and the weights of its kernel on all training samples."""
        self.n_samples_fit_ = self._rows.size
        self.keep_solutions([solution])
        self.weights_ = np.asarray(weights)

    def transform(self, X: Any) -> Array:
        """Return the learned kernel between samples and the training samples.

        Parameters
        ----------
        X : array or data frame of shape (n_new, d), sequence of strings, KernelStack, or array (m, n_new, n)

        Returns
        -------
        array of shape (n_new, n)
        """
        return self.kernel_at(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
