r"""The nearest positive semidefinite matrix with a given diagonal.

.. math::

    \min_X \; \tfrac12 \|X - K\|_F^2 \quad \text{s.t.} \quad X \succeq 0, \; X_{ii} = d_i

With d = 1 it is the nearest correlation matrix [1]_. The dual is a smooth problem in one number y_i for each
entry of the diagonal [2]_,

.. math::

    \max_y \; \tfrac12 \|K\|_F^2 - \tfrac12 \|(K + \operatorname{Diag} y)_+\|_F^2 + d'y, \qquad
    X = (K + \operatorname{Diag} y)_+,

where :math:`M_+` has the negative eigenvalues of M set to zero. Its gradient is d - diag(X). A gradient step
of length one is one round of alternating projections with Dykstra's correction, the method of [1]_. A
quasi-Newton method needs fewer eigendecompositions.

References
----------
.. [1] Higham, Computing the nearest correlation matrix: a problem from finance, IMA Journal of Numerical
   Analysis 22 (2002).
.. [2] Malick, A dual approach to semidefinite least-squares problems, SIAM Journal on Matrix Analysis and
   Applications 26 (2004).
"""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array


def nearest_correlation(K: Array, diagonal: Array) -> tuple[Array, float]:
    """Return the nearest positive semidefinite matrix X with a given diagonal, and a duality gap.

    Parameters
    ----------
    K : array of shape (n, n), symmetric
    diagonal : array of shape (n,), at least 0

    Returns
    -------
    X : array of shape (n, n)
        Positive semidefinite up to rounding, with exactly this diagonal.
    gap : float
        An upper bound of |X - K|^2 - |X* - K|^2 for the nearest matrix X*, relative to |K|^2. The distance
        |X - X*|^2 is bounded by it too, since the objective is strongly convex.
    """
    from scipy.optimize import minimize  # here, since importing kernelopt should be quick

    X, used = np.zeros_like(K), np.flatnonzero(diagonal > 0)  # where the diagonal is zero, so is the row
    if not used.size:
        return X, 0.0
    unit = float(diagonal.max())
    S, d = K[np.ix_(used, used)] / unit, diagonal[used] / unit
    start = d - positive_part(S).diagonal()
    found = minimize(
        dual_objective,
        start,
        args=(S, d),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 20, "gtol": 1e-12, "ftol": 0.0},  # up to the rounding of X; some dozens of steps
    )
    near = positive_part(S + np.diag(found.x))
    scale = np.sqrt(d / near.diagonal())  # a congruence keeps it semidefinite
    near *= scale[:, None] * scale
    np.fill_diagonal(near, d)
    lower = float((S * S).sum()) / 2 - found.fun
    gap = 2 * (float(((near - S) ** 2).sum()) / 2 - lower) / float((S * S).sum())
    X[np.ix_(used, used)] = unit * near
    np.fill_diagonal(X, diagonal)
    return X, max(gap, 0.0)


def positive_part(S: Array) -> Array:
    """Return the symmetric matrix with the negative eigenvalues set to zero."""
    lam, V = np.linalg.eigh(S)
    above = lam > 0
    half = V[:, above] * np.sqrt(lam[above])
    return np.asarray(half @ half.T)


def dual_objective(y: Array, S: Array, d: Array) -> tuple[float, Array]:
    """Return minus the dual objective but for the constant |S|^2 / 2, and its gradient."""
    X = positive_part(S + np.diag(y))
    return float((X * X).sum()) / 2 - float(d @ y), X.diagonal() - d
