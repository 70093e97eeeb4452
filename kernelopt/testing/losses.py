"""`check_loss`: the identities that relate the methods of a loss."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.learner import learn
from kernelopt.losses import Loss
from kernelopt.methods.solve import solve
from kernelopt.testing.disagreements import disagreement
from kernelopt.testing.findings import Findings
from kernelopt.validation import Array

POINTS = 8  # of the default labels or targets
TRIALS = 10  # random predictions or dual variables of each check
CLOSE = 1e-7  # relative: a response may be a root that is found to half of the digits
SOLVER_ACCURACY = 1e-5  # relative, of a conic solve
INSIDE = 0.999  # times a point of the domain: l may be infinitely steep at its boundary
STEP, SLOPE = 1e-5, 1e-6  # of central differences, whose error STEP^2 + u / STEP is below 1e-9
WEIGHTS = (0.3, 1.0, 1.6)  # of `dual_perspective`, not all powers of two, so that a missing factor shows
COMPARED = 3  # predictions at which the parts of a loss that fails are compared


def check_loss(loss: Loss, y: Any = None, *, seed: int = 0) -> Findings:
    """Check the methods of a loss against each other.

    At random predictions t and dual variables a it is checked that

    * `expression` is convex and has the value of `value`;
    * V(t) >= l(a) - a't (Fenchel and Young) for a in the domain, with equality at a = `response` of t;
    * `dual_expression` is concave, has the value of `dual_value`, and its domain contains what `project`
      returns;
    * `dual_perspective`, if it is stated, is concave in alpha and the weight w together, has the value of
      w l(a / w), and its domain contains w times what `project` returns;
    * `dual_gradient` and, if it is stated, `hessian_diag` agree with central differences;
    * no other intercept has a smaller loss than `intercept`;
    * at a kernel, the value of the trained machine is the optimum of the dual of `dual_expression`, and w
      times that value the optimum of the dual of `dual_perspective`.

    Parameters
    ----------
    loss : Loss
    y : array of shape (n,), optional
        Labels or targets; by default eight, of the loss's kind.
    seed : int, default 0

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails, in words. Where the values differ it names a sample, the value of
        each part there, and the part that is alone with its value, if two others agree.
    ParameterError
        If it is not given a `Loss`.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_loss
    >>> len(check_loss(ko.hinge(2.0)).stated)
    14
    """
    if not isinstance(loss, Loss):
        raise ParameterError(
            f"check_loss takes a Loss, got {type(loss).__name__}: {loss!r:.60}. Create one, such as "
            "kernelopt.hinge(1.0)."
        )
    rng = np.random.default_rng(seed)
    given = y
    if y is None and loss.kind != "none":
        given = (
            np.where(np.arange(POINTS) % 2, -1.0, 1.0) if loss.kind == "labels" else rng.normal(size=POINTS)
        )
    targets = loss.targets(given, POINTS if given is None else np.size(given))
    findings = Findings(repr(loss))
    with findings.part("the curve"):
        check_curve(findings, loss, targets)
    findings.raise_if_wrong()
    for what, check in CHECKS.items():
        with findings.part(what):
            check(findings, loss, targets, rng)
    findings.raise_if_wrong()
    return findings


def predictions(loss: Loss, y: Array, rng: np.random.Generator) -> Array:
    """Return random predictions at which the loss is finite."""
    t = 1.5 * rng.normal(size=y.size)
    return t if np.isfinite(loss.value(t, y)) else y * (1 + np.abs(t))


def near(one: float, two: float) -> bool:
    """Whether two numbers agree to 1e-7, relative to max(1, size)."""
    return abs(one - two) <= CLOSE * max(1.0, abs(one), abs(two))


def check_curve(findings: Findings, loss: Loss, y: Array) -> None:
    """Check that the fields of the curve are arrays, one entry for each sample: others fail far away."""
    for name, field in loss.curve(y)._asdict().items():
        if not isinstance(field, np.ndarray) or field.shape != y.shape:
            got = f"{type(field).__name__} of shape {np.shape(field)}"
            findings.state(f"`{name}` of `curve` is an array of shape ({y.size},), one a sample", False, got)


def check_form(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check `expression` against `value`."""
    findings.state("the expression is convex", loss.expression(cp.Variable(y.size), y).is_convex())
    worst = 0.0
    for _ in range(TRIALS):
        t = predictions(loss, y, rng)
        summed = loss.expression(cp.Constant(t), y)
        written = (
            float(solve(cp.Problem(cp.Minimize(summed))).value) if summed.variables() else float(summed.value)
        )
        exact = loss.value(t, y)
        worst = max(worst, abs(written - exact) / max(1.0, abs(exact)))
    found = f"a difference of {worst:.1e}"
    if not worst <= SOLVER_ACCURACY:
        found = f"{found}. {where_parts_differ(loss, y, rng)}"
    findings.state("the expression has the value of the loss", worst <= SOLVER_ACCURACY, found)


def check_fenchel_young(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check V(t) >= l(a) - a't, with equality at the response."""
    excess, gap = 0.0, 0.0
    for _ in range(TRIALS):
        t, a = predictions(loss, y, rng), loss.project(2 * rng.normal(size=y.size), y, bias=False)
        value = loss.value(t, y)
        scale = max(1.0, abs(value))
        excess = max(excess, float(loss.dual_value(a, y) - a @ t - value) / scale)
        best = loss.response(t, y)
        gap = max(gap, abs(value - float(loss.dual_value(best, y) - best @ t)) / scale)
    holds = excess <= CLOSE and gap <= CLOSE
    differ = "" if holds else f". {where_parts_differ(loss, y, rng)}"
    findings.state("V(t) >= l(a) - a't", excess <= CLOSE, f"an excess of {excess:.1e}{differ}")
    findings.state("V(t) = l(a) - a't at the response", gap <= CLOSE, f"a gap of {gap:.1e}{differ}")


def where_parts_differ(loss: Loss, y: Array, rng: np.random.Generator) -> str:
    """Return the sample at which the parts of a loss differ most; empty where they cannot be compared."""
    try:
        return disagreement(loss, np.array([predictions(loss, y, rng) for _ in range(COMPARED)]), y)
    except Exception:  # a loss with a weight for every sample, or a part that raises, which is said apart
        return ""


def check_dual(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check `dual_expression` against `dual_value` and `project`."""
    alpha = cp.Variable(y.size)
    gain, domain = loss.dual_expression(alpha, y)
    findings.state("`dual_expression` is concave", gain.is_concave())
    worst, outside = 0.0, 0
    for _ in range(TRIALS):
        alpha.value = INSIDE * loss.project(2 * rng.normal(size=y.size), y, bias=False)
        exact = loss.dual_value(alpha.value, y)
        worst = max(worst, abs(float(gain.value) - exact) / max(1.0, abs(exact)))
        outside += not all(np.max(c.violation(), initial=0.0) <= CLOSE for c in domain)
    findings.state(
        "`dual_expression` has the value of `dual_value`", worst <= CLOSE, f"a difference of {worst:.1e}"
    )
    findings.state("`project` returns points of the domain", outside == 0, f"{outside} of {TRIALS} outside")


def check_perspective(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check `dual_perspective`, if it is stated, against `dual_value` and `project`."""
    alpha, w = cp.Variable(y.size), cp.Variable(nonneg=True)
    stated, fixed = loss.dual_perspective(alpha, y, w), loss.dual_perspective(alpha, y)
    if stated is None or fixed is None:
        return
    concave = stated[0].is_dcp() and stated[0].is_concave() and fixed[0].is_concave()
    findings.state("`dual_perspective` is concave", concave)
    worst, outside = 0.0, 0
    for k in range(TRIALS):
        w.value = WEIGHTS[k % len(WEIGHTS)]
        a = INSIDE * loss.project(2 * rng.normal(size=y.size), y, bias=False)
        exact = loss.dual_value(a, y)
        for (gain, domain), weight in ((fixed, 1.0), (stated, float(w.value))):
            alpha.value = weight * a
            missed = abs(float(np.ravel(gain.value)[0]) - weight * exact)
            worst = max(worst, missed / max(1.0, abs(exact)))
            outside += not all(np.max(c.violation(), initial=0.0) <= CLOSE for c in domain)
    shown = f"a difference of {worst:.1e}"
    findings.state("`dual_perspective` has the value of w l(a / w)", worst <= CLOSE, shown)
    shown = f"{outside} of {2 * TRIALS} outside"
    findings.state("the domain of `dual_perspective` has the points of `project`", outside == 0, shown)


def inside(loss: Loss, y: Array, rng: np.random.Generator) -> Array:
    """Return random dual variables strictly between their bounds."""
    _, _, _, lower, upper = loss.curve(y)
    low, share = np.maximum(lower, -1 - np.abs(y)), rng.uniform(0.2, 0.8, size=y.size)
    return np.asarray(low + share * (np.minimum(upper, low + 3) - low))


def check_derivatives(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check `dual_gradient` and `hessian_diag` against central differences."""
    errors = []
    for _ in range(TRIALS):
        a, along = inside(loss, y, rng), rng.normal(size=y.size)
        difference = loss.dual_value(a + STEP * along, y) - loss.dual_value(a - STEP * along, y)
        slopes = loss.dual_gradient(a, y) * along
        missed = abs(difference / (2 * STEP) - float(slopes.sum()))
        errors.append(missed / max(1.0, float(np.abs(slopes).sum())))
    worst = float(np.max(errors))  # NaN if one of them is
    findings.state(
        "`dual_gradient` is the derivative of `dual_value`", worst <= SLOPE, f"a difference of {worst:.1e}"
    )
    t = predictions(loss, y, rng)
    second = loss.hessian_diag(t, y)
    if second is not None:
        differences = (loss.response(t - STEP, y) - loss.response(t + STEP, y)) / (2 * STEP)
        missed = float(np.abs(differences - second).max()) / max(1.0, float(np.abs(second).max()))
        shown = f"a difference of {missed:.1e}"
        findings.state("`hessian_diag` is the second derivative of the loss", missed <= SLOPE, shown)


def check_intercept(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check that no other intercept has a smaller loss."""
    gain = 0.0
    for _ in range(TRIALS if loss.default_bias else 0):
        f = predictions(loss, y, rng)
        b = loss.intercept(f, y)
        best = loss.value(f + b, y)
        others = [loss.value(f + b + step, y) for step in (-1.0, -1e-3, 1e-3, 1.0)]
        gain = max(gain, (best - min(others)) / max(1.0, abs(best)))
    findings.state("no other intercept has a smaller loss", gain <= CLOSE, f"one is smaller by {gain:.1e}")


def check_machine(findings: Findings, loss: Loss, y: Array, rng: np.random.Generator) -> None:
    """Check the value of the machine at a kernel against the optimum of the dual problem."""
    root = rng.normal(size=(y.size, y.size))
    K = root @ root.T / y.size + 0.1 * np.eye(y.size)
    found = learn(K, y, loss, loss.default_bias)
    alpha = cp.Variable(y.size)
    gain, domain = loss.dual_expression(alpha, y)
    balanced = [cp.sum(alpha) == 0] if loss.default_bias else []
    half = np.linalg.cholesky(K).T / np.sqrt(2)
    dual = solve(cp.Problem(cp.Maximize(gain - cp.sum_squares(half @ alpha)), [*domain, *balanced]))
    close = abs(found.value - dual.value) <= SOLVER_ACCURACY * max(1.0, abs(dual.value))
    findings.state("primal and dual agree at a kernel", close, f"{found.value!r} and {dual.value!r}")
    w = cp.Variable(nonneg=True)
    stated = loss.dual_perspective(alpha, y, w)
    if stated is None:
        return
    weight, scaled = WEIGHTS[-1], cp.quad_over_lin(half @ alpha, w)
    dual = solve(cp.Problem(cp.Maximize(stated[0] - scaled), [*stated[1], *balanced, w == weight]))
    close = abs(weight * found.value - dual.value) <= SOLVER_ACCURACY * max(1.0, abs(dual.value))
    shown = f"{weight * found.value!r} and {dual.value!r}"
    findings.state("the dual of `dual_perspective` has w times the value at a kernel", close, shown)


CHECKS = {
    "the expression": check_form,
    "Fenchel-Young": check_fenchel_young,
    "the dual": check_dual,
    "the perspective": check_perspective,
    "the derivatives": check_derivatives,
    "the intercept": check_intercept,
    "the machine": check_machine,
}
