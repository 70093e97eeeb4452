"""Hooks of pre-commit have the versions of the extra `test`; nox tests the Pythons of pyproject."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
def test_a_hook_of_pre_commit_has_the_version_of_the_extra(tool):
    (pin,) = [line for line in PROJECT["optional-dependencies"]["test"] if line.startswith(f"{tool}==")]
    (rev,) = re.findall(rf"/(?:mirrors-)?{tool}(?:-pre-commit)?\n *rev: v(.*)", HOOKS)
    assert pin == f"{tool}=={rev}"


def test_each_python_that_is_a_classifier_is_tested():
    tested = re.findall(r'"(3\.\d+)"', (ROOT / "noxfile.py").read_text(encoding="utf-8"))
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert tested[: len(named)] == named  # the last ones where a machine has them
    assert PROJECT["requires-python"] == f">={tested[0]}"
