"""A feasible point and its machines without a method, for calls that end before a method has a point."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.errors import SolverError, Stopped
from kernelopt.methods.method import Outcome
from kernelopt.numerics.decompositions import VALUES
from kernelopt.running import check
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.pieces import centre, read_pieces
from kernelopt.structure.structure import Point, Structure


def fallback_outcome(structure: Structure) -> Outcome | None:
    """Return an outcome at a simple feasible point; None where none is known, or its value is infinite.

    Its machines are trained within the deadline of the running call, and are f = 0 where that does not
    suffice.
    """
    point = simple_point(structure)
    zero = [np.zeros(term.learner.n) for term in structure.risks]
    if point is None or not np.isfinite(Evaluator(structure, [(a, None) for a in zero]).at(point).value):
        return None
    try:
        alphas = [machine.alpha for machine in Evaluator(structure).at(point).machines]
    except (Stopped, SolverError):
        alphas = zero
    return Outcome(point, alphas, solver="none", remedy="Give it more time, or try another method.")


def simple_point(structure: Structure) -> Point | None:
    """Return a feasible point in closed form, or None if none is known.

    It has equal weights in a ball, the centre of each spectrahedron and simplex, or else is the projection
    of zero on the feasible set, where that needs no conic solver.
    """
    ball = read_ball(structure)
    if isinstance(ball, BallProblem):
        return ball.point(ball.reach * ball.start)
    pieces = read_pieces(structure)
    if not isinstance(pieces, str) and all(piece.reach is not None for piece in pieces):
        for piece in pieces:
            if piece.is_matrix:  # a certificate will need the eigenvalues of matrices of this order
                check(VALUES * float(piece.variable.shape[0]) ** 3)
        return {piece.variable.id: centre(piece) for piece in pieces}
    zero = {v.id: np.zeros(v.shape) for v in structure.variables}
    given = [(np.zeros(term.learner.n), None) for term in structure.risks]
    return FeasibleSet(Evaluator(structure, given), conic=False).nearest(zero)[0]
