"""The defaults of `MKLClassifier` and `MKLRegressor` beside tuned models, and their seconds beside SVC's.

    python benchmarks/defaults.py [--data FOLDER] [--only NAME ...] [--repeats 2] [--tuned]
                                  [--rivals FILE] [--json FILE]

Sets: the six of practitioners.py, digits, three views of mfeat, noisy moons, 20 columns with 8 informative
ones, Friedman's three functions, and two nearly linear ones. They are divided into two halves: the defaults
were chosen on the first, and are judged on the second. Scores are accuracies, or R^2 for targets, on the
test sets of a repeated five-fold cross-validation; on the table of 20 columns a model learns from 5,000
samples and is tested on 5,000 others.

Rivals are tuned on inner splits of each training set: an RBF-SVC or SVR over C, gamma and whether columns
are standardised, and logistic or ridge regression on standardised columns. "ours" has its defaults; of
mfeat it has the default kernels of each view. With --tuned there is "ours, C", whose C is searched too.

Columns of the table: mean and standard error of the scores; the mean difference of ours to the better rival
and its standard error over the splits. Verdicts: "best" at a difference of at least zero, "within" at less
than one standard error of the better rival's scores below zero, "below" else.

The second table has the seconds of the processor of one fit of ours over one of SVC(C=10), both after a
first fit: of digits, and of 5,000 samples of the table. --rivals keeps the scores of the rivals in a file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from practitioners import read_table
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_moons,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from kernelopt.estimators import MKLClassifier, MKLRegressor

CHOOSE = ("breast cancer", "ionosphere", "digits", "moons", "diabetes", "friedman 1", "linear targets")
JUDGE = ("wine", "sonar", "mfeat", "table", "linear labels", "boston", "friedman 2", "friedman 3")
TARGETS = ("diabetes", "boston", "friedman 1", "friedman 2", "friedman 3", "linear targets")
FILES = ("ionosphere", "sonar", "boston", "mfeat")
VIEWS = ("fou", "zer", "mor")
C_VALUES = [0.1, 1.0, 10.0, 100.0]
GAMMA_FACTORS = [0.1, 0.3, 1.0, 3.0]  # of gamma="scale"
NOISE = {"friedman 1": 1.0, "friedman 2": 125.0, "friedman 3": 0.1}  # Friedman's ratio of three to one


def nearly_linear(kind):
    """Return 300 samples of 15 columns with a linear function of small curvature and noise."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 15))
    y = X @ rng.normal(size=15) / 4 + 0.15 * (X[:, 0] ** 2 - 1) + 0.5 * rng.normal(size=300)
    return X, y if kind == "targets" else np.sign(y)


def views(folder):
    with np.load(Path(folder, "mfeat", "mfeat.npz")) as file:
        return np.hstack([file[name] for name in VIEWS]), file["y"]


def of_views(folder):
    """Return the default kernels of each view."""
    with np.load(Path(folder, "mfeat", "mfeat.npz")) as file:
        ends = np.cumsum([0, *(file[name].shape[1] for name in VIEWS)]).tolist()
    return [(name, None, slice(a, b)) for name, a, b in zip(VIEWS, ends[:-1], ends[1:], strict=True)]


def data_of(name, folder):
    """Return the samples and the labels or targets of a set."""
    made = {
        "breast cancer": lambda: load_breast_cancer(return_X_y=True),
        "wine": lambda: load_wine(return_X_y=True),
        "digits": lambda: load_digits(return_X_y=True),
        "diabetes": lambda: load_diabetes(return_X_y=True),
        "moons": lambda: make_moons(400, noise=0.3, random_state=0),
        "table": lambda: make_classification(10_000, 20, n_informative=8, random_state=0),
        "friedman 1": lambda: make_friedman1(300, noise=1.0, random_state=0),
        "friedman 2": lambda: make_friedman2(300, noise=125.0, random_state=0),
        "friedman 3": lambda: make_friedman3(300, noise=0.1, random_state=0),
        "linear targets": lambda: nearly_linear("targets"),
        "linear labels": lambda: nearly_linear("labels"),
        "mfeat": lambda: views(folder),
    }
    if name in made:
        return made[name]()
    X, y = read_table(folder, name)
    return X, y.astype(float) if name in TARGETS else y


def splits_of(name, X, y, repeats):
    if name == "table":
        return list(StratifiedShuffleSplit(3, train_size=5000, test_size=5000, random_state=0).split(X, y))
    kind = RepeatedKFold if name in TARGETS else RepeatedStratifiedKFold
    repeats = 1 if len(X) > 1000 else repeats
    return list(kind(n_splits=5, n_repeats=repeats, random_state=0).split(X, y))


def inner_splits(name):
    """Return the splits by which hyperparameters are chosen; rows of some sets are in an order."""
    return (KFold if name in TARGETS else StratifiedKFold)(3, shuffle=True, random_state=0)


def rivals(name, X):
    """Return the models that are tuned."""
    grids = [
        {"C": C_VALUES, "gamma": np.array(GAMMA_FACTORS) / X.shape[1]},
        {"C": C_VALUES, "gamma": np.array(GAMMA_FACTORS) / (X.shape[1] * X.var()), "scaler": ["passthrough"]},
    ]
    scaler, cv = ("scaler", StandardScaler()), inner_splits(name)
    if name in TARGETS:
        svm = Pipeline([scaler, ("svm", SVR())])
        linear = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
    else:
        svm = Pipeline([scaler, ("svm", SVC())])
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        linear = GridSearchCV(plain, {"logisticregression__C": np.logspace(-3, 2, 6)}, cv=cv)
    keys = {"C": "svm__C", "gamma": "svm__gamma", "scaler": "scaler"}
    grids = [{keys[key]: values for key, values in grid.items()} for grid in grids]
    search = GridSearchCV(svm, grids[: 1 if name == "table" else 2], cv=cv)
    if name in TARGETS:
        search = TransformedTargetRegressor(search, transformer=StandardScaler())
    return {"SVM": search, "linear": linear}


def ours(name, folder):
    """Return our estimator with its defaults."""
    kernels = of_views(folder) if name == "mfeat" else None
    return MKLRegressor(kernels) if name in TARGETS else MKLClassifier(kernels)


def scores_of(model, X, y, splits):
    return [float(clone(model).fit(X[train], y[train]).score(X[test], y[test])) for train, test in splits]


def against(scores, best):
    """Return the mean difference of scores to the best rival's, its standard error, and the verdict."""
    difference = np.array(scores) - best
    mean, error = float(difference.mean()), standard_error(difference)
    return mean, error, "best" if mean >= 0 else "within" if mean >= -standard_error(best) else "below"


def standard_error(scores):
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))


def measure(folder, only, repeats, tuned, known):
    """Yield one record for each set; `known` keeps the scores of rivals from one run to the next."""
    for name in only or [*CHOOSE, *JUDGE]:
        if name in FILES and not folder:
            continue
        X, y = data_of(name, folder)
        splits = splits_of(name, X, y, repeats)
        key = f"{name}, {len(splits)}"
        if key not in known:
            known[key] = {title: scores_of(model, X, y, splits) for title, model in rivals(name, X).items()}
        scores = dict(known[key])
        best = np.array(max(scores.values(), key=np.mean))
        model, began = ours(name, folder), time.process_time()
        scores["ours"] = scores_of(model, X, y, splits)
        seconds = (time.process_time() - began) / len(splits)
        if tuned:
            search = GridSearchCV(model, {"C": C_VALUES}, cv=inner_splits(name))
            scores["ours, C"] = scores_of(search, X, y, splits)
        mean, error, verdict = against(scores["ours"], best)
        yield {
            "set": name,
            "half": "choose" if name in CHOOSE else "judge",
            "samples": len(X),
            "columns": X.shape[1],
            "scores": scores,
            "difference": mean,
            "error": error,
            "verdict": verdict,
            "seconds": seconds,
        }


def seconds_of_fits(repeats=3):
    """Yield the seconds of the processor of one fit of ours and of SVC(C=10), the least of several."""
    for name in ("digits", "table"):
        X, y = data_of(name, None)
        X, y = X[:5000], y[:5000]
        spent = {}
        for title, model in {"SVC": SVC(C=10.0), "ours": MKLClassifier()}.items():
            model.fit(X, y)  # the first fit compiles
            times = []
            for _ in range(repeats):
                began = time.process_time()
                model.fit(X, y)
                times.append(time.process_time() - began)
            spent[title] = min(times)
        yield {"set": name, "samples": len(X), **spent, "ratio": spent["ours"] / spent["SVC"]}


def shown(scores):
    return f"{np.mean(scores):.3f} ± {standard_error(scores):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--only", nargs="*", choices=[*CHOOSE, *JUDGE])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--rivals", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known = json.loads(args.rivals.read_text("utf-8")) if args.rivals and args.rivals.exists() else {}
    records = []
    titles = ["SVM", "linear", "ours"] + ["ours, C"] * args.tuned
    print(
        f"{'set':<15}{'half':<7}{'n':>6}{'d':>4}  "
        + "".join(f"{title:<16}" for title in titles)
        + f"{'difference':<17}{'verdict':<8}{'seconds':>8}"
    )
    with threadpool_limits(1):
        for record in measure(args.data, args.only, args.repeats, args.tuned, known):
            records.append(record)
            print(
                f"{record['set']:<15}{record['half']:<7}{record['samples']:>6}{record['columns']:>4}  "
                + "".join(f"{shown(record['scores'][title]):<16}" for title in titles)
                + f"{record['difference']:+.3f} ± {record['error']:.3f}   {record['verdict']:<8}"
                f"{record['seconds']:>8.2f}",
                flush=True,
            )
            if args.rivals:
                args.rivals.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        for record in seconds_of_fits() if not args.only else ():
            records.append(record)
            print(
                "{set}, n = {samples}: ours {ours:.2f} s, SVC {SVC:.2f} s, ratio {ratio:.1f}".format(**record)
            )
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
