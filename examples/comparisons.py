"""Features and kernels from comparisons: "this wine is more like that one than like the third".

On scikit-learn's wine and iris, ten random splits: triplets of the training points' labels, a linear
programme that chooses weak one-coordinate Gaussians feature by feature, and the share of comparisons
between *test* points that the learned kernel respects. Prices are chosen on halves of the training
points. Against it: the plain average of the same kernels, the single Gaussian and polynomial that do
best in training, and the metric of Xing et al., a convex problem too, in four lines of cvxpy.

    python examples/comparisons.py
"""

# %% The setting
from __future__ import annotations

import argparse
import warnings

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split

import kernelopt as ko
from formulations import triplet_lp

WIDTHS = (0.3, 1.0, 3.0)
SHARES = np.geomspace(0.7, 1e-3, 12)  # of gamma1_max, the price at which the first feature appears
NEARLY = 0.01  # of comparisons: a sparser kernel that loses no more is preferred
TRACE_PRICES = (1e-4, 1e-3, 1e-2)  # gamma2
SINGLE = [ko.gaussian(w) for w in (0.3, 1.0, 3.0, 10.0)] + [ko.polynomial(2, 1.0), ko.polynomial(3, 1.0)]
NAMES = ("feature selection", "plain average", "best Gaussian", "best polynomial", "Xing's metric")


def weak_kernels(d):
    """Three widths on every feature, and the identity in a group of its own.

    The identity pays for dominance; at a hundredfold scale it is so cheap that no feature is taken
    only to lower the sums off the diagonal.
    """
    weak = ko.per_feature([ko.gaussian(w) for w in WIDTHS], d)
    return [*weak, 100.0 * ko.identity()], [*weak.groups, d]


# %% The methods: each takes points and triplets, and returns a score for other points and triplets
def learn(X, triplets, share, gamma2):
    kernels, groups = weak_kernels(X.shape[1])
    grams = ko.Grams.from_kernels(kernels, X)
    gamma1 = share * highest_price(grams, triplets, groups, gamma2)
    programme = triplet_lp.feature_selection(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2)
    return programme.solve().weights, groups


def respected(weights, kernels, X, triplets):
    return ko.triplet_score(ko.Grams.from_kernels(kernels, X).combine(weights), triplets)


def highest_price(grams, triplets, groups, gamma2):
    return triplet_lp.gamma1_max(grams, triplets, gamma2=gamma2, groups=groups)


def choose_prices(X, y, triplets, rng):
    """Learn on one half of the training points, judge on the other, and the other way round.

    Returns the share of `gamma1_max` and gamma2: the sparsest that does nearly as well as the best.
    """
    kernels, groups = weak_kernels(X.shape[1])
    scores = np.zeros((len(TRACE_PRICES), SHARES.size))
    halves = train_test_split(
        np.arange(len(y)), test_size=0.5, stratify=y, random_state=int(rng.integers(2**31))
    )
    for here, there in (halves, halves[::-1]):
        known = ko.sample_triplets(y[here], len(triplets) // 2, random_state=rng)
        asked = ko.sample_triplets(y[there], 500, random_state=rng)
        grams = ko.Grams.from_kernels(kernels, X[here])
        for i, gamma2 in enumerate(TRACE_PRICES):
            highest = highest_price(grams, known, groups, gamma2)
            if not highest > 0:  # the trace alone is too dear for any kernel
                continue
            prices = SHARES * highest
            path = triplet_lp.regularization_path(grams, known, gamma2=gamma2, groups=groups, gamma1=prices)
            scores[i] += [respected(w, kernels, X[there], asked) / 2 for w in path.weights]
    good = np.argwhere(scores >= scores.max() - NEARLY)
    i, j = min(good.tolist(), key=lambda place: place[1])
    return SHARES[j], TRACE_PRICES[i]


def xing(X, triplets):
    """A >> 0 with the (i, k) pairs far apart, while the (i, j) pairs are near in total."""
    near, far = (X[triplets[:, 0]] - X[triplets[:, j]] for j in (1, 2))
    A = cp.Variable((X.shape[1],) * 2, PSD=True)
    apart = cp.sum(cp.sqrt(cp.sum(cp.multiply(far @ A, far), axis=1)))
    cp.Problem(cp.Maximize(apart), [cp.sum(cp.multiply(near.T @ near, A)) <= 1]).solve(solver=cp.CLARABEL)
    return A.value


# %% One split
def split(X, y, seed, train_size, test_size):
    """Return the share of test comparisons that each method respects, and how many features it takes."""
    rng = np.random.default_rng(seed)
    parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    mean, scale = parts[0].mean(axis=0), parts[0].std(axis=0)
    train, test, labels, test_labels = (
        (parts[0] - mean) / scale,
        (parts[1] - mean) / scale,
        parts[2],
        parts[3],
    )
    known = ko.sample_triplets(labels, train_size, random_state=rng)
    asked = ko.sample_triplets(test_labels, test_size, random_state=rng)
    kernels, _ = weak_kernels(X.shape[1])
    weights, groups = learn(train, known, *choose_prices(train, labels, known, rng))
    features = np.abs(weights[:-1]) > 1e-6 * np.abs(weights).max()
    by_training = [ko.triplet_score(kernel(train), known) for kernel in SINGLE]
    best = [int(np.argmax(by_training[:4])), 4 + int(np.argmax(by_training[4:]))]
    A = xing(train, known)
    scores = [
        respected(weights, kernels, test, asked),
        respected(np.ones(len(kernels)), kernels, test, asked),
        *(ko.triplet_score(SINGLE[k](test), asked) for k in best),
        ko.triplet_score(test @ A @ test.T, asked, distance=True),
    ]
    return scores, np.unique(np.asarray(groups)[:-1][features]).size


# %% What came out
def figure(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 1), layout="constrained")
    places = np.arange(len(NAMES))
    for k, (name, (scores, counts, d)) in enumerate(results.items()):
        shift = 0.38 * (k - 0.5)
        left.bar(
            places + shift,
            100 * scores.mean(axis=0),
            0.36,
            yerr=100 * scores.std(axis=0),
            capsize=3,
            label=name,
        )
        right.bar(k, counts.mean(), 0.6, yerr=counts.std(), capsize=3)
        right.plot([k - 0.3, k + 0.3], [d, d], color="0.3", lw=2)
    left.set_xticks(places, [name.replace(" ", "\n", 1) for name in NAMES])
    left.set(ylabel="test comparisons respected in %", ylim=(50, 100))
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(results), frameon=False)
    right.set_xticks(range(len(results)), list(results))
    right.set(ylabel="features selected (lines: all)", ylim=(0, None))
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--triplets", type=int, default=200, help="training comparisons")
    parser.add_argument("--test-triplets", type=int, default=1000)
    parser.add_argument("--output", default="comparisons.png", help="path of the figure")
    chosen = parser.parse_args(arguments)
    results = {}
    shown = Table(title=f"test comparisons respected in %, {chosen.splits} splits: mean ± standard deviation")
    for column in ("data", *NAMES, "features"):
        shown.add_column(column, justify="right")
    for name, load in (("wine", load_wine), ("iris", load_iris)):
        X, y = load(return_X_y=True)
        scores, counts = [], []
        for seed in track(range(chosen.splits), name, console=Console(stderr=True)):
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", ko.errors.ConditionWarning
                )  # the largest prices select nothing
                found, count = split(X, y, seed, chosen.triplets, chosen.test_triplets)
            scores.append(found)
            counts.append(count)
        results[name] = np.array(scores), np.array(counts), X.shape[1]
        cells = [
            f"{100 * m:.1f} ± {100 * s:.1f}"
            for m, s in zip(np.mean(scores, 0), np.std(scores, 0), strict=True)
        ]
        shown.add_row(name, *cells, f"{np.mean(counts):.1f} ± {np.std(counts):.1f} of {X.shape[1]}")
    Console(width=120).print(shown)
    for name, (scores, _, _) in results.items():
        order = [NAMES[k] for k in np.argsort(-scores.mean(axis=0))]
        Console().print(f"{name}, from best to worst: {', '.join(order)}.", highlight=False)
    figure(results, chosen.output)
    Console().print(f"figure: {chosen.output}", highlight=False)
    return results


if __name__ == "__main__":
    main()
