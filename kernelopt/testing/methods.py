"""`check_method`: a method on problems with known optima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.methods.method import Cost, Method
from kernelopt.methods.selection import named
from kernelopt.structure.structure import Structure
from kernelopt.testing.findings import Findings, planted_between

UNREACHABLE = 1e-300  # a gap: without the callback the run would not end before it


def check_method(
    method: str | Method,
    entries: Sequence[Entry] | None = None,
    *,
    gap: float = 1e-5,
    seed: int = 0,
    knobs: dict[str, Any] | None = None,
) -> Findings:
    """Check a method on the planted problem of every entry that has one.

    It is checked that

    * `match` returns the reason for a refusal as text, or a match whose `cost` is a `Cost`;
    * the planted value lies between the certified bounds;
    * the certified gap is at most `gap`;
    * the bounds of every report to a callback contain the planted value;
    * StopIteration of a callback ends the run.

    Parameters
    ----------
    method : str or Method
        A name that is registered, or an instance.
    entries : sequence of Entry, optional
        By default the catalogue.
    gap : float > 0, default 1e-5
        The largest certified gap that is allowed.
    seed : int, default 0
        Of the planted problems.
    knobs : dict, optional
        Options of `Entry.planted`.

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails. Also if the method takes none of the problems.
    MethodError
        If there is no such method.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_method
    >>> len(check_method("exact", [ko.catalogue()["lp_norm.primal"]]).stated)
    6
    """
    chosen = method if isinstance(method, Method) else named(method)
    findings, accepted = Findings(chosen.name), False
    for entry in catalogue().values() if entries is None else entries:
        if entry.planted is not None:
            with findings.part(entry.name):
                accepted |= check_entry(findings, chosen, partial(entry.planted, **knobs or {}), gap, seed)
    findings.state("at least one problem is accepted", accepted, "reasons only")
    return findings.done()


def check_entry(findings: Findings, method: Method, plant: Callable[..., Any], gap: float, seed: int) -> bool:
    """Check a method on a planted problem; return whether it accepts the problem."""
    planted = plant(np.random.default_rng(seed))
    match = method.match(Structure(planted.formulation.problem))
    if isinstance(match, str):
        findings.state("a reason is given for a refusal", match.strip(), "an empty reason")
        return False
    findings.state("the cost is a Cost", isinstance(method.cost(match), Cost))
    reports: list[tuple[float, float]] = []
    stops: list[Any] = []

    def stop(state: dict[str, Any]) -> None:
        stops.append(state)
        raise StopIteration

    solution = planted.formulation.solve(
        method, tol=gap, callback=lambda state: reports.append((state["lower"], state["upper"]))
    )
    plant(np.random.default_rng(seed)).formulation.solve(method, tol=UNREACHABLE, callback=stop)
    value, certificate = planted.value, solution.certificate
    findings.state(f"the gap is at most {gap:g}", solution.gap <= gap, certificate)
    inside = planted_between(solution.lower, solution.upper, value)
    findings.state(f"the bounds contain {value:.9g}", inside, certificate)
    wrong = [pair for pair in reports if not planted_between(*pair, value)]
    findings.state(f"the bounds of every report contain {value:.9g}", not wrong, wrong[:3])
    findings.state("StopIteration of a callback ends the run", len(stops) <= 1, f"{len(stops)} reports")
    return True
