"""No bound is false: hard random problems, every method, judged by exact points in 320 bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from mpmath import mpf

import kernelopt as ko
from kernelopt.methods.selection import applicable
from tests.certificates.truth.draws import Draw, Part, draw
from tests.certificates.truth.polish import polished
from tests.certificates.truth.truth import Truth
from tests.exact_fractions import quietly

SECONDS = 1.0  # of one solve; half of it in the quick test
QUICK, SMALL = range(20), 9
CHUNK, CHUNKS = 50, 40
FAITHFUL = 1e-6  # of its value: how much worse than `upper` the returned machine may be


class Claim(NamedTuple):
    """What was said of a draw, as bounds of the minimum; or the error that came instead."""

    method: str
    lower: float
    upper: float
    status: str = ""
    route: str = ""
    error: str = ""
    point: Any = None  # values of the variable, alphas and intercepts of the machines
    alphas: Any = None
    returned: Any = None  # the machine of the solution


def claim(problem: Draw, method: str, found: Any) -> Claim:
    """The bounds of a solution or of a certificate."""
    certificate = getattr(found, "certificate", found)
    lower, upper = (-found.upper, -found.lower) if problem.maximize else (found.lower, found.upper)
    point = None
    if certificate.machines:
        mu = None if problem.variable is None else certificate.point[problem.variable]
        machines = certificate.machines
        point = mu, [m.alpha for m in machines], [m.intercept for m in machines], machines
    returned = None
    if point is not None and getattr(found, "learned", ()):
        learned, weights = found.learned, found.weights
        own = np.shape(weights) == (len(problem.stack),)  # without an identity kernel, which is told as tau
        returned = (
            weights if own else point[0],
            [part.alpha for part in learned],
            [part.intercept for part in learned],
        )
    status = getattr(found, "status", "certified")
    proof = "" if certificate.proof is None else "proof of infeasibility"
    alphas = list(certificate.alphas) or None
    return Claim(method, lower, upper, status, certificate.route, proof, point, alphas, returned)


def garbage(problem: Draw) -> list[tuple[str, dict[str, Any]]]:
    """Candidates of a stranger, with and without training."""
    rng = np.random.default_rng(problem.seed)
    alphas = [10 ** rng.uniform(-3, 9) * rng.normal(size=p.y.size) * np.abs(p.y) for p in problem.parts]
    candidate = {}
    if problem.variable is not None:
        size = 10 ** rng.uniform(-6, 6)
        value = size * rng.random(problem.variable.shape)
        candidate[problem.variable] = value @ value.T if value.ndim == 2 else value
    many = len(problem.parts) > 1
    given = {"candidate": candidate or None, "alpha": alphas if many else alphas[0]}
    return [("garbage", given), ("garbage, not trained", given | {"retrain": False})]


def claims(problem: Draw, methods: int = 99, seconds: float = SECONDS) -> list[Claim]:
    """What some methods say of a draw, by turns, and `certify` of as many of a stranger's candidates."""
    said = []
    names = sorted(c.method.name for c in applicable(ko.Structure(problem.problem)))
    turn = problem.seed % len(names)
    calls: list[tuple[str, Any]] = [
        (name, lambda name=name: ko.solve(problem.problem, name, time_limit=seconds))
        for name in (names[turn:] + names[:turn])[:methods]
    ]
    calls += [
        (name, lambda options=options: ko.certify(problem.problem, **options))
        for name, options in garbage(problem)[:: 1 - 2 * (problem.seed % 2)][:methods]
    ]
    for name, call in calls:
        try:
            said.append(claim(problem, name, quietly(call)))
        except (ko.InfeasibleError, ko.UnboundedError) as error:
            said.append(Claim(name, np.nan, np.nan, error=f"{type(error).__name__}: {error}"[:120]))
        except ko.SolverError as error:
            said.append(Claim(name, -np.inf, np.inf, status=f"refused: {error}"[:120]))
        except BaseException as error:  # a panic in a solver written in Rust is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            foreign = f"foreign {type(error).__name__}: {error}"[:120]
            said.append(Claim(name, np.nan, np.nan, error=foreign))
    return said


def truth(problem: Draw, said: list[Claim]) -> Truth:
    """The bracket that the points of all claims prove, after some steps of Newton's method."""
    known = Truth(problem)
    solved = [c for c in said if c.point is not None and not c.method.startswith("garbage")]
    solved = sorted(solved, key=lambda c: c.upper - c.lower if np.isfinite(c.lower) else np.inf)
    best = None
    for c in solved[:2]:
        mu, alphas, intercepts, machines = c.point
        if problem.form == "blocks":
            alphas = [machines[0].alpha]
            if hasattr(machines[0], "coefficients"):
                known.primal = min(known.primal, known.blocks_value(machines[0].coefficients))
        before = known.primal
        known.learn(mu, alphas, intercepts)
        if c.alphas:
            known.learn(mu, c.alphas)
        if best is None or known.primal < before:
            best = (np.ones(known.m) if mu is None else mu), alphas, intercepts
    if best is not None:
        if problem.form == "blocks" and problem.numbers["norm"] < 2:
            forms = np.maximum(problem.stack @ best[1][0] @ best[1][0], 0)
            best = forms ** (1 - problem.numbers["norm"] / 2), *best[1:]
        polished(known, *best)
    return known


class Finding(NamedTuple):
    """A claim that is false, and by how much relative to the value."""

    problem: Draw
    fault: str
    claim: Claim
    size: float


def excess(claimed: float, proved: mpf) -> float:
    return (
        float(abs(mpf(claimed) - proved) / max(abs(proved), mpf(10) ** -300))
        if np.isfinite(claimed)
        else np.inf
    )


def judged(problem: Draw, said: list[Claim], known: Truth) -> list[Finding]:
    """The false claims: every draw is feasible and bounded."""
    assert known.width > -1e-60, f"the oracle contradicts itself by {known.width}: {problem}"
    found = []
    for c in said:
        if c.error:
            found.append(Finding(problem, c.error, c, np.inf))
            continue
        if not c.lower <= known.primal:
            found.append(Finding(problem, "lower", c, excess(c.lower, known.primal)))
        if not c.upper >= known.dual:
            found.append(Finding(problem, "upper", c, excess(c.upper, known.dual)))
        if c.returned is not None and problem.form not in ("blocks", "constrained"):
            value = known.returned_value(*c.returned)
            if value > mpf(c.upper) + mpf(FAITHFUL) * abs(mpf(c.upper)):
                found.append(Finding(problem, "returned machine", c, excess(c.upper, value)))
    return found


def findings(seed: int, methods: int, largest: int = 25, seconds: float = SECONDS) -> list[Finding]:
    problem = draw(seed, largest)
    said = claims(problem, methods, seconds)
    return judged(problem, said, truth(problem, said))


def told(found: list[Finding]) -> str:
    return "\n".join(
        f"{f.problem}: {f.claim.method} ({f.claim.route}): {f.fault} by {f.size:.1e}, "
        f"{f.claim.lower!r} <= minimum <= {f.claim.upper!r}"
        for f in found
    )


@pytest.mark.parametrize("seed", QUICK)
def test_no_bound_is_false(seed):
    """Small problems, each by one method and for one candidate of a stranger."""
    found = findings(seed, methods=1, largest=SMALL, seconds=SECONDS / 2)
    assert not found, told(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_bound_of_two_thousand_problems_is_false(chunk):
    """Each by two methods."""
    first = 1000 + CHUNK * chunk
    found = [f for seed in range(first, first + CHUNK) for f in findings(seed, methods=2)]
    assert not found, told(found)


def ridge_on_points(n: int = 6) -> tuple[Draw, float]:
    """Squared loss at K = I without intercept: f = C y / (1 + C), so the value is C y'y / (2 + 2 C)."""
    y, C = np.arange(1.0, n + 1), 3.0
    part = Part("squared", y, np.full(n, C), 1.0, False)
    problem = cp.Problem(cp.Minimize(part.risk(np.eye(n))))
    drawn = Draw(0, "fixed", np.eye(n)[None], (part,), {"p": np.inf, "radius": 1.0}, problem, None)
    return drawn, C * float(y @ y) / (2 + 2 * C)


def test_the_truth_of_a_ridge_regression_by_hand():
    problem, value = ridge_on_points()
    known = truth(problem, claims(problem))
    assert known.width < 1e-30
    assert abs(known.primal - mpf(value)) < 1e-14 * value


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("lie", [1e-14, 1e-9, 0.5])
def test_a_planted_lie_is_found(lie, side):
    problem, value = ridge_on_points()
    known = truth(problem, claims(problem))
    honest = Claim("honest", 0.9 * value, 1.1 * value)
    raised = honest._replace(lower=value * (1 + lie))
    lowered = honest._replace(upper=value * (1 - lie))
    assert judged(problem, [honest], known) == []
    assert [f.fault for f in judged(problem, [raised if side == "lower" else lowered], known)] == [side]


@pytest.mark.parametrize("seed", [5, 13, 24])
def test_the_bracket_of_the_truth_is_narrow(seed):
    """Newton's method reaches the optimum of many draws; the bracket is then narrower than a rounding."""
    problem = draw(seed, SMALL)
    assert truth(problem, claims(problem)).width < 1e-12
