"""Multiple kernel learning as a semi-infinite programme (Sonnenburg et al., 2006)."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.extend import Cost, Method, Outcome, read_ball, whole


@dataclass(frozen=True)
class SemiInfinite(Method):
    """Minimises max_k l(a_k) - 1/2 w's(a_k) over the ball, where a_k are the machines at the weights so far.

    With shares that sum to one, the multipliers of the cuts, the mean machine a has l(a) >= sum l(a_k) and
    s(a) <= sum s(a_k): its bound is no lower than the minimum of the model.

    Parameters
    ----------
    max_iterations : int > 0, default 200
    """

    name = "semi-infinite"
    max_iterations: int = 200

    def __post_init__(self):
        whole(self.max_iterations, "max_iterations")

    def match(self, structure):
        ball = read_ball(structure)
        if isinstance(ball, str):
            return ball
        _, curvature, _, lower, upper = ball.loss.curve(ball.y)
        finite = (curvature > 0) | np.isfinite(upper - lower)
        return ball if finite.all() else f"its loss must be finite at all predictions, {ball.loss!r} is not"

    def cost(self, match):
        m, n = match.reach.size, match.y.size
        return Cost(seconds=(10 + 5 * m) * (0.02 + 3e-8 * m * n**2), memory=8.0 * m * n**2)

    def run(self, match, control):
        w, alphas, gains, forms = match.start, [], [], []
        with control:  # ends quietly at the time limit, on Ctrl-C, and where the callback says so
            for _ in range(self.max_iterations):
                K = match.grams.combine(match.reach * w)
                machine = ko.risk(K, match.y, match.loss, match.bias).oracle()
                alphas.append(machine.alpha)
                gains.append(match.loss.dual_value(machine.alpha, match.y))
                forms.append(match.reach * match.grams.forms(machine.alpha))
                v, t = cp.Variable(w.size, nonneg=True), cp.Variable()
                cuts = np.array(gains) - np.array(forms) @ v / 2 <= t
                cp.Problem(cp.Minimize(t), [cuts, *ko.lp_ball(v, match.p)]).solve(solver=cp.CLARABEL)
                shares = np.maximum(cuts.dual_value, 0.0)
                alpha = shares / shares.sum() @ np.array(alphas)
                lower = match.lower(alpha, match.reach * match.grams.forms(alpha))
                upper, theta = match.offset + match.factor * machine.value, match.reach * w
                if control.report(lower, upper, point=theta, proof=alpha, machines=[machine.alpha]):
                    break
                w = np.maximum(v.value, 0.0)
        if control.best is None:
            return None
        point, machines = match.point(control.best), [(control.machines[0], None)]
        return Outcome(point, [control.proof], machines, solver=self.name, iterations=control.iterations)
