"""One function per kernel, then least squares: the linear functional strategy on breast cancer.

The dictionary of Pereverzyev and Tkachenko (2017), 13 (d + 1) kernels: ten Gaussian widths and polynomials
of degree 1 to 3, on all features and on each. Their paper leaves the widths and scales open: here widths
are 0.5 to 20 on standardised features, polynomials have offset 1, and kernels a mean diagonal of one.
alpha = 0.005 as there, with the loss averaged ("mean") or summed ("sum"). Several 70/30 splits: the strategy
in its variants against the plain average of the same functions, the best single one (by leaving one out),
and l_p MKL at C = 100, which has an intercept.

Why free weights fail: the narrowest Gaussian on all features has a matrix near I. Its function repeats the
training targets and is almost zero elsewhere, and a fit to the training points takes it for the truth.

    python examples/linear_functional.py
"""

# %% The setting
from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import kernelopt as ko
from formulations import linear_functional, lp_norm

ALPHA, RIDGE, C = 0.005, 1e-2, 100.0
WIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
CONVENTIONS = ("mean", "sum")
NORMS = {"MKL, p = 1": 1.0, "MKL, p = 4/3": 4 / 3}
STRATEGIES = {  # name: (columns, weights, ridge)
    "LFS": ("training", "free", 0.0),
    "LFS, ridge": ("training", "free", RIDGE),
    "LFS, nonnegative": ("training", "nonnegative", 0.0),
    "LFS, simplex": ("training", "simplex", 0.0),
    "LFS, leave-one-out": ("leave-one-out", "free", 0.0),
    "LFS, leave-one-out, ridge": ("leave-one-out", "free", RIDGE),
    "LFS, leave-one-out, simplex": ("leave-one-out", "simplex", 0.0),
    "LFS, split, ridge": ("split", "free", RIDGE),
}
BASELINES = ("plain average", "best single kernel")
NAMES = (*STRATEGIES, *BASELINES)
LIMIT = 15.0  # seconds for one l_p solve, which stops at a gap of 1e-3


def dictionary(d):
    """13 (d + 1) kernels."""
    kernels = [ko.gaussian(w) for w in WIDTHS] + [ko.polynomial(k) for k in (1, 2, 3)]
    return [*kernels, *ko.per_feature(kernels, d)]


# %% One split: accuracy on the test points, mean squared residual of what was fitted, seconds
def judged(solution, cross, y_test):
    return float((np.sign(solution.decision_function(cross)) == y_test).mean())


def strategies(grams, y, cross, y_test, convention, jobs):
    """Return (accuracy, residual of the second stage, seconds) of every name."""
    found, first, spent = {}, {}, {}
    for columns in ("training", "leave-one-out", "split"):
        clock = time.perf_counter()
        first[columns] = linear_functional.functional_strategy(
            grams, y, regularization=ALPHA, convention=convention, columns=columns, n_jobs=jobs
        )
        spent[columns] = time.perf_counter() - clock

    def add(name, columns, solve):
        clock = time.perf_counter()
        solution = solve(first[columns])
        seconds = spent[columns] + time.perf_counter() - clock
        stage = first[columns].stage
        left = float(np.mean((stage.v - stage.X @ solution.weights) ** 2))
        found[name] = (judged(solution, cross, y_test), left, seconds)

    for name, (columns, weights, ridge) in STRATEGIES.items():
        # By SVD where weights are free: the minimum norm is what the paper's inverse of G may mean here.
        add(
            name,
            columns,
            lambda s, w=weights, r=ridge: (
                s.with_weights(w, ridge=r).solve_directly()
                if w == "free"
                else s.with_weights(w, ridge=r).solve()
            ),
        )
    M = len(grams)
    left_out = first["leave-one-out"]
    best = int(np.argmin(np.mean((y[:, None] - left_out.candidates.columns) ** 2, axis=0)))
    add("plain average", "training", lambda s: s.at(np.full(M, 1 / M)))
    add("best single kernel", "leave-one-out", lambda s: s.at(np.eye(M)[best]))
    return found


def lp_mkl(grams, y, cross, y_test, p):
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = lp_norm.primal(grams, y, p=p, loss=ko.hinge(C)).solve(
            "interleaved", tol=1e-3, time_limit=LIMIT
        )
    seconds = time.perf_counter() - clock
    fit = solution.decision_function()
    return judged(solution, cross, y_test), float(np.mean((y - fit) ** 2)), seconds


def split(X, y, seed, jobs):
    parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    mean, scale = parts[0].mean(axis=0), parts[0].std(axis=0)
    train, test = ((part - mean) / scale for part in parts[:2])
    grams = ko.Grams.from_kernels(dictionary(X.shape[1]), train).normalize("trace")
    cross = grams.cross(test)
    found = {
        (name, convention): result
        for convention in CONVENTIONS
        for name, result in strategies(grams, parts[2], cross, parts[3], convention, jobs).items()
    }
    for name, p in NORMS.items():
        found[name, ""] = lp_mkl(grams, parts[2], cross, parts[3], p)
    return found


# %% What came out
def show(console, results, M, n):
    shown = Table(title=f"breast cancer, {M} kernels on {n} points, {len(results)} split(s)")
    shown.add_column("method", no_wrap=True)
    for column in ("loss", "accuracy in %", "residual", "seconds"):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, convention in results[0]:
        accuracy, error, seconds = np.array([r[name, convention] for r in results]).T
        shown.add_row(
            name,
            convention or "-",
            f"{100 * accuracy.mean():.1f} ± {100 * accuracy.std():.1f}",
            f"{error.mean():.1e}",
            f"{seconds.mean():.1f}",
        )
    console.print(shown)


def sentence(results, M, n):
    """Say where the second stage fits more closely than the plain average does, and predicts worse."""
    said = []
    for convention in CONVENTIONS:
        mean = {name: np.mean([r[name, convention] for r in results], axis=0) for name in NAMES}
        average = mean["plain average"]
        worse = [f"{k} ({100 * mean[k][0]:.1f} %)" for k in STRATEGIES if overfits(mean[k], average)]
        what = "is worse than their plain average" if worse else "is nowhere worse than their plain average"
        said.append(
            f"{what} ({100 * average[0]:.1f} %) with the {convention} convention"
            + (f" as {', '.join(worse)}" if worse else "")
        )
    size = "no fewer than" if M >= n else "fewer than"
    return (
        f"Where LFS overfits: with {M} functions, {size} the {n} points, it "
        + "; and it ".join(said)
        + ", though its second stage fits more closely."
    )


def overfits(mine, average):
    return mine[0] < average[0] and mine[1] < average[1]


def figure(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(3, 2), layout="constrained")
    rows = [*NAMES, *NORMS]
    for k, convention in enumerate(CONVENTIONS):
        accuracy, error, _ = np.array([[r[name, convention] for r in results] for name in NAMES]).T
        places = np.arange(len(NAMES)) + 0.38 * (k - 0.5)
        left.barh(
            places,
            100 * accuracy.mean(axis=0),
            0.36,
            xerr=100 * accuracy.std(axis=0),
            capsize=2,
            label=convention,
        )
        residual, wrong = np.maximum(error.mean(axis=0), 1e-16), 100 * (1 - accuracy.mean(axis=0))
        right.scatter(residual, wrong, label=convention, marker="os"[k])
    for k, name in enumerate(NORMS):
        accuracy = np.array([r[name, ""][0] for r in results])
        left.barh(
            len(NAMES) + k, 100 * accuracy.mean(), 0.5, xerr=100 * accuracy.std(), capsize=2, color="0.6"
        )
    left.set_yticks(range(len(rows)), rows)
    left.invert_yaxis()
    left.set(xlabel="accuracy on test points in %", xlim=(0, 100))
    right.legend(title="loss")
    right.set(xscale="log", xlabel="mean squared residual of the second stage")
    right.set_ylabel("test errors in %")
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--features", type=int, default=30, help="how many of the thirty features")
    parser.add_argument("--points", type=int, default=569)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", default="linear_functional.png")
    chosen = parser.parse_args(arguments)
    data, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))[: chosen.points]
    X, y = data[order, : chosen.features], np.where(labels[order] == 1, 1.0, -1.0)
    results = [
        split(X, y, seed, chosen.jobs)
        for seed in track(range(chosen.splits), "splits", console=Console(stderr=True), transient=True)
    ]
    M, n = 13 * (X.shape[1] + 1), len(train_test_split(y, test_size=0.3, random_state=0)[0])
    console = Console(width=110)
    show(console, results, M, n)
    console.print(sentence(results, M, n), highlight=False)
    figure(results, chosen.output)
    console.print(f"figure: {chosen.output}", highlight=False)
    return results


if __name__ == "__main__":
    main()
