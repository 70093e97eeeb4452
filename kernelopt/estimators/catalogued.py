"""Formulations of the catalogue by name, for estimators: kernelopt does not import them."""

from __future__ import annotations

from typing import Any

from kernelopt.catalog import Entry, Formulation, catalogue
from kernelopt.errors import ParameterError
from kernelopt.validation import shown
from kernelopt.validation.options import nearest_name


def entry_named(name: Any) -> Entry:
    """Return the formulation with a name such as "lanckriet.soft_margin".

    Raises
    ------
    ParameterError
        If none of that name is installed.
    """
    found = catalogue()
    if not isinstance(name, str) or name not in found:
        nearest = nearest_name(name, found) if isinstance(name, str) else None
        meant = f"Did you mean {nearest}? " if nearest else ""
        raise ParameterError(
            f"formulation must be a name of the catalogue or a function, got {shown(name)}. {meant}"
            f"There are {', '.join(found) or 'none: install kernelopt, so that its entry points are known'}."
        )
    return found[name]


def built(name: str, *data: Any, **options: Any) -> Formulation:
    """Return the formulation of a name on some data."""
    return entry_named(name).build(*data, **options)
