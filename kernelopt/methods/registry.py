"""The methods that are installed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from kernelopt.errors import MethodError, ParameterError
from kernelopt.methods.method import Method
from kernelopt.validation import shown

METHODS: dict[str, Method] = {}


def named(name: str) -> Method:
    """Return the method called `name`."""
    if not isinstance(name, str) or name not in METHODS:
        close = get_close_matches(name, METHODS, n=1) if isinstance(name, str) else []
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise MethodError(
            f"method must be 'auto' or one of {', '.join(map(repr, METHODS))}, got {shown(name)}. "
            f"{meant}kernelopt.explain(problem) lists those that apply."
        )
    return METHODS[name]


def with_options(method: Method, options: dict[str, Any], taken: Collection[str]) -> Method:
    """Return a method with options, or say which it has of those that the called function takes."""
    unknown = sorted(set(options) - set(method.options()))
    if unknown:
        allowed = ", ".join(name for name in method.options() if name in taken) or "none"
        raise ParameterError(
            f"options of method {method.name!r} are {allowed}, got {', '.join(unknown)}. Settings of a "
            "solver go into solver_options={...}."
        )
    return replace(method, **options) if options else method  # type: ignore[type-var]
