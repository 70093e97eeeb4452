"""docs/architecture.md: its layers are import-linter's, its files exist, and its journeys enter them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.estimators import MKLClassifier
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_STEPS = 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0, 1, -1)
GRAMS = ko.Grams.from_kernels([ko.gaussian(w) for w in (1, 2, 4)], X)


def learning(*constraints):
    theta = cp.Variable(3, nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, GRAMS), Y, ko.hinge(1.0))
    return cp.Problem(cp.Minimize(risk), [*ko.lp_ball(theta, 2), *(each(theta) for each in constraints)])


def dualize():
    dual = ko.dualize(learning())
    assert str(dual)
    dual.solve()
    assert dual.check().gap < 1e-5


def solve():
    assert ko.solve(learning(), "interleaved").gap < 1e-4


def certify():
    assert ko.certify(learning()).gap < np.inf
    ko.certify(learning(lambda theta: cp.norm(theta - 0.1) <= 1))  # a set without a closed bound


def fit():
    MKLClassifier(tol=1e-2).fit(X, Y).predict(X)


JOURNEYS = {
    "ko.solve": solve,
    "ko.certify": certify,
    "ko.dualize": dualize,
    "MKLClassifier": fit,
}


def steps_of(name):
    """The files of the steps of a journey."""
    table = next(part for part in PAGE.split("\n\n") if part.startswith(f"| | `{name}"))
    rows = [re.fullmatch(r"\| (\d+) \| .* \| `(.*)` \|", row) for row in table.splitlines()[2:]]
    assert [int(row[1]) for row in rows] == [*range(1, len(rows) + 1)]
    return [row[2] for row in rows]


def entered(journey):
    """The files of kernelopt in which a function is called."""
    files, before = set(), sys.getprofile()
    folder = str(ROOT / "kernelopt") + "/"
    installed = str(Path(ko.__file__).parent) + "/"

    def profile(frame, event, argument):
        name = frame.f_code.co_filename
        for start in (folder, installed):
            if event == "call" and name.startswith(start):
                files.add(name.removeprefix(start))

    sys.setprofile(profile)
    try:
        journey()
    finally:
        sys.setprofile(before)
    return files


def test_the_layers_are_those_that_are_enforced():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    layers = next(
        c["layers"] for c in contracts if c["type"] == "layers" and c["containers"] == ["kernelopt"]
    )
    drawn = PAGE.split("```")[1].strip().splitlines()
    enforced = [re.sub(r"[()]", "", layer) for layer in layers]
    assert [re.split(r"\s{2,}", row)[0] for row in drawn] == enforced


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey_enters_its_files(name):
    steps = steps_of(name)
    assert len(steps) <= MOST_STEPS
    assert set(steps) <= entered(JOURNEYS[name])


def test_every_file_of_the_table_of_changes_exists():
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`", PAGE.split("## To add")[1])
    missing = [n for n in named if not any((ROOT / top / n).exists() for top in ("", "kernelopt"))]
    assert len(named) > 15 and not missing
