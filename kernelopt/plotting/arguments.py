"""Checks of what the figures are given: solutions with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelopt.errors import InputError
from kernelopt.validation import shown


def check_solutions(solutions: Any, caller: str, kinds: Any) -> None:
    """Raise unless `solutions` is a dict from label to solution, with at least one."""
    if not isinstance(solutions, Mapping) or not all(isinstance(s, kinds) for s in solutions.values()):
        raise InputError(
            f"{caller} needs solutions as a dict from label to solution, got {shown(solutions)}. "
            "Pass {'label': solution}."
        )
    if not solutions:
        raise InputError(
            f"{caller} needs solutions, at least one solution, got none. Pass {{'label': solution}}."
        )
