"""L-BFGS on the dual of l_p-norm multiple kernel learning, for smooth duals."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from kernelopt.losses import Loss
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost
from kernelopt.methods.on_ball import BallMethod, ball_cost, best_weights, report_on_ball
from kernelopt.numerics.norms import length_of_positive
from kernelopt.structure.ball import BallProblem
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, whole

BOX_MARGIN = 1e-12  # share of the box kept from its bounds, where an entropy has an infinite gradient
CORRECTIONS = 20  # pairs of steps and gradient changes in the memory of L-BFGS
REPORT_EVERY = 5  # iterations between two reports of the bounds
INNER_ITERATIONS = 50  # iterations of L-BFGS-B between two updates of the intercept
NEAR_ONE = 1.2  # below it q = p / (p - 1) > 6, and the gradient of |s|_q changes fast


def box_margin(loss: Loss, y: Array) -> Array:
    """Return the distance to be kept from the bounds of a dual that is not quadratic, shape (n,).

    It is a share of the width of the box. Where one bound is infinite, the distance of the response at f = 0
    from the other bound takes the place of the width. Where both are, no distance is kept.
    """
    curve, inside = loss.curve(y), loss.response(np.zeros(y.size), y)
    width = curve.upper - curve.lower
    one_sided = np.minimum(inside - curve.lower, curve.upper - inside)
    width = np.where(np.isfinite(width), width, one_sided)
    return np.where(np.isfinite(width), BOX_MARGIN * width, 0.0)


class AugmentedDual:
    """The negated dual 1/2 |s(alpha)|_q - l(alpha), plus an augmented Lagrangian of sum alpha = 0.

    With an intercept b and a penalty parameter rho, b 1'alpha + rho/2 (1'alpha)^2 is added.
    """

    def __init__(self, read: BallProblem) -> None:
        self.read = read
        curve = read.loss.curve(read.y)
        margin = 0.0 if read.loss.quadratic else box_margin(read.loss, read.y)
        self.lower, self.upper = curve.lower + margin, curve.upper - margin
        self.intercept = 0.0
        size = float(np.mean((read.reach * read.start) @ read.grams.diagonals + curve.curvature))
        self.penalty = (size if size > 0 else 1.0) if read.bias else 0.0

    def at(self, alpha: Array) -> tuple[Array, Array, Array]:
        """Return the forms s, the maximising weights w for them, and the predictor K_w alpha."""
        images = self.read.grams.apply(alpha)
        s = self.read.reach * (images @ alpha)
        w = best_weights(self.read, self.read.start, s)
        return s, w, (self.read.reach * w) @ images

    def __call__(self, alpha: Array) -> tuple[float, Array]:
        """Return the value of the function to minimise, and its gradient."""
        loss, y = self.read.loss, self.read.y
        s, _, f = self.at(alpha)
        value = length_of_positive(s, self.read.q) / 2 - loss.dual_value(alpha, y)
        gradient = f - loss.dual_gradient(alpha, y)
        if self.read.bias:
            total = float(alpha.sum())
            value += self.intercept * total + self.penalty / 2 * total**2
            gradient = gradient + self.intercept + self.penalty * total
        return value, gradient


@dataclass(frozen=True)
class SmoothDual(BallMethod):
    """Maximises the dual l(alpha) - 1/2 |s(alpha)|_q by L-BFGS-B.

    The loss must have a dual that is smooth inside its box, and p must exceed 1. By Danskin's theorem the
    gradient is grad l(alpha) - K_theta alpha, with the weights theta of (21) in [1]_. With an intercept the
    constraint sum alpha = 0 is treated by the method of multipliers; its multiplier is the intercept.

    Parameters
    ----------
    max_iterations : int > 0, default 5000
        Steps of L-BFGS-B.

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
    """

    name = "smooth-dual"
    max_iterations: int = 5000

    def __post_init__(self) -> None:
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball; p must exceed 1, and the dual must be smooth and curved."""
        read = super().match(structure)
        if isinstance(read, str):
            return read
        found = ["p must be above 1, where |s|_q is smooth"] if read.p == 1 else []
        curve = read.loss.curve(read.y)
        if read.loss.quadratic and (curve.l1.any() or not curve.curvature.all()):
            found.append(f"its loss must have a smooth and curved dual, {read.loss!r} has not")
        return "; ".join(found) or read

    def cost(self, match: BallProblem) -> Cost:
        # Measured: about a hundred gradients. Each reads the kernels once and takes 0.1 ms besides.
        return ball_cost(match, 100.0, 1e-4)

    def remedy(self, match: BallProblem) -> str:
        """Return what to try where the gap stays above the tolerance."""
        if match.p >= NEAR_ONE:
            return "Give kernelopt.solve more max_iterations."
        others = "'interleaved' or 'cutting-plane'" if match.loss.quadratic else "'cutting-plane'"
        return f"The dual is badly conditioned for p near 1: try method={others}."

    def minimise(self, read: BallProblem, control: Control, w: Array, alpha: Array | None) -> None:
        loss, y, dual = read.loss, read.y, AugmentedDual(read)
        dual.intercept = control.resumed.get("intercept", dual.intercept)
        count, ended = 0, False

        def report(alpha: Array) -> None:
            nonlocal count, ended
            count += 1
            if count % REPORT_EVERY and count < self.max_iterations and not control.out_of_time:
                return
            alpha = np.clip(loss.project(alpha, y, read.bias), dual.lower, dual.upper)
            s, w, f = dual.at(alpha)
            upper = read.upper(f, w, s)
            ended = report_on_ball(read, control, w, alpha, s, upper, intercept=dual.intercept)
            if count >= self.max_iterations and not ended:
                control.stopped, ended = f"{self.max_iterations} iterations were made", True
            if ended:
                raise StopIteration  # which ends a call of `minimize`, too

        alpha = loss.response(np.zeros(y.size), y) if alpha is None else loss.project(alpha, y, read.bias)
        alpha = np.clip(alpha, dual.lower, dual.upper)
        options = {
            "maxiter": INNER_ITERATIONS,
            "maxcor": CORRECTIONS,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxfun": 10 * INNER_ITERATIONS,
        }
        bounds = list(zip(dual.lower, dual.upper, strict=True))
        with suppress(StopIteration):
            while True:
                found = minimize(
                    dual, alpha, jac=True, method="L-BFGS-B", bounds=bounds, callback=report, options=options
                )
                if ended:
                    return
                alpha = found.x
                dual.intercept += dual.penalty * float(alpha.sum())
                count = self.max_iterations if found.nit == 0 else count
                report(alpha)
