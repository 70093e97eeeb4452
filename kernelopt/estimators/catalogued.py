"""Functions that build formulations of the catalogue by name, and the options that they take.

The formulations are found through entry points: kernelopt does not import them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from kernelopt.catalog import Entry, Formulation, catalogue
from kernelopt.errors import ParameterError
from kernelopt.validation import shown
from kernelopt.validation.messages import suggestion

KEYWORDS = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)  # arguments with a name


def entry_named(name: Any) -> Entry:
    """Return the formulation with a name such as "lanckriet.soft_margin".

    Raises
    ------
    ParameterError
        If none of that name is installed.
    """
    found = catalogue()
    if not isinstance(name, str) or name not in found:
        meant = suggestion(name, found) if isinstance(name, str) else ""
        raise ParameterError(
            f"formulation must be a name of the catalogue or a function, got {shown(name)}.{meant} "
            f"There are {', '.join(found) or 'none: install kernelopt, so that its entry points are known'}."
        )
    return found[name]


def built(name: str, *data: Any, **options: Any) -> Formulation:
    """Return the formulation of a name on some data."""
    return entry_named(name).build(*data, **options)


def as_options(given: Any) -> dict[str, Any]:
    """Return a copy of a dict of options, None as an empty one."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(
            f"options must be a dict from name to value, got {shown(given)} ({type(given).__name__}). Pass "
            'options={"p": 2.0}, say.'
        )
    return dict(given or {})


def checked_options(
    given: Any, build: Callable[..., Any], name: str, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a builder, with those defaults that it takes.

    Parameters
    ----------
    given : dict or None
    build : function of kernels, data and options
    name : str
        The builder in messages.
    defaults : dict
        Values of options that are not given.

    Raises
    ------
    ParameterError
        If the builder takes fewer than two arguments, an option is unknown, or one without a default is
        missing.
    """
    chosen = as_options(given)
    taken = list(signature(build).parameters.values())
    if len(taken) < 2:
        raise ParameterError(
            f"formulation must be a function of the kernels and the labels, got {name} of {len(taken)} "
            "arguments. Define it as def mine(grams, y, ...)."
        )
    known = {p.name: p for p in taken[2:] if p.kind in KEYWORDS}
    options: dict[str, Any] = {key: value for key, value in defaults.items() if key in known} | chosen
    unknown = [key for key in options if key not in known]
    if unknown and not any(p.kind is Parameter.VAR_KEYWORD for p in taken):
        meant = suggestion(str(unknown[0]), known)
        there = f"It has {', '.join(known)}." if known else "It has none: leave the options out."
        raise ParameterError(
            f"options must be arguments of the formulation {name}, got {unknown[0]!r}.{meant} {there}"
        )
    missing = [key for key, p in known.items() if p.default is Parameter.empty and key not in options]
    if missing:
        example = ", ".join(f'"{key}": ...' for key in missing)
        raise ParameterError(
            f"options must hold the arguments {', '.join(missing)} of the formulation {name}, which have no "
            f"default, got {shown(list(options))}. Pass options={{{example}}}, or "
            f"--option {'=VALUE '.join(missing)}=VALUE on the command line."
        )
    return options
