"""Fidelities h(|D|_F), minimised by iteratively reweighted squares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.certificates.lower.near import Proof, dual_factor, lengths
from kernelopt.fidelities import Radial
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import (
    BestResponse,
    Iterate,
    allowed_gap,
    inner_problem,
    present_values,
    primal_point,
    risk_upper_bound,
    set_matrix,
)
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.methods.similarity.spectra import Ascent
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


class QuadraticMajorants:
    """The squares that majorise the fidelities at the last distances d_ik = |X_i - S_ik|.

    With s_ik = d_ik / h'(d_ik), see `Radial.scale`,

        L(X - S_ik) <= |X - S_ik|^2 / (2 s_ik) + constant,   with equality at the distance d_ik.

    The sum over k, times the price, is W_i |X - B_i|^2 plus a constant, where

        W_i = price sum_k 1 / (2 s_ik)   and   B_i = sum_k (S_ik / s_ik) / sum_k (1 / s_ik).

    Attributes
    ----------
    s : list of arrays of shape (k,)
        The scales s_ik of every block i.
    B : list of arrays
    W : array of shape (m,)
    """

    def __init__(self, problem: Nearness, inner: Ascent, radial: Radial) -> None:
        self.problem, self.inner, self.radial = problem, inner, radial
        self.S = [block.targets for block in problem.blocks]
        sizes = [np.where(lengths(S) > 0, lengths(S), 1.0) for S in self.S]
        self.min_distances = [SETTINGS.min_distance * size for size in sizes]
        self.B = [S.mean(axis=0) for S in self.S]
        self.W = np.zeros(len(self.S))
        self.s = []
        for i, block in enumerate(problem.blocks):
            set_matrix(inner, problem, i, self.B[i])
            d = lengths(block.nearest_to_mean - self.S[i])
            d = np.where(d > self.min_distances[i], d, SETTINGS.first_distance * sizes[i])
            self.s.append(radial.scale(d))

    def update_inner_problem(self) -> None:
        """Compute W and B from the scales; B_i, and its decomposition, change only for several S_ik."""
        self.W = np.array([(self.problem.price / (2 * s)).sum() for s in self.s])
        for i, (s, S) in enumerate(zip(self.s, self.S, strict=True)):
            if len(s) > 1:
                self.B[i] = np.tensordot(1 / s, S, 1) / (1 / s).sum()
                set_matrix(self.inner, self.problem, i, self.B[i])

    def distances_and_products(self) -> tuple[list[Array], list[Array]]:
        """Return the |X_i - S_ik| and the <X_i - S_ik, S_ik> at the last point of the inner problem.

        Where every block has one S_i, it is B_i. Then |X_i - S_i|^2 and |X_i|^2 are known without X_i, and
        <X_i - S_i, S_i> = (|X_i|^2 - |S_i|^2 - |X_i - S_i|^2) / 2.
        """
        if all(len(s) == 1 for s in self.s):
            d = [np.sqrt(self.inner.distances[i : i + 1]) for i in range(len(self.s))]
            sizes = [(S**2).sum() for S in self.S]
            products = (self.inner.squares - np.array(sizes) - self.inner.distances) / 2
            return d, [products[i : i + 1] for i in range(len(self.s))]
        differences = [x - S for x, S in zip(primal_point(self.inner, self.problem), self.S, strict=True)]
        inner = [
            np.einsum("kp,kp->k", D.reshape(len(D), -1), S.reshape(len(D), -1))
            for D, S in zip(differences, self.S, strict=True)
        ]
        return [lengths(D) for D in differences], inner

    def update_scales(self, d: list[Array]) -> None:
        """Compute the scales at the distances d."""
        pairs = zip(d, self.min_distances, strict=True)
        self.s = [self.radial.scale(np.maximum(new, least)) for new, least in pairs]


def reweighted_iterates(problem: Nearness, control: Control, radial: Radial) -> Iterator[Iterate]:
    """Solve the problem by majorisation and minimisation (D. R. Hunter, K. Lange, Am. Stat. 58 (2004)).

    An iteration solves the inner problem with the squares of `QuadraticMajorants`, and takes the squares
    anew at its solution. For the Frobenius norm this is the method of iteratively reweighted least squares.
    """
    inner = inner_problem(problem, control.resumed)
    squares = QuadraticMajorants(problem, inner, radial)
    squares.s = control.resumed.get("s", squares.s)
    tol, steps = np.inf, SETTINGS.first_steps
    while True:
        squares.update_inner_problem()
        _, gap = inner.solve(squares.W, tol, steps)
        d, products = squares.distances_and_products()
        s = squares.s
        kappa = dual_factor(problem.fidelity, d, s)
        lower = dual_bound(problem, inner, squares, d, products, kappa)
        distance = sum(problem.fidelity.value(np.array([length])) for length in np.concatenate(d))
        upper = risk_upper_bound(inner, problem, gap) + problem.price * distance
        alpha, gamma = inner.alpha.copy(), inner.gamma.copy()
        response = BestResponse(problem, present_values(inner, problem), s, kappa)
        proof = Proof(kappa**0.5 * alpha, gamma, response.U)
        state = kept(s=s, alpha=alpha, gamma=gamma)
        yield Iterate(lower, upper, response.X, alpha, gamma, proof, state)
        squares.update_scales(d)
        present_gap = (control.upper - control.lower) / problem.factor
        tol, steps = (
            SETTINGS.inner_accuracy * max(allowed_gap(problem, control, upper), present_gap),
            SETTINGS.reweighted_steps,
        )


def dual_bound(
    problem: Nearness,
    inner: Ascent,
    squares: QuadraticMajorants,
    d: list[Array],
    products: list[Array],
    kappa: float,
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
    learner, s = problem.risk.learner, squares.s
    traces = np.array([block.total or 0.0 for block in problem.blocks])
    linear = problem.price * sum(float((p / scale).sum()) for p, scale in zip(products, s, strict=True))
    smallest = 2 * float(traces @ (squares.W * inner.shifts))
    slopes = np.concatenate([kappa * length / scale for length, scale in zip(d, s, strict=True)])
    conjugates = problem.price * sum(problem.fidelity.conjugate(np.array([slope])) for slope in slopes)
    gain = learner.loss.dual_value(kappa**0.5 * inner.alpha, learner.y)
    return gain - kappa * (linear + smallest) - conjugates
