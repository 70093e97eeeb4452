"""Validation of the names of options."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def refuse_unknown(given: Iterable[str], allowed: Iterable[str], function: str) -> None:
    """Raise TypeError for the first name that is not allowed, with the nearest and with all allowed names.

    Parameters
    ----------
    given, allowed : names of options
    function : str
        The name of the function that was called, for the message.
    """
    names = list(allowed)
    for name in sorted(set(given) - set(names)):
        raise TypeError(
            f"{function}() got an unexpected keyword argument {name!r}.{suggestion(name, names)} The options "
            f"are {', '.join(names)}."
        )


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name meant by a misspelt one: a beginning or continuation of it, else a similar one."""
    beginnings = [known for known in names if name.startswith(known) or known.startswith(name)]
    return next(iter(beginnings or get_close_matches(name, list(names), n=1)), None)


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean ...?" with the nearest of the names, for a message; "" if none is near."""
    nearest = nearest_name(name, names)
    return f" Did you mean {nearest}?" if nearest else ""
