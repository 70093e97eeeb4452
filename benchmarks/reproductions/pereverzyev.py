"""Pereverzyev and Tkachenko (2017), Table 1: the linear functional strategy beside l1-norm MKL.

    python benchmarks/reproductions/pereverzyev.py --data FOLDER [--repetitions 20] [--n-jobs 2]
    python benchmarks/reproductions/pereverzyev.py --quick

Stated in the paper: the data sets; 70 % of the points train; ten Gaussians and the polynomials of degree 1
to 3, on all columns and on each single one; C = 100, alpha = 1 / (2 C) = 0.005; weights c = G^-1 g. "The
same experimental set-up" as SimpleMKL's, whose toolbox has the rest: columns standardised on the training
points, the widths below, and kernels of trace one. Not stated, so that all readings are run: a loss that is
a mean, as in equation (1), or a sum, as alpha = 1 / (2 C) needs; kernels of trace one or n; what c is where
G is singular. A level L below is that of (K / tr K + L I) b = v: n alpha, alpha and alpha / n are the mean
at trace one, the sum at trace one or the mean at trace n, and the sum at trace n. c has minimum norm, or G
is made well-conditioned, as Remark 1 asks: singular values of the columns below CUT of the largest are
dropped.

No part of the paper: the average of the functions, and leave-one-out columns with weights on the simplex.
Seconds are those of the processor for learning. MKL is the l1-norm MKL of kernelopt, to a gap of 1e-3. Gaps
of LFS are in units of the value at c = 0, which is one. Where directions are dropped, the gap is what that
costs on the training points.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from protocol import Cell, Sets, Study, Table, column, run, signs, solved, split, standardised, text_of, where

import kernelopt as ko
from formulations import linear_functional, lp_norm

WIDTHS = (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)  # of SimpleMKL's toolbox
SETS = ("liver", "wpbc", "ionosphere", "pima", "sonar")
ALPHA, C = 0.005, 100.0  # the paper's
CUT = 0.01  # ours: G then has a condition of at most 10^4
LEVELS = {  # times alpha, with kernels of trace one
    "nα": ("loss a mean (1), trace 1", lambda n: n),
    "α": ("loss a sum, trace 1; or a mean, trace n", lambda _: 1.0),
    "α/n": ("loss a sum, trace n", lambda n: 1 / n),
}
STAGES = {"minimum norm": "minimum norm", "conditioned": "well-conditioned", "average": "average"}
ROWS = {
    "mkl": "ℓ₁-MKL, trace 1",
    "mkl n": "ℓ₁-MKL, trace n",
    **{f"{level} {s}": f"LFS, {LEVELS[level][0]}: {STAGES[s]}" for level in LEVELS for s in STAGES},
    "loo": "LFS, leave-one-out columns, simplex (level α)",
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
    X, n, other = standardised(X, train), len(train), y[test]
    kernels = dictionary(X.shape[1], cell["quick"])
    normal = ko.Grams.from_kernels(kernels, X[train]).normalize("trace")  # of trace n
    grams, cross = ko.Grams.from_array(np.asarray(normal)), normal.cross(X[test])  # before the clock starts
    found: dict[str, Any] = {"n": n, "M": len(kernels), "gap": 0.0}

    def note(name: str, solution: ko.Solution, gap: float, seconds: float) -> None:
        found[name] = float((np.sign(solution.decision_function(cross)) == other).mean())
        found[f"{name} seconds"], found[f"{name} gap"] = round(seconds, 3), float(gap)

    for name, scaled in {"mkl": C / n, "mkl n": C}.items():  # C at trace one is C / n at trace n
        began = time.process_time()
        solution = solved(lp_norm.primal(grams, y[train], p=1.0, loss=ko.hinge(scaled)), tol=1e-3)
        note(name, solution, solution.gap, time.process_time() - began)
    for level, (_, factor) in LEVELS.items():
        began = time.process_time()
        strategy = linear_functional.functional_strategy(
            grams, y[train], regularization=ALPHA * factor(n), convention="mean"
        )
        first = time.process_time() - began
        for stage, solve in {
            "minimum norm": solved,
            "conditioned": lambda one: one.solve_directly(rcond=CUT),
            "average": lambda one: one.at(np.full(len(kernels), 1 / len(kernels))),
        }.items():
            began = time.process_time()
            solution = solve(strategy)
            seconds = first + time.process_time() - began
            note(f"{level} {stage}", solution, solution.certificate.absolute_gap, seconds)
    began = time.process_time()
    strategy = linear_functional.functional_strategy(
        grams, y[train], regularization=ALPHA, columns="leave-one-out", weights="simplex"
    )
    solution = solved(strategy)
    note("loo", solution, solution.certificate.absolute_gap, time.process_time() - began)
    found["gap"] = max(found[f"{name} gap"] for name in ROWS if name.endswith(("mkl", "n", "norm", "loo")))
    return found


def summary(finished: list[Cell]) -> tuple[list[Table], dict[str, str]]:
    names = list(dict.fromkeys(cell["set"] for cell in finished))
    own = {name: where(finished, set=name) for name in names}
    sizes = [["training points n", *(own[name][0]["n"] for name in names), ""]]
    sizes.append(["kernels M", *(own[name][0]["M"] for name in names), ""])
    accuracies = [
        [
            title,
            *(text_of(column(own[name], key), 1, 100) for name in names),
            f"{column(finished, f'{key} gap').max():.0e}",
        ]
        for key, title in ROWS.items()
    ]
    seconds = [
        [title, *(text_of(column(own[name], f"{key} seconds"), 2) for name in names)]
        for key, title in ROWS.items()
        if not key.endswith("average")
    ]
    head = ["accuracy in %", *names, "largest gap"]
    tables = [
        {"title": "Table 1", "head": head, "rows": sizes + accuracies},
        {"title": "Table 1: seconds", "head": ["seconds", *names], "rows": seconds},
    ]
    return tables, {"Table 1": figure_text(own)}


def figure_text(own: dict[str, list[Cell]]) -> str:
    """Return the accuracy minus MKL's and the ratio of seconds, by equation (1) at trace one."""
    texts = []
    for stage in ("conditioned", "minimum norm"):
        parts = []
        for name, cells in own.items():
            difference = column(cells, f"nα {stage}") - column(cells, "mkl")
            times = column(cells, "mkl seconds").mean() / column(cells, f"nα {stage} seconds").mean()
            parts.append(f"{name} {text_of(difference, 1, 100)} ({times:.1f} times)")
        texts.append(", ".join(parts))
    return (
        "accuracy of LFS minus MKL's in % (seconds of MKL over LFS's), loss a mean, trace one, G "
        f"well-conditioned: {texts[0]}; with c of minimum norm: {texts[1]}"
    )


STUDY = Study("pereverzyev", __doc__, SETS, 20, cells, measure, summary)

if __name__ == "__main__":
    run(STUDY)
