"""`kernelopt fit`, `predict` and `report` on tables: what they learn, write and say."""

from __future__ import annotations

import csv
import io
import json
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from kernelopt import cli
from kernelopt.cli import learning
from kernelopt.cli.model import load_model
from kernelopt.cli.table import read_table
from kernelopt.errors import FileError
from kernelopt.estimators import C_GRID, FormulationClassifier, MKLClassifier, MKLRegressor
from kernelopt.estimators.classifier import LOSSES
from kernelopt.estimators.kernels import NORMALIZATIONS
from kernelopt.estimators.mkl import TARGET_LOSSES
from kernelopt.estimators.table import TABLE_MODEL
from kernelopt.files import read_file, write_file
from kernelopt.records import write
from tests.commands import ran, save_table
from tests.every import every
from tests.pages import printed_by, python_blocks

ROWS = 60
COLUMNS = 5
FIT = "fit train.csv --target class --out m"
SOFT = f"{FIT} --formulation lanckriet.soft_margin"
LFS = f"{FIT} --formulation linear_functional.functional_strategy"
IMPORT = "__import__('os').abort()"  # text of a kernel, which must not be evaluated
KERNELS = ["gaussian(1.0)", "linear()", "polynomial(2)"]


def data_of(kind):
    if kind == "two classes":
        data = load_breast_cancer()
        return data.data[:, :COLUMNS], data.target_names[data.target].tolist()
    data = load_wine() if kind == "three classes" else load_diabetes()
    order = np.random.default_rng(0).permutation(len(data.target))
    return data.data[order, :COLUMNS], data.target[order].tolist()


@pytest.fixture(scope="module", params=["two classes", "three classes", "regression"])
def fitted(request, tmp_path_factory):
    """The files of a fit, and what it printed with `--json`."""
    folder = tmp_path_factory.mktemp("models")
    X, y = data_of(request.param)
    names = ("train.csv", "new.csv", "more.csv", "model.npz")
    train, new, more, model = (folder / name for name in names)
    save_table(train, X[:ROWS], y[:ROWS])
    save_table(new, X[ROWS : 2 * ROWS], y[ROWS : 2 * ROWS])
    lines = new.read_text(encoding="utf-8").splitlines()[:-1]
    more.write_text("\n".join(f"{line},{'?' if k else 'more'}" for k, line in enumerate(lines)), "utf-8")
    done = ran("fit", train, "--target class --p 1.5 --json --out", model, "--kernels", " ".join(KERNELS))
    assert done.status == 0
    printed = json.loads(done.out)
    return SimpleNamespace(train=train, new=new, more=more, model=model, printed=printed)


def test_the_saved_model_predicts_what_the_estimator_predicts(fitted):
    rows = list(csv.DictReader(io.StringIO(ran("predict", fitted.model, fitted.new).out)))
    assert len(rows) == ROWS
    train, new = (
        np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        for path in (fitted.train, fitted.new)
    )
    X, X_new = (np.column_stack([t[f"x{j}"] for j in range(COLUMNS)]) for t in (train, new))
    Z, Z_new = ((points - X.mean(axis=0)) / X.std(axis=0) for points in (X, X_new))
    regression = fitted.printed["task"] == "regression"
    estimator = (MKLRegressor if regression else MKLClassifier)(KERNELS, p=1.5).fit(Z, train["class"])
    expected = estimator.predict(Z_new)
    found = np.array([row["prediction"] for row in rows]).astype(expected.dtype)
    pipeline = ko.load(fitted.model)
    again = pipeline.predict(X_new)
    assert pipeline[-1].certify(pipeline[:-1].transform(X), train["class"]).gap <= 1e-3
    if regression:
        assert found == pytest.approx(expected, rel=1e-6) and again == pytest.approx(found)
        return
    assert found.tolist() == expected.tolist() == again.tolist()
    scores = estimator.decision_function(Z_new)
    names = [f"score of {label}" for label in estimator.classes_.tolist()][scores.ndim == 1 :]
    read = np.array([[float(row[name]) for name in names] for row in rows])
    assert read == pytest.approx(scores.reshape(read.shape), abs=1e-6)


def test_the_report_has_what_the_fit_has_printed_and_shows_it(fitted):
    report = json.loads(ran("report", fitted.model, "--json").out)
    assert report == {name: v for name, v in fitted.printed.items() if name not in ("seconds", "model")}
    assert report["kernels"] and len(report["weights"]) == len(KERNELS)
    (certificate,) = report["certificates"]
    assert certificate["lower"] <= certificate["upper"] and certificate["gap"] <= 1e-3
    assert sum(w**1.5 for w in report["weights"]) <= 1 + 1e-9  # the ball
    out = ran("report", fitted.model).out
    said = ("'class'", "<= optimum <=", "support points", "weights determined", "kernel")
    assert all(part in out for part in (report["task"], *said))
    assert any(name in out for name in report["kernels"])


def test_the_report_proves_the_bounds_again_from_the_data_and_refuses_other_data(fitted):
    document = json.loads(ran("report", fitted.model, "--data", fitted.train, "--json").out)
    (again,), (saved,) = document["proved_again"], document["certificates"]
    assert again["gap"] <= 1e-3
    assert again["lower"] <= saved["upper"] and saved["lower"] <= again["upper"]
    for path, said in (
        (fitted.new, "in the same order, got 60 rows with other numbers"),
        (fitted.more, "of 60 rows in the same order, got 59 rows"),
    ):
        status, out, err = ran("report", fitted.model, "--data", path)
        assert (status, out) == (1, "") and "--data must be the table that the model was fitted on" in err
        assert said in err


def test_predictions_go_to_a_file_and_the_score_to_standard_error(fitted, tmp_path):
    status, out, err = ran("predict", fitted.model, fitted.new, "--out", tmp_path / "predicted.csv")
    assert (status, out) == (0, "") and " on 60 rows" in err and "does not use" not in err
    document = json.loads(ran("predict", fitted.model, fitted.new, "--json").out)
    rows = list(csv.DictReader((tmp_path / "predicted.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["prediction"] for row in rows] == [str(row["prediction"]) for row in document["predictions"]]
    ((measure, score),) = document["score"].items()
    target, found = read_table(fitted.new)["class"], [row["prediction"] for row in rows]
    kind, scored = (str, accuracy_score) if measure == "accuracy" else (float, r2_score)
    assert score == pytest.approx(scored(*np.array([target, found], dtype=kind)), abs=1e-9)
    assert f" {score:.4f} " in err
    status, out, err = ran("predict", fitted.model, fitted.more)
    more = list(csv.DictReader(out.splitlines()))
    last, expected = ([float([*row.values()][-1]) for row in found] for found in (more, rows[:-1]))
    assert status == 0 and last == pytest.approx(expected) and "does not use: more\n" in err


@every(
    ("command", "status", "said"),
    [
        ("fit train.csv --target clas --out m", 1, "Did you mean class?"),
        ("fit nowhere.csv --target class --out m", 1, "no file"),
        ("fit train.csv --target class --out nowhere/m", 2, "existing folder"),
        (f"{FIT} --kernels gausian(1)", 2, "gaussian"),
        (f"{FIT} --p 0.5", 2, "p must"),
        (f"{FIT} --C -1", 2, "C must"),
        (f"{FIT} --epsilon 1", 2, "left out for classif"),
        (f"{FIT} --loss squared", 2, "loss must be 'hinge'"),
        (f"{FIT} --formulation lp_norm.prim", 2, "lp_norm.primal?"),
        (f"{SOFT} --option trac=3", 2, "Did you mean trace?"),
        (
            f"{SOFT} --drop class --target x0 --task classification",
            2,
            "two classes, got lanckriet.soft_margin. L",
        ),
        (f"{SOFT} --option trace", 2, "NAME=VALUE"),
        (f"{SOFT} --p 2", 2, "of the formulation lanckriet.soft_margin, got 'p'"),
        (f"{FIT} --formulation lp_norm.tikhonov", 2, "--option p=VALUE penalty=VALUE"),
        (f"{FIT} --formulation lp_norm.non_isotropic", 2, 'options={"E": ...}'),
        (f"{FIT} --formulation lp_norm.non_isotropic --option E=2", 1, "E must have 2 dimension(s)"),
        (f"{LFS} --option regularization=gcv filter=x", 2, "'filter' is a function"),
        (f"{FIT} --formulation lanckriet.rank_one", 2, "must take kernels"),
        (f"{FIT} --formulation lp_norm.primal --option loss=hinge", 2, "Pass --loss and --C"),
        (f"{FIT} --cv 1", 2, "--cv must be 2 or more, got 1"),
        (f"{FIT} --cv 9", 1, "each class, got 9 and 1 of the class 'benign'. Add rows"),
        (f"{FIT} --formulation similarity.single_kernel", 2, "which takes similarities"),
        (f"{FIT} --formulation lp_norm.tikhonov --task regression", 1, "must be numbers"),
        ("fit train.csv --target class --out train.csv", 2, "that is read"),
        ("fit train.csv --target class --out m.pkl", 2, "--out must not end in .pkl"),
        ("predict train.csv new.csv --out ./new.csv", 2, "that is read"),
        ("predict train.csv new.csv", 1, "got the table train.csv. MODEL comes before DATA"),
        ("predict nowhere new.csv", 1, "nowhere"),
        ("report new.csv", 1, "new.csv"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_no_file(command, status, said, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    X, y = data_of("two classes")
    save_table(folder / "train.csv", X[:20], y[:20])
    save_table(folder / "new.csv", X[20:30], y[20:30])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = ran(command)
    assert (done.status, sorted(p.name for p in folder.iterdir())) == (status, ["new.csv", "train.csv"])
    assert said in done.err


@pytest.mark.filterwarnings("default::kernelopt.ConvergenceWarning")
def test_a_gap_above_the_tolerance_is_saved_and_is_an_exit_status_of_one(saved, tmp_path):
    path = tmp_path / "m"
    done = ran("fit", saved.with_name("train.csv"), "--target class --tol 1e-15 --out", path)
    assert done.status == 1 and "above tol" in done.err
    assert load_model(path).estimator.dual_gap_ > 1e-15


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of a model of two classes."""
    folder = tmp_path_factory.mktemp("saved")
    X, y = data_of("two classes")
    save_table(folder / "train.csv", X[:20], y[:20])
    assert ran("fit", folder / "train.csv", "--target class --json --out", folder / "model.npz").status == 0
    return folder / "model.npz"


@every(
    ("change", "said"),
    [
        (lambda model, _: model.pop("columns"), "columns"),
        (lambda _, arrays: arrays.update({"columns.scale": -arrays["columns.scale"]}), "scale"),
        (lambda model, _: model["columns"]["columns"].update(numeric={"tuple": ["x0"]}), "1 shifts"),
        (lambda model, _: model.update(task="dance"), "task"),
        (lambda model, _: model.update(rows="0"), "rows"),
        (lambda model, _: model["estimator"]["estimator"].update(name="Popen"), "Popen"),
        (
            lambda model, _: model["estimator"]["estimator"]["trained"]["points"]["dictionary"][
                "dictionary"
            ].update(kernels={"tuple": [{"kernel": IMPORT}] * 10}),
            "kernel",
        ),
    ],
)
def test_a_model_with_a_wrong_entry_is_refused_and_nothing_is_run(change, said, saved, tmp_path):
    header, arrays = read_file(saved, TABLE_MODEL)
    change(header["record"], arrays)
    path = tmp_path / "model.npz"
    write_file(path, TABLE_MODEL, {"record": header["record"]}, arrays)
    with pytest.raises(FileError, match=said):
        load_model(path)
    path.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(FileError, match="truncated"):
        load_model(path)


@every(
    ("command", "name", "options", "C"),
    [
        ("--C 10", "lanckriet.soft_margin", {"C": 10.0}, 1.0),
        (
            "--loss logistic --C 2 --option p=1.5 penalty=1",
            "lp_norm.tikhonov",
            {"p": 1.5, "penalty": 1, "loss": ko.logistic(2.0)},
            1.0,
        ),
        (
            "--option regularization=gcv weights=simplex ridge=0.01",
            "linear_functional.functional_strategy",
            {"regularization": "gcv", "weights": "simplex", "ridge": 0.01},
            1.0,
        ),
        (
            "--option gamma1=0.1 gamma2=0.01 cone=nonnegative --C 3",
            "triplet_lp.kernel_design",
            {"gamma1": 0.1, "gamma2": 0.01, "cone": "nonnegative"},
            3.0,
        ),
    ],
)
def test_a_formulation_of_the_catalogue_is_fitted_with_its_arguments(
    command, name, options, C, saved, tmp_path
):
    model, train = tmp_path / "model.npz", saved.with_name("train.csv")
    kernels = f"--formulation {name} --kernels {' '.join(KERNELS)}"
    done = ran("fit", train, "--target class --out", model, kernels, command)
    assert done.status == 0 and "certified relative gap" in done.out
    loaded, table = load_model(model), read_table(train)
    X = loaded.columns.transform(table)
    same = FormulationClassifier(name, kernels=KERNELS, options=options, C=C).fit(X, table["class"])
    assert loaded.estimator.weights_ == pytest.approx(same.weights_, abs=1e-12)
    assert loaded.estimator.decision_function(X) == pytest.approx(same.decision_function(X), abs=1e-9)
    done = ran("report", model, "--data", train)
    assert done.status == 0 and "proved again" in done.out


OTHERS = ("learned kernel", "average kernel", "best single kernel", "tuned Gaussian kernel", "ridge")
RIDGES = np.logspace(-3, 3, 7)


@every(
    ("kind", "option", "estimator"),
    [
        ("two classes", "", MKLClassifier(KERNELS[:2])),
        ("two classes", "--C 10", MKLClassifier(KERNELS[:2], C=10.0)),
        ("regression", "", MKLRegressor(KERNELS[:2])),
    ],
)
def test_cross_validation_holds_each_row_out_once(kind, option, estimator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cv")
    X, y = data_of(kind)
    X, y = X[30:60], y[30:60]
    save_table(folder / "train.csv", X, y)
    kernels = f"--kernels {' '.join(KERNELS[:2])} --cv 2 {option}"
    command = ("fit", folder / "train.csv", "--target class --out", folder / "m", kernels)
    printed = ran(*command).out
    assert all(f"\n{name}  " in printed for name in OTHERS)
    found = json.loads(ran(*command, "--json").out)
    others, found, fitted = found["comparison"], found["cross_validation"], load_model(folder / "m")
    Z, y = (X - X.mean(axis=0)) / X.std(axis=0), np.array(y)
    splitter = KFold if kind == "regression" else StratifiedKFold
    splits = list(splitter(2, shuffle=True, random_state=0).split(Z, y))

    def scores(model):
        return [model.fit(Z[train], y[train]).score(Z[test], y[test]) for train, test in splits]

    chosen, C = not option, found["chosen_C"]
    assert (C in C_GRID) if chosen else (C is None)
    expected = scores(estimator.set_params(C=C) if chosen else estimator)
    assert found["scores"] == pytest.approx(expected, abs=1e-9)
    assert found["mean"] == pytest.approx(sum(expected) / 2) == others["score"][0]
    assert others["model"] == [*OTHERS]
    ridge = RidgeCV(RIDGES) if kind == "regression" else RidgeClassifierCV(RIDGES)
    assert others["score"][-1] == pytest.approx(np.mean(scores(make_pipeline(StandardScaler(), ridge))))
    assert found["standard_deviation"] == pytest.approx(statistics.stdev(expected))
    if chosen:
        assert fitted.estimator.C == C
        assert found["mean"] >= np.mean(scores(estimator.set_params(C=C_GRID[0])))
    for C, said in ((1e-3, "first: try --C 0.0001 too"), (1.0, "1000\n"), (1e3, "last: try --C 10000 too")):
        write(folder / "m", replace(fitted, scores=(0.9, 0.8), chosen=C))
        (line,) = [
            x for x in ran("report", folder / "m").out.splitlines(True) if x.startswith("2-fold cross")
        ]
        assert f"{fitted.measure} 0.850" in line and line.strip().endswith(said.strip())
        assert f"; C = {C:g} is the best of 0.001, " in line


def test_what_is_not_compared_is_said(tmp_path, monkeypatch):
    X, y = data_of("two classes")
    y, X = np.array(y), np.array(X)
    rows = np.concatenate(
        [np.flatnonzero(y == label)[:count] for label, count in zip(sorted(set(y)), (2, 6), strict=True)]
    )
    save_table(tmp_path / "train.csv", X[rows], y[rows])
    command = (
        "fit",
        tmp_path / "train.csv",
        "--target class --cv 2 --C 1 --kernels linear() --out",
        tmp_path / "m",
    )
    done = ran(*command)
    assert done.status == 0 and "not compared: every split must have two training samples of each" in done.err
    monkeypatch.setattr(learning, "COMPARED_ROWS", 7)
    done = ran(*command)
    assert done.status == 0 and "8 rows: other models are not compared above 7" in done.err
    assert "average kernel" not in done.out


PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    X, y = data_of("two classes")
    names = ["id", *(f"x{j}" for j in range(COLUMNS))]
    for name, rows in (("tumours.csv", slice(0, 60)), ("new_tumours.csv", slice(60, 90))):
        numbered = np.column_stack([np.arange(len(y))[rows], X[rows]])
        save_table(tmp_path / name, numbered, y[rows], "diagnosis", names)
    monkeypatch.chdir(tmp_path)
    commands = [line.split("|")[0] for line in PAGE.splitlines() if line.startswith("    kernelopt ")]
    assert [words.split()[1] for words in commands] == [
        "check",
        "fit",
        "predict",
        "report",
        "fit",
        "fit",
        "list",
    ]
    done = [ran(words.strip().removeprefix("kernelopt ")) for words in commands]
    assert not any(each.status for each in done) and "proved again" in done[3].out
    assert len((tmp_path / "predicted.csv").read_text(encoding="utf-8").splitlines()) == 31


def test_the_cells_of_the_page_run_its_commands_and_read_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (commands, _), (source, said) = python_blocks(PAGE)
    namespace = {}
    printed = printed_by(commands, "command_line.md", namespace)
    assert printed_by(source, "command_line.md", namespace) == said
    listed = [line.strip() for line in PAGE.splitlines() if line.startswith("    kernelopt ")][:4]
    assert [line.removeprefix("$ ") for line in printed.splitlines() if line.startswith("$ ")] == listed
    assert "drop id?" in printed and "proved again: " in printed


def test_the_page_names_every_command_and_status_and_the_choices_are_those_of_the_estimators():
    for name in cli.COMMANDS:
        assert f"| `kernelopt {name}" in PAGE
    for status in (0, cli.REFUSED, cli.WRONG_USE, cli.DEFECT, cli.INTERRUPTED):
        assert f"\n| {status} | " in PAGE and f"\n{status} " in cli.__doc__
    assert sorted(cli.fit.LOSSES) == sorted([*LOSSES, *TARGET_LOSSES])
    assert cli.fit.NORMALIZATIONS == NORMALIZATIONS
