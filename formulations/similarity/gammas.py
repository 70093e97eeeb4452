"""The weights gamma_i of the convex Omega of Kundu et al."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.extend import Array, as_grams, as_vector


def gammas(kernels: ArrayLike, alpha: ArrayLike) -> Array:
    r"""The maximising gamma_i of (10): :math:`q_i / \sum_j q_j` with :math:`q_i = \sqrt{\alpha'K_i\alpha}`.

    Parameters
    ----------
    kernels : array of shape (m, N, N), positive semidefinite
        The kernels K_i.
    alpha : array of shape (n,), n <= N
        The signed dual variable of the labelled points, such as `Solution.alpha`.

    Returns
    -------
    array of shape (m,)
        1 / m each where all q_i are zero.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equation (10).

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> similarity.gammas([np.eye(2), 9 * np.eye(2)], [1, -1])
    array([0.25, 0.75])
    """
    stack = as_grams(kernels, "kernels")
    a = as_vector(alpha, "alpha", most=stack.n_points)
    a = a / (np.abs(a).max() or 1.0)  # any multiple has the same result
    q = np.sqrt(np.maximum(stack.forms(a), 0.0))
    return np.asarray(q / q.sum() if q.any() else np.full(q.size, 1 / q.size))
