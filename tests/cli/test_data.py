"""Tables of data: what is read, and what is said about data that cannot be used."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kernelopt.cli.data_table import read_table
from kernelopt.cli.features import learn_features
from kernelopt.cli.target import read_target
from kernelopt.errors import FileError, InputError, LabelError, NotFiniteError
from kernelopt.records import decoded, encoded
from tests.every import every

GOOD = "age,income,sex,id,class\n30,1.5,f,1,yes\n41, 2e3 ,m,2,no\n\n52,-1,f,3,yes\n"


def table_of(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_table(path)


def learned(table, target="class", drop=("id",), categorical=("sex",), raw=False):
    return learn_features(table, target, drop, categorical, raw)


@every(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,  # as Excel writes it
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("f,", '"f",'),
    ],
)
def test_dialects_of_csv_are_one_table(text, tmp_path_factory):
    table = table_of(tmp_path_factory.mktemp("csv"), text)
    assert table.names == ["age", "income", "sex", "id", "class"]
    assert table.columns["income"] == ["1.5", "2e3", "-1"] and table.columns["class"] == ["yes", "no", "yes"]
    assert table.lines == [2, 3, 5]


def test_points_are_standardised_columns_and_indicators_of_texts(tmp_path):
    features, X = learned(table_of(tmp_path, GOOD))
    assert features.columns.coordinates == ["age", "income", "sex=f", "sex=m"]
    age = np.array([30.0, 41, 52])
    assert X[:, 0] == pytest.approx((age - 41) / age.std())
    assert np.allclose(X.mean(axis=0), 0) and np.allclose(X.std(axis=0), 1)
    raw = learned(table_of(tmp_path, GOOD), raw=True)[1]
    assert raw.tolist() == [[30, 1.5, 1, 0], [41, 2000, 0, 1], [52, -1, 1, 0]]


class Rows(dict):
    """Of a data frame, what is read: `columns` by name."""

    columns = property(lambda self: list(self))


def test_data_frames_in_python_are_the_points_of_the_table(tmp_path):
    features, X = learned(table_of(tmp_path, GOOD))
    columns = features.columns
    frame = {"sex": ["f", "m", "f"], "other": ["x", "y", "z"], "income": [1.5, 2e3, -1], "age": [30, 41, 52]}
    assert np.array_equal(columns.transform(Rows(frame)), X)
    assert np.array_equal(columns.transform(X * columns.scale + columns.shift), X)
    for wrong, said in (
        ({"income": [1, 2, 3]}, "none named age, sex"),
        (frame | {"sex": ["f", "m", "x"]}, "(f, m), got 'x'"),
        (frame | {"age": ["f", "m", "x"]}, "X['age']"),
    ):
        with pytest.raises(InputError) as raised:
            columns.transform(Rows(wrong))
        assert said in str(raised.value)
    with pytest.raises(InputError, match="age, income, sex=f, sex=m, got 3 columns"):
        columns.transform(X[:, :3])


def test_new_tables_have_the_coordinates_of_the_training_in_any_order_of_columns(tmp_path):
    features, X = learned(table_of(tmp_path, GOOD))
    again = replace(features, columns=decoded(*encoded(features.columns), "the file"))
    shuffled = table_of(tmp_path, "sex,income,age\nf,-1,52\nm,2000,41\n", "new.csv")
    assert np.array_equal(again.points(shuffled), X[[2, 1]])
    assert np.array_equal(again.points(table_of(tmp_path, GOOD)), X)  # with the target and what was dropped
    more = table_of(
        tmp_path, GOOD.replace("\n", ",x\n").replace("\n,x\n", "\n").replace("class,x", "class,more")
    )
    assert np.array_equal(again.points(more), X)
    assert (again.ignored(more), again.ignored(shuffled)) == (["more"], [])
    comma = GOOD.replace(",", ";").replace("1.5", "1,5").replace("2e3", "2000,0")
    (tmp_path / "comma.csv").write_text(comma, encoding="utf-8")
    assert np.array_equal(again.points(read_table(tmp_path / "comma.csv", ",")), X)


@every(
    ("text", "kind", "said"),
    [
        ("", FileError, ["empty file"]),
        ("a,b\n", FileError, ["below its header"]),
        ("1,2\n3,4\n", FileError, ["names of the columns", "got numbers"]),
        ("a,a\n1,2\n", FileError, ["'a' twice"]),
        ("a,,b\n1,2,3\n", FileError, ["empty name at column 2"]),
        ("a,b\n1,2\n3\n", FileError, ["2 cells", "got 1 in line 3"]),
        ('a,b\n1,"2\n', FileError, ["CSV file in UTF-8"]),
    ],
)
def test_a_damaged_file_is_said_with_its_line(text, kind, said, tmp_path_factory):
    with pytest.raises(kind) as raised:
        table_of(tmp_path_factory.mktemp("csv"), text)
    assert all(part in str(raised.value) for part in [*said, "data.csv"])


def test_a_file_that_is_missing_or_not_text_is_said(tmp_path):
    with pytest.raises(FileError, match="no file"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "binary.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(FileError, match="UTF-8"):
        read_table(tmp_path / "binary.csv")


@every(
    ("text", "options", "kind", "said"),
    [
        (GOOD, {"target": "clas"}, InputError, ["--target", "Did you mean class?", "age, income"]),
        (GOOD, {"drop": ["idd"]}, InputError, ["--drop", "Did you mean id?"]),
        (GOOD, {"categorical": ["size"]}, InputError, ["--categorical must be a column", "'size'"]),
        (GOOD, {"drop": ["class"]}, InputError, ["target must not be in --drop"]),
        (
            GOOD,
            {"drop": ["id", "age", "income", "sex"], "categorical": []},
            InputError,
            ["beside the target"],
        ),
        (
            GOOD,
            {"categorical": []},
            InputError,
            ["'f' in line 2 of 'sex'", "--categorical sex", "--drop sex"],
        ),
        (GOOD.replace("41,", "?,"), {}, InputError, ["1 of 3 rows", "'age' (1)", "line 3", "--drop age."]),
        (
            "age,sex,class\n,f,yes\n41,,no\nNA,,\n",
            {"drop": []},
            InputError,
            ["3 of 3 rows", "'class' (1), 'age' (2), 'sex' (2): lines 2, 3, 4", "--drop age sex."],
        ),
        (
            GOOD.replace("41,", "inf,").replace("-1", "-inf"),
            {},
            NotFiniteError,
            ["'age' (1), 'income' (1)", "lines 3, 5"],
        ),
        (
            GOOD.replace(",", ";").replace("1.5", "1,5"),
            {},
            InputError,
            ["text in 'income'", "'1,5' in line 2", "--decimal ,"],
        ),
        (
            GOOD.replace(",", ";").replace("1.5", "1.234,5"),
            {},
            InputError,
            ["'1.234,5' in line 2", "marks of thousands"],
        ),
        (GOOD.replace("-1", "-1e300"), {}, InputError, ["finite variances", "in income of"]),
        (
            "day,a,class\n" + "".join(f"{i}.1.2026,{i},{i % 2}\n" for i in range(30)),
            {"drop": [], "categorical": []},
            InputError,
            ["text in 'day'", "'0.1.2026'", "different in most rows", "by --drop day"],
        ),
        (GOOD.replace("41,", "1_000,"), {}, InputError, ["text in 'age'", "'1_000' in line 3"]),
        (
            GOOD.replace(" 2e3 ", "1.50").replace("-1", "1.5"),
            {},
            InputError,
            ["'income' is '1.5'", "--drop income"],
        ),
        (GOOD.replace(",m,", ",f,"), {}, InputError, ["constant", "'sex'"]),
    ],
)
def test_a_column_that_cannot_be_used_is_named_with_what_to_do(text, options, kind, said, tmp_path_factory):
    table = table_of(tmp_path_factory.mktemp("csv"), text)
    with pytest.raises(kind) as raised:
        learned(table, **options)
    assert all(part in str(raised.value) for part in said), raised.value


@every(
    ("text", "said"),
    [
        ("age,sex\n1,f\n", ["'income'", "There are: age, sex"]),
        ("age,incomes,sex\n1,2,f\n", ["'income' (perhaps 'incomes'?)"]),
        ("age,income,sex\n1,f,2\n", ["text in 'income'", "Correct the cells of 'income'"]),
        ("age,income,sex\n1,2,x\n", ["'x' in line 2", "f, m"]),
        ("age,income,sex\n1,,f\n", ["1 of 1 rows", "'income' (1): line 2", "leave out these rows."]),
    ],
)
def test_columns_that_differ_at_prediction_are_named(text, said, tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    features, _ = learned(table_of(folder, GOOD))
    with pytest.raises(InputError) as raised:
        features.points(table_of(folder, text, "new.csv"))
    assert all(part in str(raised.value) for part in [*said, "new.csv"]), raised.value


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
def test_the_task_follows_from_the_target(cells, asked, task, y, tmp_path_factory):
    rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    found = read_target(table_of(tmp_path_factory.mktemp("csv"), "a,t\n" + rows), "t", asked)
    assert (found.task, found.y.tolist()) == (task, y) and found.why


@every(
    ("cells", "asked", "kind", "said"),
    [
        (["a", "a"], None, LabelError, "two classes or more, got 'a' in all 2 rows"),
        (["3", "3.0"], None, LabelError, "two classes"),
        (["1", "b"], "regression", InputError, "got 'b' in line 3"),
        (["1.5", "1.5"], "regression", InputError, "must vary"),
        (["1", ""], None, InputError, "1 of 2 rows"),
        (["1", "inf"], None, NotFiniteError, "'t' (1)"),
        (["1", "1e300", "x"], "regression", InputError, "got 'x' in line 4"),
        ([f"{i}.5" for i in range(40)] + ["x"], None, InputError, "got 'x' in line 42"),
        ([f'"{i},5"' for i in range(9)], None, InputError, "--decimal ,"),
    ],
)
def test_a_target_that_cannot_be_learned_is_said(cells, asked, kind, said, tmp_path_factory):
    rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    with pytest.raises(kind) as raised:
        read_target(table_of(tmp_path_factory.mktemp("csv"), "a,t\n" + rows), "t", asked)
    assert said in str(raised.value)


class Frame(dict):
    """Of a data frame, what is read: `columns`, the length, and columns with `tolist`."""

    columns = property(lambda self: list(self))
    __len__ = lambda self: 2  # noqa: E731


def test_parquet_is_read_by_pandas_and_without_it_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1")
    frame = Frame(a=np.array([1.5, np.nan]), b=np.array(["x", None]), c=np.array([1, 2]))
    pandas = SimpleNamespace(read_parquet=lambda given: frame if given == path else None)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    table = read_table(path)
    assert table.columns == {"a": ["1.5", ""], "b": ["x", ""], "c": ["1", "2"]}
    with pytest.raises(InputError, match=r"1 of 2 rows .* without one, in 'a' \(1\): line 3"):
        read_target(table, "a")
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(FileError, match=r'pip install "kernelopt\[tables\]"'):
        read_table(path)
