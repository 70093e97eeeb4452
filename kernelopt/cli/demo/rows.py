"""The rows of `kernelopt demo`: an estimator of each of the five papers, and support vector machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelopt.catalog import catalogue
from kernelopt.errors import KerneloptError
from kernelopt.estimators import (
    FormulationClassifier,
    LinearFunctionalMKLClassifier,
    MKLClassifier,
    SimilarityClassifier,
    TripletKernel,
)
from kernelopt.installed import reference_of
from kernelopt.kernels import Kernel, gaussian, laplacian, linear, normalized, polynomial
from kernelopt.methods.solution import Solution
from kernelopt.running import running_call
from kernelopt.validation import Array

C = 1.0  # of every hinge loss
SOFT_MARGIN = "lanckriet.soft_margin"
# Prices of the weights and of the trace: small, since a comparison costs at most about 1.
TRIPLETS: dict[str, Any] = {"gamma1": 0.1, "gamma2": 0.001, "cone": "nonnegative"}


@dataclass(frozen=True)
class Row:
    """A row of the table; None where a quantity does not apply.

    Attributes
    ----------
    method : str
    score : float
        The accuracy on the test points.
    seconds : float
        Of the fit.
    plain : float
        The score without learning a kernel.
    value : float
    formulation, reference : str
    solution : Solution
    """

    method: str
    score: float
    seconds: float
    plain: float | None = None
    value: float | None = None
    formulation: str | None = None
    reference: str | None = None
    solution: Solution | None = None


@dataclass(frozen=True)
class Data:
    """Standardised training and test points, their labels, the kernels, and the gap to reach."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array
    kernels: dict[str, Kernel]
    tol: float

    @property
    def shared(self) -> dict[str, Any]:
        """The options of all estimators that take kernels."""
        return {"normalize": "none", "tol": self.tol}

    def machine(self, kernels: dict[str, Kernel]) -> FormulationClassifier:
        """Return the soft margin machine of some kernels, with the trace n."""
        options = {"C": C, "trace": self.y.size}
        return FormulationClassifier(SOFT_MARGIN, kernels, options=options, **self.shared)

    @cached_property
    def average(self) -> Row:
        """The row of the machine at the mean of the kernels."""
        first, *rest = self.kernels.values()
        return self.row(self.machine({"mean": sum(rest, first)}))

    @property
    def best(self) -> Row:
        """The row of the base kernel, of the same trace, with the smallest value of the soft margin."""
        rows = [self.row(self.machine({name: kernel})) for name, kernel in self.kernels.items()]
        return min(rows, key=lambda row: float(row.value or 0.0))

    def row(
        self,
        estimator: Any,
        name: str | None = None,
        plain: float | None = None,
        points: tuple[Array, Array] | None = None,
    ) -> Row:
        """Return the row of an estimator after its fit to these points or others.

        Parameters
        ----------
        estimator : estimator, not fitted
        name : str, optional
            The formulation that learns a kernel.
        plain : float, optional
            The score without learning a kernel; by default that of the mean of the kernels.
        points : pair of arrays, optional
            Training and test samples.
        """
        (X, X_new), call = points or (self.X, self.X_new), running_call()
        started, compiled = time.perf_counter(), 0.0 if call is None else call.compiling
        estimator.fit(X, self.y)
        seconds = time.perf_counter() - started - (0.0 if call is None else call.compiling - compiled)
        score = float(estimator.score(X_new, self.y_new))
        solution = getattr(estimator, "solution_", None) or estimator[0].solution_
        if name is None:
            return Row("SVM", score, seconds, value=solution.value)
        plain = self.average.score if plain is None else plain
        reference = reference_of(catalogue()[name])
        return Row(solution.method, score, seconds, plain, solution.value, name, reference, solution)


def load(points: int, random_state: int, tol: float) -> Data:
    """Return a stratified split of scikit-learn's breast cancer data."""
    if not catalogue():
        raise KerneloptError(
            "the demo needs the formulations of the papers, got an empty catalogue. Install the distribution "
            'with its formulations: pip install "kernelopt[plot]".'
        )
    features, target = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(
        features, 2 * target - 1, train_size=points, stratify=target, random_state=random_state
    )
    scaler = StandardScaler().fit(X)
    return Data(scaler.transform(X), y, scaler.transform(X_new), y_new, dictionary(X.shape[1]), tol)


def dictionary(d: int) -> dict[str, Kernel]:
    """Return ten kernels for standardised data in d dimensions, all with unit diagonal."""
    chosen: dict[str, Kernel] = {
        f"gaussian {w:g}√d": gaussian(w * float(np.sqrt(d))) for w in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    }
    chosen |= {"linear": linear(), "polynomial 2": polynomial(2), "polynomial 3": polynomial(3)}
    chosen["laplacian d"] = laplacian(float(d))
    return {name: normalized(kernel) for name, kernel in chosen.items()}


def near_similarity(data: Data) -> Row:
    """Return the row of a kernel near the indefinite similarity tanh(<x, x'> / d - 1/2)."""
    d = data.X.shape[1]
    S, S_new = (np.tanh(X @ data.X.T / d - 0.5) for X in (data.X, data.X_new))
    S = (S + S.T) / 2  # a product of matrices may be asymmetric in the last digit
    plain = SVC(C=C, kernel="precomputed").fit(S, data.y).score(S_new, data.y_new)
    estimator = SimilarityClassifier(C=C, tol=data.tol)
    return data.row(estimator, "similarity.restricted_spectral", float(plain), (S, S_new))


def tuned_svm(data: Data) -> Row:
    """Return the row of scikit-learn's RBF SVM, with the width and C chosen by cross-validation."""
    started, d = time.perf_counter(), data.X.shape[1]
    grid = {"C": [0.1, 1, 10, 100], "gamma": [c / d for c in (0.01, 0.03, 0.1, 0.3, 1, 3)]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(data.X, data.y)
    return Row("SVM", float(search.score(data.X_new, data.y_new)), time.perf_counter() - started)


ROWS: dict[str, Callable[[Data], Row]] = {
    "Lanckriet et al.: soft margin": lambda data: data.row(data.machine(data.kernels), SOFT_MARGIN),
    "Kloft et al.: l_p ball, p = 4/3": lambda data: data.row(
        MKLClassifier(data.kernels, p=4 / 3, C=C, **data.shared), "lp_norm.primal"
    ),
    # A kernel from relative comparisons, which are drawn from the labels. With non-negative weights it is a
    # kernel at new points, too, on which a machine is trained.
    "Fung et al.: comparisons": lambda data: data.row(
        make_pipeline(TripletKernel(data.kernels, **TRIPLETS, **data.shared), SVC(C=C, kernel="precomputed")),
        "triplet_lp.kernel_design",
    ),
    "Kundu et al.: near a similarity": near_similarity,
    # The levels and columns of the strategy are found by leaving points out.
    "Pereverzyev, Tkachenko: LFS": lambda data: data.row(
        LinearFunctionalMKLClassifier(
            data.kernels, regularization="leave-one-out", weights="nonnegative", **data.shared
        ),
        "linear_functional.functional_strategy",
    ),
    "best single kernel": lambda data: data.best,
    "average of the kernels": lambda data: data.average,
    "RBF SVM, 5-fold CV": tuned_svm,
}
