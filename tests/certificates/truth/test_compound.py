"""No bound of a compound problem is false: strangers' points, judged by exact points in 320 bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from mpmath import mpf

import kernelopt as ko
from tests.certificates.truth.compound import Compound, Exact, compound, strangers
from tests.certificates.truth.exact_algebra import INFINITE, exact
from tests.exact_fractions import quietly

QUICK = range(40)
CHUNK, CHUNKS = 50, 40
SECONDS = 0.5  # of a solve, which one problem in ten is given


class Claim(NamedTuple):
    """The certificate of a stranger's point, or the error that came instead."""

    name: str
    certificate: Any = None
    error: str = ""


def claims(drawn: Compound) -> list[Claim]:
    """What `certify` says of each stranger's point, and sometimes `solve`."""
    calls: list[tuple[str, Any]] = [
        (f"stranger {k}", lambda options=options: ko.certify(drawn.problem, **options))
        for k, options in enumerate(strangers(drawn))
    ]
    if drawn.seed % 10 == 0:
        calls.append(("solve", lambda: ko.solve(drawn.problem, time_limit=SECONDS).certificate))
    said = []
    for name, call in calls:
        try:
            said.append(Claim(name, quietly(call)))
        except (ko.SolverError, ko.errors.MethodError, cp.DCPError):
            continue  # an honest refusal
        except BaseException as error:  # a panic in a solver written in Rust is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            said.append(Claim(name, error=f"{type(error).__name__}: {error}"[:200]))
    return said


def faults(seed: int) -> list[str]:
    """The false claims of a seed: its problem is feasible and bounded.

    `upper` is proved by weights within a relative 1e-14 of the returned ones that are exactly feasible and at
    which the returned machines attain no more. `lower` is above none of these values.
    """
    drawn = compound(seed)
    said, known, found = claims(drawn), Exact(drawn), []
    zeros = [(np.zeros(part.y.size), 0.0) for _, part, _ in drawn.risks]
    known.objective(exact(drawn.centre), zeros)
    for claim in said:
        if claim.error:
            found.append(f"{claim.name}: {claim.error}")
            continue
        certificate = claim.certificate
        upper = -certificate.lower if known.sign < 0 else certificate.upper
        if np.isnan(certificate.lower) or np.isnan(certificate.upper):
            found.append(f"{claim.name}: NaN in {certificate.lower!r}, {certificate.upper!r}")
        elif certificate.feasible:
            machines = [(m.alpha, m.intercept) for m in certificate.machines]
            values = [known.objective(mu, machines) for mu in known.near(certificate.point[drawn.mu])]
            least = min(values)
            if not least <= mpf(upper):
                what = "is not feasible" if least == INFINITE else f"attains {float(least)!r}"
                found.append(f"{claim.name}: upper {upper!r}, and its point {what}")
        elif certificate.proof is not None:
            found.append(f"{claim.name}: a proof of infeasibility")
    for claim in said:
        if not claim.error:
            lower = -claim.certificate.upper if known.sign < 0 else claim.certificate.lower
            if lower > known.best:
                found.append(f"{claim.name}: lower {lower!r} above {float(known.best)!r}")
    return [f"{drawn}: {fault}" for fault in found]


@pytest.mark.parametrize("seed", QUICK)
def test_no_bound_of_a_compound_problem_is_false(seed):
    found = faults(seed)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_bound_of_two_thousand_compound_problems_is_false(chunk):
    found = [fault for seed in range(CHUNK * chunk, CHUNK * (chunk + 1)) for fault in faults(seed)]
    assert not found, "\n".join(found)
