"""Which norm for which truth? The controlled experiment of Kloft et al. (2011), section 5.1.

Two Gaussians in 50 dimensions differ in 50, 28, 18, 9, 4 or 1 of them; every dimension is one linear
kernel, so the rest are noise kernels. For p in {1, 4/3, 2, 4, inf} the soft margin C is chosen on
validation points, and the test error and the distance of the learned weights from the true ones are
averaged over repetitions. The paper's 250 repetitions: `--repetitions 250`.

    python examples/sparsity_experiment.py
"""

# %% The setting
from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from rich.table import Table

import kernelopt as ko
from formulations import lp_norm

DIMENSIONS = 50
DISTANCE = 1.75  # of each mean from the origin: the Bayes error is Phi(-1.75) = 4.0 %
BAYES = 0.0401
INFORMATIVE = (50, 28, 18, 9, 4, 1)
NORMS = (1.0, 4 / 3, 2.0, 4.0, np.inf)
NAMES = ("1", "4/3", "2", "4", "inf")
COSTS = 10.0 ** np.arange(-4, 0.25, 0.5)


def sample(rng, n, v):
    """A balanced sample: points around +- 1.75 v/|v|."""
    y = rng.permutation(np.repeat([1.0, -1.0], [n - n // 2, n // 2]))
    return rng.normal(size=(n, DIMENSIONS)) + DISTANCE * y[:, None] * v / np.linalg.norm(v), y


def error(X, y, direction, intercept):
    return np.mean(np.sign(X @ direction + intercept) != y)


# %% One data set: for every p the test error and the weight error at the C that validates best
def repetition(n, informative, evaluation, seed):
    rng = np.random.default_rng([seed, n, informative])
    v = np.zeros(DIMENSIONS)
    v[:informative] = 1.0
    (X, y), validation, test = (sample(rng, size, v) for size in (n, evaluation, evaluation))
    features = ko.Grams.rank_one(X)  # one linear kernel per feature
    grams = features.normalize("multiplicative")
    constants = features.traces / grams.traces  # the c_m by which they are divided
    results = []
    for p in NORMS:
        tried = []
        for C in COSTS:
            # The optimum is below C n: a gap of 1e-3 of that, however small C is.
            solution = lp_norm.primal(grams, y, p=p, loss=ko.hinge(C)).solve(
                "interleaved", tol=1e-3 * min(1.0, C * n)
            )
            # f(x) = sum_m theta_m / c_m <x_m, .> alpha + b is linear in x
            direction = solution.weights / constants * (X.T @ solution.alpha)
            tried.append((error(*validation, direction, solution.intercept), C, solution, direction))
        _, C, solution, direction = min(tried, key=lambda t: t[:2])
        theta = solution.weights
        distance = np.linalg.norm(theta / np.linalg.norm(theta) - v / np.linalg.norm(v))
        results.append((error(*test, direction, solution.intercept), distance, C))
    return results


def run(points, repetitions, evaluation, jobs):
    """Return an array (repetitions, sparsity levels, norms, [test error, weight error, C])."""
    tasks = [(informative, seed) for seed in range(repetitions) for informative in INFORMATIVE]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        found = Parallel(n_jobs=jobs, return_as="generator")(
            delayed(repetition)(points, informative, evaluation, seed) for informative, seed in tasks
        )
        described = f"n = {points}"
        results = list(track(found, described, total=len(tasks), console=Console(stderr=True)))
    return np.array(results).reshape(repetitions, len(INFORMATIVE), len(NORMS), 3)


# %% What came out
def table(points, results):
    """A table of test errors in per cent with their standard errors, the best of each row in bold."""
    mean = 100 * results[..., 0].mean(axis=0)
    spread = 100 * results[..., 0].std(axis=0) / np.sqrt(len(results))
    shown = Table(title=f"test error in %, n = {points}, {len(results)} repetitions")
    shown.add_column("noise kernels")
    for name in NAMES:
        shown.add_column(f"p = {name}", justify="right", no_wrap=True)
    for i, informative in enumerate(INFORMATIVE):
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[i], spread[i], strict=True)]
        cells[int(mean[i].argmin())] = f"[bold]{cells[int(mean[i].argmin())]}[/bold]"
        shown.add_row(f"{100 * (1 - informative / DIMENSIONS):.0f} %", *cells)
    return shown


def verdict(by_points):
    """Compare with the paper's summary, statement by statement."""
    lines = []
    for points, results in by_points.items():
        mean = 100 * results[..., 0].mean(axis=0)
        regret = (mean - mean.min(axis=1, keepdims=True)).max(axis=0)
        best = [NAMES[k] for k in mean.argmin(axis=1)]
        lines.append(
            f"n = {points}: the best p from dense to sparse truths is {', '.join(best)}; the largest loss "
            "against the best p is "
            + ", ".join(f"{r:.2f} (p = {name})" for r, name in zip(regret, NAMES, strict=True))
            + " points."
        )
    small = next(iter(by_points.values()))[..., 0].mean(axis=0)
    sparse_wins = small[-1].argmin() == 0
    dense_wins = small[0].argmin() == len(NORMS) - 1
    middle = all(0 < k for k in small[1:-2].argmin(axis=1))
    claims = {
        "l_1 wins where one kernel informs": sparse_wins,
        "the plain sum wins where all do": dense_wins,
        "non-sparse norms win in between": middle,
    }
    if len(by_points) > 1:
        spans = [np.ptp(r[..., 0].mean(axis=0), axis=1).max() for r in by_points.values()]
        claims["the choice matters less with more data"] = spans[-1] < spans[0]
    held = [claim for claim, holds in claims.items() if holds]
    failed = [claim for claim, holds in claims.items() if not holds]
    lines.append(
        "The paper's conclusion holds" + (": " if not failed else " in part: ") + "; ".join(held) + "."
    )
    if failed:
        lines.append("It does not hold here that " + "; ".join(failed) + ".")
    return lines


def figure(by_points, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    noise = [100 * (1 - k / DIMENSIONS) for k in INFORMATIVE]
    fig, axes = plt.subplots(
        len(by_points), 2, figsize=(9, 3.4 * len(by_points)), squeeze=False, sharex=True, layout="constrained"
    )
    for row, (points, results) in zip(axes, by_points.items(), strict=True):
        mean = results.mean(axis=0)
        spread = results.std(axis=0) / np.sqrt(len(results))
        for k, name in enumerate(NAMES):
            for ax, part, unit in ((row[0], 0, 100), (row[1], 1, 1)):
                ax.errorbar(
                    noise,
                    unit * mean[:, k, part],
                    unit * spread[:, k, part],
                    label=f"p = {name}",
                    marker="os^Dv"[k],
                    ls=("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))[k],
                    ms=4,
                    capsize=2,
                )
        row[0].axhline(100 * BAYES, color="0.4", ls=":", label="Bayes error")
        row[0].set(title=f"n = {points}", ylabel="test error in %")
        row[1].set(title=f"n = {points}", ylabel="distance from the true weights")
    for ax in axes[-1]:
        ax.set_xlabel("noise kernels in %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9)
    fig.savefig(path, dpi=150)
    plt.close(fig)


# %% Run
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--points", type=int, nargs="+", default=[50, 800], help="training points")
    parser.add_argument("--evaluation", type=int, default=10_000, help="validation points, and test points")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 is one per core")
    parser.add_argument("--output", default="sparsity_experiment.png", help="path of the figure")
    chosen = parser.parse_args(arguments)
    by_points = {n: run(n, chosen.repetitions, chosen.evaluation, chosen.jobs) for n in chosen.points}
    console = Console()
    for points, results in by_points.items():
        console.print(table(points, results))
    for line in verdict(by_points):
        console.print(line, highlight=False)
    figure(by_points, chosen.output)
    console.print(f"figure: {chosen.output}", highlight=False)
    return by_points


if __name__ == "__main__":
    main()
