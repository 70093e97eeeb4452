"""Fidelities by name: ours, and the classes that other packages name in their entry points."""

from __future__ import annotations

from functools import cache
from typing import Any

from kernelopt.entry_points import subclasses
from kernelopt.errors import ParameterError
from kernelopt.fidelities.base import Fidelity
from kernelopt.fidelities.norms import frobenius, l1, squared_frobenius
from kernelopt.validation import shown

FIDELITIES: dict[str, type[Fidelity]] = {
    fidelity.__name__: fidelity for fidelity in (l1, frobenius, squared_frobenius)
}


@cache
def known() -> dict[str, type[Fidelity]]:
    """Return the classes by name: ours, and the classes that other packages name in their entry points."""
    found = subclasses("kernelopt.fidelities", Fidelity, FIDELITIES)
    return FIDELITIES | {point.name: fidelity for point, fidelity in found}


def as_fidelity(kind: Any, what: str = "kind") -> Fidelity:
    """Return a fidelity as it is, or the one of a name.

    Parameters
    ----------
    kind : "l1", "frobenius", "squared_frobenius", or an object of a class of `Fidelity`
        Also the name of a fidelity of another package, whose parameters have defaults.
    what : str, default "kind"
        The name of the argument, for the message.

    Raises
    ------
    ParameterError
        If it is neither.

    Examples
    --------
    >>> from kernelopt.fidelities import as_fidelity
    >>> as_fidelity("l1")
    l1()
    """
    if isinstance(kind, Fidelity):
        return kind
    names = FIDELITIES if isinstance(kind, str) and kind in FIDELITIES else known()
    if isinstance(kind, str) and kind in names:
        try:
            return names[kind]()
        except TypeError as error:
            raise ParameterError(
                f"{what} must be an object of {kind}, got its name, and its parameters have no defaults "
                f"({error}). Pass {kind}(...) with its parameters."
            ) from error
    if isinstance(kind, type) and issubclass(kind, Fidelity):
        raise ParameterError(
            f"{what} must be an object of a class of Fidelity, got the class {kind.__name__}. Create one "
            f"first: {kind.__name__}(...)."
        )
    raise ParameterError(
        f"{what} must be {', '.join(map(repr, names))} or an object of a class of Fidelity, got "
        f"{shown(kind)}. Choose one of these names, or pass an object, such as kernelopt.fidelities.l1()."
    )
