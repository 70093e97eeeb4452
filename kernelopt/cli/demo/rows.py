"""The rows of `kernelopt demo`: an estimator of each of the five papers, and support vector machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
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
from kernelopt.validation import Array

C = 1.0  # of every hinge loss
WEIGHT_PRICE, TRACE_PRICE = 0.1, 0.001  # gamma1 and gamma2: small, since a comparison costs at most about 1


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
    """Standardised training and test points, their labels, and the kernels."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array
    kernels: dict[str, Kernel]


def load(points: int, random_state: int) -> Data:
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
    return Data(scaler.transform(X), y, scaler.transform(X_new), y_new, dictionary(X.shape[1]))


def dictionary(d: int) -> dict[str, Kernel]:
    """Return ten kernels for standardised data in d dimensions, all with unit diagonal."""
    chosen: dict[str, Kernel] = {
        f"gaussian {w:g}√d": gaussian(w * float(np.sqrt(d))) for w in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    }
    chosen |= {"linear": linear(), "polynomial 2": polynomial(2), "polynomial 3": polynomial(3)}
    chosen["laplacian d"] = laplacian(float(d))
    return {name: normalized(kernel) for name, kernel in chosen.items()}


def soft_margin(data: Data, tol: float) -> Row:
    """Return the row of Lanckriet's 1-norm soft margin with non-negative weights and trace n."""
    return learned(data, machine(data, data.kernels, tol), average(data, tol).score)


def lp_norm(data: Data, tol: float) -> Row:
    """Return the row of l_p-norm multiple kernel learning, p = 4/3."""
    estimator = MKLClassifier(data.kernels, p=4 / 3, C=C, normalize="none", tol=tol)
    return learned(data, estimator, average(data, tol).score, "lp_norm.primal")


def relative_comparisons(data: Data, tol: float) -> Row:
    """Return the row of a kernel from relative comparisons, which are drawn from the labels.

    With non-negative weights it is a kernel at new points, too, on which a machine is trained.
    """
    kernel = TripletKernel(
        data.kernels, gamma1=WEIGHT_PRICE, gamma2=TRACE_PRICE, cone="nonnegative", normalize="none", tol=tol
    )
    estimator = make_pipeline(kernel, SVC(C=C, kernel="precomputed"))
    return learned(data, estimator, average(data, tol).score, "triplet_lp.kernel_design")


def near_similarity(data: Data, tol: float) -> Row:
    """Return the row of a kernel near the indefinite similarity tanh(<x, x'> / d - 1/2)."""
    d = data.X.shape[1]
    S, S_new = (np.tanh(X @ data.X.T / d - 0.5) for X in (data.X, data.X_new))
    S = (S + S.T) / 2  # a product of matrices may be asymmetric in the last digit
    similar = replace(data, X=S, X_new=S_new)
    plain = SVC(C=C, kernel="precomputed").fit(S, data.y).score(S_new, data.y_new)
    estimator = SimilarityClassifier(C=C, tol=tol)
    return learned(similar, estimator, plain, "similarity.restricted_spectral")


def linear_functional(data: Data, tol: float) -> Row:
    """Return the row of the linear functional strategy, with levels and columns by leaving points out."""
    estimator = LinearFunctionalMKLClassifier(
        data.kernels, regularization="leave-one-out", weights="nonnegative", normalize="none", tol=tol
    )
    name = "linear_functional.functional_strategy"
    return learned(data, estimator, average(data, tol).score, name)


def best_single(data: Data, tol: float) -> Row:
    """Return the row of the base kernel, of the same trace, with the smallest value of the soft margin."""
    rows = [unlearned(data, {name: kernel}, tol) for name, kernel in data.kernels.items()]
    return min(rows, key=lambda row: float(row.value or 0.0))


def average(data: Data, tol: float) -> Row:
    """Return the row of the machine at the mean of the kernels."""
    first, *rest = data.kernels.values()
    return unlearned(data, {"mean": sum(rest, first)}, tol)


def tuned_svm(data: Data, tol: float) -> Row:
    """Return the row of scikit-learn's RBF SVM, with the width and C chosen by cross-validation."""
    started = time.perf_counter()
    d = data.X.shape[1]
    grid = {"C": [0.1, 1, 10, 100], "gamma": [c / d for c in (0.01, 0.03, 0.1, 0.3, 1, 3)]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(data.X, data.y)
    return Row("SVM", float(search.score(data.X_new, data.y_new)), time.perf_counter() - started)


def machine(data: Data, kernels: dict[str, Kernel], tol: float) -> FormulationClassifier:
    """Return the soft margin machine of some kernels, with the trace n."""
    options = {"C": C, "trace": data.y.size}
    return FormulationClassifier("lanckriet.soft_margin", kernels, options=options, normalize="none", tol=tol)


def unlearned(data: Data, kernels: dict[str, Kernel], tol: float) -> Row:
    """Return the row of the machine of one kernel."""
    row = learned(data, machine(data, kernels, tol))
    return Row("SVM", row.score, row.seconds, value=row.value)


def learned(
    data: Data, estimator: Any, plain: float | None = None, name: str = "lanckriet.soft_margin"
) -> Row:
    """Return the row of an estimator of a formulation, after its fit."""
    started = time.perf_counter()
    estimator.fit(data.X, data.y)
    seconds = time.perf_counter() - started
    solution = (estimator[0] if isinstance(estimator, Pipeline) else estimator).solution_
    score, reference = estimator.score(data.X_new, data.y_new), reference_of(catalogue()[name])
    return Row(solution.method, score, seconds, plain, solution.value, name, reference, solution)


ROWS: dict[str, Callable[[Data, float], Row]] = {
    "Lanckriet et al.: soft margin": soft_margin,
    "Kloft et al.: l_p ball, p = 4/3": lp_norm,
    "Fung et al.: comparisons": relative_comparisons,
    "Kundu et al.: near a similarity": near_similarity,
    "Pereverzyev, Tkachenko: LFS": linear_functional,
    "best single kernel": best_single,
    "average of the kernels": average,
    "RBF SVM, 5-fold CV": tuned_svm,
}
