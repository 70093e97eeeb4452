"""Verdicts on the answers of solvers, from certificates and residuals and not from the solver's status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.testing.answers import Answer

Word = Literal["certified", "proved infeasible", "refuted", "not certified", "failed", "false bracket"]
TOLERANCE = 1e-4  # relative: of values, gaps and residuals
PLANTED_ROUNDING = 1e-9  # relative: a planted value differs so much from that of its rounded data, at most


@dataclass(frozen=True)
class Verdict:
    """A verdict and its reasons.

    Attributes
    ----------
    word : str
        * "certified": the gap of the certificate is at most the tolerance, the claimed value lies between its
          bounds, and the point is feasible.
        * "proved infeasible": a Farkas ray shows it, or convex hulls of the two classes that meet.
        * "refuted": the certificate or a residual shows that the claim is wrong.
        * "not certified": the claim is neither certified nor refuted.
        * "failed": there is no claim.
        * "false bracket": the true value is known, and not between the bounds of the certificate. This is a
          defect of kernelopt.
    why : str
        The reason; empty for "certified".
    """

    word: Word
    why: str = ""


def assess(answer: Answer, maximize: bool = False, tol: float = TOLERANCE) -> Verdict:
    """Return the verdict on an answer. The status of the solver only says what is claimed.

    Parameters
    ----------
    answer : Answer
    maximize : bool, default False
        The sense of the problem.
    tol : float > 0, default 1e-4
    """
    certificate = answer.certificate
    if answer.claim == "none":
        return Verdict("failed", answer.failure)
    if certificate is None:
        return Verdict("not certified", answer.failure)
    attained, bound = certificate.upper, certificate.lower
    if maximize:
        attained, bound = bound, attained
    impossible = answer.inseparable or certificate.proof is not None
    if answer.claim == "infeasible":
        if certificate.feasible and np.isfinite(attained):
            return Verdict("refuted", f"says {answer.status}, and {attained:.6g} is attained")
        if impossible:
            return Verdict(
                "proved infeasible", "inseparable labels" if answer.inseparable else "a Farkas ray"
            )
        return Verdict("not certified", f"says {answer.status}, without a proof")
    if answer.claim == "unbounded":
        if np.isfinite(bound):
            return Verdict("refuted", f"says {answer.status}, and {bound:.6g} bounds the optimum")
        return Verdict("not certified", f"says {answer.status}, which no bound contradicts")
    if impossible:
        return Verdict("refuted", "claims a value, and the problem has no feasible point")
    return assess_value(answer, certificate, tol)


def assess_value(answer: Answer, certificate: Certificate, tol: float) -> Verdict:
    """Return the verdict on a claimed value, by the bounds of the certificate and the residuals."""
    lower, upper, value = certificate.lower, certificate.upper, answer.value
    if not np.isfinite(value):
        return Verdict("refuted", f"says {answer.status}, and its value is {value:g}")
    ends = [abs(end) for end in (lower, upper) if np.isfinite(end)]
    slack = tol * (max(ends, default=0.0) or 1.0)
    if value < lower - slack or value > upper + slack:
        return Verdict("refuted", f"claims {value:.6g}, outside of [{lower:.6g}, {upper:.6g}]")
    if not answer.infeasibility <= tol:
        if np.isnan(answer.infeasibility):
            return Verdict("refuted", "claims a value without a finite point")
        return Verdict("refuted", f"violates {answer.violated!r} by {answer.infeasibility:.1e}")
    if not certificate.gap <= tol:
        why = certificate.reason or f"the gap is {certificate.gap:.1e}"
        return Verdict("not certified", why)
    if np.isfinite(answer.attained) and abs(answer.attained - value) > slack:
        return Verdict("refuted", f"claims {value:.6g}, and its point has {answer.attained:.6g}")
    if answer.complementarity > tol:
        return Verdict("not certified", f"complementarity is missed by {answer.complementarity:.1e}")
    return Verdict("certified")


def checked_against_truth(verdict: Verdict, answer: Answer, truth: float, tol: float = TOLERANCE) -> Verdict:
    """Return the verdict, or "false bracket" where the true value shows that the certificate is wrong.

    Parameters
    ----------
    verdict : Verdict
    answer : Answer
    truth : float
        The optimal value: inf for an infeasible minimisation, -inf for an unbounded one.
    tol : float > 0, default 1e-4
    """
    certificate = answer.certificate
    if certificate is None:
        return verdict
    slack = PLANTED_ROUNDING * (abs(truth) or 1.0) if np.isfinite(truth) else 0.0
    lower, upper = certificate.lower, certificate.upper
    if lower > truth + slack or upper < truth - slack:
        return Verdict("false bracket", f"[{lower:.9g}, {upper:.9g}] excludes the optimum {truth:.9g}")
    if verdict.word == "certified" and not true_error(answer.value, truth) <= 2 * tol:
        return Verdict("false bracket", f"{answer.value:.9g} was certified, the optimum is {truth:.9g}")
    return verdict


def true_error(value: float, truth: float) -> float:
    """Return |value - truth| / |truth|, or |value - truth| where the truth is zero.

    For an infinite truth it is 0 if the value is equal to it, and nan otherwise.
    """
    if not np.isfinite(truth):
        return 0.0 if value == truth else np.nan
    return abs(value - truth) / (abs(truth) or 1.0)
