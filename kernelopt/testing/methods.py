"""`check_method`: a method of one's own, on problems with known optima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.catalog import Entry, Formulation, catalogue
from kernelopt.errors import ParameterError
from kernelopt.methods.method import Cost, Method
from kernelopt.methods.registry import registered
from kernelopt.structure.structure import Structure
from kernelopt.testing.findings import Findings

ROUNDING = 1e-9  # of a planted value: its data are doubles


def check_method(
    method: str | Method,
    entries: Sequence[Entry] | None = None,
    *,
    gap: float = 1e-5,
    seed: int = 0,
    knobs: dict[str, Any] | None = None,
) -> Findings:
    """Check a method on planted problems: what it refuses it refuses in words, what it takes it solves.

    Stated are, for every entry that plants optima:

    * match: a reason as text, or something with a cost that is a `Cost`;
    * bracket: the planted value lies between the certified bounds;
    * gap: it is at most `gap`;
    * told: brackets that a callback is told hold the planted value too, and StopIteration ends the work.

    Parameters
    ----------
    method : str or Method
        A name that is registered, or an instance.
    entries : sequence of Entry, optional
        By default the catalogue.
    gap : float > 0, default 1e-5
    seed : int, default 0
    knobs : dict, optional
        Of the planted problems.

    Returns
    -------
    Findings

    Raises
    ------
    AssertionError
        With every statement that fails, in words. Also if the method takes none of the problems.
    ParameterError
        If there is no such method.
    """
    chosen = as_method(method)
    findings, taken = Findings(chosen.name), 0
    for entry in catalogue().values() if entries is None else entries:
        if entry.planted is None:
            continue
        with findings.part(entry.name):
            taken += check_entry(findings, chosen, entry, gap, seed, knobs or {})
    findings.state("it takes at least one problem", taken > 0, "reasons only")
    findings.raise_if_wrong()
    return findings


def as_method(method: str | Method) -> Method:
    """Return the method of a name, or the instance."""
    if isinstance(method, Method):
        return method
    methods = registered()
    if method not in methods:
        raise ParameterError(
            f"method must be an instance of Method or one of {', '.join(map(repr, methods))}, got "
            f"{method!r}. Register it with ko.register_method, or pass the instance."
        )
    return methods[method]


def check_entry(
    findings: Findings, method: Method, entry: Entry, gap: float, seed: int, knobs: dict[str, Any]
) -> bool:
    """Check a method on a planted problem of an entry; return whether it takes the problem."""
    make: Any = entry.planted
    planted = make(np.random.default_rng(seed), **knobs)
    formulation: Formulation = planted.formulation
    value, slack = planted.value, ROUNDING * abs(planted.value)
    match = method.match(Structure(formulation.problem))
    if isinstance(match, str):
        findings.state(f"{entry.name}: it says why not", match.strip(), "an empty reason")
        return False
    findings.state(f"{entry.name}: the cost is a Cost", isinstance(method.cost(match), Cost))
    told: list[tuple[float, float]] = []

    def tell(state: dict[str, Any]) -> None:
        told.append((state["lower"], state["upper"]))

    solution = formulation.solve(method, tol=gap, callback=tell)
    findings.state(f"{entry.name}: the gap is at most {gap:g}", solution.gap <= gap, solution.certificate)
    inside = solution.lower - slack <= value <= solution.upper + slack
    findings.state(f"{entry.name}: the bracket holds {value:.9g}", inside, solution.certificate)
    wrong = [pair for pair in told if not pair[0] - slack <= value <= pair[1] + slack]
    findings.state(f"{entry.name}: every bracket on the way holds {value:.9g}", not wrong, wrong[:3])
    check_stopping(findings, method, make(np.random.default_rng(seed), **knobs).formulation, entry.name)
    return True


def check_stopping(findings: Findings, method: Method, formulation: Formulation, name: str) -> None:
    """Check that StopIteration of a callback ends the work after the first report."""
    reports = 0

    def stop(_: dict[str, Any]) -> None:
        nonlocal reports
        reports += 1
        raise StopIteration

    formulation.solve(method, tol=1e-300, callback=stop)
    findings.state(f"{name}: StopIteration ends it", reports <= 1, f"{reports} reports")
