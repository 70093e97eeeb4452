"""The methods that are installed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from kernelopt.entry_points import FORMULATIONS, leave_out, loaded, subclasses
from kernelopt.errors import MethodError, ParameterError
from kernelopt.methods.method import Method
from kernelopt.validation import shown

GROUP = "kernelopt.methods"  # of entry points
METHODS: dict[str, Method] = {}  # those of other packages are added by `registered`


def add(method: Method) -> None:
    """Add a method, or say what is wrong with it; one of the same module is replaced by its new version."""
    if not isinstance(method, Method) or not isinstance(getattr(method, "name", None), str):
        raise ParameterError(
            f"method must be an object of a subclass of Method with a name, got {shown(method)}. "
            "Register an instance, such as FrankWolfe(), not its class."
        )
    other = type(METHODS.get(method.name, method)).__module__
    if method.name == "auto" or other != type(method).__module__:
        taken = "the choice among all methods" if method.name == "auto" else f"that of {other}"
        raise ParameterError(
            f"method must have a name of its own, got {method.name!r} of {type(method).__module__}, which is "
            f"{taken}. Rename it, or pass the object itself to solve."
        )
    METHODS[method.name] = method


def registered() -> dict[str, Method]:
    """Return all methods by name; those of other packages are imported at the first call."""
    _add_installed()
    return METHODS


@cache
def _add_installed() -> None:
    """Add the methods that packages name in their entry points, with the default values of their options."""
    known = {name: type(method) for name, method in METHODS.items()}
    for point, kind in subclasses(GROUP, Method, known):
        if getattr(kind, "name", None) != point.name:
            leave_out(point, "called as its method is", f"the method {getattr(kind, 'name', None)!r}")
            continue
        try:
            add(kind())
        except Exception as error:  # what a foreign class raises may be anything
            leave_out(point, "a Method with defaults for its options", f"{type(error).__name__}: {error}")


def named(name: str) -> Method:
    """Return the method called `name`; the formulations, some of which bring methods, are imported last."""
    methods = registered()
    if isinstance(name, str) and name in methods:
        return methods[name]
    for _ in loaded(FORMULATIONS):
        pass  # a formulation registers its method when it is imported
    if not isinstance(name, str) or name not in methods:
        close = get_close_matches(name, methods, n=1) if isinstance(name, str) else []
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise MethodError(
            f"method must be 'auto' or one of {', '.join(map(repr, methods))}, got {shown(name)}. "
            f"{meant}kernelopt.explain(problem) lists those that apply."
        )
    return methods[name]


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
