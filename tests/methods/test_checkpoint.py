"""Checkpoints: a call that was ended or killed goes on from its file to the same certified optimum."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import kernelopt as ko
import kernelopt.methods.checkpoint as checkpoint
from formulations import lp_norm
from kernelopt.records import read, write
from kernelopt.structure.structure import Structure
from tests.every import every
from tests.methods.resumable import CASES, TOL, data, solve

ROOT = Path(__file__).parents[2]
# Each is solved by a method of which another problem is among the cases.
TWINS = ("cutting-plane relaxed", "first-order-dual frobenius", "first-order-dual l1")


class StopAt:
    """A callback that ends the call at a report, and keeps what was reported."""

    def __init__(self, count=None):
        self.count, self.reports = count, []

    def __call__(self, report):
        self.reports.append(report)
        if len(self.reports) == self.count:
            raise StopIteration


@pytest.fixture
def every_report(monkeypatch):
    monkeypatch.setattr(checkpoint, "EARLIEST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "WRITE_SHARE", np.inf)


def ended_at(case, count, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)  # the certificate may find that it was enough
        return solve(case, path, callback=StopAt(count))


@every("case", [case for case in CASES if case not in TWINS])
def test_a_call_goes_on_where_it_was_ended(case, every_report, tmp_path):
    goes_on(case, tmp_path)


@pytest.mark.slow
@every("case", TWINS)
def test_a_call_on_a_further_problem_goes_on_where_it_was_ended(case, every_report, tmp_path):
    goes_on(case, tmp_path)


def goes_on(case, tmp_path):
    path, whole, rest = tmp_path / f"{case}.npz", StopAt(), StopAt()
    full = solve(case, None, callback=whole)
    count = max(2, (2 * len(whole.reports)) // 3)
    assert len(whole.reports) > count
    ended_at(case, count, path)
    resumed = solve(case, path, callback=rest)
    assert resumed.gap <= TOL
    assert max(resumed.lower, full.lower) <= min(resumed.upper, full.upper)
    assert len(rest.reports) < len(whole.reports)
    # Cutting planes have no lower bound before their first master problem.
    assert min(report["gap"] for report in rest.reports[:2]) <= 1.5 * whole.reports[count - 1]["gap"] + TOL


def test_a_finished_call_is_certified_again_from_its_file(every_report, tmp_path):
    path = tmp_path / "a.npz"
    first = solve("block-descent", path)
    again = solve("block-descent", path)
    assert (again.iterations, again.gap <= TOL) == (1, True)
    assert again.value == pytest.approx(first.value, rel=TOL)


def test_a_file_that_claims_a_false_optimum_cannot_change_the_certificate(every_report, tmp_path):
    path = tmp_path / "a.npz"
    full = solve("block-descent", None)
    solve("block-descent", path)
    found = read(path, "checkpoint")
    state = {"w": np.array([1.0, 0, 0, 0]), "alpha": 1e3 * found.state["alpha"]}
    write(path, found._replace(state=state))
    with pytest.warns(ko.ConvergenceWarning):  # the update keeps the weights at zero
        resumed = solve("block-descent", path)
    assert resumed.lower <= full.lower <= full.upper < resumed.upper
    assert resumed.gap > 0.1


def test_a_file_of_another_problem_is_refused(every_report, tmp_path):
    path = tmp_path / "a.npz"
    solve("block-descent", path)
    before = path.read_bytes()
    grams, y = data()
    others = [
        lp_norm.primal(grams, -y, p=1.3),
        lp_norm.primal(grams, y, p=1.3, loss=ko.hinge(C=2.0)),
        lp_norm.primal(grams, y, p=1.4),
        lp_norm.primal(grams.normalize("multiplicative"), y, p=1.3),
        lp_norm.primal(grams.subset([0, 1, 2]), y, p=1.3),
    ]
    for other in others:
        with pytest.raises(
            ko.errors.FileError, match="got one of another problem or of other data. Delete the file"
        ):
            other.solve("block-descent", checkpoint=path)
    assert path.read_bytes() == before


def test_auto_continues_with_the_method_that_wrote_the_file(every_report, tmp_path):
    path, rest = tmp_path / "a.npz", StopAt()
    ended_at("block-descent", 3, path)
    resumed = ko.solve(CASES["block-descent"](), tol=TOL, checkpoint=path, callback=rest)
    assert (rest.reports[0]["method"], resumed.method) == ("block-descent", "block-descent")


def test_files_are_written_a_fiftieth_of_the_time(tmp_path, monkeypatch):
    """The clock is replaced: a write takes 0.1 s, and each report comes after a second."""
    now, written = [0.0], []

    def write(*_):
        written.append(now[0])
        now[0] += 0.1

    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(checkpoint, "write", write)
    file = checkpoint.Checkpoint(tmp_path / "a.npz", Structure(CASES["block-descent"]()))
    for _ in range(100):
        now[0] += 1.0
        file.offer("block-descent", dict, last=False)
    assert len(written) * 0.1 <= 0.02 * now[0] + 0.1
    assert len(written) >= 15


@every(
    "path, piece",
    [
        (3, "checkpoint must be the path of a file, got 3"),
        ("", "got ''"),
        (os.curdir, "got a folder"),
        ("no/such/folder/a.npz", "a folder that does not exist"),
    ],
)
def test_careless_paths(path, piece):
    with pytest.raises(ko.InputError) as caught:
        solve("block-descent", path)
    assert piece in str(caught.value)


@pytest.mark.slow
def test_a_killed_call_goes_on_to_the_certified_optimum_50_of_50(tmp_path):
    command = [sys.executable, "-m", "tests.methods.resumable", str(tmp_path), "50"]
    found = subprocess.run(  # noqa: S603
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    written = found.stdout.splitlines()  # HiGHS 1.16 writes its version there too
    lines = [line for line in written if ": resumed, " in line or ": started, " in line]
    assert len(lines) == 50
    assert sum("resumed" in line for line in lines) >= 25
