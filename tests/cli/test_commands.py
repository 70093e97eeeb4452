"""The command line: what it prints, what it writes, and its exit status."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import NamedTuple

import pytest
from rich.text import Text

from kernelopt import cli
from kernelopt import installed as listed_kinds
from kernelopt.catalog import catalogue
from kernelopt.cli import certify, demo, output
from kernelopt.cli.demo import rows
from kernelopt.errors import KerneloptError
from kernelopt.installed import installed
from kernelopt.testing import suite
from kernelopt.testing.conformance import ConformanceRow
from tests.every import every

FIVE = ("Lanckriet", "Kloft", "Fung", "Kundu", "Pereverzyev")


class Demonstrated(NamedTuple):
    """What one run of the demo left: the rows by their titles, and the bytes of the figure."""

    status: int
    printed: str
    picture: bytes
    rows: dict[str, rows.Row]


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    out, kept = tmp_path_factory.mktemp("demo"), {}

    def watched(learned, title):
        def run(data):
            kept[title] = learned(data)
            return kept[title]

        return run

    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr(rows, "ROWS", {title: watched(row, title) for title, row in rows.ROWS.items()})
        status = cli.main(["demo", "--points", "60", "--random-state", "1", "--out", str(out)])
    return Demonstrated(status, printed.getvalue(), (out / "kernelopt-demo.png").read_bytes(), kept)


def test_demo_prints_a_row_of_each_paper_and_saves_the_figure(demonstrated):
    assert demonstrated.status == 0
    lines = demonstrated.printed.splitlines()
    for name in (*FIVE, "best single", "average", "RBF SVM"):
        assert sum(line.startswith(name) for line in lines) == 1, name
    for heading in ("method", "value", "lower", "gap", "s", "score", "plain"):
        assert heading in lines[1].split()
    assert demonstrated.picture.startswith(b"\x89PNG") and len(demonstrated.picture) > 20_000


def test_every_row_is_certified_and_learned_is_no_worse_than_single_or_average(demonstrated):
    found = demonstrated.rows
    certified = [row for row in found.values() if row.solution is not None]
    assert len(certified) == len({row.reference.partition("(")[0] for row in certified}) == len(FIVE)
    for row in certified:
        assert row.solution.gap <= 1e-5
        assert row.solution.lower <= row.solution.upper + 1e-9
    for row in found.values():
        assert (0.5 < row.score <= 1 and row.plain is None) or 0.5 < row.plain <= 1
    soft = found["Lanckriet et al.: soft margin"].value
    assert soft <= found["best single kernel"].value + 1e-6
    assert soft <= found["average of the kernels"].value + 1e-6


def test_the_table_of_the_demo_fits_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    title = "Pereverzyev, Tkachenko: LFS"
    row = rows.Row("column-generation", 0.97, 2.0, plain=0.96, value=134.7655)
    output.Output().table(demo.HEADER, [demo.cells(title, row)], numbers=6)
    printed = capsys.readouterr().out
    assert "134.766" in printed and "score" in printed and "2.00" in printed
    assert max(len(Text.from_ansi(line).plain) for line in printed.splitlines()) <= 80


FIT = ["fit", "wine.csv", "--target", "class", "--out", "m"]


@every(
    ("arguments", "said"),
    [
        ([], "required"),
        (["dance"], "invalid choice"),
        (["fitt"], "Did you mean fit?"),
        (["certify", "wine.npz"], "takes no file. `kernelopt report MODEL --data DATA` proves"),
        (["certify", "--sise", "8"], "unrecognized arguments: --sise 8. Did you mean --size?"),
        ([*FIT[:1], *FIT[2:], "--drop", "ash", "a.csv"], "--drop has taken 'a.csv': write DATA before the"),
        ([*FIT[:1], *FIT[2:], "--drop", "ash", "--raw"], "arguments are required: DATA\n"),
        ([*FIT, "--categorial", "sex"], "Did you mean --categorical?"),
        ([*FIT, "--loss", "hing"], "Did you mean hinge?"),
        (["demo", "--points", "5"], "between 60 and 200"),
        (["demo", "--points", "many"], "invalid int"),
        (["demo", "--random-state", "-1"], "negative"),
        (["demo", "--out", "nowhere/at/all.png"], "existing folder"),
        (["demo", "--out", "picture.pdf"], "png"),
        (["certify", "--size", "7"], "even and between 6 and 60"),
        (["certify", "--size", "100"], "even and between 6 and 60"),
        (["certify", "--solver", "CLARABELL"], "Did you mean CLARABEL?"),
        (["certify", "--problem", "svm"], "must be the beginning of a name"),
        (["list", "losses", "loss"], "must be one of losses, kernels, fidelities, methods, formulations, g"),
        (["list", "fromulations"], "Did you mean formulations?"),
    ],
)
def test_wrong_use_exits_with_two_and_says_why(arguments, said, capsys):
    try:
        status = cli.main(arguments)
    except SystemExit as stop:
        status = stop.code
    assert status == 2
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
    monkeypatch.setattr(rows, "catalogue", dict)
    assert cli.main(["demo", "--points", "60", "--no-figure"]) == 1
    assert "pip install" in capsys.readouterr().err


def test_a_gap_above_the_tolerance_is_an_exit_status_of_one(monkeypatch, capsys):
    monkeypatch.setattr(demo, "GAP_TOLERANCE", 1e-30)
    title = "Kloft et al.: l_p ball, p = 4/3"
    right = rows.ROWS[title]
    monkeypatch.setattr(rows, "ROWS", {title: lambda data: right(replace(data, tol=1e-5))})
    assert cli.main(["demo", "--points", "60", "--no-figure", "--json"]) == 1
    captured = capsys.readouterr()
    assert "above" in captured.err
    (row,) = json.loads(captured.out)["rows"]
    assert row["lower"] <= row["value"] and len(row["weights"]) == 10 and row["reference"].startswith("Kloft")


@every(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (KerneloptError("C must be positive"), 1, "C must be positive"),
        (FileNotFoundError(2, "No such file", "x.csv"), 1, "x.csv"),
        (ZeroDivisionError("division by zero"), 3, "--debug"),
    ],
)
def test_an_error_is_one_line_and_an_exit_status_and_debug_shows_where(raised, status, said):
    def failing(options):
        raise raised

    for debug in (False, True):
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as printed:
            patch.setattr(demo, "run", failing)
            assert cli.main(["demo", "--no-figure", *["--debug"] * debug]) == status
        text = printed.getvalue()
        assert said in text.splitlines()[-1] and text.splitlines()[-1].startswith("kernelopt: ")
        assert ("Traceback" in text) == debug and (debug or len(text.splitlines()) == 1)


def test_ctrl_c_ends_the_command_where_a_solve_would_return_its_best_point(monkeypatch, capsys):
    def solving(options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return 0
        return 0

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(demo, "run", solving)
        assert cli.main(["demo", "--no-figure"]) == cli.INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, former)
    assert capsys.readouterr().err == "kernelopt: interrupted\n"


def test_a_warning_is_one_line_on_standard_error(monkeypatch, capsys):
    def warning(options):
        warnings.simplefilter("always")
        warnings.warn("the gap is large", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(demo, "run", warning)
    assert cli.main(["demo"]) == 0
    assert capsys.readouterr().err == "kernelopt: the gap is large\n"


def test_figure_needs_matplotlib_and_says_so_before_the_work(monkeypatch, capsys):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo"])
    assert stop.value.code == 2
    assert "kernelopt[plot]" in capsys.readouterr().err


def certified(arguments, capsys):
    """The exit status of `kernelopt certify`, and the rows that it prints."""
    status = cli.main(["certify", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)["rows"]


def test_certify_runs_solvers_by_problems(capsys):
    arguments = ["--solver", "clarabel", "SCS", "--problem", "lp_norm.tikhonov", "--size", "6"]
    status, found = certified(arguments, capsys)
    assert status == 0
    names = {"lp_norm.tikhonov", "lp_norm.tikhonov, harsh"}
    assert {(r["solver"], r["problem"]) for r in found} == {
        (s, n) for s in ("CLARABEL", "SCS") for n in names
    }
    for row in found:
        assert row["status"] in ("optimal", "optimal_inaccurate") and row["error"] <= 1e-4
        assert max(row["gap"], row["infeasibility"], row["complementarity"]) <= 1e-4 and row["seconds"] > 0


def test_certify_never_calls_an_unbounded_problem_solved(capsys):
    status, found = certified(["--solver", "CLARABEL", "SCS", "--problem", "unbounded"], capsys)
    assert status == 0
    assert len(found) == 2 and all(r["verdict"] in ("refuted", "not certified") for r in found)
    assert {r["truth"] for r in found} == {"-inf"}  # JSON has no infinite numbers


def test_a_false_bracket_is_an_exit_status_of_one(monkeypatch, capsys):
    right = suite.planted_form
    monkeypatch.setattr(suite, "planted_form", lambda *asked: (right(*asked)[0], 1.0))  # another true value
    assert cli.main(["certify", "--solver", "CLARABEL", "--problem", "lanckriet.qcqp"]) == 1
    captured = capsys.readouterr()
    assert "excludes the true value" in captured.err and "false bracket" in captured.out
    assert "2 rows: 2 false bracket" in captured.out


def test_the_table_of_verdicts_fits_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    numbers = dict.fromkeys(
        ["truth", "value", "error", "gap", "infeasibility", "complementarity"], 1.23456e-7
    )
    why = "claims 1, outside of [2, 3]"
    name = "similarity.kernel_per_similarity, harsh"
    row = ConformanceRow(
        "CLARABEL", name, "optimal_inaccurate", **numbers, seconds=12.3, verdict="refuted", why=why
    )
    output.Output().table(certify.HEADER, [certify.cells(row)], numbers=6)
    printed = capsys.readouterr().out
    assert "1.23456e-07" in printed and "12.30" in printed
    assert max(len(Text.from_ansi(line).plain) for line in printed.splitlines()) <= 80


def test_list_prints_a_line_for_each_with_the_reference_of_a_formulation(capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (primal,) = [line for line in lines if line.startswith("lp_norm.primal ")]
    assert "labels" in primal and "Kloft et al. (2011), Optimization Problems (P) and (D)" in primal
    for name in catalogue():
        assert sum(line.split()[:1] == [name] for line in lines) == 1, name
    assert sum(line.startswith("losses ") for line in lines) == len(installed("losses"))


def test_list_for_machines_is_one_document(capsys):
    assert cli.main(["list", "formulations", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["installed"]
    assert [line["name"] for line in found] == list(catalogue())
    assert all(line["reference"] and line["takes"] and line["summary"] for line in found)


def test_a_formulation_without_a_working_example_is_listed_and_said(monkeypatch, capsys):
    def broken(rng):
        raise ZeroDivisionError("no points")

    entry = replace(catalogue()["lp_norm.primal"], name="mine.broken", example=broken)
    monkeypatch.setattr(listed_kinds, "catalogue", lambda: {entry.name: entry})
    assert cli.main(["list", "formulations"]) == 1
    captured = capsys.readouterr()
    assert "mine.broken" in captured.out and "ZeroDivisionError: no points" in captured.err


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_the_command_quietly():
    command = f"{sys.executable} -m kernelopt.cli list --json | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)  # noqa: S603, S607
    assert done.stdout == "{\n" and done.stderr == ""


@pytest.mark.slow
def test_a_document_is_all_that_is_printed_where_a_library_prints_too():
    """HiGHS prints its name at its first linear programme, from C."""
    command = [sys.executable, "-m", "kernelopt.cli", "demo", "--points", "60", "--no-figure", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert json.loads(done.stdout)["rows"] and done.stdout.startswith("{")
