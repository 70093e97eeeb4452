"""Values, and the names of options, as error messages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np

FEW = 3  # arrays of at most so many entries are printed in full
LISTED = 6  # entries that a message lists
LONGEST = 80  # characters of a value in a message


def shown(value: object) -> str:
    """Return a value as text for a message, on one line; a long array is described by its size and range.

    Parameters
    ----------
    value : anything
        What a user has passed.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.extend import shown
    >>> shown("one"), shown(np.arange(1, 11.0))
    ("'one'", '[10 values, 1 to 10]')
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.size > FEW:
            low, high = value.min(), value.max()
            return f"[{value.size} values, " + (f"all {low:g}]" if low == high else f"{low:g} to {high:g}]")
        value = value.tolist()
    elif isinstance(value, np.bool_ | np.number):
        value = value.item()
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not print integers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def kind_of(value: object) -> str:
    """Return the type of a value, with its dtype or shape if it has one."""
    name = type(value).__name__
    if isinstance(value, np.ndarray | np.generic):
        return f"{name} of dtype {value.dtype}"
    shape = getattr(value, "shape", None)
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else name


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return names as text, the first of them where they are many."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


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
