"""What other packages bring: the objects that they name in entry points, imported when they are asked for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from typing import Any

from kernelopt.errors import PackageWarning

FORMULATIONS = "kernelopt.formulations"  # the group of those whose import registers methods, too


def loaded(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield the entry points of a group with the objects that they name, in the order of their names.

    One that cannot be imported is left out with a warning: a package that is broken must not stop those
    who use kernelopt without it.
    """
    for point in named(group, tuple(sys.path)):
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
