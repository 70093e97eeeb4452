"""Real data as a practitioner meets them: `MKLClassifier` and `MKLRegressor` against SVC and SVR.

    python benchmarks/practitioners.py [--data FOLDER] [--outer 5] [--inner 3] [--only NAME ...] [--json FILE]

Every estimator is judged by nested cross-validation. On the inner splits of each outer training set C is
chosen, and gamma of SVC and SVR or p of the estimators of kernelopt. The accuracy, or R^2 for targets, is
that on the outer test sets. SVC and SVR see standardised columns. The estimators of kernelopt have their
default dictionary and see the columns as they are. Three sets are scikit-learn's. Three are read from FOLDER,
in which NAME/NAME.csv or NAME/NAME.csv.gz has the label or target in its last column.

Columns of the table: samples, columns, mean and standard deviation over the outer splits, seconds of the
processor for all fits, and the largest certified gap of the refitted models. "as good" counts the outer
splits on which the estimator is at least as good as its rival.

Before it, one grid search is timed: ten values of C, five splits, and 24 Gaussian widths on breast cancer.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import shuffle

from kernelopt import gaussian
from kernelopt.estimators import MKLClassifier, MKLClassifierCV, MKLRegressor

BUILT_IN = {"breast cancer": load_breast_cancer, "wine": load_wine, "diabetes": load_diabetes}
FROM_FILES = {"ionosphere": "labels", "sonar": "labels", "boston": "targets"}
C_VALUES = [0.1, 1.0, 10.0, 100.0]
P_VALUES = [1.0, 4 / 3, 2.0]
GAMMA_FACTORS = [0.1, 0.3, 1.0, 3.0]  # of 1 / columns, which is the default of SVC at standardised columns


def read_table(folder, name):
    """Return the columns and the last column of NAME.csv or NAME.csv.gz."""
    path = next(Path(folder, name).glob(f"{name}.csv*"))
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([row[:-1] for row in rows], dtype=float), np.array([row[-1] for row in rows])


def sets(folder, only):
    """Return name, points, labels or targets, and which of the two they are."""
    for name, load in BUILT_IN.items():
        if not only or name in only:
            X, y = load(return_X_y=True)
            yield name, X, y, "targets" if name == "diabetes" else "labels"
    for name, kind in FROM_FILES.items() if folder else ():
        if not only or name in only:
            X, y = read_table(folder, name)
            yield name, X, y.astype(float) if kind == "targets" else y, kind


def contestants(kind, d):
    """Return the estimators with their grids."""
    gammas = [factor / d for factor in GAMMA_FACTORS]
    if kind == "labels":
        rival = make_pipeline(StandardScaler(), SVC())
        grid = {"svc__C": C_VALUES, "svc__gamma": gammas}
        ours = MKLClassifier(tol=1e-2, multiclass="per-class")
        return {"SVC": (rival, grid), "MKLClassifier": (ours, {"C": C_VALUES, "p": P_VALUES})}
    grid = {"regressor__C": C_VALUES, "regressor__gamma": gammas}
    ours = MKLRegressor(tol=1e-2)
    scaled = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    rival = make_pipeline(StandardScaler(), scaled)
    grid = {f"transformedtargetregressor__{name}": values for name, values in grid.items()}
    return {"SVR": (rival, grid), "MKLRegressor": (ours, {"C": C_VALUES, "p": P_VALUES})}


def nested(model, grid, X, y, kind, outer, inner):
    """Return the outer scores, the seconds of the processor, and the largest gap of the refitted models."""
    split = StratifiedKFold if kind == "labels" else KFold
    scores, gaps, began = [], [0.0], time.process_time()
    for train, test in split(outer).split(X, y):
        search = GridSearchCV(model, grid, cv=split(inner)).fit(X[train], y[train])
        scores.append(search.score(X[test], y[test]))
        gaps.append(getattr(search.best_estimator_, "dual_gap_", 0.0))
    return scores, time.process_time() - began, max(gaps)


def measure(folder, only, outer, inner):
    """Yield one record for each set and estimator."""
    for name, X, y, kind in sets(folder, only):
        X, y = shuffle(X, y, random_state=0)
        rival = None
        for title, (model, grid) in contestants(kind, X.shape[1]).items():
            scores, seconds, gap = nested(model, grid, X, y, kind, outer, inner)
            record = {
                "set": name,
                "samples": len(X),
                "columns": X.shape[1],
                "estimator": title,
                "scores": scores,
                "mean": float(np.mean(scores)),
                "deviation": float(np.std(scores)),
                "seconds": seconds,
            }
            if rival is not None:
                record["gap"] = gap
                record["as good"] = int((np.array(scores) >= np.array(rival)).sum())
            rival = scores
            yield record


def grid_search():
    """Return the seconds of the processor and the accuracies of two searches over C with 24 widths."""
    X, y = load_breast_cancer(return_X_y=True)
    kernels = [gaussian(w) for w in np.sqrt(X.shape[1]) * np.logspace(-1, 1, 24)]
    pipe = make_pipeline(StandardScaler(), MKLClassifier(kernels))
    began = time.process_time()
    search = GridSearchCV(pipe, {"mklclassifier__C": np.logspace(-2, 3, 10)}, cv=5).fit(X, y)
    seconds = time.process_time() - began
    began = time.process_time()
    scaled = StandardScaler().fit_transform(X)
    path = MKLClassifierCV(kernels, Cs=np.logspace(-2, 3, 10)).fit(scaled, y)
    return {
        "set": "grid search",
        "seconds": seconds,
        "mean": float(search.best_score_),
        "seconds of MKLClassifierCV": time.process_time() - began,
        "mean of MKLClassifierCV": float(path.best_score_),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--outer", type=int, default=5)
    parser.add_argument("--inner", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("error")
    records = [grid_search()]
    print(
        "10 values of C, 5 splits, 24 widths, breast cancer: GridSearchCV {seconds:.1f} s, accuracy "
        "{mean:.3f}; "
        "MKLClassifierCV {seconds of MKLClassifierCV:.1f} s, accuracy {mean of MKLClassifierCV:.3f}".format(
            **records[0]
        )
    )
    print(
        f"{'set':<14}{'n':>5}{'d':>5}  {'estimator':<14}{'mean':>7}{'±':>7}{'seconds':>9}{'gap':>9}  as good"
    )
    for record in measure(args.data, args.only, args.outer, args.inner):
        records.append(record)
        print(
            f"{record['set']:<14}{record['samples']:>5}{record['columns']:>5}  {record['estimator']:<14}"
            f"{record['mean']:>7.3f}{record['deviation']:>7.3f}{record['seconds']:>9.1f}"
            + (f"{record['gap']:>9.1e}  {record['as good']} of {args.outer}" if "gap" in record else ""),
            flush=True,
        )
        if args.json:
            args.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
