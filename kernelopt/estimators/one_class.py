"""`OneClassMKL`: detection of outliers and novelties with a learned combination of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq
from sklearn.base import OutlierMixin

from kernelopt.docstrings import parameters_of
from kernelopt.errors import ParameterError, Stopped
from kernelopt.estimators.fitting import one_call, running_fit
from kernelopt.estimators.kernels import forget_matrices
from kernelopt.estimators.mkl import MKLEstimator, Prepared
from kernelopt.estimators.samples import distinct, positive_weights
from kernelopt.estimators.saving import SAME
from kernelopt.grams import Grams
from kernelopt.losses import one_class
from kernelopt.methods import Solution
from kernelopt.validation import Array, exponent, positive

BEYOND = float(np.log(2.0))
"""How far the logarithm of C goes beyond the point up to which the share is known to be at least nu."""

LARGEST_FACTOR = 2.0**40
"""C is looked for up to this multiple of its smallest value; above, the loss is the hard margin."""

ROUNDING = 1e-9
"""Share of the largest score by which the offset is below its sample.

The sum of a score over the support points is rounded differently where samples come one by one. The
difference is about 1e-13 of the largest score. The default tolerance moves scores by far more than 1e-9.
"""


@parameters_of(MKLEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class OneClassMKL(OutlierMixin, MKLEstimator):
    r"""One-class support vector machine whose kernel is a learned combination of kernels.

    With :math:`0 < \nu < 1`, sample weights v and :math:`K(\theta) = \sum_m \theta_m k_m / c_m` it solves

    .. math::

        \min_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \max_\alpha\ -\tfrac12 \alpha'K(\theta)\alpha
        \quad\text{over } 0 \le \alpha_i \le v_i,\ \sum_i \alpha_i = \nu \sum_i v_i.

    Parameters
    ----------
    kernels, method, tol, time_limit, verbose, random_state
        As for `MKLEstimator`.
    p : float in [1, inf], default 2
        For p = 1 the widest kernel alone has a weight, since all samples are alike to it.
    normalize : "multiplicative", "spherical", "trace" or "none", default "spherical"
        How kernels are brought to one scale, as in `Grams.normalize`. There is no intercept, so that the mean
        of a kernel counts, and "multiplicative" would favour kernels that are nearly constant.
    nu : float in (0, 1), default 0.1
        At most this share of the training samples are outliers, and at least this share are support points,
        up to `tol`. Samples count with their weights.

    Attributes
    ----------
    weights_ : array of shape (m,)
        The weights theta of the normalised kernels.
    dual_coef_ : array of shape (1, n_support)
        The dual variables alpha.
    offset_ : float
        The threshold: samples of a smaller score are outliers. It is the lower end of the interval of
        optimal offsets rho for the learned scores, see the notes.
    intercept_ : array of shape (1,)
        Minus the threshold.
    C_ : float
        The weight of the loss of `kernelopt.one_class` at which the machine is the same, up to its scale.
    certificate_, solution_
        Those of the problem with the loss `one_class(C_)`.
    kernel_names_, kernels_, support_, dual_gap_, n_iter_, history_, weights_unique_
    n_features_in_, feature_names_in_
        As for `MKLClassifier`.

    Notes
    -----
    The problem with the loss one_class(C) and dual variables a has the same machine as the one above, with
    :math:`\alpha = a / C` and :math:`\nu = \sum_i a_i / (C \sum_i v_i)`, which decreases as C grows. Its C is
    found by Brent's method, so that nu is met to a relative `tol`.

    For scores f the offset rho minimises :math:`-\rho + \sum_i v_i (\rho - f_i)_+ / (\nu \sum_i v_i)`. The
    smallest minimiser is the smallest score such that this and smaller ones have at least the share nu of
    the weights. It is computed from the scores of the learned machine, so that less than the share nu is
    below it, whatever the tolerance. At the optimum 1 / C is a minimiser too. The certificate is that of
    the problem with the loss one_class(C), where the offset is one: it does not depend on `offset_`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import OneClassMKL
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [0.15], [0.25], [0.05], [5.0]])
    >>> OneClassMKL("gaussian(1.0)", nu=0.3).fit_predict(X).tolist()
    [1, 1, 1, 1, 1, 1, 1, -1]
    """

    _fitted_forms = MKLEstimator._fitted_forms | {"C_": float, "offset_": float}

    p: float = 2
    nu: float = 0.1
    normalize: str = "spherical"

    @one_call
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassMKL:
        """Learn the weights and the machine.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : None
            Ignored.
        sample_weight : array of shape (n,), optional
            Weights v, not negative. Samples of weight zero are left out.

        Returns
        -------
        OneClassMKL
            The estimator itself.

        Raises
        ------
        InputError
            If an argument is wrong; its subclass says what.
        """
        nu = positive(self.nu, "nu", below=1.0)
        samples, weights, grams = self._read(X, sample_weight)
        self.C_, solution = self._at_share(grams, weights, nu)
        machine = solution.learned[0]
        self._keep_solutions([solution])
        alpha, theta = machine.alpha[None] / self.C_, np.asarray(machine.weights)
        self._keep_machines(alpha, np.zeros(1), theta)
        scores = self._trained.at(samples, self.weights_) @ self.dual_coef_[0]
        self.offset_ = smallest_offset(scores, weights, nu)
        self.intercept_ = np.array([-self.offset_])
        forget_matrices(grams)
        return self

    def _read(self, X: Any, sample_weight: Any) -> tuple[Any, Array, Grams]:
        """Return the samples of the problem, their weights, and the kernels between them."""
        exponent(self.p)
        samples = self._read_training(X)
        given = positive_weights(sample_weight, len(samples))
        rows, weights = distinct(samples, np.zeros(len(samples)), given)
        self._keep_labels([weights])
        return samples[rows], weights, self._fit_kernels(samples, rows, weights)

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        _, weights, grams = self._read(X, sample_weight)
        return grams, lambda C: [(None, one_class(C * weights))], True

    def _stated(self, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        machine = self.solution_.certificate.machines[0]
        if not np.isclose(machine.alpha.sum() / self.C_, self.dual_coef_.sum(), rtol=SAME):
            raise self._changed("C_")
        return super()._stated(X, y, **data)

    def _predicting(self, X: Any) -> tuple[Array, Array, Array]:
        f, alpha, _ = super()._predicting(X)
        return self.C_ * f, self.C_ * alpha, np.zeros(1)

    def _at_share(self, grams: Grams, weights: Array, nu: float) -> tuple[float, Solution]:
        """Return C at which the dual variables are the share nu of their largest sum, and the solution."""
        found: dict[float, tuple[float, Solution]] = {}
        fit = running_fit()

        def excess(log_C: float) -> float:
            """Return log(share / nu), and zero if the share is nu to the tolerance."""
            if log_C not in found:
                if found and fit is not None and fit.left == 0:
                    raise Stopped
                if fit is not None:
                    fit.expected = 2  # one machine is enough: each solve may take half of what is left
                C = float(np.exp(log_C))
                solution = self._solve(
                    self._problem(grams, [(None, one_class(C * weights))]), verbose=self.verbose
                )
                share = float(solution.learned[0].alpha.sum() / (C * weights.sum()))
                found[log_C] = (0.0 if abs(share - nu) <= self.tol * nu else np.log(share / nu)), solution
                if solution.ended_by_caller:  # the share of its machine says nothing of the next C
                    raise Stopped
            return found[log_C][0]

        try:
            root = self._root(excess, grams, weights, nu)
        except Stopped:  # the machine nearest to the share is of use: the offset comes from its own scores
            if not found:
                raise
            root = min(found, key=lambda log_C: abs(found[log_C][0]))
        return float(np.exp(root)), found[root][1]

    def _root(self, excess: Callable[[float], float], grams: Grams, weights: Array, nu: float) -> float:
        """Return the logarithm of the C at which the excess is zero."""
        # No weight exceeds one, so that f <= C sum_j v_j sum_m max_i k_m(x_i, x_i). At the C where this is
        # one, no sample is outside its margin: alpha_i = C v_i for all i, and the share is one.
        smallest = -float(np.log(grams.diagonals.max(axis=1).sum() * weights.sum()))
        low, above = smallest, -float(np.log(nu))
        while above > 0:
            if low - smallest > np.log(LARGEST_FACTOR):
                raise ParameterError(
                    f"nu must be reached at some C, got {nu:g} for {len(weights)} samples: the sum of alpha "
                    f"does not fall below the share {nu * np.exp(above):.3g}. Choose a larger nu."
                )
            # The sum of the dual variables increases with C: their share at C exp(above) is at least nu.
            high = low + above + BEYOND
            below = excess(high)
            if below <= 0:
                break
            low, above = high, below
        return high if excess(high) == 0 else float(brentq(excess, low, high, rtol=1e-14))

    def score_samples(self, X: Any) -> Array:
        """Return the scores of samples, shape (n_new,): larger ones are less like outliers.

        Parameters
        ----------
        X : as for `fit`, or kernels of shape (m, n_new, n)
            The n_new samples.
        """
        return self._machine_values(X)[:, 0] + self.offset_

    def decision_function(self, X: Any) -> Array:
        """Return the scores minus the threshold, shape (n_new,): negative for outliers.

        Parameters
        ----------
        X : as for `fit`, or kernels of shape (m, n_new, n)
            The n_new samples.
        """
        return self._machine_values(X)[:, 0]

    def predict(self, X: Any) -> Any:
        """Return 1 for samples like the training samples, and -1 for outliers, shape (n_new,).

        Parameters
        ----------
        X : as for `fit`, or kernels of shape (m, n_new, n)
            The n_new samples.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


def smallest_offset(scores: Array, weights: Array, nu: float) -> float:
    """Return the smallest optimal offset of a share nu, less a margin for rounding.

    Parameters
    ----------
    scores : array of shape (n,)
    weights : array of shape (n,)
        Positive.
    nu : float in (0, 1)
    """
    order = np.argsort(scores)
    sums = np.cumsum(weights[order])
    first = int(np.argmax(sums / sums[-1] >= nu))  # the last entry is one
    return float(scores[order[first]] - ROUNDING * np.abs(scores).max())
