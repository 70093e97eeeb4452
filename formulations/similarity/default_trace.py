"""A trace for the learned kernel, from the similarities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.similarity_data import as_similarities


def default_trace(similarities: ko.Grams | ArrayLike) -> float:
    r"""A trace for the learned kernel: the mean of :math:`\operatorname{tr} (S_i)_+` over the similarities.

    :math:`(S_i)_+` is the positive semidefinite matrix nearest to S_i. The paper names no trace; this choice
    is ours.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams
        Symmetric to 1e-8 relative, of any signature.

    Raises
    ------
    ParameterError
        If no similarity has a positive eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> similarity.default_trace([np.diag([3.0, -1]), np.diag([1.0, 2])])
    3.0
    """
    S = as_similarities(similarities)
    tau = float(np.maximum(np.linalg.eigvalsh(S), 0.0).sum(axis=1).mean())
    if not tau > 0:
        raise ko.errors.ParameterError(
            "some similarity must have a positive eigenvalue, got none: its nearest kernel is zero. Pass "
            "trace= as a positive number, or change the sign."
        )
    return tau
