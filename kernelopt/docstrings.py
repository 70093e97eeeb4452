"""Parameters that many docstrings share, written in one of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])
SECTION = re.compile(r"(?<=^Parameters\n----------\n).*?(?=\n\n\S[^\n]*\n---|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^(\S[^\n]*?)( :[^\n]*|)((?:\n(?: [^\n]*)?)*)$", re.MULTILINE)


def parameters_of(*sources: Callable[..., Any]) -> Callable[[Documented], Documented]:
    r"""Complete the section Parameters of a docstring by parameters that other docstrings describe.

    Parameters
    ----------
    *sources : functions or classes
        With numpydoc sections. Of a parameter that several describe the first one counts.

    Returns
    -------
    decorator
        It replaces entries without a type, such as "grams, y" with the text "As for `primal`.", and adds
        what is left out, in the order of the signature. The section must be there.

    Examples
    --------
    >>> from kernelopt.extend import parameters_of
    >>> def area(width, height):
    ...     '''Return the area of a rectangle.
    ...
    ...     Parameters
    ...     ----------
    ...     width : float > 0
    ...         In metres.
    ...     height : float > 0
    ...         Of the upright side, in metres.
    ...     '''
    >>> @parameters_of(area)
    ... def volume(width, height, depth=1.0):
    ...     '''Return the volume of a box.
    ...
    ...     Parameters
    ...     ----------
    ...     width, height
    ...         As for `area`.
    ...     depth : float > 0, default 1.0
    ...         Of the box, in metres.
    ...     '''
    >>> print(volume.__doc__.partition("height : ")[2])
    float > 0
        Of the upright side, in metres.
    depth : float > 0, default 1.0
        Of the box, in metres.
    """

    def complete(documented: Documented) -> Documented:
        text = inspect.getdoc(documented)
        if text is None:  # python -OO
            return documented
        known: dict[str, str] = {}
        for source in (documented, *sources):
            known = _entries(inspect.getdoc(source) or "") | known
        names = [name for name in inspect.signature(documented).parameters if name in known]
        written = "\n".join(dict.fromkeys(known[name] for name in names))
        documented.__doc__ = SECTION.sub(lambda _: written, text, count=1)
        return documented

    return complete


def _entries(text: str) -> dict[str, str]:
    """Return the typed entries of the section Parameters, by the names of the parameters."""
    section = SECTION.search(text)
    return {
        name.strip().lstrip("*"): entry.group().rstrip()
        for entry in ENTRY.finditer(section.group() if section else "")
        if entry.group(2) or entry.group(1).startswith("*")  # `**options` has no type
        for name in entry.group(1).split(",")
    }
