"""The examples run, and say what they are expected to say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_fused_tasks_is_certified_and_balances_the_two_tasks(capsys):
    space = runpy.run_path(str(EXAMPLES / "fused_tasks.py"))
    assert space["solution"].gap <= 1e-5
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
    found = space["main"]([*arguments, "--output", str(picture)])
    results = found[24]
    assert results.shape == (1, len(space["INFORMATIVE"]), len(space["NORMS"]), 3)
    assert (results[..., 0] >= 0.5 * space["BAYES"]).all() and (results[..., 0] <= 0.6).all()
    assert (results[:, 0, -1, 1] <= 1e-12).all()  # p = inf: equal weights, the truth where all inform
    assert (results[:, -1, 0, 1] < results[:, -1, -1, 1]).all()  # p = 1 is nearer where one does
    said = capsys.readouterr().out
    assert "the paper's conclusion" in said.lower() and picture.stat().st_size > 10_000


def test_comparisons_learn_from_training_points(tmp_path, capsys):
    space = runpy.run_path(str(EXAMPLES / "comparisons.py"))
    picture = tmp_path / "picture.png"
    found = space["main"](
        ["--splits", "1", "--triplets", "40", "--test-triplets", "200", "--output", str(picture)]
    )
    assert set(found) == {"wine", "iris"}
    for scores, counts, d in found.values():
        assert (scores > 0.6).all() and (scores <= 1.0).all() and (counts >= 1).all() and (counts <= d).all()
    assert "from best to worst" in capsys.readouterr().out and picture.stat().st_size > 10_000


def test_linear_functional_says_where_it_overfits(tmp_path, capsys):
    space = runpy.run_path(str(EXAMPLES / "linear_functional.py"))
    picture = tmp_path / "picture.png"
    arguments = ["--splits", "1", "--features", "2", "--points", "90", "--jobs", "1"]
    (found,) = space["main"]([*arguments, "--output", str(picture)])
    assert {convention for _, convention in found} == {"mean", "sum", ""}
    assert all(accuracy > 0.5 for name, (accuracy, _, _) in found.items() if "LFS" not in name[0])
    for convention in ("mean", "sum"):  # free weights fit the training points best
        errors = {name: error for (name, one), (_, error, _) in found.items() if one == convention}
        others = ("LFS, ridge", "LFS, nonnegative", "LFS, simplex", "plain average")
        assert errors["LFS"] <= min(errors[name] for name in others) + 1e-6
    said = capsys.readouterr().out
    assert "Where LFS overfits" in said and picture.stat().st_size > 10_000
