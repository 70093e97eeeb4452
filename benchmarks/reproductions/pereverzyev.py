"""Pereverzyev and Tkachenko (2017), Table 1: the linear functional strategy beside l1-norm MKL.

    python benchmarks/reproductions/pereverzyev.py --data FOLDER [--repetitions 20] [--n-jobs 2]
    python benchmarks/reproductions/pereverzyev.py --quick

The paper's dictionary: ten Gaussians and the polynomials of degree 1 to 3, on all columns and on each single
one. 70 % of the points train. LFS has alpha = 0.005, with the loss as a mean and as a sum; SimpleMKL is the
l1-norm MKL of kernelopt at C = 100. Not stated in the paper, and ours: columns are standardised on the
training points, the widths are those of SimpleMKL's toolbox, kernels have the trace n, and free weights that
are not unique have minimum norm. Two further rows are no part of the paper: the average of the functions, and
LFS with leave-one-out columns and weights on the simplex. Seconds are those of the processor for learning.
Gaps of LFS are in units of the value at c = 0, which is one: interpolating weights have a value near zero.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from protocol import Cell, Sets, Study, Table, column, run, signs, solved, split, standardised, text_of, where

import kernelopt as ko
from formulations import linear_functional, lp_norm

WIDTHS = (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)
SETS = ("liver", "wpbc", "ionosphere", "pima", "sonar")
ALPHA, C = 0.005, 100.0  # the paper's
ROWS = {
    "mkl": "l1-MKL, C = 100",
    "mean": "LFS, loss as a mean (1)",
    "sum": "LFS, loss as a sum",
    "average": "average of the functions",
    "loo": "LFS, leave-one-out columns, simplex",
}


def cells(repetitions: int, quick: bool) -> list[Cell]:
    names = ("wdbc",) if quick else SETS
    return [{"set": name, "seed": seed, "quick": quick} for seed in range(repetitions) for name in names]


def dictionary(d: int, quick: bool) -> list[ko.Kernel]:
    """Return the kernels on all columns and on each of them."""
    own = [ko.gaussian(w) for w in WIDTHS[:: 4 if quick else 1]] + [ko.polynomial(k) for k in (1, 2, 3)]
    return own + ([] if quick else list(ko.per_feature(own, d)))


def measure(cell: Cell, sets: Sets) -> dict[str, Any]:
    X, labels = sets.table(cell["set"])
    y = signs(labels)
    train, test = split(len(y), 0.7, cell["seed"])
    X = standardised(X, train)
    kernels = dictionary(X.shape[1], cell["quick"])
    grams = ko.Grams.from_kernels(kernels, X[train]).normalize("trace")
    grams = ko.Grams.from_array(np.asarray(grams))  # kernels are evaluated before the clock starts
    cross = ko.Grams.from_kernels(kernels, X[train]).normalize("trace").cross(X[test])
    found: dict[str, Any] = {"n": len(train), "M": len(kernels), "gap": 0.0}

    def note(name: str, values: np.ndarray, gap: float, began: float) -> None:
        found[name] = float((np.sign(values) == y[test]).mean())
        found[f"{name} seconds"] = round(time.process_time() - began, 3)
        found[f"{name} gap"] = float(gap)
        found["gap"] = max(found["gap"], float(gap))

    began = time.process_time()
    solution = solved(lp_norm.primal(grams, y[train], p=1.0, loss=ko.hinge(C)), tol=1e-3)
    note("mkl", solution.decision_function(cross), solution.gap, began)
    for convention in ("mean", "sum"):
        began = time.process_time()
        strategy = linear_functional.functional_strategy(
            grams, y[train], regularization=ALPHA, convention=convention
        )
        solution = solved(strategy)
        note(convention, solution.decision_function(cross), solution.certificate.absolute_gap, began)
        if convention == "mean":
            average = strategy.at(np.full(len(kernels), 1 / len(kernels)))
            found["average"] = float((np.sign(average.decision_function(cross)) == y[test]).mean())
    began = time.process_time()
    strategy = linear_functional.functional_strategy(
        grams, y[train], regularization=ALPHA, columns="leave-one-out", weights="simplex"
    )
    solution = solved(strategy)
    note("loo", solution.decision_function(cross), solution.certificate.absolute_gap, began)
    return found


def summary(finished: list[Cell]) -> tuple[list[Table], dict[str, str]]:
    names = list(dict.fromkeys(cell["set"] for cell in finished))
    head = ["", "data set", "n", "M", "accuracy in %", "seconds", "largest gap"]
    rows = []
    for key, title in ROWS.items():
        for name in names:
            own = where(finished, set=name)
            seconds = text_of(column(own, f"{key} seconds"), 2)
            gaps = column(own, f"{key} gap")
            gap = f"{gaps.max():.0e}" if gaps.size else "–"
            n, M = own[0]["n"], own[0]["M"]
            rows.append([title, name, n, M, text_of(column(own, key), 1, 100), seconds, gap])
    return [{"title": "Table 1", "head": head, "rows": rows}], {"Table 1": figure_text(finished, names)}


def figure_text(finished: list[Cell], names: list[str]) -> str:
    """Return the accuracy of the better convention minus MKL's on each set, and the ratio of seconds."""
    parts = []
    for name in names:
        own = where(finished, set=name)
        best = max(("mean", "sum"), key=lambda key: column(own, key).mean())
        difference = 100 * (column(own, best).mean() - column(own, "mkl").mean())
        faster = column(own, "mkl seconds").mean() / column(own, f"{best} seconds").mean()
        parts.append(f"{name} {difference:+.1f} ({faster:.1f} times)")
    return "accuracy of LFS minus MKL's in % (seconds of MKL over LFS's): " + ", ".join(parts)


STUDY = Study("pereverzyev", __doc__, SETS, 20, cells, measure, summary)

if __name__ == "__main__":
    run(STUDY)
