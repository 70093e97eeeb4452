"""The size of the conic form of a problem and its predicted cost, computed without compiling it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelopt.certificates.certificate import BoundedProblem
from kernelopt.conic.costs import Cones
from kernelopt.structure.combined.cone import read_combined_cone
from kernelopt.structure.counting import of_constraint, of_risk, of_user, risk_stacks
from kernelopt.structure.learning import read_parts
from kernelopt.structure.structure import Structure, kept_in_structure

CONIC_SOLVES = 2  # of the relaxation, for a lower bound: most problems need one correction of the multipliers
CLOSED_SECONDS = 0.01  # seconds of a lower bound in closed form
DECOMPOSITIONS = 3e-9  # seconds for each N^3 of a bound over PSD combinations of given trace: measured


@dataclass(frozen=True)
class Size:
    """The cones of the explicit problem, and predictions of the cost on one free core.

    Predictions are within a factor of three in nine cases of ten. `first_order_seconds` is less reliable,
    because the number of iterations is not known in advance.

    Attributes
    ----------
    semidefinite : tuple of int
        The orders of the semidefinite cones.
    coordinates : int
        Columns of the stacked factors of the risks that are second-order-cone expressions.
    nonzeros : int
        Non-zero entries of those factors.
    cones : Cones
        The cones of the explicit problem.
    certification_seconds : float
        Predicted time of a lower bound: conic solves with affine minorants in place of the risks.
    """

    semidefinite: tuple[int, ...]
    coordinates: int
    nonzeros: int
    cones: Cones
    certification_seconds: float

    @property
    def order(self) -> int:
        """The largest order of a semidefinite cone, 0 if there is none."""
        return max(self.semidefinite, default=0)

    @property
    def seconds(self) -> float:
        """Predicted time of the solver that is tried first, including the compilation."""
        return self.cones.compilation_seconds + self.cones.solve_seconds

    @property
    def memory(self) -> float:
        """Predicted peak memory in bytes of the solver that is tried first."""
        return self.cones.memory


@kept_in_structure
def certification_seconds(structure: Structure) -> float:
    """Return `Size.certification_seconds` of a problem, without counting the cones of its explicit form."""
    relaxed = relaxed_cones(structure)
    if relaxed is not None:
        return relaxed.compilation_seconds + CONIC_SOLVES * relaxed.solve_seconds
    cone = read_combined_cone(structure)
    return CLOSED_SECONDS + (0.0 if isinstance(cone, str) else DECOMPOSITIONS * cone.whole.n_points**3)


@kept_in_structure
def size(structure: Structure) -> Size:
    """Return the size of the explicit form of a problem, without evaluating a kernel."""
    explicit = of_user(structure.problem, structure.user_variables)
    factors: list[tuple[int, int]] = []  # columns and rows of the stacked factors of each stack of kernels
    for term in structure.risks:
        stacks = risk_stacks(term.node)
        explicit += of_risk(term.node, stacks)
        factors += [(sum(columns for columns, _ in stack), term.learner.n) for stack in stacks]
    return Size(
        explicit.semidefinite,
        sum(columns for columns, _ in factors),
        sum(columns * rows for columns, rows in factors),
        explicit,
        certification_seconds(structure),
    )


@kept_in_structure
def relaxed_cones(structure: Structure) -> Cones | None:
    """Return the cones of the problem without its risks; None where its minimum has a closed form."""
    if has_closed_form(structure):
        return None
    found = of_user(structure.problem, structure.user_variables)
    for term in structure.risks:  # a risk is replaced by the positive part of an affine function
        weights = sum(v.size for K in term.kernels for v in K.variables())
        found += Cones(rows=2, nonzeros=2 * weights)
    return sum(map(of_constraint, structure.domains), found)


def has_closed_form(structure: Structure) -> bool:
    """Whether the lower bound needs no conic solve.

    That is so for a problem with bounds of its own, for a problem that separates into parts, and for an
    affine objective beside the risks over the PSD combinations of given trace.
    """
    if isinstance(structure.problem, BoundedProblem) or read_parts(structure) is not None:
        return True
    objective = structure.objective
    if objective is None or objective.terms or structure.domains or any(structure.constrained):
        return False
    return not isinstance(read_combined_cone(structure), str)
