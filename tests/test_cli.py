"""The command line: what it prints, what it writes, and its exit status."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from functools import partial
from typing import NamedTuple

import pytest

from kernelopt import cli, demo
from kernelopt.testing import ConformanceRow, suite
from tests.every import every

CRITERIA = ("hard margin", "soft margin", "squared soft", "learned ridge", "alignment", "free signs")


class Demonstrated(NamedTuple):
    """What one run of the demo left: `rows` by the title of their tasks, and the bytes of the figure."""

    status: int
    printed: str
    picture: bytes
    rows: dict[str, demo.DemoRow]


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    out, rows, tasks = tmp_path_factory.mktemp("demo"), {}, demo.tasks

    def kept(title, run):
        rows[title] = run()
        return rows[title]

    def watched(data, tol):
        for task in tasks(data, tol):
            yield demo.Task(task.title, partial(kept, task.title, task.run))

    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setenv("COLUMNS", "140")
        patch.setattr(demo, "tasks", watched)
        status = cli.main(["demo", "--points", "60", "--random-state", "1", "--out", str(out)])
    return Demonstrated(status, printed.getvalue(), (out / "kernelopt-demo.png").read_bytes(), rows)


def test_demo_prints_the_table_and_saves_the_figure(demonstrated):
    assert demonstrated.status == 0
    for name in (*CRITERIA, "best single", "plain average", "RBF SVM"):
        assert name in demonstrated.printed
    for heading in ("cone", "method", "value", "lower", "upper", "gap", "acc.", "build", "solve"):
        assert heading in demonstrated.printed
    assert demonstrated.picture.startswith(b"\x89PNG") and len(demonstrated.picture) > 20_000


def test_every_row_is_certified_and_learned_is_no_worse_than_single_or_average(demonstrated):
    rows = demonstrated.rows
    for row in rows.values():
        if row.solution is not None:
            assert row.solution.gap <= 1e-5
            assert row.solution.lower <= row.solution.upper + 1e-9
        assert 0.5 < row.accuracy <= 1
    soft = rows["soft margin, C = 1"].value
    assert soft <= rows["best single kernel"].value + 1e-6
    assert soft <= rows["plain average"].value + 1e-6
    assert rows["soft margin, free signs, n = 40"].value <= rows["soft margin, mu >= 0, n = 40"].value + 1e-6
    assert soft <= rows["hard margin"].value + 1e-6


def test_table_fits_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    row = demo.DemoRow(
        "soft margin, free signs, n = 40", "SDP", "exact, clarabel", 134.7655, 0.97, None, 1.0, 2.0
    )
    cli.Console().print(cli.demo_table([row]))
    printed = capsys.readouterr().out
    assert "134.766" in printed and "solve" in printed and "2.00" in printed
    assert max(map(len, printed.splitlines())) <= 80


@every(
    ("arguments", "said"),
    [
        ([], "required"),
        (["dance"], "invalid choice"),
        (["demo", "--points", "5"], "between 60 and 200"),
        (["demo", "--points", "many"], "invalid int"),
        (["demo", "--random-state", "-1"], "negative"),
        (["demo", "--out", "nowhere/at/all.png"], "existing folder"),
        (["demo", "--out", "picture.pdf"], "png"),
        (["certify", "--size", "7"], "even and between 6 and 60"),
        (["certify", "--size", "100"], "even and between 6 and 60"),
        (["certify", "--solver", "CLARABELL"], "Did you mean CLARABEL?"),
        (["certify", "--problem", "svm"], "must be the beginning of a name"),
        (["certify", "--json", "nowhere/at/all.json"], "existing folder"),
        (["list", "losses", "loss"], "must be one of losses, kernels, fidelities, methods, formulations, g"),
    ],
)
def test_wrong_use_exits_with_two_and_says_why(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["demo", "--help"], ["certify", "--help"], ["list", "--help"], ["--version"]]
)
def test_help_and_version_exit_with_zero(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 0
    assert "kernelopt" in capsys.readouterr().out


def test_a_missing_catalogue_is_said_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(demo, "catalogue", dict)
    assert cli.main(["demo", "--points", "60", "--no-figure"]) == 1
    assert "pip install" in capsys.readouterr().err


def test_a_gap_above_the_tolerance_is_an_exit_status_of_one(monkeypatch, capsys):
    monkeypatch.setattr(cli, "GAP_TOLERANCE", 1e-30)
    first = lambda data, tol: list(demo_tasks(data, 1e-5))[4:5]  # noqa: E731
    demo_tasks = demo.tasks
    monkeypatch.setattr(demo, "tasks", first)
    assert cli.main(["demo", "--points", "60", "--no-figure"]) == 1
    assert "above" in capsys.readouterr().err


def test_interruption_is_an_exit_status_of_130(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_demo", interrupted)
    assert cli.main(["demo", "--no-figure"]) == 130


def test_figure_needs_matplotlib_and_says_so_before_the_work(monkeypatch, capsys):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo"])
    assert stop.value.code == 2
    assert "kernelopt[plot]" in capsys.readouterr().err


def test_module_runs_as_a_script():
    done = subprocess.run(
        [sys.executable, "-m", "kernelopt.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("kernelopt 0.")


def rows_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def test_certify_prints_and_saves_solvers_by_problems(tmp_path, capsys):
    path = tmp_path / "rows.json"
    arguments = ["--solver", "clarabel", "SCS", "--problem", "lp_norm.tikhonov"]
    assert cli.main(["certify", *arguments, "--size", "6", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "4 rows: 4 certified" in out and "lp_norm" in out
    rows = rows_of(path)
    names = {"lp_norm.tikhonov", "lp_norm.tikhonov, harsh"}
    assert {(r["solver"], r["problem"]) for r in rows} == {(s, n) for s in ("CLARABEL", "SCS") for n in names}
    for row in rows:
        assert row["status"] in ("optimal", "optimal_inaccurate") and row["error"] <= 1e-4
        assert max(row["gap"], row["infeasibility"], row["complementarity"]) <= 1e-4 and row["seconds"] > 0


def test_certify_never_calls_an_unbounded_problem_solved(tmp_path):
    path = tmp_path / "rows.json"
    assert (
        cli.main(["certify", "--solver", "CLARABEL", "SCS", "--problem", "unbounded", "--json", str(path)])
        == 0
    )
    rows = rows_of(path)
    assert len(rows) == 2 and all(r["verdict"] in ("refuted", "not certified") for r in rows)
    assert {r["truth"] for r in rows} == {"-inf"}  # JSON has no infinite numbers


def test_a_false_bracket_is_an_exit_status_of_one(monkeypatch, capsys):
    right = suite.planted_form
    monkeypatch.setattr(suite, "planted_form", lambda *asked: (right(*asked)[0], 1.0))  # another true value
    assert cli.main(["certify", "--solver", "CLARABEL", "--problem", "lanckriet.qcqp"]) == 1
    captured = capsys.readouterr()
    assert "excludes the true value" in captured.err and "false bracket" in captured.out


def test_the_table_of_verdicts_fits_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    numbers = dict.fromkeys(
        ["truth", "value", "error", "gap", "infeasibility", "complementarity"], 1.23456e-7
    )
    why = "claims 1, outside of [2, 3]"
    name = "similarity.kernel_per_similarity, harsh"
    row = ConformanceRow(
        "CLARABEL", name, "optimal_inaccurate", **numbers, seconds=12.3, verdict="refuted", why=why
    )
    cli.Console().print(cli.verdict_table([row]))
    printed = capsys.readouterr().out
    assert "1.23456e-07" in printed and "12.30" in printed
    assert max(map(len, printed.splitlines())) <= 80
