"""Fidelities with a proximal operator, minimised by the alternating direction method of multipliers (ADMM).

References
----------
.. [1] S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, Distributed optimization and statistical learning
       via the alternating direction method of multipliers, Found. Trends Mach. Learn. 3 (2011), sections 3.1
       (scaled form), 3.4.1 (varying penalty) and 3.4.3 (over-relaxation).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.certificates.lower.splitting import Split
from kernelopt.fidelities import Proximal
from kernelopt.methods.checkpoint import State
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import (
    Iterate,
    allowed_gap,
    inner_problem,
    primal_point,
    risk_upper_bound,
    set_matrix,
)
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.running import check
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


class KernelStep:
    """The minimisation over the kernels in one iteration of ADMM, and the lower bound of its dual point.

    The augmented Lagrangian of K_i = X_i, with the scaled multipliers U_i and the penalty sigma, is

        risk(K) + price sum_ik L(X_i - S_ik) + sigma / 2 sum_i (|K_i - X_i + U_i|^2 - |U_i|^2).

    Its minimiser over the K_i is that of the inner problem with B_i = X_i - U_i and W_i = sigma / 2.
    """

    def __init__(self, problem: Nearness, resumed: State) -> None:
        self.problem, self.inner = problem, inner_problem(problem, resumed)

    def minimize(self, split: Split, tol: float) -> tuple[list[Array], float]:
        """Return the minimising K_i, with the gap of the inner problem."""
        for i, (X, U) in enumerate(zip(split.X, split.U, strict=True)):
            check()  # a decomposition follows
            set_matrix(self.inner, self.problem, i, X - U)
        _, gap = self.inner.solve(np.full(len(split.X), split.sigma / 2), tol, SETTINGS.admm_steps)
        return primal_point(self.inner, self.problem), gap

    def lower(self, split: Split, upper: float) -> float:
        """Return the lower bound of alpha, gamma and the multipliers; `upper` bounds the optimum.

        sigma U_i / price is a subgradient of phi_i(X) = sum_k L(X - S_ik) at X_i, see `Split`. The bound is

            l(alpha) + sum_i (price phi_i(X_i) - sigma <U_i, X_i>) + sum_i min <G_i, X>

        with G_i = sigma U_i - A_i / (2 gamma_i), where A_i is the derivative of z'K_i z by the variable. The
        minimum is over the X of the given trace. Where the trace is free, it is over the X whose fidelities
        cost at most `upper`.
        """
        alpha, gamma, learner = self.inner.alpha, self.inner.gamma, self.problem.risk.learner
        z = self.problem.padded(alpha)
        bound = learner.loss.dual_value(alpha, learner.y)
        for i, block in enumerate(self.problem.blocks):
            G = split.sigma * split.U[i] - block.adjoint(z) / (2 * gamma[i])
            bound += self.problem.price * split.phi[i] - split.sigma * float(np.vdot(split.U[i], split.X[i]))
            bound += block.linear_minimum(G, self.problem.price, upper)
        return bound

    def proof(self, split: Split) -> Proof:
        """Return the dual point of `lower`."""
        return Proof(self.inner.alpha.copy(), self.inner.gamma.copy(), split.subgradients())


def split_state(split: Split, iterations: int, proof: Proof) -> State:
    """Return the state of the method after some iterations."""
    numbers = {"sigma": split.sigma, "changed": split.changed, "iterations": iterations}
    return numbers | {"X": split.X, "U": split.U, "alpha": proof.alpha, "gamma": proof.gamma}


def restore(split: Split, state: State) -> int:
    """Take up the matrices and the penalty of a state; return its number of iterations, zero without one."""
    if not state:
        return 0
    split.X, split.U, split.sigma, split.changed = (state[name] for name in ("X", "U", "sigma", "changed"))
    return int(state["iterations"])


def admm_iterates(problem: Nearness, control: Control, proximal: Proximal) -> Iterator[Iterate]:
    """Solve the problem by ADMM [1]_ with the splitting K_i = X_i.

    The step over the kernels is `KernelStep`, and the step over the X_i is the proximal operator of the
    fidelities. The bounds need not be monotone: the driver keeps the best of them.
    """
    split, kernel_step = Split(problem, proximal), KernelStep(problem, control.resumed)
    tol, begun = np.inf, restore(split, control.resumed)
    for iteration in count(begun):
        K, gap = kernel_step.minimize(split, tol)
        residuals = split.step(K, iteration == 0)
        due = iteration < SETTINGS.first_reports or (iteration + 1) % SETTINGS.report_every == 0
        if due or control.out_of_time:
            distances = sum(block.distance(k) for block, k in zip(problem.blocks, K, strict=True))
            upper = risk_upper_bound(kernel_step.inner, problem, gap) + distances / problem.factor
            least_upper = min(upper, (control.upper - problem.offset) / problem.factor)
            lower, proof = kernel_step.lower(split, least_upper), kernel_step.proof(split)
            state = partial(split_state, split, iteration + 1, proof)
            yield Iterate(lower, upper, partial(list, K), proof.alpha, proof.gamma, proof, state)
            present_gap = (control.upper - control.lower) / problem.factor
            tol = max(
                SETTINGS.admm_accuracy * allowed_gap(problem, control, upper),
                SETTINGS.gap_share * present_gap,
            )
        split.balance(iteration, *residuals)
