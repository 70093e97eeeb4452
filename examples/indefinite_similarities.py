"""Kernels learned from indefinite similarities, against repaired spectra: breast cancer or wine.

Of the two largest classes, standardised, three similarities with entries of size one:

    Gaussian   exp(-|x - x'|^2 / their median), a kernel
    sigmoid    tanh(<x, x'> / d - 1/2), not positive semidefinite: Lin and Lin (2003)
    TL1        max(1 - |x - x'|_1 / their mean, 0), the truncated l1 distance of Huang et al. (2017)

and to each symmetric noise is added: Luss and d'Aspremont (2009) read an indefinite similarity as a noisy
observation of a kernel. (Kundu et al. follow Ying et al. (2009), whose text was not at hand.) A file with
arrays S and y, such as the Aural Sonar of their Table 2, takes the place of all this: `--data PATH.npz`.

The protocol is that of Kundu et al. (2010), section 4: classes of equal size, a fifth of each for testing,
five splits, C and rho by cross-validation on the training points. Learned kernels see the test points
without their labels. All kernels have one trace, the mean trace of the denoised similarities (only the
indefinite SVM has a free one), and rho is relative: at 1 the fidelity of K = 0 costs one per labelled point.

    python examples/indefinite_similarities.py    (a few minutes on two cores)
"""

# %% The setting
from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from formulations import lp_norm, similarity

METHOD, TOLERANCE = "auto", 1e-4
BUNDLED = {"breast_cancer": load_breast_cancer, "wine": load_wine}
FIDELITIES = {
    "l1": lambda X: np.abs(X).sum(),
    "frobenius": lambda X: sum(np.linalg.norm(part) for part in X),
    "squared_frobenius": lambda X: np.square(X).sum(),
}
LEARNED = {
    "ESKL": similarity.single_kernel,
    "EMKL": similarity.kernel_per_similarity,
    "REKL": similarity.restricted_spectral,
}
FIXED = {
    "Denoise": lambda S: similarity.denoise(S.mean(axis=0))[None],
    "Flip": lambda S: similarity.flip(S.mean(axis=0))[None],
    "Shift": lambda S: similarity.shift(S.mean(axis=0))[None],
    "features": lambda S: (S @ S).sum(axis=0)[None],  # similarities as features: sum of S_i S_i'
    "l1-MKL": similarity.denoise,
}
BASELINES = ("indefinite SVM", *FIXED)
NAMES = [*product(LEARNED, FIDELITIES), *product(BASELINES, ("",))]


class Outcome(NamedTuple):
    """One method on one split, with the gaps of all its fits and the spectrum of its kernel."""

    accuracy: float
    f_score: float
    C: float
    rho: float
    gaps: list[float]
    seconds: float
    spectrum: np.ndarray


# %% Similarities
def load(data, noise, rng):
    """Return similarities by name, and labels: +1 is the class that comes first."""
    if data in BUNDLED:
        X, labels = BUNDLED[data](return_X_y=True)
    else:
        with np.load(data) as stored:
            X, labels = stored["S"], stored["y"]
    classes, counts = np.unique(labels, return_counts=True)
    kept = np.flatnonzero(np.isin(labels, classes[np.argsort(-counts, kind="stable")[:2]]))
    y = np.where(labels[kept] == labels[kept].min(), 1.0, -1.0)
    if data in BUNDLED:
        return made(StandardScaler().fit_transform(X[kept]), noise, rng), y
    stack = X.reshape(-1, *X.shape[-2:])[:, kept][:, :, kept]
    return {f"{Path(data).stem} {i}": S for i, S in enumerate(stack, start=1)}, y


def made(X, noise, rng):
    differences = X[:, None] - X
    squared, absolute = (differences**2).sum(axis=2), np.abs(differences).sum(axis=2)
    clean = {
        "Gaussian": np.exp(-squared / np.median(squared)),
        "sigmoid": np.tanh(X @ X.T / X.shape[1] - 0.5),
        "TL1": np.maximum(1 - absolute / absolute.mean(), 0.0),
    }
    E = rng.normal(scale=noise, size=(len(clean), len(X), len(X)))
    return {name: S + (e + e.T) / 2 for (name, S), e in zip(clean.items(), E, strict=True)}


# %% The methods: similarities with the labelled points first, their labels, C, and the relative rho
def fit(formulation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)  # every gap is in the table
        return formulation.solve(method=METHOD, tol=TOLERANCE)


def predict(name, fidelity, S, y, C, rho):
    """Return the scores of the points without a label, and the solution."""
    n, trace = y.size, similarity.default_trace(S)
    if name in LEARNED:
        rho *= n / FIDELITIES[fidelity](np.linalg.eigvalsh(S) if name == "REKL" else S)
        solution = fit(LEARNED[name](S, y, C=C, rho=rho, trace=trace, fidelity=fidelity))
        return solution.decision_function()[n:], solution
    if name == "indefinite SVM":  # learns without the test points; alpha then makes a kernel on all
        mean = S.mean(axis=0)
        rho *= n / np.square(mean[:n, :n]).sum()
        solution = fit(similarity.indefinite_svm(mean[:n, :n], y, C=C, rho=rho))
        K = similarity.optimal_kernel(mean, solution.alpha, rho=rho)
        return K[n:, :n] @ solution.alpha + solution.intercept, solution
    kernels = FIXED[name](S)
    kernels *= trace / np.trace(kernels, axis1=1, axis2=2)[:, None, None]
    solution = fit(lp_norm.primal(kernels, y, p=1, loss=ko.hinge(C)))  # a plain machine for one kernel
    return solution.decision_function()[n:], solution


# %% One method on one split
def sample(y, points, seed):
    """Return training and test points, at most `points`, as many of each class; a fifth is for testing."""
    rng = np.random.default_rng(seed)
    size = min(*(int((y == label).sum()) for label in (1, -1)), points // 2)
    drawn = [rng.permutation(np.flatnonzero(y == label))[:size] for label in (1, -1)]
    held = -(-size // 5)
    return np.concatenate([part[held:] for part in drawn]), np.concatenate([part[:held] for part in drawn])


def evaluate(name, fidelity, S, y, parts, grid, folds):
    """Choose C and rho on the training points, learn on all of them, and judge on the test points."""
    started, gaps = time.perf_counter(), []

    def run_solver(known, asked, C, rho):
        order = np.concatenate([known, asked])
        scores, solution = predict(name, fidelity, S[:, order][:, :, order], y[known], C, rho)
        gaps.append(solution.gap)
        return np.where(scores > 0, 1.0, -1.0), solution

    (train, test), (costs, rhos) = parts, grid
    candidates = list(product(costs, (np.nan,) if name in FIXED else rhos))
    inner = StratifiedKFold(folds, shuffle=True, random_state=0).split(train, y[train])
    inner = [(train[known], train[asked]) for known, asked in inner] if len(candidates) > 1 else []

    def validated(candidate):
        return sum((run_solver(known, asked, *candidate)[0] == y[asked]).sum() for known, asked in inner)

    C, rho = max(candidates, key=validated)  # the first of the best: small C, then large rho
    predicted, solution = run_solver(train, test, C, rho)
    accuracy, f_score = (predicted == y[test]).mean(), f1_score(y[test], predicted, zero_division=0.0)
    spectrum = np.linalg.eigvalsh(solution.kernel)[::-1]
    return Outcome(accuracy, f_score, C, rho, gaps, time.perf_counter() - started, spectrum)


def run(S, y, splits, grid, folds, jobs):
    """Return {(method, fidelity): one outcome per split}."""
    tasks = [(key, parts) for parts in splits for key in NAMES]
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(evaluate)(*key, S, y, parts, grid, folds) for key, parts in tasks
    )
    outcomes = list(track(found, "fits", total=len(tasks), console=Console(stderr=True), transient=True))
    return {key: outcomes[i :: len(NAMES)] for i, key in enumerate(NAMES)}


# %% What came out
def accuracies(results, key):
    return 100 * np.array([outcome.accuracy for outcome in results[key]])


def table(results, title):
    shown = Table(title=title)
    for column in ("method", "fidelity", "accuracy", "F-score", "C", "rho", "largest gap", "seconds"):
        shown.add_column(column, justify="left" if column in ("method", "fidelity") else "right")
    for (name, fidelity), outcomes in results.items():
        accuracy = accuracies(results, (name, fidelity))
        F = 100 * np.array([o.f_score for o in outcomes])
        rho = np.median([o.rho for o in outcomes])
        shown.add_row(
            name,
            fidelity or "-",
            f"{accuracy.mean():.1f} ± {accuracy.std():.1f}",
            f"{F.mean():.1f} ± {F.std():.1f}",
            f"{np.median([o.C for o in outcomes]):.2g}",
            "-" if np.isnan(rho) else f"{rho:.2g}",
            f"{max(max(o.gaps) for o in outcomes):.1e}",
            f"{np.mean([o.seconds for o in outcomes]):.1f}",
        )
    return shown


def verdict(results):
    """One sentence per question: the fidelity, the baselines, the certificates."""
    lines = []
    by_method = {m: np.array([accuracies(results, (m, f)) for f in FIDELITIES]) for m in LEARNED}
    for name, A in by_method.items():
        between, within = A.std(axis=0).mean(), A.std(axis=1).mean()
        lines.append(
            f"{name}: the fidelity changes the accuracy by {between:.1f} points, the split by {within:.1f} "
            f"(standard deviations), so the fidelity matters {'more' if between > within else 'no more'} "
            f"than the split; best on average is {list(FIDELITIES)[A.mean(axis=1).argmax()]}."
        )
    for name, A in by_method.items():
        groups = {"ahead of": [], "level with": [], "behind": []}
        for baseline in BASELINES:
            ahead = A.mean(axis=0) - accuracies(results, (baseline, ""))
            clear = abs(ahead.mean()) > 2 * ahead.std() / np.sqrt(max(ahead.size - 1, 1))
            group = ("ahead of" if ahead.mean() > 0 else "behind") if clear else "level with"
            groups[group].append(f"{baseline} ({ahead.mean().round(1) + 0.0:+.1f})")
        said = "; ".join(f"{group} {', '.join(names)}" for group, names in groups.items() if names)
        lines.append(f"{name}, averaged over the fidelities and up to two standard errors, is {said}.")
    gaps = np.array([gap for outcomes in results.values() for o in outcomes for gap in o.gaps])
    certified = f"{(gaps <= TOLERANCE).sum()} of {gaps.size} fits are certified to a relative gap"
    return [*lines, f"{certified} of {TOLERANCE:.0e}; the largest gap is {gaps.max():.1e}."]


def figure(results, lam, path):
    """Draw the accuracies, and in the first split the spectra: learned ones, and lam with its repairs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    style = {"ls": "none", "ms": 5, "capsize": 3}
    markers = ("o", "s", "^")  # the fidelities also differ in grey
    for k, fidelity in enumerate(FIDELITIES):
        A = np.array([accuracies(results, (name, fidelity)) for name in LEARNED])
        places = np.arange(len(LEARNED)) + 0.24 * (k - 1)
        look = {"color": f"C{k}", "marker": markers[k]}
        left.errorbar(A.mean(axis=1), places, xerr=A.std(axis=1), label=fidelity, **look, **style)
        spectrum = results["ESKL", fidelity][0].spectrum
        every = (k, max(len(spectrum) // 10, 1))  # markers of equal spectra stand beside each other
        right.plot(spectrum, lw=2.6 - 0.7 * k, label=f"ESKL, {fidelity}", ms=5, markevery=every, **look)
    A = np.array([accuracies(results, (name, "")) for name in BASELINES])
    places = len(LEARNED) + np.arange(len(BASELINES))
    left.errorbar(
        A.mean(axis=1), places, xerr=A.std(axis=1), color="0.4", label="baselines", marker="D", **style
    )
    left.set_yticks(range(len(LEARNED) + len(BASELINES)), [*LEARNED, *BASELINES])
    left.invert_yaxis()
    left.set_xlabel("accuracy on test points in %: mean and standard deviation over splits")
    left.grid(axis="x", alpha=0.3)
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    right.plot(np.abs(lam), color="0.6", ls="--", label="Flip")
    right.plot(np.maximum(lam, 0.0), color="0.3", ls=":", lw=2.5, label="Denoise")
    right.plot(lam, color="black", lw=1, label="mean similarity")
    right.set_yscale("symlog", linthresh=1.0)
    right.set(xlabel="rank in falling order", ylabel="eigenvalue, first split")
    right.legend(loc="lower left")
    fig.savefig(path, dpi=150)
    plt.close(fig)


# %% Run
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="breast_cancer", help="or wine, or an .npz file with S and y")
    parser.add_argument("--points", type=int, default=120, help="training and test points, at most")
    parser.add_argument("--noise", type=float, default=1.0, help="standard deviation on the diagonal")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--costs", type=int, default=3, help="values of C, from 0.01 to 1")
    parser.add_argument("--rhos", type=int, default=3, help="values of rho, from 1 to 0.01")
    parser.add_argument("--random-state", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 is one per core")
    parser.add_argument("--figure", default="indefinite_similarities.png", help="path of the figure")
    chosen = parser.parse_args(arguments)
    named, y = load(chosen.data, chosen.noise, np.random.default_rng(chosen.random_state))
    S = np.array(list(named.values()))
    splits = [sample(y, chosen.points, [chosen.random_state, seed]) for seed in range(chosen.splits)]
    grid = np.logspace(-2, 0, chosen.costs), np.logspace(0, -2, chosen.rhos)
    console = Console(width=110)
    first = np.concatenate(splits[0])
    S_first = S[:, first][:, :, first]
    lam = np.linalg.eigvalsh(S_first)
    shares = -100 * np.minimum(lam, 0.0).sum(axis=1) / np.abs(lam).sum(axis=1)
    shown = ", ".join(f"{name} {share:.0f} %" for name, share in zip(named, shares, strict=True))
    console.print(f"negative share of the eigenvalues, by absolute sums: {shown}", highlight=False)
    results = run(S, y, splits, grid, chosen.folds, chosen.jobs)
    sizes = "{} training, {} test points".format(*map(len, splits[0]))
    console.print(table(results, f"{Path(chosen.data).stem}: {sizes}, {chosen.splits} splits, in %"))
    for line in verdict(results):
        console.print(line, highlight=False)
    figure(results, np.linalg.eigvalsh(S_first.mean(axis=0))[::-1], chosen.figure)
    console.print(f"figure: {chosen.figure}", highlight=False)
    return results


if __name__ == "__main__":
    main()
