"""`TripletKernel`: a kernel learned from relative comparisons."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from kernelopt.catalog import Formulation
from kernelopt.comparisons import sample_triplets
from kernelopt.errors import LabelError
from kernelopt.estimators.catalogued import built
from kernelopt.estimators.fitting import limit_of_solve, one_call
from kernelopt.estimators.labels import classes_of
from kernelopt.estimators.transformer import KernelTransformer
from kernelopt.grams import Grams, join
from kernelopt.validation import Array, Index, whole


class TripletKernel(KernelTransformer):
    r"""Transformer to a kernel that is learned from comparisons "i is more similar to j than to k".

    It is the programme `kernel_design` of `formulations.triplet_lp`, with a kernel that is positive
    semidefinite or diagonally dominant on the training samples. Weights may be negative: at new samples the
    kernel is the same combination, and it need not be positive semidefinite there.

    Parameters
    ----------
    kernels : None, kernel, list of kernels, or dict from name to kernel, default None
        As for `MKLClassifier`. With the cone "dominant" the identity matrix is one more kernel of the
        problem: wide kernels alone are far from dominant.
    gamma1 : float > 0, default 0.01
        Price of the sum of the weights' absolute values.
    gamma2 : float >= 0, default 0.001
        Price of the trace.
    cone : "psd", "dominant" or "nonnegative", default "psd"
        The training matrix is positive semidefinite, diagonally dominant (a linear programme, for many
        samples), or a combination with weights that are not negative.
    n_triplets : int > 0, default 300
        Comparisons that are drawn from the labels where `fit` is given none.
    normalize : "multiplicative", "spherical", "trace" or "none", default "multiplicative"
    method : str, default "auto"
    tol : float > 0, default 1e-5
    time_limit : float > 0, optional
        Seconds of the call.
    random_state : int, Generator or None, default 0
        The seed of the comparisons and of the default kernels.

    Attributes
    ----------
    weights_ : array of shape (m,)
        Of any sign.
    ridge_ : float
        The weight of the identity matrix: part of the learned training matrix, and not of `transform`.
    triplets_ : array of shape (T, 3)
        The comparisons that were used.
    kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_, n_features_in_
        As for `MKLClassifier`.

    References
    ----------
    .. [1] Fung, Rosales, Rao, Feature selection and kernel design via linear programming, IJCAI (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import TripletKernel
    >>> X = np.array([[0.0, 0.3], [0.1, 0.9], [1.0, 0.2], [1.1, 0.8]])
    >>> learned = TripletKernel(["gaussian(0.5)"]).fit(X, triplets=[[0, 1, 2], [3, 2, 1]])
    >>> K = learned.transform(X)
    >>> bool(K[0, 1] > K[0, 2] and K[3, 2] > K[3, 1])
    True
    """

    fitted_forms = KernelTransformer.fitted_forms | {"triplets_": Annotated[Index, "t r"], "ridge_": float}

    def __init__(
        self,
        kernels: Any = None,
        *,
        gamma1: float = 0.01,
        gamma2: float = 0.001,
        cone: str = "psd",
        n_triplets: int = 300,
        normalize: str = "multiplicative",
        method: Any = "auto",
        tol: float = 1e-5,
        time_limit: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernels = kernels
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.cone = cone
        self.n_triplets = n_triplets
        self.normalize = normalize
        self.method = method
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state

    @one_call
    def fit(self, X: Any, y: Any = None, *, triplets: Any = None) -> TripletKernel:
        """Learn the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
        y : array of shape (n,), optional
            Labels of at least two classes, from which comparisons are drawn.
        triplets : array of shape (T, 3), optional
            Rows (i, j, k): sample i is more similar to j than to k.

        Returns
        -------
        TripletKernel
            The estimator itself.

        Raises
        ------
        LabelError
            If there are neither comparisons nor labels of two classes.
        InputError
            If an argument is wrong; its subclass says what.
        """
        grams, _ = self.problem_data(X, y, triplets=triplets)
        formulation = self.formulated(grams, [])
        limit = limit_of_solve(self.time_limit)
        solution = formulation.solve(self.method, tol=self.tol, time_limit=limit)
        weights, m = np.asarray(solution.weights), len(grams)
        self.keep_kernel(solution, weights[:m])
        self.ridge_ = float(weights[m]) if weights.size > m else 0.0
        return self

    def problem_data(self, X: Any, y: Any = None, *, triplets: Any = None) -> tuple[Grams, list[Array]]:
        samples = self.read_training(X)
        if triplets is None:
            if y is None:
                raise LabelError(
                    "TripletKernel requires y to be passed, but the target y is None: comparisons are drawn "
                    "from labels. Pass fit(X, y) or fit(X, triplets=...)."
                )
            _, numbers = classes_of(y, samples, self)
            count = whole(self.n_triplets, "n_triplets")
            triplets = sample_triplets(numbers, count, random_state=self.random_state)
        self.triplets_ = np.asarray(triplets)
        self.keep_labels([self.triplets_])
        return self.fit_kernels(samples), []

    def formulated(self, grams: Grams, labels: list[Array]) -> Formulation:  # its data are `triplets_`
        if isinstance(self.cone, str) and self.cone == "dominant":
            grams = join([(1.0, grams), (1.0, Grams.identity(grams.n_points))])
        return built(
            "triplet_lp.kernel_design",
            grams,
            self.triplets_,
            gamma1=self.gamma1,
            gamma2=self.gamma2,
            cone=self.cone,
        )
