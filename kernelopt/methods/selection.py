"""The choice of the methods to run, by their predicted seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from kernelopt.errors import MethodError, ParameterError
from kernelopt.methods.driver import Candidate
from kernelopt.methods.exact.method import Exact
from kernelopt.methods.method import Method
from kernelopt.methods.registry import named, registered, with_options
from kernelopt.methods.sizing import certification_seconds
from kernelopt.structure.structure import Structure

# The method "exact" gives the most precise weights. Hence it is preferred to a faster method if it is
# predicted to take hardly longer: by at most these seconds, and by at most this share of its own seconds.
UNNOTICED_SECONDS, UNNOTICED_SHARE = 0.02, 0.6


def candidates(
    structure: Structure, method: str | Method, options: dict[str, Any], taken: Collection[str]
) -> tuple[list[Candidate], Callable[[], tuple[str, ...]]]:
    """Return the methods to run, the best first, and a function that names all methods that apply.

    `taken` lists the options that the calling function takes, for error messages. Where one method is named,
    the others are matched only if the function is called: few calls need their names.

    Raises
    ------
    MethodError
        If there is no such method, or if it does not apply, with the reason.
    """
    if isinstance(method, str) and method == "auto":
        found = applicable(structure)
        names = names_of(found)
        able = [c for c in found if set(options) <= set(c.method.options())]
        if not able:
            raise ParameterError(
                f"the options {', '.join(options)} must be those of one method that applies, got a mixture. "
                f"Name the method: {', '.join(map(repr, names)) or 'none applies'}."
            )
        return [replace(c, method=with_options(c.method, options, taken)) for c in able], lambda: names
    single = with_options(named(method) if not isinstance(method, Method) else method, options, taken)
    match = single.match(structure)
    if isinstance(match, str):
        raise MethodError(
            f"method {single.name!r} does not apply: {match}. Use method='auto', or see explain()."
        )
    return [candidate(structure, single, match)], lambda: names_of(applicable(structure))


def applicable(structure: Structure) -> list[Candidate]:
    """Return the registered methods that apply, in the order in which they are tried."""
    found = [(method, method.match(structure)) for method in list(registered().values())]
    able = [candidate(structure, method, match) for method, match in found if not isinstance(match, str)]
    return sorted(able, key=preference)


def names_of(found: Collection[Candidate]) -> tuple[str, ...]:
    """Return the names of the methods."""
    return tuple(candidate.method.name for candidate in found)


def preference(candidate: Candidate) -> float:
    """Return the predicted seconds, for "exact" less those that go unnoticed: methods are sorted by it."""
    if not isinstance(candidate.method, Exact):
        return candidate.seconds
    return candidate.seconds - min(UNNOTICED_SECONDS, UNNOTICED_SHARE * candidate.seconds)


def candidate(structure: Structure, method: Method, match: Any) -> Candidate:
    """Return a method with its predicted seconds, which include those of the certificate."""
    cost = method.cost(match)
    certification = cost.certification if cost.certified else certification_seconds(structure)
    return Candidate(method, match, cost.seconds + certification, certification)
