"""The rows of `kernelopt demo`: a formulation of each of the five papers, and support vector machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelopt.catalog import Formulation, catalogue
from kernelopt.comparisons import sample_triplets, triplet_score
from kernelopt.errors import KerneloptError
from kernelopt.grams import Grams
from kernelopt.kernels import Kernel, gaussian, laplacian, linear, normalized, polynomial
from kernelopt.learner import Machine, learn
from kernelopt.losses import hinge
from kernelopt.methods.solution import Solution
from kernelopt.validation import Array

C = 1.0  # of every hinge loss
COMPARISONS = 300  # triplets of training points; those of the test points are more, so that scores vary less
TEST_COMPARISONS = 2000
WEIGHT_PRICE, TRACE_PRICE = 0.1, 0.001  # gamma1 and gamma2: small, since a comparison costs at most about 1
FIDELITY_PRICE = 0.01  # rho of the squared Frobenius norm, a sum over some ten thousand entries of size one


@dataclass(frozen=True)
class Row:
    """A row of the table; None where a quantity does not apply.

    Attributes
    ----------
    method : str
    score : float
        Of the learned kernel.
    seconds : float
    measure : "accuracy" or "comparisons"
        What the scores are shares of: test points that are classified correctly, or comparisons of test
        points that the kernel respects.
    plain : float
        The score of the same data without learning a kernel.
    value : float
    formulation, reference : str
    solution : Solution
    """

    method: str
    score: float
    seconds: float
    measure: Literal["accuracy", "comparisons"] = "accuracy"
    plain: float | None = None
    value: float | None = None
    formulation: str | None = None
    reference: str | None = None
    solution: Solution | None = None


@dataclass(frozen=True)
class Data:
    """Standardised training and test points, their labels, and the kernels between them."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array
    kernels: dict[str, Kernel]
    grams: Grams
    cross: Array

    @property
    def names(self) -> list[str]:
        """The names of the kernels."""
        return list(self.kernels)

    def accuracy(self, scores: Array) -> float:
        """Return the fraction of test points whose sign is predicted correctly."""
        return float((np.sign(scores) == self.y_new).mean())


def load(points: int, random_state: int) -> Data:
    """Return a stratified split of scikit-learn's breast cancer data."""
    features, target = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(
        features, 2.0 * target - 1, train_size=points, stratify=target, random_state=random_state
    )
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    named = dictionary(X.shape[1])
    grams = Grams.from_kernels(list(named.values()), X)
    return Data(X, y, X_new, y_new, named, grams, grams.cross(X_new))


def dictionary(d: int) -> dict[str, Kernel]:
    """Return ten kernels for standardised data in d dimensions, all with unit diagonal."""
    chosen: dict[str, Kernel] = {
        f"gaussian {w:g}√d": gaussian(w * float(np.sqrt(d))) for w in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    }
    chosen |= {"linear": linear(), "polynomial 2": polynomial(2), "polynomial 3": polynomial(3)}
    chosen["laplacian d"] = laplacian(float(d))
    return {name: normalized(kernel) for name, kernel in chosen.items()}


def build(name: str, *data: Any, **options: Any) -> Formulation:
    """Return a formulation of the catalogue, built from its data and options."""
    installed = catalogue()
    if name not in installed:
        raise KerneloptError(
            f"the demo needs the formulation {name!r}, got a catalogue of {len(installed)}. Install the "
            'distribution with its formulations: pip install "kernelopt[plot]".'
        )
    return installed[name].build(*data, **options)


def soft_margin(data: Data, tol: float) -> Row:
    """Return the row of Lanckriet's 1-norm soft margin with non-negative weights and trace n."""
    formulation = build("lanckriet.soft_margin", data.grams, data.y, C=C, trace=data.y.size)
    return of_labels(data, formulation, tol)


def lp_norm(data: Data, tol: float) -> Row:
    """Return the row of l_p-norm multiple kernel learning, p = 4/3."""
    return of_labels(data, build("lp_norm.primal", data.grams, data.y, p=4 / 3, loss=hinge(C)), tol)


def of_labels(data: Data, formulation: Formulation, tol: float) -> Row:
    """Return the row of a formulation that learns a classifier, beside the mean of the kernels."""
    solution = formulation.solve(tol=tol)
    return learned(formulation, solution, accuracy(data, solution), average(data, tol).score)


def relative_comparisons(data: Data, tol: float) -> Row:
    """Return the row of a kernel from relative comparisons, which are drawn from the labels.

    With non-negative weights it is a kernel at new points, too.
    """
    triplets = sample_triplets(data.y, COMPARISONS, random_state=0)
    prices = {"gamma1": WEIGHT_PRICE, "gamma2": TRACE_PRICE}
    formulation = build("triplet_lp.kernel_design", data.grams, triplets, cone="nonnegative", **prices)
    solution = formulation.solve(tol=tol)
    tested = sample_triplets(data.y_new, TEST_COMPARISONS, random_state=0)
    test = Grams.from_kernels(list(data.kernels.values()), data.X_new)
    score, plain = (triplet_score(test.combine(w), tested) for w in (solution.weights, equal(data)))
    return learned(formulation, solution, score, plain, "comparisons")


def near_similarity(data: Data, tol: float) -> Row:
    """Return the row of a kernel near the indefinite similarity tanh(<x, x'> / d - 1/2).

    The kernel is defined on the points of the problem alone. So test points are among these, without
    labels: as many as labelled ones, which are half of the training points.
    """
    half = data.y.size // 2
    both = np.concatenate([data.X[:half], data.X_new[:half]])
    S = np.tanh(both @ both.T / both.shape[1] - 0.5)
    S = (S + S.T) / 2  # a product of matrices may be asymmetric in the last digit
    eigenvalues, vectors = np.linalg.eigh(S)
    denoised = (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
    near = {"rho": FIDELITY_PRICE, "trace": float(np.trace(denoised)), "fidelity": "squared_frobenius"}
    formulation = build("similarity.single_kernel", S, data.y[:half], C=C, **near)
    solution = formulation.solve(tol=tol)
    machine = learn(denoised[:half, :half], data.y[:half], hinge(C), True)
    plain = denoised[half:, :half] @ machine.alpha + machine.intercept
    predicted = (solution.decision_function()[half:], plain)
    score, without = (float((np.sign(f) == data.y_new[:half]).mean()) for f in predicted)
    return learned(formulation, solution, score, without)


def linear_functional(data: Data, tol: float) -> Row:
    """Return the row of the linear functional strategy, with levels and columns by leaving points out."""
    options = {"weights": "nonnegative", "intercept": "mean"}
    left_out = {"regularization": "leave-one-out", "columns": "leave-one-out"}
    name = "linear_functional.functional_strategy"
    strategy: Any = build(name, data.grams, data.y, **left_out, **options)
    solution = strategy.solve(tol=tol)
    return learned(strategy, solution, accuracy(data, solution), accuracy(data, strategy.at(equal(data))))


def learned(
    formulation: Formulation,
    solution: Solution,
    score: float,
    plain: float,
    measure: Literal["accuracy", "comparisons"] = "accuracy",
) -> Row:
    """Return the row of a solution, whose seconds are those of compiling, solving and certifying."""
    return Row(
        solution.method,
        score,
        solution.build_time + solution.solve_time + solution.certify_time,
        measure,
        plain,
        solution.value,
        formulation.name,
        formulation.reference,
        solution,
    )


def best_single(data: Data, tol: float) -> Row:
    """Return the row of the base kernel, of the same trace, with the smallest value of the soft margin."""
    started = time.perf_counter()
    machines = [learn(K, data.y, hinge(C), True) for K in data.grams]
    best = int(np.argmin([machine.value for machine in machines]))
    return of_machine(data, machines[best], data.cross[best], started)


def average(data: Data, tol: float) -> Row:
    """Return the row of the machine at the mean of the kernels."""
    started = time.perf_counter()
    machine = learn(data.grams.combine(equal(data)), data.y, hinge(C), True)
    return of_machine(data, machine, np.tensordot(equal(data), data.cross, 1), started)


def of_machine(data: Data, machine: Machine, cross: Array, started: float) -> Row:
    """Return the row of a machine at a given kernel, whose omega is twice its value."""
    score = data.accuracy(cross @ machine.alpha + machine.intercept)
    return Row("SVM", score, time.perf_counter() - started, value=2 * machine.value)


def tuned_svm(data: Data, tol: float) -> Row:
    """Return the row of scikit-learn's RBF SVM, with the width and C chosen by cross-validation."""
    started = time.perf_counter()
    d = data.X.shape[1]
    grid = {"C": [0.1, 1, 10, 100], "gamma": [c / d for c in (0.01, 0.03, 0.1, 0.3, 1, 3)]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(data.X, data.y)
    return Row("SVM", float(search.score(data.X_new, data.y_new)), time.perf_counter() - started)


def accuracy(data: Data, solution: Solution) -> float:
    """Return the accuracy of a solution on the test points."""
    return data.accuracy(solution.decision_function(data.cross))


def equal(data: Data) -> Array:
    """Return equal weights of sum one."""
    return np.full(len(data.grams), 1 / len(data.grams))


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
