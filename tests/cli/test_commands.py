"""The command line: what it prints, what it writes, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace

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
from tests.commands import ran
from tests.every import every

FIVE = ("Lanckriet", "Kloft", "Fung", "Kundu", "Pereverzyev")
FIT = "fit --target class --out m"


def test_the_demo_certifies_a_row_of_each_paper_and_saves_the_figure(tmp_path, monkeypatch):
    found = {}

    def kept(title, learned):
        return lambda data: found.setdefault(title, learned(data))

    monkeypatch.setattr(rows, "ROWS", {title: kept(title, row) for title, row in rows.ROWS.items()})
    done = ran("demo --points 60 --random-state 1 --out", tmp_path)
    assert done.status == 0
    lines = done.out.splitlines()
    for name in (*FIVE, "best single", "average", "RBF SVM"):
        assert sum(line.startswith(name) for line in lines) == 1, name
    assert {"method", "value", "lower", "gap", "s", "score", "plain"} <= set(lines[1].split())
    picture = (tmp_path / "kernelopt-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000
    certified = [row for row in found.values() if row.solution is not None]
    assert len(certified) == len({row.reference.partition("(")[0] for row in certified}) == len(FIVE)
    for row in certified:
        assert row.solution.gap <= 1e-5 and row.solution.lower <= row.solution.upper + 1e-9
    for row in found.values():
        assert (0.5 < row.score <= 1 and row.plain is None) or 0.5 < row.plain <= 1
    assert {row.plain for row in certified} >= {found["average of the kernels"].score}
    soft = found["Lanckriet et al.: soft margin"].value  # no worse than a single kernel or the mean
    assert soft <= min(found[t].value for t in ("best single kernel", "average of the kernels")) + 1e-6


def test_tables_fit_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    measures = ["truth", "value", "error", "gap", "infeasibility", "complementarity"]
    verdict = ConformanceRow(
        "CLARABEL", "similarity.kernel_per_similarity, harsh", "optimal_inaccurate", seconds=12.3,
        verdict="refuted", why="claims 1, outside of [2, 3]", **dict.fromkeys(measures, 1.23456e-7),
    )  # fmt: skip
    row = rows.Row("column-generation", 0.97, 2.0, plain=0.96, value=134.7655)
    learned = demo.document("Pereverzyev, Tkachenko: LFS", row)
    for columns, line, said in (
        (demo.COLUMNS, learned, ("134.766", "score", "2.00")),
        (certify.COLUMNS, certify.shown(verdict), ("1.23456e-07", "12.30", "refuted")),
    ):
        output.Output().rows(columns, [line], numbers=6)
        printed = capsys.readouterr().out
        assert all(part in printed for part in said)
        assert max(len(Text.from_ansi(text).plain) for text in printed.splitlines()) <= 80


EDGES = ((1, 2), (2, 3), (3, 4), (4, 5), (1, 5))
CYCLE = "\n".join(
    ["6", "1", "5", "1 0 0 0 0 0"]
    + [f"0 1 {i} {j} 1" for i in range(1, 6) for j in range(i, 6)]
    + [f"1 1 {i} {i} 1" for i in range(1, 6)]
    + [f"{k} 1 {i} {j} 1" for k, (i, j) in enumerate(EDGES, 2)]
)  # min t with t I + sum x_ij (E_ij + E_ji) >> J over the edges


@every(
    ("command", "said"),
    [
        ("", "required"),
        ("dance", "invalid choice"),
        ("fitt", "Did you mean fit?"),
        ("certify --sise 8", "unrecognized arguments: --sise. Did you mean --size?"),
        (f"{FIT} --drop ash a.csv", "--drop has taken 'a.csv': write DATA before the"),
        (f"{FIT} --drop ash --raw", "arguments are required: DATA\n"),
        (f"{FIT} wine.csv --categorial sex", "Did you mean --categorical?"),
        (f"{FIT} wine.csv --loss hing", "Did you mean hinge?"),
        ("demo --points 5", "between 60 and 200"),
        ("demo --points many", "invalid int"),
        ("demo --random-state -1", "negative"),
        ("demo --out nowhere/at/all.png", "existing folder"),
        ("demo --out picture.pdf", "png"),
        ("certify --size 7", "even and between 6 and 60"),
        ("certify --size 100", "even and between 6 and 60"),
        ("certify --solver CLARABELL", "Did you mean CLARABEL?"),
        ("certify --problem svm", "must be the beginning of a name"),
        ("list losses loss", "must be one of losses, kernels, fidelities, parts, methods, formulations, g"),
        ("list fromulations", "Did you mean formulations?"),
    ],
)
def test_wrong_use_exits_with_two_and_says_why(command, said):
    done = ran(command)
    assert done.status == 2 and said in done.err


@every("command", ["--help", "--version", *(f"{name} --help" for name in cli.COMMANDS)])
def test_help_and_version_exit_with_zero(command):
    done = ran(command)
    assert done.status == 0 and "kernelopt" in done.out


def test_what_the_demo_lacks_is_said_before_the_work(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(rows, "catalogue", dict)
        done = ran("demo --points 60 --no-figure")
    assert done.status == 1 and "pip install" in done.err
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    done = ran("demo")
    assert done.status == 2 and "kernelopt[plot]" in done.err


def test_a_gap_above_the_tolerance_is_an_exit_status_of_one(monkeypatch):
    title = "Kloft et al.: l_p ball, p = 4/3"
    right = rows.ROWS[title]
    monkeypatch.setattr(demo, "GAP_TOLERANCE", 1e-30)
    monkeypatch.setattr(rows, "ROWS", {title: lambda data: right(replace(data, tol=1e-5))})
    done = ran("demo --points 60 --no-figure --json")
    assert done.status == 1 and "above" in done.err
    (row,) = json.loads(done.out)["rows"]
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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(demo, "run", failing)
            done = ran("demo --no-figure", "--debug" * debug)
        *traceback, last = done.err.splitlines()
        assert done.status == status and said in last and last.startswith("kernelopt: ")
        assert bool(traceback) == ("Traceback" in done.err) == debug


def test_ctrl_c_ends_the_command_where_a_solve_would_return_its_best_point(monkeypatch):
    def solving(options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return 0
        return 0

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(demo, "run", solving)
        assert ran("demo --no-figure") == (cli.INTERRUPTED, "", "kernelopt: interrupted\n")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, former)


def test_what_a_compiled_library_prints_goes_to_standard_error(monkeypatch, capfd):
    def printing(options):
        os.write(1, b"a name of a solver\n")
        print("a row")
        return 0

    monkeypatch.setattr(demo, "run", printing)
    with os.fdopen(1, "w", closefd=False) as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert cli.main(["demo"]) == 0
    assert capfd.readouterr() == ("a row\n", "a name of a solver\n")


def test_a_warning_is_one_line_on_standard_error(monkeypatch):
    def warning(options):
        warnings.simplefilter("always")
        warnings.warn("the gap is large", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(demo, "run", warning)
    assert ran("demo") == (0, "", "kernelopt: the gap is large\n")


def test_certify_runs_solvers_by_problems():
    done = ran("certify --solver clarabel SCS --problem lp_norm.tikhonov unbounded --size 6 --json")
    found = json.loads(done.out)["rows"]
    names = ("lp_norm.tikhonov", "lp_norm.tikhonov, harsh", "unbounded log-determinant")
    assert done.status == 0 and len(found) == 6
    assert {(r["solver"], r["problem"]) for r in found} == {
        (s, n) for s in ("CLARABEL", "SCS") for n in names
    }
    for row in found:
        if row["problem"] == names[2]:  # JSON has no infinite numbers
            assert row["verdict"] in ("refuted", "not certified") and row["truth"] == "-inf"
        else:
            assert row["status"] in ("optimal", "optimal_inaccurate") and row["seconds"] > 0
            assert max(row[m] for m in ("error", "gap", "infeasibility", "complementarity")) <= 1e-4


def test_certify_proves_what_solvers_claim_of_a_file(tmp_path):
    """The theta number of the cycle of five points is the root of 5; a contradiction is proved."""
    (tmp_path / "theta.dat-s").write_text(CYCLE)
    done = ran(f"certify {tmp_path / 'theta.dat-s'} --solver CLARABEL SCS --json")
    found = json.loads(done.out)
    assert done.status == 0 and [row["solver"] for row in found["rows"]] == ["CLARABEL", "SCS"]
    for row in found["rows"]:
        assert row["lower"] <= 5**0.5 * (1 + 1e-15) and 5**0.5 * (1 - 1e-15) <= row["upper"]
        assert row["gap"] <= 1e-6 and row["claimed"] == pytest.approx(5**0.5, rel=1e-3)
    (tmp_path / "none.dat-s").write_text(
        "1\n1\n-2\n1.0\n0 1 1 1 1.0\n0 1 2 2 1.0\n1 1 1 1 1.0\n1 1 2 2 -1.0\n"
    )
    done = ran(f"certify {tmp_path / 'none.dat-s'}")
    assert done.status == 0 and "infeasible" in done.out
    (tmp_path / "bad.dat-s").write_text(CYCLE.replace("0 1 1 1 1", "0 1 1 9 1"))
    done = ran(f"certify {tmp_path / 'bad.dat-s'}")
    assert done.status == 1 and "in line 5" in done.err


def test_certify_takes_a_bound_where_the_dual_has_no_interior(tmp_path):
    """min x_2 with [[0, x_2], [x_2, x_1]] >> 0, rotated: the optimum 0 is no value of the dual."""
    rows = ["1 1 1 1 0.64", "1 1 1 2 -0.48", "1 1 2 2 0.36", "2 1 1 1 -0.96", "2 1 1 2 -0.28", "2 1 2 2 0.96"]
    (tmp_path / "flat.dat-s").write_text("\n".join(["2", "1", "2", "0 1", *rows]))
    free = json.loads(ran(f"certify {tmp_path / 'flat.dat-s'} --solver SCS --json").out)["rows"][0]
    held = json.loads(ran(f"certify {tmp_path / 'flat.dat-s'} --solver SCS --bound 10 --json").out)["rows"][0]
    assert free["lower"] == "-inf" and free["reason"]
    assert -1.0 <= held["lower"] <= 0 <= held["upper"]


def test_a_false_bracket_is_an_exit_status_of_one(monkeypatch):
    right = suite.planted_form
    monkeypatch.setattr(suite, "planted_form", lambda *asked: (right(*asked)[0], 1.0))  # another true value
    done = ran("certify --solver CLARABEL --problem lanckriet.qcqp")
    assert done.status == 1 and "excludes the true value" in done.err
    assert "false bracket" in done.out and "2 rows: 2 false bracket" in done.out


def test_list_prints_a_line_or_an_entry_for_each_with_the_reference_of_a_formulation(monkeypatch):
    lines = ran("list").out.splitlines()
    (primal,) = [line for line in lines if line.startswith("lp_norm.primal ")]
    assert "labels" in primal and "Kloft et al. (2011), Optimization Problems (P) and (D)" in primal
    for name in catalogue():
        assert sum(line.split()[:1] == [name] for line in lines) == 1, name
    assert sum(line.startswith("losses ") for line in lines) == len(installed("losses"))
    found = json.loads(ran("list formulations --json").out)["installed"]
    assert [line["name"] for line in found] == list(catalogue())
    assert all(line["reference"] and line["takes"] and line["summary"] for line in found)

    def broken(rng):
        raise ZeroDivisionError("no points")

    entry = replace(catalogue()["lp_norm.primal"], name="mine.broken", example=broken)
    monkeypatch.setattr(listed_kinds, "catalogue", lambda: {entry.name: entry})
    done = ran("list formulations")
    assert done.status == 1 and "mine.broken" in done.out and "ZeroDivisionError: no points" in done.err


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
