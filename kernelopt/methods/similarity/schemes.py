"""The schemes of "first-order-dual": reweighted squares, and the alternating direction method of multipliers.

References
----------
.. [1] S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, Distributed optimization and statistical learning
       via the alternating direction method of multipliers, Found. Trends Mach. Learn. 3 (2011), sections 3.1
       (scaled form), 3.4.1 (varying penalty) and 3.4.3 (over-relaxation).
.. [2] D. R. Hunter, K. Lange, A tutorial on MM algorithms, Am. Stat. 58 (2004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count

import numpy as np

from kernelopt.fidelities import Proximal, Radial
from kernelopt.methods.checkpoint import State, kept
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.ascent import Ascent
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array
from kernelopt.witnesses.near import NearWitness, Split, dual_factor, lengths, scaled_differences


@dataclass(frozen=True, eq=False)
class Iterate:
    """The result of one iteration: bounds of the optimum, a primal point and a dual point.

    The bounds are those of risk + price * fidelities, without the factor and the offset of the problem.

    Attributes
    ----------
    lower, upper : float
    X : function without arguments
        Computes the values of the variables. They cost a product, and are not always needed.
    alpha : array of shape (n,)
    gamma : array of shape (m,)
        The upper bound is that of the machine f = sum_i K_i z / gamma_i + b; z is alpha, with zeros at the
        points without a label.
    proof : NearWitness
        The dual point of the lower bound.
    state : function without arguments
        Returns the arrays from which the scheme can go on.
    """

    lower: float
    upper: float
    X: Callable[[], list[Array]]
    alpha: Array
    gamma: Array
    proof: NearWitness
    state: Callable[[], State]


def reweighted_iterates(problem: Nearness, control: Control, radial: Radial) -> Iterator[Iterate]:
    """Solve the problem by majorisation and minimisation [2]_.

    With s_ik = d_ik / h'(d_ik) at the last distances d_ik = |X_i - S_ik|, see `Radial.scale`,

        L(X - S_ik) <= |X - S_ik|^2 / (2 s_ik) + constant,   with equality at the distance d_ik.

    The sum over k, times the price, is W_i |X - B_i|^2 plus a constant, where

        W_i = price sum_k 1 / (2 s_ik)   and   B_i = sum_k (S_ik / s_ik) / sum_k (1 / s_ik).

    An iteration solves the inner problem with these squares. For the Frobenius norm this is the method of
    iteratively reweighted least squares. For a square itself s is constant: the inner problem is the problem,
    less the constant price sum_ik L(S_ik - B_i), and one decomposition of every B_i is enough.
    """
    inner, targets = Ascent(problem, control.resumed), [block.targets for block in problem.blocks]
    sizes = [np.where(lengths(S) > 0, lengths(S), 1.0) for S in targets]
    quadratic, s = problem.fidelity.quadratic, control.resumed.get("s", [])
    for block, S, size in () if s else zip(problem.blocks, targets, sizes, strict=True):
        d = size if quadratic else lengths(block.nearest_to_mean - S)
        d = np.where(d > SETTINGS.min_distance * size, d, SETTINGS.first_distance * size)
        s.append(radial.scale(d))
    accuracy, reduction = SETTINGS.squared_accuracies if quadratic else SETTINGS.reweighted_accuracies
    tol, steps, shift = np.inf, SETTINGS.first_steps, 0.0
    for iteration in count():
        for i, (scales, S) in enumerate(zip(s, targets, strict=True)):
            if iteration == 0 or (len(scales) > 1 and not quadratic):
                B = np.tensordot(1 / scales, S, 1) / (1 / scales).sum()
                inner.set_matrix(i, B)
                shift += problem.price * sum(problem.fidelity.value(D) for D in S - B if quadratic)
        W = np.array([(problem.price / (2 * scales)).sum() for scales in s])
        value, gap = inner.solve(W, tol, steps)
        X = cache(partial(values_of, inner.values()))
        kappa = 1.0
        lower, upper = value + shift, value + shift + gap
        if not quadratic:
            apart, products = distances_and_products(inner, X, targets)
            kappa = dual_factor(problem.fidelity, apart, s)
            lower = dual_bound(inner, W, s, apart, products, kappa)
            distance = sum(problem.fidelity.value(np.array([length])) for length in np.concatenate(apart))
            upper = inner.risk_above(gap) + problem.price * distance
        alpha, gamma = inner.state.alpha.copy(), inner.state.gamma.copy()
        proof = NearWitness(kappa**0.5 * alpha, gamma, partial(subgradients, problem, X, s, kappa))
        yield Iterate(lower, upper, X, alpha, gamma, proof, kept(s=s, alpha=alpha, gamma=gamma))
        if not quadratic:
            pairs = zip(apart, sizes, strict=True)
            s = [radial.scale(np.maximum(new, SETTINGS.min_distance * size)) for new, size in pairs]
        present = (control.upper - control.lower) / problem.factor
        tol = max(accuracy * allowed_gap(problem, control, upper), reduction * present)
        steps = SETTINGS.reweighted_steps


def values_of(functions: list[Callable[[], Array]]) -> list[Array]:
    """Return the results of functions without arguments."""
    return [function() for function in functions]


def subgradients(
    problem: Nearness, X: Callable[[], list[Array]], s: list[Array], kappa: float
) -> list[list[Array]]:
    """Return the U_ik = kappa (X_i - S_ik) / s_ik of every fidelity k of every block i."""
    return scaled_differences(problem, X(), s, kappa)


def distances_and_products(
    inner: Ascent, X: Callable[[], list[Array]], targets: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Return the |X_i - S_ik| and the <X_i - S_ik, S_ik> at the last point of the inner problem.

    Where every block has one S_i, it is B_i. Then |X_i - S_i|^2 and |X_i|^2 are known without X_i, and
    <X_i - S_i, S_i> = (|X_i|^2 - |S_i|^2 - |X_i - S_i|^2) / 2.
    """
    if all(len(S) == 1 for S in targets):
        squares = np.array([(S**2).sum() for S in targets])
        products = (inner.state.squares - squares - inner.state.distances) / 2
        return list(np.sqrt(inner.state.distances)[:, None]), list(products[:, None])
    differences = [x - S for x, S in zip(X(), targets, strict=True)]
    flat = [(D.reshape(len(D), -1), S.reshape(len(D), -1)) for D, S in zip(differences, targets, strict=True)]
    return [lengths(D) for D in differences], [np.einsum("kp,kp->k", D, S) for D, S in flat]


def dual_bound(
    inner: Ascent, W: Array, s: list[Array], d: list[Array], products: list[Array], kappa: float
) -> float:
    """Return the lower bound of the dual point sqrt(kappa) alpha, gamma and U_ik = kappa (X_i - S_ik) / s_ik.

    The factor kappa <= 1 brings all U_ik into the domain of L*. The bound is

        l(sqrt(kappa) alpha) - price sum_ik (<U_ik, S_ik> + L*(U_ik)) - 2 kappa sum_i tau_i W_i theta_i

    where tau_i is the trace and theta_i the shift of the projection X_i = (B_i + c_i zz' - theta_i I)_+ with
    c_i = 1 / (4 W_i gamma_i). No eigenvalue is computed for the last term: the matrix
    price sum_k U_ik - kappa zz' / (2 gamma_i) is equal to 2 kappa W_i (X_i - B_i - c_i zz'), and the least
    eigenvalue of this is -2 kappa W_i theta_i. A free trace has theta_i = 0. L* depends on |U_ik| alone, and
    is evaluated at that length.
    """
    problem, scales = inner.problem, np.concatenate(s)
    learner = problem.risk.learner
    linear = problem.price * float((np.concatenate(products) / scales).sum())
    smallest = 2 * float(np.nan_to_num(inner.data.totals) @ (W * inner.state.shifts))
    slopes = kappa * np.concatenate(d) / scales
    conjugates = problem.price * sum(problem.fidelity.conjugate(np.array([slope])) for slope in slopes)
    gain = learner.loss.dual_value(kappa**0.5 * inner.state.alpha, learner.y)
    return gain - kappa * (linear + smallest) - conjugates


def admm_iterates(problem: Nearness, control: Control, proximal: Proximal) -> Iterator[Iterate]:
    """Solve the problem by ADMM [1]_ with the splitting K_i = X_i.

    The augmented Lagrangian of K_i = X_i, with the scaled multipliers U_i and the penalty sigma, is

        risk(K) + price sum_ik L(X_i - S_ik) + sigma / 2 sum_i (|K_i - X_i + U_i|^2 - |U_i|^2).

    Its minimiser over the K_i is that of the inner problem with B_i = X_i - U_i and W_i = sigma / 2, and the
    step over the X_i is the proximal operator of the fidelities. The bounds need not be monotone: the driver
    keeps the best of them.
    """
    resumed = control.resumed
    split, inner = Split(problem, proximal), Ascent(problem, resumed)
    if resumed:
        split.X, split.U = resumed["X"], resumed["U"]
        split.sigma, split.changed = resumed["sigma"], resumed["changed"]
    tol = np.inf
    for iteration in count(int(resumed.get("iterations", 0))):
        for i, (X, U) in enumerate(zip(split.X, split.U, strict=True)):
            inner.set_matrix(i, X - U)
        _, gap = inner.solve(np.full(len(split.X), split.sigma / 2), tol, SETTINGS.admm_steps)
        K = values_of(inner.values())
        residuals = split.step(K, iteration == 0)
        due = iteration < SETTINGS.first_reports or (iteration + 1) % SETTINGS.report_every == 0
        if due or control.out_of_time:
            distances = sum(block.distance(k) for block, k in zip(problem.blocks, K, strict=True))
            upper = inner.risk_above(gap) + distances / problem.factor
            alpha, gamma = inner.state.alpha.copy(), inner.state.gamma.copy()
            below = min(upper, (control.upper - problem.offset) / problem.factor)
            lower = split.dual_value(alpha, gamma, below)
            numbers = {"sigma": split.sigma, "changed": split.changed, "iterations": iteration + 1}
            state = kept(X=list(split.X), U=split.U, alpha=alpha, gamma=gamma, **numbers)
            proof = NearWitness(alpha, gamma, split.subgradients())
            yield Iterate(lower, upper, partial(list, K), alpha, gamma, proof, state)
            least = SETTINGS.admm_accuracy * allowed_gap(problem, control, upper)
            tol = max(least, SETTINGS.gap_share * (control.upper - control.lower) / problem.factor)
        split.balance(iteration, *residuals)


def allowed_gap(problem: Nearness, control: Control, upper: float) -> float:
    """Return the gap that meets the tolerance, in the units of `Iterate`; `upper` is in these units too."""
    value = problem.factor * upper + problem.offset
    return control.tol * max(abs(value), control.floor) / problem.factor
