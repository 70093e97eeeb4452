"""The examples run, and say what they are expected to say."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.collected import problems_built

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_fused_tasks_is_certified_and_balances_the_two_tasks(capsys):
    with problems_built("fused_tasks.py") as built:
        space = runpy.run_path(str(EXAMPLES / "fused_tasks.py"))
    assert space["solution"].gap <= 1e-5
    assert built.problems and not built.check_duals()
    relative = [
        float(r.value / v)
        for r, v in zip((space["classify"], space["regress"]), space["levels"], strict=True)
    ]
    assert max(relative) < 1  # better than the plain average for both
    K = space["K"].value
    assert (K[space["a"], space["b"]] >= K[space["a"], space["c"]] - 1e-9).all()
    assert "optimum" in capsys.readouterr().out


def test_formulation_of_the_example_has_fewer_than_ten_lines():
    text = (EXAMPLES / "fused_tasks.py").read_text(encoding="utf-8")
    block = text.split("# %% The formulation\n")[1].split("# %%")[0]
    assert len([line for line in block.splitlines() if line.strip()]) < 10


@pytest.mark.slow
def test_sparsity_experiment_compares_all_norms(tmp_path, capsys):
    space = runpy.run_path(str(EXAMPLES / "sparsity_experiment.py"))
    picture = tmp_path / "picture.png"
    arguments = ["--repetitions", "1", "--points", "24", "--evaluation", "400", "--jobs", "1"]
    with problems_built("sparsity_experiment.py") as built:
        found = space["main"]([*arguments, "--output", str(picture)])
    assert built.problems and not built.check_duals()
    results = found[24]
    assert results.shape == (1, len(space["INFORMATIVE"]), len(space["NORMS"]), 3)
    assert (results[..., 0] >= 0.5 * space["BAYES"]).all() and (results[..., 0] <= 0.6).all()
    assert (results[:, 0, -1, 1] <= 1e-12).all()  # p = inf: equal weights, the truth where all inform
    assert (results[:, -1, 0, 1] < results[:, -1, -1, 1]).all()  # p = 1 is nearer where one does
    said = capsys.readouterr().out
    assert "the paper's conclusion" in said.lower() and picture.stat().st_size > 10_000


@pytest.mark.slow
def test_comparisons_learn_from_training_points(tmp_path, capsys):
    space = runpy.run_path(str(EXAMPLES / "comparisons.py"))
    picture = tmp_path / "picture.png"
    arguments = ["--splits", "1", "--triplets", "40", "--test-triplets", "200", "--output", str(picture)]
    with problems_built("comparisons.py") as built:
        found = space["main"](arguments)
    large = built.check_duals()  # programmes of the kind in docs/tour.md, which is smaller
    assert {type(problem).__name__ for problem in large} == {"TripletProgramme"}
    assert set(found) == {"wine", "iris"}
    for scores, counts, d in found.values():
        assert (scores > 0.6).all() and (scores <= 1.0).all() and (counts >= 1).all() and (counts <= d).all()
    assert "from best to worst" in capsys.readouterr().out and picture.stat().st_size > 10_000


@pytest.mark.slow
def test_linear_functional_says_where_it_overfits(tmp_path, capsys):
    space = runpy.run_path(str(EXAMPLES / "linear_functional.py"))
    picture = tmp_path / "picture.png"
    arguments = ["--splits", "1", "--features", "2", "--points", "90", "--jobs", "1"]
    with problems_built("linear_functional.py") as built:
        (found,) = space["main"]([*arguments, "--output", str(picture)])
    assert built.problems and not built.check_duals()
    assert {convention for _, convention in found} == {"mean", "sum", ""}
    assert all(accuracy > 0.5 for name, (accuracy, _, _) in found.items() if "LFS" not in name[0])
    for convention in ("mean", "sum"):  # free weights fit the training points best
        errors = {name: error for (name, one), (_, error, _) in found.items() if one == convention}
        others = ("LFS, ridge", "LFS, nonnegative", "LFS, simplex", "plain average")
        assert errors["LFS"] <= min(errors[name] for name in others) + 1e-6
    said = capsys.readouterr().out
    assert "Where LFS overfits" in said and picture.stat().st_size > 10_000


@pytest.fixture(scope="module")
def indefinite():
    return runpy.run_path(str(EXAMPLES / "indefinite_similarities.py"))


@pytest.mark.slow
def test_indefinite_similarities_certify_every_method(indefinite, tmp_path, capsys):
    picture = tmp_path / "picture.png"
    sizes = ["--points", "10", "--splits", "1", "--costs", "1", "--rhos", "1", "--jobs", "1"]
    with problems_built("indefinite_similarities.py") as built:
        found = indefinite["main"](["--data", "wine", *sizes, "--figure", str(picture)])
    assert built.problems and not built.check_duals()
    assert set(found) == set(indefinite["NAMES"]) and len(found) == 9 + 6
    outcomes = [outcome for of_method in found.values() for outcome in of_method]
    assert all(0 <= score <= 1 for o in outcomes for score in (o.accuracy, o.f_score))
    assert all(0 <= gap <= indefinite["TOLERANCE"] for o in outcomes for gap in o.gaps)
    assert all(np.isnan(o.rho) == (key[0] in indefinite["FIXED"]) for key in found for o in found[key])
    learned = [found["ESKL", fidelity][0].spectrum for fidelity in indefinite["FIDELITIES"]]
    assert all(lam.min() >= -1e-8 and lam.sum() == pytest.approx(learned[0].sum()) for lam in learned)
    said = capsys.readouterr().out
    assert "15 of 15 fits are certified" in said and said.count("the fidelity changes the accuracy") == 3
    assert picture.stat().st_size > 10_000


def test_indefinite_similarities_follow_the_protocol(indefinite, tmp_path):
    rng = np.random.default_rng(0)
    named, y = indefinite["load"]("breast_cancer", 0.0, rng)
    assert list(named) == ["Gaussian", "sigmoid", "TL1"] and (y == 1).sum() == 212
    least = {name: np.linalg.eigvalsh(S)[0] for name, S in named.items()}
    assert least["Gaussian"] > -1e-10 and least["sigmoid"] < -1 and least["TL1"] < -1  # without noise
    train, test = indefinite["sample"](y, 570, 0)
    assert test.size == 2 * 43 and train.size == 2 * (212 - 43)  # ceil(212 / 5) of each class
    assert not set(train) & set(test) and y[test].sum() == y[train].sum() == 0
    S, parts = np.array(list(named.values())), indefinite["sample"](y, 40, 0)
    grid = np.array([0.1, 1.0]), np.array([1.0, 0.1])
    fixed, chosen = (
        indefinite["evaluate"](name, "", S, y, parts, grid, 2) for name in ("Denoise", "indefinite SVM")
    )
    assert len(fixed.gaps) == 2 * 2 + 1 and np.isnan(fixed.rho)  # no rho to choose
    assert len(chosen.gaps) == 4 * 2 + 1 and chosen.rho in grid[1]
    assert min(fixed.accuracy, chosen.accuracy) > 0.5
    path = tmp_path / "kept.npz"
    np.savez(path, S=named["TL1"][:30, :30], y=np.where(y[:30] > 0, 2, 1))
    named, labels = indefinite["load"](str(path), 0.0, rng)
    assert list(named) == ["kept 1"] and named["kept 1"].shape == (30, 30) and (labels == -y[:30]).all()
