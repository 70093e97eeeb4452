"""`check_loss`: the identities that relate the methods of a loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.learner import learn
from kernelopt.losses import Loss
from kernelopt.methods.solve import solve
from kernelopt.testing.findings import Findings, Property, apart, excess, require
from kernelopt.testing.rounding import lines, not_convex
from kernelopt.validation import Array

POINTS = 8  # of the default labels or targets
TRIALS = 10  # random predictions or dual variables of each check
CLOSE = 1e-7  # relative: a response may be a root that is found to half of the digits
SOLVER_ACCURACY = 1e-5  # relative, of a conic solve
INSIDE = 0.999  # times a point of the domain: l may be infinitely steep at its boundary
STEP, SLOPE = 1e-5, 1e-6  # of central differences, whose error STEP^2 + u / STEP is below 1e-9
WEIGHTS = (0.3, 1.0, 1.6)  # of `dual_perspective`, not all powers of two, so that a missing factor shows
NEARBY = (-1.0, -1e-3, 1e-3, 1.0)  # steps to other intercepts


def check_loss(loss: Loss, y: Any = None, *, seed: int = 0) -> Findings:
    r"""Check the methods of a loss against each other.

    At random predictions t and dual variables a it is checked that

    * `expression` is convex and has the value of `value`;
    * :math:`V(t) \ge \ell(a) - a't` (Fenchel and Young) for a in the domain, with equality at a = `response`
      of t;
    * `dual_expression` is concave, has the value of `dual_value`, and its domain contains what `project`
      returns;
    * `dual_perspective`, if it is stated, is concave in alpha and the weight w together, has the value of
      :math:`w\, \ell(a / w)`, and its domain contains w times what `project` returns;
    * the intervals of `bounded_dual_value` at a - v, a and a + v contain values of a concave function, as in
      `check_fidelity`;
    * `dual_gradient` and, if it is stated, `hessian_diag` agree with central differences;
    * no other intercept has a smaller loss than `intercept`;
    * at a kernel, the value of the trained machine is the optimum of the dual of `dual_expression`, and w
      times that value the optimum of the dual of `dual_perspective`.

    Parameters
    ----------
    loss : Loss
        What is checked.
    y : array of shape (n,), optional
        Labels or targets; by default eight, of the loss's kind.
    seed : int, default 0
        Of the random predictions and dual variables.

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails.
    ParameterError
        If it is not given a `Loss`.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_loss
    >>> len(check_loss(ko.hinge(2.0)).stated)
    19
    """
    require(loss, Loss, "check_loss", "Create one, such as kernelopt.hinge(1.0).")
    rng = np.random.default_rng(seed)
    if y is None and loss.kind != "none":
        y = np.where(np.arange(POINTS) % 2, -1.0, 1.0) if loss.kind == "labels" else rng.normal(size=POINTS)
    targets = loss.targets(y, POINTS if y is None else np.size(y))
    findings = Findings(repr(loss))
    with findings.part("the curve"):
        for name, field in loss.curve(targets)._asdict().items():  # others fail far away
            if not isinstance(field, np.ndarray) or field.shape != targets.shape:
                got = f"{type(field).__name__} of shape {np.shape(field)}"
                findings.state(f"`{name}` is an array of shape {targets.shape}, one a sample", False, got)
    return findings.done().state_all(properties(loss, targets, rng))


def properties(loss: Loss, y: Array, rng: np.random.Generator) -> Iterator[Property]:
    """Yield the properties of a loss at random predictions t and dual variables a."""
    alpha, w = cp.Variable(y.size), cp.Variable(nonneg=True)
    fits = [predictions(loss, y, rng) for _ in range(TRIALS)]
    duals = [loss.project(2 * rng.normal(size=y.size), y, bias=False) for _ in range(TRIALS)]

    def written(t: Array) -> float:
        summed = loss.expression(cp.Constant(t), y)
        return float(solve(cp.Problem(cp.Minimize(summed))).value if summed.variables() else summed.value)

    yield "the expression is convex", 0, (not loss.expression(v, y).is_convex() for v in [alpha])
    what = "the expression has the value of the loss"
    if loss.quadratic:
        what += ", by its curve unless `quadratic = False`"
    yield what, SOLVER_ACCURACY, (apart(written(t), loss.value(t, y)) for t in fits)
    above = (
        excess(loss.dual_value(a, y) - a @ t, loss.value(t, y)) for t, a in zip(fits, duals, strict=True)
    )
    yield "V(t) >= l(a) - a't", CLOSE, above
    responses = ((t, loss.response(t, y)) for t in fits)
    equal = (apart(loss.dual_value(a, y) - a @ t, loss.value(t, y)) for t, a in responses)
    yield "V(t) = l(a) - a't at the response", CLOSE, equal

    def points(weights: tuple[float, ...]) -> Iterator[float]:
        for a, weight in zip(duals, cycle(weights), strict=False):
            alpha.value, w.value = weight * INSIDE * a, weight
            yield weight * loss.dual_value(INSIDE * a, y)

    root = rng.normal(size=(y.size, y.size))
    K = root @ root.T / y.size + 0.1 * np.eye(y.size)
    half = np.linalg.cholesky(K).T / np.sqrt(2)
    price = cp.quad_over_lin(half @ alpha, w)
    machine = learn(K, y, loss, loss.default_bias).value
    balanced = [cp.sum(alpha) == 0] if loss.default_bias else []
    forms = {
        "`dual_expression`": ("l(a)", loss.dual_expression(alpha, y), (1.0,)),
        "`dual_perspective`": ("l(a)", loss.dual_perspective(alpha, y), (1.0,)),
        "`dual_perspective` with a weight": ("w l(a / w)", loss.dual_perspective(alpha, y, w), WEIGHTS),
    }
    for name, (value, stated, weights) in forms.items():
        if stated is None:
            continue
        gain, domain = stated
        yield f"{name} is concave", 0, [not (gain.is_dcp() and gain.is_concave())]
        values = (apart(np.ravel(gain.value)[0], exact) for exact in points(weights))
        yield f"{name} has the value of {value}", CLOSE, values
        outside = (np.max(c.violation(), initial=0.0) for _ in points(weights) for c in domain)
        yield f"the domain of {name} has the points of `project`", CLOSE, outside
        dual = cp.Problem(cp.Maximize(gain - price), [*domain, *balanced, w == weights[-1]])
        optima = (apart(weights[-1] * machine, solve(problem).value) for problem in [dual])
        yield f"the dual of {name} has w times the value at a kernel", SOLVER_ACCURACY, optima

    what = "the rounding errors of `dual_value` are not larger than `bounded_dual_value` states"
    between = [inside(loss, y, rng) for _ in range(TRIALS)]
    concave = lines(lambda a: loss.project(a, y, bias=False), between)
    yield what, 0, not_convex(lambda a: -loss.bounded_dual_value(a, y), concave)

    def slopes(a: Array, along: Array) -> float:
        difference = loss.dual_value(a + STEP * along, y) - loss.dual_value(a - STEP * along, y)
        terms = loss.dual_gradient(a, y) * along
        return abs(difference / (2 * STEP) - float(terms.sum())) / max(1.0, float(np.abs(terms).sum()))

    steps = (slopes(inside(loss, y, rng), rng.normal(size=y.size)) for _ in fits)
    yield "`dual_gradient` is the derivative of `dual_value`", SLOPE, steps
    t = fits[0]
    second = loss.hessian_diag(t, y)
    if second is not None:
        bends = (loss.response(t - STEP, y) - loss.response(t + STEP, y)) / (2 * STEP)
        yield "`hessian_diag` is the second derivative of the loss", SLOPE, [apart(bends, second)]
    best = (f + loss.intercept(f, y) for f in fits if loss.default_bias)
    gains = (excess(loss.value(t, y), loss.value(t + step, y)) for t in best for step in NEARBY)
    yield "no other intercept has a smaller loss", CLOSE, gains


def predictions(loss: Loss, y: Array, rng: np.random.Generator) -> Array:
    """Return random predictions at which the loss is finite."""
    t = 1.5 * rng.normal(size=y.size)
    return t if np.isfinite(loss.value(t, y)) else y * (1 + np.abs(t))


def inside(loss: Loss, y: Array, rng: np.random.Generator) -> Array:
    """Return random dual variables strictly between their bounds."""
    _, _, _, lower, upper = loss.curve(y)
    low, share = np.maximum(lower, -1 - np.abs(y)), rng.uniform(0.2, 0.8, size=y.size)
    return np.asarray(low + share * (np.minimum(upper, low + 3) - low))
