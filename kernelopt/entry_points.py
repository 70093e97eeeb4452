"""What other packages bring: the objects that they name in entry points, imported when they are asked for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points, packages_distributions
from importlib.util import find_spec
from inspect import isabstract
from typing import Any

from kernelopt.errors import PackageWarning

OWN = "formulations"  # the package of the distribution kernelopt beside the package kernelopt
FORMULATIONS = "kernelopt.formulations"  # the group of those whose import registers methods, too


def loaded(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield the entry points of a group with the objects that they name, in the order of their names.

    One that cannot be imported is left out with a warning: a package that is broken must not stop those
    who use kernelopt without it. A foreign package `formulations` is not imported in the place of ours.
    """
    replaced = group == FORMULATIONS and not formulations_are_own()
    for point in named(group, tuple(sys.path)):
        if replaced and point.module.partition(".")[0] == OWN:
            continue
        try:
            found = point.load()
        except Exception as error:  # what the import of a foreign package raises may be anything
            leave_out(point, "an object that can be imported", f"{type(error).__name__}: {error}")
        else:
            yield point, found


@cache
def named(group: str, path: tuple[str, ...]) -> list[EntryPoint]:
    """Return the entry points of a group by name: a search of milliseconds, made once for a path."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, point.value))


def subclasses(group: str, base: type, own: Mapping[str, type]) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield the entry points of a group that name a subclass of `base`, under names that nobody else uses.

    Others are left out with a warning. `own` are the names that are taken, with their classes.
    """
    taken = dict(own)
    for point, found in loaded(group):
        if not (isinstance(found, type) and issubclass(found, base)) or isabstract(found):
            leave_out(point, f"a subclass of {base.__name__} that states all it must", f"{found!r:.80}")
        elif taken.setdefault(point.name, found) is not found:
            other = taken[point.name]
            leave_out(point, "a name of its own", f"that of {other.__module__}.{other.__qualname__}")
        else:
            yield point, found


def package_of(point: EntryPoint) -> str:
    """Return the name of the package that an entry point belongs to."""
    return point.dist.name if point.dist is not None else point.value.partition(":")[0].partition(".")[0]


def leave_out(point: EntryPoint, expected: str, got: str) -> None:
    """Warn that an entry point of a package is left out, and why."""
    warnings.warn(
        PackageWarning(
            f"the entry point {point.name!r} of the package {package_of(point)} must be {expected}, got "
            f"{got} ({point.value}, in the group {point.group}). It is left out: correct the package, or "
            "uninstall it."
        ),
        stacklevel=2,
    )


def formulations_are_own() -> bool:
    """Say whether `import formulations` finds kernelopt's package, or none; warn where it finds another one.

    The package is found and its code is read, but it is not run.
    """
    spec = find_spec(OWN)
    if spec is None:
        return True
    read = getattr(spec.loader, "get_code", None)
    try:
        code = read(OWN) if read is not None else None
    except SyntaxError:
        code = None
    if code is not None and "__distribution__" in code.co_names and "kernelopt" in code.co_consts:
        return True
    others = sorted(set(packages_distributions().get(OWN, [])) - {"kernelopt"})
    names = ", ".join(others)
    where = spec.origin or ", ".join(spec.submodule_search_locations or [])
    again = "install kernelopt again, from where you have it: `pip install --force-reinstall --no-deps ...`."
    remedy = (
        f"Uninstall {names}, or give it an environment of its own, and {again}"
        if others
        else f"Rename that package where it is your own, else {again}"
    )
    warnings.warn(
        PackageWarning(
            f"the package `formulations` must be the one that kernelopt installs, got {where}"
            f"{' of ' * bool(others)}{names}. kernelopt's formulations are left out. {remedy}"
        ),
        stacklevel=3,
    )
    return False
