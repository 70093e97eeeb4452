"""The spectrahedron of combinations: weights of any sign with a PSD combination of given trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints.zero import Equality

from kernelopt.grams import Grams
from kernelopt.numerics.ball import Ball
from kernelopt.structure.attributes import stated
from kernelopt.structure.ball import read_kernels
from kernelopt.structure.combined.settings import SETTINGS
from kernelopt.structure.parts import gathered, split
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class CombinedCone:
    """The set {mu: K(mu) = sum_i mu_i K_i >> 0, r'mu = total} with r_i = factor * tr K_i.

    The vector mu holds the entries of `variables`, one variable after the other.

    Attributes
    ----------
    variables : tuple of cp.Variable
        Vectors or numbers without attributes.
    whole : Grams
        The matrices K_i on all N points, one for each entry of mu, of any signature.
    row : array of shape (m,)
        r, the coefficients of the trace constraint.
    total : float > 0
    factor : float
        Not zero; K(mu) has the trace total / factor > 0.
    trace_at, cone_at : int
        The positions of the two constraints in the problem.
    """

    variables: tuple[cp.Variable, ...]
    whole: Grams
    row: Array
    total: float
    factor: float
    trace_at: int
    cone_at: int

    @property
    def trace(self) -> float:
        """The trace of K(mu)."""
        return self.total / self.factor

    def point(self, mu: Array) -> dict[int, Array]:
        """Return the values of the variables at mu."""
        return split(self.variables, mu)

    def weights(self, point: dict[int, Array]) -> Array:
        """Return mu from the values of the variables."""
        return gathered(self.variables, point)


@kept_in_structure
def read_combined_cone(structure: Structure) -> CombinedCone | str:
    """Return the feasible set of a problem as a `CombinedCone`, or a sentence why it is none."""
    for variable in structure.variables:
        attributes = stated(variable)
        if attributes or variable.ndim > 1:
            shape = f"the attributes {', '.join(attributes)}" if attributes else f"shape {variable.shape}"
            return f"its weights must be vectors of any sign, {variable.name()} has {shape}"
    constraints = structure.lifted.constraints
    cones = [i for i in structure.active if isinstance(constraints[i], cp.constraints.PSD)]
    edges = [i for i in structure.active if isinstance(constraints[i], Equality) and constraints[i].size == 1]
    if len(structure.active) != 2 or len(cones) != 1 or len(edges) != 1:
        listed = ", ".join(constraints[i].label or str(constraints[i]) for i in structure.active)
        return f"it needs two constraints, K >> 0 and a trace, the problem has: {listed or 'none'}"
    if structure.domains:
        return "its constraint K >> 0 must be on the kernel of the risk"
    variables = structure.variables
    whole = read_kernels((constraints[cones[0]].args[0],), variables)
    if isinstance(whole, str):
        return "the matrix that is PSD must be a combination whose weights are the entries of its variables"
    read = structure.affines[edges[0]]
    if read is None or set(read.matrices) != set(variables):
        return "its equation must be a trace of all its weights"
    row = np.concatenate([read.gradient(v) for v in variables])
    total, traces = -float(read.constant[0]), whole.traces
    size = float(traces @ traces)
    factor = float(row @ traces) / size if size > 0 else 0.0
    rounding = SETTINGS.same_trace * abs(factor) * np.abs(whole.diagonals).sum()
    if factor == 0 or np.abs(row - factor * traces).max() > rounding or not total / factor > 0:
        return "its equation must set the trace of the kernel to a positive number"
    return CombinedCone(variables, whole, row, total, factor, edges[0], cones[0])


class Centring(NamedTuple):
    r"""What rounding has left of centred kernels on the vector of ones.

    Large weights of both signs multiply these errors: K(mu) may have a negative eigenvalue there that says
    nothing of the kernels. Therefore H K(mu) H >> 0 is required in the place of K(mu) >> 0, for the projector
    H = I - 11'/N. A risk with an intercept is the same at K and at H K H, since the dual variables of its
    machine have the sum zero. So the kernels H K_i H give the same problem.

    Attributes
    ----------
    sizes : array of shape (m,)
        Upper bounds of \|K_i 1\| / sqrt(N), the distances of K_i H from K_i in the Frobenius norm.
    change : float
        The largest of them relative to the norm of K_i.
    """

    sizes: Array
    change: float

    @property
    def remark(self) -> str:
        """What the bounds assume."""
        return (
            f"the kernels are taken as exactly centred, which they are up to {self.change:.0e} of their "
            "norms: K >> 0 holds orthogonally to the vector of ones"
        )

    def errors(self, F: Array) -> Array:
        r"""Return bounds of \|<F F', K_i - H K_i H>\|, shape (m,).

        With r = \|F'1\| / sqrt(N) they are sizes_i r (2 \|F\| + r).
        """
        size, along = Ball(F).norm(2), Ball(F).sum(axis=0).norm(2) / Ball(len(F)).root(2)
        return (along * (size * 2 + along) * self.sizes).above


def read_centring(stack: Array, norms: Array) -> Centring | None:
    """Return the centring of a stack of shape (m, N, N), None where a K_i is not centred.

    `norms` are the Frobenius norms of the K_i, with one in the place of zero.
    """
    sizes = (Ball(stack).sum(axis=2).norm(2, axis=1) / Ball(stack.shape[1]).root(2)).above
    change = float((sizes / norms).max())
    return Centring(sizes, change) if change <= SETTINGS.vanishing else None


def centred(K: Array) -> Array:
    """Return H K H for a symmetric K."""
    means = K.mean(axis=0)
    return np.asarray(K - means - means[:, None] + means.mean())


def has_intercepts(structure: Structure) -> bool:
    """Whether every risk of a problem has an intercept, so that it is the same at K and at H K H."""
    return all(term.learner.has_intercept for term in structure.risks)
