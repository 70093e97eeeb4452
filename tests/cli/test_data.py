"""Tables of data: what is read, and what is said about data that cannot be used."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from kernelopt.cli.model import read_for
from kernelopt.cli.table import learn_columns, read_table, read_target
from kernelopt.errors import FileError, InputError, LabelError, NotFiniteError
from kernelopt.estimators import MKLClassifier
from kernelopt.estimators.table import TableModel
from kernelopt.records import decoded, encoded
from tests.every import every

GOOD = "age,income,sex,id,class\n30,1.5,f,1,yes\n41, 2e3 ,m,2,no\n\n52,-1,f,3,yes\n"
SEMICOLONS = GOOD.replace(",", ";")
DAYS = "day,a,class\n" + "".join(f"{i}.1.2026,{i},{i % 2}\n" for i in range(30))


@pytest.fixture
def table_of(tmp_path):
    """A function that writes a file, and returns the table that is read from it."""

    def make(text, name="data.csv", **options):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_table(tmp_path / name, **options)

    return make


def targets(cells):
    """A file with a column of targets."""
    return "a,t\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))


def learned(table, target="class", drop=("id",), categorical=("sex",), raw=False):
    return learn_columns(table, target, drop, categorical, raw)


def refused(kind, said, call, *arguments, **options):
    """Check that a call raises an error with all the parts of its message, which a bar separates."""
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    assert all(part in str(raised.value) for part in said.split("|")), raised.value


@every(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,  # as Excel writes it
        SEMICOLONS,
        GOOD.replace(",", "\t"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("f,", '"f",'),
    ],
)
def test_dialects_of_csv_are_one_table(text, table_of):
    table = table_of(text)
    assert list(table) == ["age", "income", "sex", "id", "class"]
    assert list(table["income"]) == ["1.5", "2e3", "-1"] and list(table["class"]) == ["yes", "no", "yes"]


def test_points_are_standardised_columns_and_indicators_of_texts(table_of):
    columns, X = learned(table_of(GOOD))
    assert columns.coordinates == ["age", "income", "sex=f", "sex=m"]
    assert X[:, 0] == pytest.approx((np.array([30.0, 41, 52]) - 41) / np.std([30.0, 41, 52]))
    assert np.allclose(X.mean(axis=0), 0) and np.allclose(X.std(axis=0), 1)
    for text in (GOOD.replace("-1", "-1e300"), GOOD.replace("-1", "-8e307").replace("2e3", "9e307")):
        assert np.allclose(learned(table_of(text))[1].std(axis=0), 1)  # no sum and no square overflows
    raw = learned(table_of(GOOD), raw=True)[1]
    assert raw.tolist() == [[30, 1.5, 1, 0], [41, 2000, 0, 1], [52, -1, 1, 0]]


def test_data_frames_in_python_are_the_points_of_the_table(table_of):
    columns, X = learned(table_of(GOOD))
    frame = {"sex": ["f", "m", "f"], "other": ["x", "y", "z"], "income": [1.5, 2e3, -1], "age": [30, 41, 52]}
    assert np.array_equal(columns.transform(pd.DataFrame(frame)), X)
    assert np.array_equal(columns.transform(X * columns.scale + columns.shift), X)
    for wrong, said in (
        ({"income": [1, 2, 3]}, "none named 'age', 'sex'"),
        (frame | {"sex": ["f", "m", "x"]}, "(f, m), got 'x' in row 3 of 'sex'"),
        (frame | {"age": ["f", "m", "x"]}, "got 'f' in row 1 of 'age' in X"),
    ):
        refused(InputError, said, columns.transform, pd.DataFrame(wrong))
    refused(InputError, "age, income, sex=f, sex=m, got 3 columns", columns.transform, X[:, :3])


def test_new_tables_have_the_coordinates_of_the_training_in_any_order_of_columns(table_of, tmp_path, capsys):
    columns, X = learned(table_of(GOOD))
    again = decoded(*encoded(columns), "the file")
    shuffled = table_of("sex,income,age\nf,-1,52\nm,2000,41\n", "new.csv")
    assert np.array_equal(again.transform(shuffled), X[[2, 1]])
    more = table_of(
        GOOD.replace("\n", ",x\n").replace("\n,x\n", "\n").replace("class,x", "class,more"), "more.csv"
    )
    comma = table_of(SEMICOLONS.replace("1.5", "1,5").replace("2e3", "2000,0"), "comma.csv", decimal=",")
    for table in (table_of(GOOD), more, comma):  # with the target and what was dropped
        assert np.array_equal(again.transform(table), X)
    model = TableModel(again, MKLClassifier(), "class", ("id",), "classification", 3, 1.0, None, None)
    unused = "kernelopt: columns that the model does not use: more\n"
    for name, said in (("more.csv", unused), ("new.csv", ""), ("data.csv", "")):
        read_for(model, SimpleNamespace(data=tmp_path / name, decimal="."))
        assert capsys.readouterr().err == said


@every(
    ("text", "said"),
    [
        ("", "No columns"),
        ("a,b\n", "below its header"),
        ("1,2\n3,4\n", "names of the columns|got numbers"),
        ("a,a\n1,2\n", "'a' twice"),
        ("a,,b\n1,2,3\n", "different names, got '' for one"),
        ("a,b\n1,2\n3,4,5\n", "as many cells as its header|in line 3, saw 3"),
        ('a,b\n1,"2\n', "CSV file in UTF-8"),
    ],
)
def test_a_damaged_file_is_said_with_its_line(text, said, table_of):
    refused(FileError, f"{said}|data.csv", table_of, text)


def test_a_file_that_is_missing_or_not_text_is_said(tmp_path):
    refused(FileError, "no file", read_table, tmp_path / "nowhere.csv")
    (tmp_path / "binary.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    refused(FileError, "UTF-8", read_table, tmp_path / "binary.csv")


ALL = {"drop": (), "categorical": ()}


@every(
    ("text", "options", "said"),
    [
        (GOOD, {"target": "clas"}, "--target|Did you mean class?|age, income"),
        (GOOD, {"drop": ["idd"]}, "--drop|Did you mean id?"),
        (GOOD, {"categorical": ["size"]}, "--categorical must be a column|'size'"),
        (GOOD, {"drop": ["class"]}, "target must not be in --drop"),
        (GOOD, {"drop": ["id", "age", "income", "sex"], "categorical": []}, "beside the target"),
        (GOOD, {"categorical": []}, "'f' in row 1 of 'sex'|--categorical sex |--drop sex "),
        (GOOD.replace("41,", "?,"), {}, "1 of 3 rows|'age' (1)|row 2 of 'age'|--drop age "),
        (
            "age,sex,class\n,f,yes\n41,,no\nNA,,\n",
            {"drop": []},
            "3 of 3 rows below the header (1, 2, 3), in 'class' (1), 'age' (2), 'sex' (2)|--drop age sex ",
        ),
        (GOOD.replace("41,", "inf,").replace("-1", "-inf"), {}, "'age' (1), 'income' (1)|(2, 3)"),
        (SEMICOLONS.replace("1.5", "1,5"), {}, "'1,5' in row 1 of 'income'|--decimal ,"),
        (SEMICOLONS.replace("1.5", "1.234,5"), {}, "'1.234,5' in row 1|marks of thousands"),
        (DAYS, ALL, "'0.1.2026' in row 1 of 'day'|--drop day "),
        (GOOD.replace("41,", "1_000,"), {}, "'1_000' in row 2 of 'age'"),
        (GOOD.replace(" 2e3 ", "1.50").replace("-1", "1.5"), {}, "'income' is '1.5'|--drop income"),
        (GOOD.replace(",m,", ",f,"), {}, "constant|'sex'"),
    ],
)
def test_a_column_that_cannot_be_used_is_named_with_what_to_do(text, options, said, table_of):
    refused(NotFiniteError if "inf" in text else InputError, said, learned, table_of(text), **options)


@every(
    ("text", "said"),
    [
        ("age,sex\n1,f\n", "'income'|There are: age, sex"),
        ("age,incomes,sex\n1,2,f\n", "'income'. Did you mean incomes?"),
        ("age,income,sex\n1,f,2\n", "'f' in row 1 of 'income'|Correct"),
        ("age,income,sex\n1,2,x\n", "'x' in row 1|f, m"),
        ("age,income,sex\n1,,f\n", "(1), in 'income' (1)|leave out these rows."),
    ],
)
def test_columns_that_differ_at_prediction_are_named(text, said, table_of):
    columns, _ = learned(table_of(GOOD))
    refused(InputError, f"{said}|new.csv", columns.transform, table_of(text, "new.csv"))


@every(
    ("cells", "asked", "task", "y"),
    [
        (["yes", "no", "yes"], None, "classification", ["yes", "no", "yes"]),
        (["1", "0", "1.0"], None, "classification", [1, 0, 1]),
        (["0.5", "1.5", "0.5"], None, "classification", ["0.5", "1.5", "0.5"]),
        (["1", "2", "3"], None, "classification", [1, 2, 3]),
        (["1", "2", "3"], "regression", "regression", [1.0, 2.0, 3.0]),
        (["0.1", "2", "3"], None, "regression", [0.1, 2.0, 3.0]),
        (["0.1", "2", "3"], "classification", "classification", ["0.1", "2", "3"]),
        (["1", "1e300"], None, "classification", ["1", "1e300"]),
        ([str(i) for i in range(11)], None, "regression", list(range(11))),
    ],
)
def test_the_task_follows_from_the_target(cells, asked, task, y, table_of):
    found = read_target(table_of(targets(cells)), "t", asked)
    assert (found[1], found[0].tolist()) == (task, y) and found[2]


@every(
    ("cells", "asked", "kind", "said"),
    [
        (["a", "a"], None, LabelError, "two classes or more, or numbers that vary, got 'a' in all 2 rows"),
        (["3", "3.0"], None, LabelError, "two classes"),
        (["1", "b"], "regression", InputError, "got 'b' in row 2"),
        (["1.5", "1.5"], "regression", LabelError, "numbers that vary"),
        (["1", ""], None, InputError, "1 of 2 rows"),
        (["1", "inf"], None, NotFiniteError, "'t' (1)"),
        (["1", "1e300", "x"], "regression", InputError, "got 'x' in row 3"),
        ([f"{i}.5" for i in range(40)] + ["x"], None, InputError, "got 'x' in row 41"),
        ([f'"{i},5"' for i in range(9)], None, InputError, "--decimal ,"),
    ],
)
def test_a_target_that_cannot_be_learned_is_said(cells, asked, kind, said, table_of):
    refused(kind, said, read_target, table_of(targets(cells)), "t", asked)


def test_parquet_is_read_by_pandas_and_what_it_needs_is_said(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1")
    frame = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None], "c": [1, 2]})
    monkeypatch.setattr(pd, "read_parquet", {path: frame}.get)
    table = read_table(path)
    assert table.to_dict("list") == {"a": ["1.5", None], "b": ["x", None], "c": ["1", "2"]}
    refused(InputError, "must have a value, got None in row 2 of 'a' | 1 of 2 rows", read_target, table, "a")
    monkeypatch.undo()
    refused(FileError, 'pip install "kernelopt[tables]"', read_table, path)  # damaged, or without pyarrow
