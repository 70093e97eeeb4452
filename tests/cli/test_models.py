"""`kernelopt fit`, `predict` and `report` on tables: what they learn, write and say."""

from __future__ import annotations

import csv
import io
import json
import statistics
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import KFold, StratifiedKFold

import kernelopt as ko
from kernelopt import cli
from kernelopt.cli.data_table import read_table
from kernelopt.cli.output import Output
from kernelopt.cli.table_model import load_model
from kernelopt.errors import FileError
from kernelopt.estimators import C_GRID, FormulationClassifier, MKLClassifier, MKLRegressor
from kernelopt.estimators.classifier import LOSSES
from kernelopt.estimators.kernels import NORMALIZATIONS
from kernelopt.estimators.regressor import TARGET_LOSSES
from kernelopt.estimators.table import TABLE_MODEL
from kernelopt.files import read_file, write_file
from tests.every import every

ROWS = 60
COLUMNS = 5
FIT = ["fit", "train.csv", "--target", "class", "--out", "m", "--formulation"]
FILTER = [*FIT, "linear_functional.functional_strategy", "--option"]
MANY = [*FIT[:3], "x0", *FIT[4:], "lanckriet.soft_margin", "--drop", "class"]
IMPORT = "__import__('os').abort()"  # text of a kernel, which must not be evaluated
KERNELS = ["gaussian(1.0)", "linear()", "polynomial(2)"]


class Fitted(NamedTuple):
    """The folder of the files, and what `kernelopt fit --json` printed."""

    folder: object
    printed: dict

    def file(self, name):
        return str(self.folder / name)


def save_table(path, X, y, target="class"):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{j}" for j in range(X.shape[1])), target])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y, strict=True))


def printed_by(capsys, *arguments, status=0):
    assert cli.main([str(argument) for argument in arguments]) == status
    return capsys.readouterr().out


def data_of(kind):
    if kind == "two classes":
        data = load_breast_cancer()
        return data.data[:, :COLUMNS], data.target_names[data.target].tolist()
    if kind == "three classes":
        data = load_wine()
        order = np.random.default_rng(0).permutation(len(data.target))
        return data.data[order, :COLUMNS], data.target[order].tolist()
    data = load_diabetes()
    return data.data[:, :COLUMNS], data.target.tolist()


@pytest.fixture(scope="module", params=["two classes", "three classes", "regression"])
def fitted(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    X, y = data_of(request.param)
    save_table(folder / "train.csv", X[:ROWS], y[:ROWS])
    save_table(folder / "new.csv", X[ROWS : 2 * ROWS], y[ROWS : 2 * ROWS])
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed)
        train, model = str(folder / "train.csv"), str(folder / "model.npz")
        status = cli.main(
            ["fit", train, "--target", "class", "--out", model, "--kernels", *KERNELS, "--p", "1.5", "--json"]
        )
    assert status == 0
    lines = (folder / "new.csv").read_text(encoding="utf-8").splitlines()[:-1]
    more = "\n".join(f"{line},{'more' if k == 0 else '?'}" for k, line in enumerate(lines))
    (folder / "more.csv").write_text(more, encoding="utf-8")
    return Fitted(folder, json.loads(printed.getvalue()))


def test_the_saved_model_predicts_what_the_estimator_predicts(fitted, capsys):
    out = printed_by(capsys, "predict", fitted.file("model.npz"), fitted.file("new.csv"))
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == ROWS
    train, new = (
        np.genfromtxt(fitted.file(f), delimiter=",", names=True, dtype=None, encoding="utf-8")
        for f in ("train.csv", "new.csv")
    )
    X, X_new = (np.column_stack([t[f"x{j}"] for j in range(COLUMNS)]) for t in (train, new))
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    Estimator = MKLRegressor if fitted.printed["task"] == "regression" else MKLClassifier
    estimator = Estimator(KERNELS, p=1.5).fit((X - mean) / deviation, train["class"])
    expected = estimator.predict((X_new - mean) / deviation)
    found = np.array([row["prediction"] for row in rows]).astype(expected.dtype)
    if expected.dtype.kind == "f":
        assert found == pytest.approx(expected, rel=1e-6)
    else:
        assert found.tolist() == expected.tolist()
        scores = estimator.decision_function((X_new - mean) / deviation)
        names = [f"score of {label}" for label in estimator.classes_.tolist()]
        names = names[1:] if scores.ndim == 1 else names
        read = np.array([[float(row[name]) for name in names] for row in rows])
        assert read == pytest.approx(scores.reshape(read.shape), abs=1e-6)
    pipeline = ko.load(fitted.file("model.npz"))
    again = pipeline.predict(X_new)
    assert pipeline[-1].certify(pipeline[:-1].transform(X), train["class"]).gap <= 1e-3
    assert again == pytest.approx(found) if expected.dtype.kind == "f" else (again == found).all()


def test_what_is_printed_of_the_fit_is_what_the_report_reads(fitted, capsys):
    report = json.loads(printed_by(capsys, "report", fitted.file("model.npz"), "--json"))
    same = {name: value for name, value in fitted.printed.items() if name not in ("seconds", "model")}
    assert report == same
    assert report["kernels"] and len(report["weights"]) == len(KERNELS)
    (certificate,) = report["certificates"]
    assert certificate["lower"] <= certificate["upper"] and certificate["gap"] <= 1e-3
    assert sum(w**1.5 for w in report["weights"]) <= 1 + 1e-9  # the ball


def test_the_report_shows_weights_bounds_and_support(fitted, capsys):
    out = printed_by(capsys, "report", fitted.file("model.npz"))
    for part in (
        fitted.printed["task"],
        "'class'",
        "<= optimum <=",
        "support points",
        "weights determined",
        "kernel",
    ):
        assert part in out
    assert any(name in out for name in fitted.printed["kernels"])


def test_the_report_proves_the_bounds_again_from_the_data_and_refuses_other_data(fitted, capsys):
    document = json.loads(
        printed_by(capsys, "report", fitted.file("model.npz"), "--data", fitted.file("train.csv"), "--json")
    )
    (again,), (saved,) = document["proved_again"], document["certificates"]
    assert again["gap"] <= 1e-3
    assert again["lower"] <= saved["upper"] and saved["lower"] <= again["upper"]
    for name, said in (
        ("new.csv", "in the same order, got 60 rows with other numbers"),
        ("more.csv", "of 60 rows in the same order, got 59 rows"),
    ):
        assert cli.main(["report", fitted.file("model.npz"), "--data", fitted.file(name)]) == 1
        captured = capsys.readouterr()
        assert captured.out == "" and "--data must be the table that the model was fitted on" in captured.err
        assert said in captured.err


def test_predictions_go_to_a_file_and_the_score_to_standard_error(fitted, capsys):
    out = fitted.folder / "predicted.csv"
    model, new = fitted.file("model.npz"), fitted.file("new.csv")
    assert cli.main(["predict", model, new, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and " on 60 rows" in captured.err
    document = json.loads(printed_by(capsys, "predict", model, new, "--json"))
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == [str(row["prediction"]) for row in document["predictions"]]
    (score,) = document["score"].values()
    assert f" {score:.4f} " in captured.err
    assert cli.main(["predict", model, fitted.file("more.csv")]) == 0
    captured = capsys.readouterr()
    last = [float(list(row.values())[-1]) for row in csv.DictReader(io.StringIO(captured.out))]
    assert last == pytest.approx([float(list(row.values())[-1]) for row in rows[:-1]])
    assert "does not use: more\n" in captured.err


@every(
    ("arguments", "status", "said"),
    [
        (["fit", "train.csv", "--target", "clas", "--out", "m"], 1, "Did you mean class?"),
        (["fit", "nowhere.csv", "--target", "class", "--out", "m"], 1, "no file"),
        (["fit", "train.csv", "--target", "class", "--out", "nowhere/m"], 2, "existing folder"),
        (["fit", "train.csv", "--target", "class", "--out", "m", "--kernels", "gausian(1)"], 2, "gaussian"),
        (["fit", "train.csv", "--target", "class", "--out", "m", "--p", "0.5"], 2, "p must"),
        (["fit", "train.csv", "--target", "class", "--out", "m", "--C", "-1"], 2, "C must"),
        (
            ["fit", "train.csv", "--target", "class", "--out", "m", "--epsilon", "1"],
            2,
            "left out for classif",
        ),
        (
            ["fit", "train.csv", "--target", "class", "--out", "m", "--loss", "squared"],
            2,
            "loss must be 'hinge'",
        ),
        (
            ["fit", "train.csv", "--target", "class", "--out", "m", "--formulation", "lp_norm.prim"],
            2,
            "lp_norm.primal?",
        ),
        ([*FIT, "lanckriet.soft_margin", "--option", "trac=3"], 2, "Did you mean trace?"),
        (
            [*MANY, "--task", "classification"],
            2,
            "two classes, got lanckriet.soft_margin. Leave --form",
        ),
        ([*FIT, "lanckriet.soft_margin", "--option", "trace"], 2, "NAME=VALUE"),
        (
            [*FIT, "lanckriet.soft_margin", "--p", "2"],
            2,
            "of the formulation lanckriet.soft_margin, got 'p'",
        ),
        ([*FIT, "lp_norm.tikhonov"], 2, "--option p=VALUE penalty=VALUE"),
        ([*FIT, "lp_norm.non_isotropic"], 2, 'options={"E": ...}'),
        ([*FIT, "lp_norm.non_isotropic", "--option", "E=2"], 1, "E must have 2 dimension(s)"),
        (
            [*FILTER, "regularization=gcv", "filter=x"],
            2,
            "'filter' is a function",
        ),
        ([*FIT, "lanckriet.rank_one"], 2, "must take kernels"),
        ([*FIT, "lp_norm.primal", "--option", "loss=hinge"], 2, "Pass --loss and --C"),
        ([*FIT[:6], "--cv", "1"], 2, "--cv must be 2 or more, got 1"),
        ([*FIT[:6], "--cv", "9"], 1, "each class, got 9 and 1 of the class 'benign'. Add rows"),
        ([*FIT, "similarity.single_kernel"], 2, "which takes similarities"),
        ([*FIT, "lp_norm.tikhonov", "--task", "regression"], 1, "must be numbers"),
        (["fit", "train.csv", "--target", "class", "--out", "train.csv"], 2, "that is read"),
        ([*FIT[:5], "m.pkl"], 2, "--out must not end in .pkl"),
        (["predict", "train.csv", "new.csv", "--out", "./new.csv"], 2, "that is read"),
        (["predict", "train.csv", "new.csv"], 1, "got the table train.csv. MODEL comes before DATA"),
        (["predict", "nowhere", "new.csv"], 1, "nowhere"),
        (["report", "new.csv"], 1, "new.csv"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_no_file(
    arguments, status, said, tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("wrong")
    X, y = data_of("two classes")
    save_table(folder / "train.csv", X[:20], y[:20])
    save_table(folder / "new.csv", X[20:30], y[20:30])
    error = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.stderr", error)
        try:
            found = cli.main(arguments)
        except SystemExit as stop:
            found = stop.code
    assert (found, sorted(p.name for p in folder.iterdir())) == (status, ["new.csv", "train.csv"])
    assert said in error.getvalue()


@pytest.mark.filterwarnings("default::kernelopt.ConvergenceWarning")
def test_a_gap_above_the_tolerance_is_saved_and_is_an_exit_status_of_one(tmp_path, capsys):
    X, y = data_of("two classes")
    save_table(tmp_path / "train.csv", X[:40], y[:40])
    arguments = [
        "fit",
        tmp_path / "train.csv",
        "--target",
        "class",
        "--out",
        tmp_path / "m",
        "--tol",
        "1e-15",
    ]
    assert cli.main([str(a) for a in arguments]) == 1
    assert "above tol" in capsys.readouterr().err
    assert load_model(tmp_path / "m").estimator.dual_gap_ > 1e-15


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of a model of two classes."""
    folder = tmp_path_factory.mktemp("saved")
    X, y = data_of("two classes")
    save_table(folder / "train.csv", X[:20], y[:20])
    arguments = ["fit", folder / "train.csv", "--target", "class", "--out", folder / "model.npz", "--json"]
    with redirect_stdout(io.StringIO()):
        assert cli.main([str(argument) for argument in arguments]) == 0
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


def test_a_truncated_model_is_refused(saved, tmp_path):
    (tmp_path / "short.npz").write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(FileError, match="truncated"):
        load_model(tmp_path / "short.npz")


@every(
    ("arguments", "estimator"),
    [
        (["--C", "10"], FormulationClassifier("lanckriet.soft_margin", options={"C": 10.0})),
        (
            ["--loss", "logistic", "--C", "2", "--option", "p=1.5", "penalty=1"],
            FormulationClassifier(
                "lp_norm.tikhonov", options={"p": 1.5, "penalty": 1, "loss": ko.logistic(2.0)}
            ),
        ),
        (
            ["--option", "regularization=gcv", "weights=simplex", "ridge=0.01"],
            FormulationClassifier(
                "linear_functional.functional_strategy",
                options={"regularization": "gcv", "weights": "simplex", "ridge": 0.01},
            ),
        ),
        (
            ["--option", "gamma1=0.1", "gamma2=0.01", "cone=nonnegative", "--C", "3"],
            FormulationClassifier(
                "triplet_lp.kernel_design",
                options={"gamma1": 0.1, "gamma2": 0.01, "cone": "nonnegative"},
                C=3.0,
            ),
        ),
    ],
)
def test_a_formulation_of_the_catalogue_is_fitted_with_its_arguments(arguments, estimator, saved, tmp_path):
    model, train = tmp_path / "model.npz", saved.with_name("train.csv")
    chosen = ["--formulation", estimator.formulation, "--kernels", *KERNELS]
    with redirect_stdout(io.StringIO()) as printed:
        assert (
            cli.main(["fit", str(train), "--target", "class", "--out", str(model), *chosen, *arguments]) == 0
        )
    assert "certified relative gap" in printed.getvalue()
    loaded, table = load_model(model), read_table(train)
    X = loaded.columns.transform(table)
    same = estimator.set_params(kernels=KERNELS).fit(X, table["class"])
    assert loaded.estimator.weights_ == pytest.approx(same.weights_, abs=1e-12)
    assert loaded.estimator.decision_function(X) == pytest.approx(same.decision_function(X), abs=1e-9)
    with redirect_stdout(io.StringIO()) as printed:
        assert cli.main(["report", str(model), "--data", str(train)]) == 0
    assert "proved again" in printed.getvalue()


@every(
    ("kind", "arguments", "estimator"),
    [
        ("two classes", [], MKLClassifier(KERNELS[:2])),
        ("two classes", ["--C", "10"], MKLClassifier(KERNELS[:2], C=10.0)),
        ("regression", [], MKLRegressor(KERNELS[:2])),
    ],
)
def test_cross_validation_holds_each_row_out_once(kind, arguments, estimator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cv")
    X, y = data_of(kind)
    X, y = X[30:60], y[30:60]
    save_table(folder / "train.csv", X, y)
    command = [
        "fit",
        folder / "train.csv",
        "--target",
        "class",
        "--out",
        folder / "m",
        "--kernels",
        *KERNELS[:2],
    ]
    with redirect_stdout(io.StringIO()) as printed:
        assert cli.main([*map(str, command), "--cv", "2", "--json", *arguments]) == 0
    found = json.loads(printed.getvalue())["cross_validation"]
    Z, y = (X - X.mean(axis=0)) / X.std(axis=0), np.array(y)
    splitter = KFold if kind == "regression" else StratifiedKFold
    splits = list(splitter(2, shuffle=True, random_state=0).split(Z, y))

    def scores(model):
        return [model.fit(Z[train], y[train]).score(Z[test], y[test]) for train, test in splits]

    chosen = kind == "two classes" and not arguments
    assert (found["chosen_C"] in C_GRID) if chosen else (found["chosen_C"] is None)
    expected = scores(estimator.set_params(C=found["chosen_C"]) if chosen else estimator)
    assert found["scores"] == pytest.approx(expected, abs=1e-9)
    assert found["mean"] == pytest.approx(sum(expected) / 2)
    assert found["standard_deviation"] == pytest.approx(statistics.stdev(expected))
    fitted = load_model(folder / "m")
    if chosen:
        assert fitted.estimator.C == found["chosen_C"]
        assert found["mean"] >= np.mean(scores(estimator.set_params(C=C_GRID[0])))
    for C, said in ((1e-3, "and the first: try --C 0.0001 too"), (1e3, "and the last: try --C 10000 too")):
        with redirect_stdout(io.StringIO()) as printed:
            replace(fitted, scores=(0.9, 0.8), chosen=C).show(Output())
        assert f"2-fold cross-validation: {fitted.measure} 0.850" in printed.getvalue()
        assert said in printed.getvalue()
    with redirect_stdout(io.StringIO()) as printed:
        replace(fitted, scores=(0.9, 0.8), chosen=1.0).show(Output())
    assert "C = 1 is the best" in printed.getvalue() and "try --C" not in printed.getvalue()


PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    X, y = data_of("two classes")
    for name, rows in (("tumours.csv", slice(0, 60)), ("new_tumours.csv", slice(60, 90))):
        numbered = np.column_stack([np.arange(len(y))[rows], X[rows]])
        save_table(tmp_path / name, numbered, y[rows], "diagnosis")
        path = tmp_path / name
        path.write_text(path.read_text(encoding="utf-8").replace("x0", "id", 1), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [line.split("|")[0].split() for line in PAGE.splitlines() if line.startswith("    kernelopt ")]
    assert [words[1] for words in commands] == ["fit", "predict", "report", "fit", "fit", "list"]
    for words in commands:
        assert cli.main(words[1:]) == 0, words
    assert "proved again" in capsys.readouterr().out
    assert len((tmp_path / "predicted.csv").read_text(encoding="utf-8").splitlines()) == 31


def test_the_page_names_every_command_and_status_and_the_choices_are_those_of_the_estimators():
    for name in cli.COMMANDS:
        assert f"| `kernelopt {name}" in PAGE
    for status in (0, cli.REFUSED, cli.WRONG_USE, cli.DEFECT, cli.INTERRUPTED):
        assert f"\n| {status} | " in PAGE and f"\n{status} " in cli.__doc__
    assert sorted(cli.fit.LOSSES) == sorted([*LOSSES, *TARGET_LOSSES])
    assert cli.fit.NORMALIZATIONS == NORMALIZATIONS
