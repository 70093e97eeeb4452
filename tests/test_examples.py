"""The examples run, and say what they are expected to say."""

from __future__ import annotations

import runpy
from pathlib import Path

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
