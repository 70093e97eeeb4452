"""The work of `kernelopt demo`: kernels for the breast cancer data by every criterion of Lanckriet et al."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelopt.catalog import Formulation, catalogue
from kernelopt.errors import KerneloptError
from kernelopt.grams import Grams
from kernelopt.kernels import Kernel, gaussian, laplacian, linear, normalized, polynomial
from kernelopt.learner import Machine, learn
from kernelopt.losses import hinge
from kernelopt.methods.solution import Solution
from kernelopt.plotting import plot_bounds, plot_weights
from kernelopt.validation import Array

SUBSET = 40  # points, half of them labelled: few, as free signs need a semidefinite programme
SUBSET_KERNELS = (2, 4, 6, 7)  # two Gaussian kernels, the linear and the quadratic one


@dataclass(frozen=True)
class DemoRow:
    """A row of the table; None where a quantity does not apply."""

    name: str
    cone: str
    method: str
    value: float | None
    accuracy: float
    solution: Solution | None = None
    build_time: float | None = None
    solve_time: float | None = None


@dataclass(frozen=True)
class Task:
    """The computation of one row, with the title that is shown meanwhile."""

    title: str
    run: Callable[[], DemoRow]


@dataclass(frozen=True)
class Data:
    """Standardised training and test points, their labels, and the kernels between them."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array
    names: tuple[str, ...]
    grams: Grams
    cross: Array

    def accuracy(self, scores: Array) -> float:
        """Return the fraction of test points whose sign is predicted correctly."""
        return float((np.sign(scores) == self.y_new).mean())


def kernels(d: int) -> dict[str, Kernel]:
    """Return ten kernels for standardised data in d dimensions, all with unit diagonal."""
    chosen: dict[str, Kernel] = {
        f"gaussian {w:g}√d": gaussian(w * float(np.sqrt(d))) for w in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    }
    chosen |= {"linear": linear(), "polynomial 2": polynomial(2), "polynomial 3": polynomial(3)}
    chosen["laplacian d"] = laplacian(float(d))
    return {name: normalized(kernel) for name, kernel in chosen.items()}


def load(points: int, random_state: int) -> Data:
    """Return a stratified split of scikit-learn's breast cancer data."""
    features, target = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(
        features, 2.0 * target - 1, train_size=points, stratify=target, random_state=random_state
    )
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    named = kernels(X.shape[1])
    grams = Grams.from_kernels(list(named.values()), X)
    return Data(X, y, X_new, y_new, tuple(named), grams, grams.cross(X_new))


def builder(name: str) -> Callable[..., Formulation]:
    """Return the builder of a formulation of the catalogue."""
    installed = catalogue()
    if name not in installed:
        raise KerneloptError(
            f"the demo needs the formulation {name!r}, got a catalogue of {len(installed)}. Install the "
            'distribution with its formulations: pip install "kernelopt[plot]".'
        )
    return installed[name].build


def tasks(data: Data, tol: float) -> Iterator[Task]:
    """Yield the tasks of the demo in the order of its table."""
    n = data.y.size
    criteria: list[tuple[str, str, dict[str, Any]]] = [
        ("hard margin", "hard_margin", {"trace": n}),
        ("soft margin, C = 1", "soft_margin", {"C": 1.0, "trace": n}),
        ("squared soft margin, C = 1", "soft_margin_squared", {"C": 1.0, "trace": n}),
        ("learned ridge tau", "learned_tau", {"trace": 2 * n}),
        ("alignment", "alignment", {}),
    ]
    for title, name, options in criteria:
        yield Task(title, lambda t=title, f=name, o=options: criterion_row(data, t, f, o, tol))  # type: ignore[misc]
    yield Task(f"soft margin, free signs, n = {SUBSET}", lambda: subset_row(data, "free", tol))
    yield Task(f"soft margin, mu >= 0, n = {SUBSET}", lambda: subset_row(data, "nonnegative", tol))
    yield Task("best single kernel", lambda: best_single_row(data))
    yield Task("plain average", lambda: average_row(data))
    yield Task("RBF SVM, cross-validated", lambda: tuned_svm_row(data))


def criterion_row(data: Data, title: str, name: str, options: dict[str, Any], tol: float) -> DemoRow:
    """Return the row of one criterion on all training points, with non-negative weights."""
    started = time.perf_counter()
    formulation = builder(f"lanckriet.{name}")(data.grams, data.y, **options)
    built = time.perf_counter() - started
    solution = formulation.solve(tol=tol)
    accuracy = data.accuracy(solution.decision_function(data.cross))
    return solution_row(title, "SOC", solution, accuracy, built)


def subset_row(data: Data, weights: str, tol: float) -> DemoRow:
    """Return the row of four kernels on few points, with weights of free signs or non-negative ones.

    With weights of both signs the kernel is constrained to be PSD on all N points. So the test points are
    among these, without labels; there are as many as labelled points.
    """
    started = time.perf_counter()
    half = SUBSET // 2
    both = np.concatenate([data.X[:half], data.X_new[: SUBSET - half]])
    named = list(kernels(data.X.shape[1]).values())
    grams = Grams.from_kernels([named[i] for i in SUBSET_KERNELS], both)
    build = builder("lanckriet.soft_margin")
    formulation = build(grams, data.y[:half], C=1.0, trace=SUBSET, weights=weights)
    built = time.perf_counter() - started
    solution = formulation.solve(tol=tol)
    scores = solution.decision_function()[half:]
    accuracy = float((np.sign(scores) == data.y_new[: SUBSET - half]).mean())
    cone = "SDP" if weights == "free" else "SOC"
    sign = "free signs" if weights == "free" else "mu >= 0"
    return solution_row(f"soft margin, {sign}, n = {SUBSET}", cone, solution, accuracy, built)


def solution_row(name: str, cone: str, solution: Solution, accuracy: float, built: float) -> DemoRow:
    """Return the row of a solution."""
    build_time, method = built + solution.build_time, solution.method_and_solver
    return DemoRow(name, cone, method, solution.value, accuracy, solution, build_time, solution.solve_time)


def best_single_row(data: Data) -> DemoRow:
    """Return the row of the base kernel, of the same trace, with the smallest value of the soft margin."""
    started = time.perf_counter()
    machines = [learn(K, data.y, hinge(1.0), True) for K in data.grams]
    best = int(np.argmin([machine.value for machine in machines]))
    return svm_row(f"best single: {data.names[best]}", data, machines[best], data.cross[best], started)


def average_row(data: Data) -> DemoRow:
    """Return the row of the SVM at the mean of the kernels."""
    started = time.perf_counter()
    share = np.full(len(data.grams), 1 / len(data.grams))
    machine = learn(data.grams.combine(share), data.y, hinge(1.0), True)
    return svm_row("plain average", data, machine, np.tensordot(share, data.cross, 1), started)


def svm_row(name: str, data: Data, machine: Machine, cross: Array, started: float) -> DemoRow:
    """Return the row of an SVM at a given kernel, whose omega is twice its value."""
    accuracy = data.accuracy(cross @ machine.alpha + machine.intercept)
    spent = time.perf_counter() - started
    return DemoRow(name, "QP", "SVM", 2 * machine.value, accuracy, solve_time=spent)


def tuned_svm_row(data: Data) -> DemoRow:
    """Return the row of scikit-learn's RBF SVM, with the width and C chosen by cross-validation."""
    started = time.perf_counter()
    d = data.X.shape[1]
    grid = {"C": [0.1, 1, 10, 100], "gamma": [c / d for c in (0.01, 0.03, 0.1, 0.3, 1, 3)]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(data.X, data.y)
    accuracy = float(search.score(data.X_new, data.y_new))
    spent = time.perf_counter() - started
    return DemoRow("RBF SVM, 5-fold CV", "QP", "SVM", None, accuracy, solve_time=spent)


def save_figure(rows: list[DemoRow], names: tuple[str, ...], path: Path) -> None:
    """Save a figure of the weights and bounds of the criteria on all training points."""
    from matplotlib.figure import Figure

    full = {
        r.name: r.solution for r in rows if r.solution is not None and r.solution.weights.size == len(names)
    }
    bounded = {name: s for name, s in full.items() if name != "alignment"}
    references = {
        f"soft margin, {r.name}": r.value for r in rows if r.solution is None and r.value is not None
    }
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_weights(full, names, ax=left)
    plot_bounds(bounded, references, ax=right)
    right.set_xlabel("omega, twice the risk (criteria do not compare)")
    figure.suptitle("Lanckriet's criteria on breast cancer data: one kernel learned from ten")
    figure.savefig(path, dpi=130)
