"""A table before a fit: `kernelopt check`, columns that name their rows, and missing cells."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

import kernelopt as ko
from kernelopt.cli.model import load_model
from kernelopt.cli.table import identifiers, read_table
from tests.commands import ran
from tests.every import every

N = 40
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "id": RNG.permutation(N) + 7,
    "age": [None if i % 9 == 0 else int(age) for i, age in enumerate(RNG.integers(20, 70, N))],
    "sex": RNG.choice(["f", "m"], N),
    "code": [f"K{i:03d}" for i in range(N)],
    "grade": RNG.choice(["", "low", "high"], N),
    "size": RNG.normal(size=N).round(3),
    "flat": 7,
    "class": RNG.choice(["yes", "no"], N),
})  # fmt: skip
KEPT = ["age", "sex", "grade", "size", "class"]


@pytest.fixture
def files(tmp_path):
    FRAME.to_csv(tmp_path / "all.csv", index=False)
    FRAME[KEPT].to_csv(tmp_path / "kept.csv", index=False)
    FRAME[KEPT].to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    FRAME[["id", "size", "class"]].to_csv(tmp_path / "good.csv", index=False)
    return tmp_path


def test_each_column_is_inspected_and_the_command_fits(files):
    done = ran("check", files / "all.csv", "--target class --json")
    document = json.loads(done.out)
    assert done.status == 1 and document["rows"] == N
    found = {row["name"]: row for row in document["columns"]}
    assert "class" not in found and found["id"]["holds"] == f"whole numbers, 7 to {N + 6}"
    assert found["id"]["advice"] == f"numbers the rows, 7 to {N + 6}: drop id?" and not found["id"]["refused"]
    assert found["code"]["advice"] == "has another text in each row: drop code?" and found["code"]["refused"]
    assert found["age"]["missing"] == 5 and found["age"]["advice"] == "impute"
    assert found["sex"]["advice"] == "categorical" and found["grade"]["advice"] == "categorical; impute"
    assert found["flat"]["advice"] == "constant: drop"
    assert found["size"] | {"holds": ""} == {
        "name": "size", "holds": "", "values": FRAME["size"].nunique(), "missing": 0, "option": "",
        "advice": "", "refused": False,
    }  # fmt: skip
    assert document["target"]["rows"] == FRAME["class"].value_counts().to_dict()
    command = [str(files / "m.npz") if word == "model.npz" else word for word in document["command"]]
    assert ran(*map(shlex.quote, command[1:])).status == 0
    assert load_model(files / "m.npz").dropped == ("id", "code", "flat")
    printed = ran("check", files / "all.csv", "--target class").out
    assert "drop id?" in printed and "is taken for classes" in printed and "--impute" in printed


@every(
    "text, said",
    [
        ("a;b\n" + "".join(f"{i},5;{i % 2}\n" for i in range(30)), "pass --decimal ,"),
        ("a,b\n" + "".join(f"{i}.1.2026,{i % 2}\n" for i in range(30)), "another text in each row"),
        ("a,b\n" + "".join(f"{i // 2}.1.2026,{i % 3}\n" for i in range(60)), "text, such as '0.1.2026'"),
        ("a,b\n1,0\ninf,1\n2.5,3\n", "infinite numbers"),
        ("a,b\n1,0\nx,1\n2.5,3\n", "numbers and text, such as 'x'"),
        ("a,b\n,0\n,1\n,3\n", "nothing"),
    ],
)
def test_what_stands_in_the_way_is_an_exit_status_of_one(text, said, tmp_path):
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    done = ran("check", tmp_path / "table.csv")
    assert done.status == 1 and said in done.out
    assert ran("fit", tmp_path / "table.csv", "--target b --out", tmp_path / "m").status == 1


def test_a_table_that_fits_is_an_exit_status_of_zero_and_a_wrong_target_is_said(files):
    assert ran("check", files / "good.csv", "--target class").status == 0
    wrong = ran("check", files / "good.csv", "--target clas")
    assert wrong.status == 1 and "Did you mean class?" in wrong.err
    assert ran("check", files / "none.csv").status == 1


def test_a_column_that_names_its_rows_is_named_by_a_fit(files):
    done = ran("fit", files / "good.csv", "--target class --out", files / "m", "--kernels linear()")
    assert done.status == 0 and f"'id' numbers the rows, 7 to {N + 6}, and says nothing" in done.err
    assert "--drop id leaves columns out" in done.err
    quiet = ran(
        "fit", files / "good.csv", "--target class --drop id --out", files / "m", "--kernels linear()"
    )
    assert quiet.status == 0 and quiet.err == ""
    table = read_table(files / "all.csv")
    assert [*identifiers(table, table.columns)] == ["id", "code"]
    assert identifiers(table[:10], table.columns) == {}  # ten whole numbers may be classes or grades


def test_missing_cells_are_filled_as_by_simple_imputer_and_the_model_keeps_how(files):
    """The medians and the most frequent texts of the training table, in new tables and in Python too."""
    fit = "--target class --categorical sex grade --impute --out"
    for name, mark in (("kept.csv", "."), ("comma.csv", ",")):
        done = ran("fit", files / name, "--decimal", mark, fit, files / "m.npz", "--kernels linear()")
        assert done.status == 0
        model = load_model(files / "m.npz")
        numbers = SimpleImputer(strategy="median").fit_transform(FRAME[["age", "size"]].astype(float))
        grades = np.array([[cell or None] for cell in FRAME["grade"]], dtype=object)
        grade = SimpleImputer(strategy="most_frequent", missing_values=None).fit_transform(grades)[:, 0]
        X = np.column_stack(
            [numbers, FRAME["sex"] == "f", FRAME["sex"] == "m", grade == "high", grade == "low"]
        )
        expected = (X - X.mean(axis=0)) / X.std(axis=0)
        frame = FRAME[KEPT].mask(FRAME[KEPT] == "")
        assert model.columns.transform(frame) == pytest.approx(expected.astype(float))
        predicted = ran("predict", files / "m.npz", files / name, "--decimal", mark)
        assert predicted.status == 0
        assert ko.load(files / "m.npz").predict(frame).tolist() == [
            line.split(",")[0] for line in predicted.out.splitlines()[1:]
        ]
        again = ran("report", files / "m.npz", "--data", files / name, "--decimal", mark)
        assert again.status == 0 and "proved again" in again.out


def test_without_the_option_missing_cells_are_refused_and_a_target_is_never_filled(files):
    fit = "--target class --categorical sex grade --out"
    done = ran("fit", files / "kept.csv", fit, files / "m.npz")
    assert done.status == 1 and "'age' (5), 'grade' " in done.err and "--impute fills them." in done.err
    FRAME[KEPT].assign(**{"class": ["", *FRAME["class"][1:]]}).to_csv(files / "hole.csv", index=False)
    done = ran("fit", files / "hole.csv", "--impute", fit, files / "m.npz")
    assert done.status == 1 and "'class' (1)" in done.err and "'age'" not in done.err
    FRAME[KEPT].assign(empty="").to_csv(files / "empty.csv", index=False)
    done = ran("fit", files / "empty.csv", "--impute", fit, files / "m.npz")
    assert done.status == 1 and "--drop empty leaves columns out" in done.err
