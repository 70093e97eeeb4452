"""Large matrix inequalities relaxed to a space of few eigenvectors."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.language.faces import facial_reduction, restricted
from kernelopt.language.terms import terms
from kernelopt.numerics.decompositions import eigenpairs
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

LARGE = 60  # the order from which a conic solver takes more than a second for a matrix inequality
NEW_VECTORS = 6  # lowest eigenvectors that are added at a point
MOST_VECTORS = 60  # of a space: a matrix inequality of this order takes about a second
VIOLATED = 1e-9  # of the largest eigenvalue: a violation from which an eigenvector is added


class RelaxedCones:
    """The constraints K >> 0 on large combinations, relaxed to V'KV >> 0 with a few vectors V.

    Any V gives a relaxation. It grows by eigenvectors of negative eigenvalues, which cut off the current
    point. All other constraints stay as they are, on their faces.
    """

    def __init__(self, structure: Structure) -> None:
        constraints = (*structure.lifted.constraints, *structure.domains)
        self.constraints = [constraint for constraint in constraints if is_large(constraint)]
        self.spaces: dict[int, Array] = {}
        random = np.random.default_rng(0)
        weights = sum(variable.size for variable in structure.variables)
        for constraint in self.constraints:
            order = constraint.args[0].shape[0]
            vectors = random.standard_normal((order, min(order, MOST_VECTORS // 2, 2 * (weights + 1))))
            self.spaces[id(constraint)] = np.linalg.qr(vectors)[0]

    def state(self) -> list[Array]:
        """Return the spaces, in the order of the constraints."""
        return list(self.spaces.values())

    def restore(self, spaces: list[Array]) -> None:
        """Set the spaces to the column spaces of the arrays of a state."""
        for key, V in zip(self.spaces, spaces, strict=True):
            self.spaces[key] = np.linalg.qr(V)[0]

    def grow(self) -> bool:
        """Append the eigenvectors that the current values of the variables violate; return if there are any.

        A space that is too large is reduced to the directions in which K is smallest.
        """
        grown = False
        for constraint in self.constraints:
            V, K = self.spaces[id(constraint)], np.asarray(constraint.args[0].value)
            K = (K + K.T) / 2
            values, vectors = eigenpairs(K, NEW_VECTORS)
            new = vectors[:, values < -VIOLATED * float(np.abs(K).max())]
            if not new.shape[1]:
                continue
            if V.shape[1] + new.shape[1] > MOST_VECTORS:
                V = V @ np.linalg.eigh(V.T @ K @ V)[1][:, : MOST_VECTORS // 2]
            self.spaces[id(constraint)] = np.linalg.qr(np.hstack([V, new]))[0]
            grown = True
        return grown


def face(constraint: Any, cones: RelaxedCones | None) -> tuple[Any, Array | None]:
    """Return (V'KV >> 0, V) for a constraint that `cones` relax, `facial_reduction` for any other."""
    V = None if cones is None else cones.spaces.get(id(constraint))
    return facial_reduction(constraint) if V is None else restricted(constraint, V)


def is_large(constraint: Any) -> bool:
    """Whether a constraint is a large matrix inequality on a combination of kernels."""
    if not isinstance(constraint, cp.constraints.PSD) or constraint.args[0].shape[0] < LARGE:
        return False
    return terms(constraint.args[0]) is not None


def relaxed_cones(structure: Structure) -> RelaxedCones | None:
    """Return the relaxation of the large matrix inequalities of a problem, None if there are none."""
    found = RelaxedCones(structure)
    return found if found.constraints else None
