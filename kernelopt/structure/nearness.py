"""The problem of kernels near similarities: one risk, PSD kernels or spectra, and their fidelities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_over_lin import quad_over_lin

from kernelopt.fidelities import Fidelity, frobenius, l1, squared_frobenius
from kernelopt.grams import RankOneStorage
from kernelopt.language.fidelity import Distance
from kernelopt.language.terms import dense, terms
from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import affine, single_entries
from kernelopt.structure.learning import read_pieces
from kernelopt.structure.parts import Budget
from kernelopt.structure.structure import RiskTerm, Structure, kept_in_structure
from kernelopt.structure.trees import number, short
from kernelopt.validation import Array

ORTHONORMAL = (
    1e-10  # largest entry of V'Vx - x: eigenvectors are orthonormal to about N u, 1e-12 for N = 10^4
)
PROBES = 2  # random vectors x


@dataclass(frozen=True, eq=False)
class FidelityTerm:
    """price * L(X - target) of one variable X: a summand of an objective."""

    fidelity: Fidelity
    price: float
    variable: cp.Variable
    target: Array

    def value(self, X: Array) -> float:
        """Return the term at X."""
        return self.price * self.fidelity.value(X - self.target)

    def subgradient(self, X: Array) -> Array:
        """Return U in the subdifferential of L at X - target, without the price."""
        return self.fidelity.subgradient(X - self.target)

    def conjugate_cost(self, U: Array) -> Ball:
        """Return price * (<U, target> + L*(U)), for U in the domain of L*.

        This is the conjugate of X -> L(X - target) at U, times the price.
        """
        size = np.vdot(np.abs(U), np.abs(self.target))
        products = Ball.computed(np.vdot(U, self.target), size, U.size)
        return (products + self.fidelity.bounded_conjugate(U)) * self.price


def read_fidelity(weights: Array, term: cp.Expression) -> FidelityTerm | None:
    """Read weights'vec(term) as a `FidelityTerm` of one variable, None if it is something else."""
    spelled = read_spelling(term) if np.ptp(weights) == 0 else None
    if spelled is None:
        return None
    fidelity, divisor, inside = spelled
    target, price = read_target(inside), float(weights[0])
    return None if target is None or not price >= 0 else FidelityTerm(fidelity, price / divisor, *target)


def read_spelling(term: cp.Expression) -> tuple[Fidelity, float, cp.Expression] | None:
    """Read L(D) / c as (L, c, D), for an L written as `fidelity` or with the atoms of cvxpy.

    An entrywise absolute value stands for the sum of its entries.
    """
    if isinstance(term, Distance):
        return term.fidelity, 1.0, term.difference
    if isinstance(term, abs_atom) or (isinstance(term, norm1) and term.axis is None):
        return l1(), 1.0, term.args[0]
    if isinstance(term, Pnorm) and term.axis is None and term.p == 2:
        return frobenius(), 1.0, term.args[0]
    if isinstance(term, quad_over_lin) and term.args[1].is_constant():
        return squared_frobenius(), number(term.args[1]), term.args[0]
    return None


def read_target(D: cp.Expression) -> tuple[cp.Variable, Array] | None:
    """Read D as X - target, up to sign and to the order of its entries, for one variable X.

    X - target itself is read from its terms, any other affine map from its coefficients.
    """
    if len(D.variables()) != 1 or D.size != D.variables()[0].size:
        return None
    (X,) = D.variables()
    difference = isinstance(D, AddExpression) and D.args[0] is X and all(c.is_constant() for c in D.args[1:])
    if D is X or difference:
        target = -np.broadcast_to(sum((dense(c) for c in D.args[1:]), start=np.zeros(())), X.shape)
    else:
        read = affine(D)
        signs = None if read is None else read.matrices[X].sum(axis=0)
        if read is None or signs is None or np.ptp(signs) or np.any(single_entries(read.matrices[X]) != 1):
            return None
        target = np.reshape(-signs[0] * (abs(read.matrices[X]).T @ read.constant), X.shape, order="F")
    return (X, target) if target.ndim == 1 or np.array_equal(target, target.T) else None


@dataclass(frozen=True, eq=False)
class Block:
    """One kernel of the risk: a PSD variable, or V diag(mu) V' with a variable mu and orthonormal V."""

    piece: Budget
    fidelities: tuple[FidelityTerm, ...]
    V: Array | None = None

    @property
    def total(self) -> float | None:
        """The trace, None where it is free."""
        total = float(np.ravel(self.piece.reach(self.piece.variable))[0])
        return total if total < np.inf else None

    @cached_property
    def targets(self) -> Array:
        """The similarities, or their spectra, shape (k, N, N) or (k, N)."""
        return np.array([fidelity.target for fidelity in self.fidelities])

    @cached_property
    def nearest_to_mean(self) -> Array:
        """The value of the variable that is nearest to the mean of the similarities, or of their spectra."""
        return self.piece.project(self.targets.mean(axis=0))

    def kernel(self, X: Array) -> Array:
        """Return the kernel on all points at a value of the variable."""
        return X if self.V is None else np.asarray((self.V * X) @ self.V.T)

    def adjoint(self, z: Array) -> Array:
        """Return the derivative of z'Kz by the variable."""
        return np.outer(z, z) if self.V is None else np.asarray((self.V.T @ z) ** 2)

    def distance(self, X: Array) -> float:
        """Return the sum of the fidelities at X, with their price."""
        return sum(fidelity.value(X) for fidelity in self.fidelities)

    def bounded(self, price: float, upper: float) -> Budget:
        """Return the set, or where its trace is free the part with price * sum_k L(X - S_k) <= upper."""
        if self.total is not None:
            return self.piece
        return replace(self.piece, total=self._largest_trace(price, upper), at_most=True)

    def linear_minimum(self, G: Array, price: float, upper: float) -> float:
        """Return a lower bound of <G, X> over `bounded`."""
        return -self.bounded(price, upper).support({self.piece.variable: Ball(-G.ravel())})

    def _largest_trace(self, price: float, upper: float) -> float:
        """Return a bound of tr X where price * sum_k L(X - S_k) is at most `upper`.

        With D the mean of the X - S_k the trace is tr D and the mean of the tr S_k, and L(D) is at most the
        mean of the L(X - S_k).
        """
        S = self.targets
        count, N = S.shape[:2]
        identity = np.eye(N) if S.ndim == 3 else np.ones(N)
        mean = float(np.vdot(identity, S.mean(axis=0)))
        reach = self.fidelities[0].fidelity.trace_bound(max(upper, 0.0) / (price * count), identity)
        return max(mean + reach, 0.0)


@dataclass(frozen=True, eq=False)
class Nearness:
    """min factor * (risk(K_1, ..., K_m) + price * sum of L(X_i - S_ik)) + offset: one L, one price.

    X_i is K_i itself or its spectrum; each has a fixed trace, or is free; for m > 1 the risk has norm=inf.
    """

    structure: Structure
    risk: RiskTerm
    factor: float
    offset: float
    fidelity: Fidelity
    price: float
    blocks: tuple[Block, ...]

    @property
    def n_points(self) -> int:
        """The number of points, labelled or not."""
        return int(self.risk.kernels[0].shape[0])

    def padded(self, alpha: Array) -> Array:
        """Return alpha with zeros at the unlabelled points."""
        return np.pad(alpha, (0, self.n_points - alpha.size))


@kept_in_structure
def read_nearness(structure: Structure) -> Nearness | str:
    """Return a problem as a `Nearness`, or a sentence why it is none."""
    found = structure.risks
    if len(found) != 1 or structure.maximize:
        return f"it needs one risk, minimised, the problem has {len(found)}"
    if structure.unset:
        return structure.unset
    risk = found[0]
    pieces = read_pieces(structure)
    if isinstance(pieces, str):
        return pieces
    wanted = "its objective must be the risk plus fidelities of one kind and price"
    objective = structure.objective
    if objective is None or objective.linear.matrices:
        return wanted
    fidelities = list[FidelityTerm]()
    for weights, e in objective.terms:
        near = read_fidelity(weights, e)
        if near is None:
            return f"{short(e)} is not a price times a fidelity, the distance of a variable to a matrix"
        fidelities.append(near)
    if not objective.factor > 0 or len({(f.fidelity, f.price) for f in fidelities}) != 1:
        return wanted
    if len(risk.kernels) > 1 and not np.isinf(risk.learner.norm):
        return "several kernels must have norm=inf"
    blocks = read_blocks(risk, pieces, fidelities)
    if isinstance(blocks, str):
        return blocks
    (near, *_), factor = fidelities, objective.factor
    price = near.price / factor
    return Nearness(structure, risk, factor, objective.offset, near.fidelity, price, blocks)


def read_blocks(
    risk: RiskTerm, pieces: list[Budget], fidelities: list[FidelityTerm]
) -> tuple[Block, ...] | str:
    """Return each kernel of the risk as a `Block`, or a sentence why one is none."""
    by_variable = {piece.variable.id: piece for piece in pieces}
    blocks = []
    for K in risk.kernels:
        V = None
        variable = K
        if not isinstance(K, cp.Variable):
            parts = terms(K) or []
            given = parts[0].grams.storage if len(parts) == 1 else None
            if not isinstance(given, RankOneStorage):
                return "each kernel must be a PSD variable, or V diag(mu) V' with orthonormal V"
            variable, V = parts[0].weights, given.V
        piece = by_variable.pop(getattr(variable, "id", -1), None)
        if piece is None:
            return "each kernel must have a variable of its own"
        name = piece.variable.name()
        if piece.at_most:
            return f"the trace of {name} must be fixed by ==, or free"
        if V is not None and not is_orthonormal(V):
            return f"the vectors that {name} weighs must be orthonormal and as many as there are points"
        if V is not None and np.ptp(piece.rows[piece.variable]) > 0:
            return f"the entries of {name} must count equally in its trace"
        near = tuple(f for f in fidelities if f.variable is piece.variable)
        if not near:
            return f"{name} has no fidelity"
        blocks.append(Block(piece, near, V))
    if by_variable:
        return f"{next(iter(by_variable.values())).variable.name()} is no kernel of the risk"
    if len({block.V is None for block in blocks}) > 1:
        return "some kernels are PSD variables and some have fixed eigenvectors"
    return tuple(blocks)


def is_orthonormal(V: Array) -> bool:
    """Whether V is square and V'V = I at random vectors, which takes no product of matrices.

    Bounds hold for every V: a V that is taken for orthonormal wrongly makes the gap larger.
    """
    if V.shape[0] != V.shape[1]:
        return False
    x = np.random.default_rng(0).normal(size=(len(V), PROBES))
    return bool(np.abs(V.T @ (V @ x) - x).max() <= ORTHONORMAL)
