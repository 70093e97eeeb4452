"""The installed methods, and the choice of those to run by their predicted seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from kernelopt.entry_points import FORMULATIONS, leave_out, loaded, subclasses
from kernelopt.errors import MethodError, ParameterError
from kernelopt.methods.driver import Candidate
from kernelopt.methods.exact.method import Exact
from kernelopt.methods.method import Method
from kernelopt.methods.sizing import certification_seconds
from kernelopt.structure.structure import Structure
from kernelopt.validation import shown

GROUP = "kernelopt.methods"  # the group of entry points in which packages list their methods
METHODS: dict[str, Method] = {}  # by name; `registered` adds the methods of other packages


def add(method: object) -> None:
    """Add a method to the registered ones.

    A registered method of the same name is replaced if its class is of the same module, as after a reload.

    Raises
    ------
    ParameterError
        If `method` is no instance of a named subclass of `Method`, or if its name is "auto" or the name of a
        method of another module.
    """
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
    """Return all methods by name. The first call imports the methods of other packages."""
    _add_installed()
    return METHODS


@cache
def _add_installed() -> None:
    """Add the methods that packages name in their entry points, with the default values of their options."""
    known = {name: type(method) for name, method in METHODS.items()}
    for point, kind in subclasses(GROUP, Method, known):
        if getattr(kind, "name", None) != point.name:
            leave_out(point, "named like its method", f"the method {getattr(kind, 'name', None)!r}")
            continue
        try:
            add(kind())
        except Exception as error:  # the class is of another package, and may raise any exception
            leave_out(point, "a Method with defaults for its options", f"{type(error).__name__}: {error}")


def named(name: object) -> Method:
    """Return the method called `name`.

    If no registered method has this name, all formulations are imported, since some of them register methods.

    Raises
    ------
    MethodError
        If there is no such method.
    """
    methods = registered()
    if isinstance(name, str) and name in methods:
        return methods[name]
    for _ in loaded(FORMULATIONS):
        pass  # importing a formulation registers its methods
    if not isinstance(name, str) or name not in methods:
        close = get_close_matches(name, methods, n=1) if isinstance(name, str) else []
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise MethodError(
            f"method must be 'auto' or one of {', '.join(map(repr, methods))}, got {shown(name)}. "
            f"{meant}kernelopt.explain(problem) lists those that apply."
        )
    return methods[name]


def configured(method: Method, options: dict[str, Any], taken: Collection[str]) -> Method:
    """Return a copy of a method with the given values of its options.

    `taken` lists the options that the calling function takes. Error messages name no others.

    Raises
    ------
    ParameterError
        If the method has no option of some given name.
    """
    unknown = sorted(set(options) - set(method.options()))
    if unknown:
        allowed = ", ".join(name for name in method.options() if name in taken) or "none"
        raise ParameterError(
            f"options of method {method.name!r} are {allowed}, got {', '.join(unknown)}. Settings of a "
            "solver go into solver_options={...}."
        )
    return replace(method, **options) if options else method  # type: ignore[type-var]


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
        return [replace(c, method=configured(c.method, options, taken)) for c in able], lambda: names
    single = configured(named(method) if not isinstance(method, Method) else method, options, taken)
    able, refused = judged(structure, [single])
    if refused:
        raise MethodError(
            f"method {single.name!r} does not apply: {refused[single.name]}. Use method='auto', or see "
            "explain()."
        )
    return able, lambda: names_of(applicable(structure))


def applicable(structure: Structure) -> list[Candidate]:
    """Return the registered methods that apply, in the order in which they are tried."""
    return judged(structure, registered().values())[0]


def judged(structure: Structure, methods: Iterable[Method]) -> tuple[list[Candidate], dict[str, str]]:
    """Return the methods that apply, in the order in which they are tried, and why the others do not.

    The predicted seconds of a candidate include the seconds of its certificate.
    """
    able, refused = list[Candidate](), dict[str, str]()
    for method in list(methods):
        match = method.match(structure)
        if isinstance(match, str):
            refused[method.name] = match
            continue
        cost = method.cost(match)
        certification = cost.certification if cost.certified else certification_seconds(structure)
        able.append(Candidate(method, match, cost.seconds + certification, certification))
    return sorted(able, key=preference), refused


def names_of(found: Collection[Candidate]) -> tuple[str, ...]:
    """Return the names of the methods."""
    return tuple(candidate.method.name for candidate in found)


def preference(candidate: Candidate) -> float:
    """Return the predicted seconds, for "exact" less those that go unnoticed: methods are sorted by it."""
    if not isinstance(candidate.method, Exact):
        return candidate.seconds
    return candidate.seconds - min(UNNOTICED_SECONDS, UNNOTICED_SHARE * candidate.seconds)
