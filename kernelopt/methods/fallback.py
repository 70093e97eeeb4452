"""A point of a problem that is known without solving anything."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.errors import SolverError, Stopped
from kernelopt.methods.method import Outcome
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.pieces import centre, read_pieces
from kernelopt.structure.structure import Point, Structure
from kernelopt.threads import Watch


def known_outcome(structure: Structure, watch: Watch) -> Outcome | None:
    """Return the middle of the set with its machines; None where it is not known, or has no value.

    It is what a call has to show that was ended before its method had a point. Where `watch` leaves no time
    to train the machines, they are f = 0.
    """
    point = middle(structure)
    zero = [np.zeros(term.learner.n) for term in structure.risks]
    if point is None or not np.isfinite(Evaluator(structure, [(a, None) for a in zero]).at(point).value):
        return None
    try:
        alphas = [machine.alpha for machine in Evaluator(structure, watch=watch).at(point).machines]
    except (Stopped, SolverError):
        alphas = zero
    return Outcome(point, alphas, solver="none", remedy="Give it more time, or try another method.")


def middle(structure: Structure) -> Point | None:
    """Return equal weights, kernels that are multiples of I, or the feasible point nearest to zero."""
    ball = read_ball(structure)
    if isinstance(ball, BallProblem):
        return ball.point(ball.reach * ball.start)
    pieces = read_pieces(structure)
    if not isinstance(pieces, str) and all(piece.reach is not None for piece in pieces):
        return {piece.variable.id: centre(piece) for piece in pieces}
    zero = {v.id: np.zeros(v.shape) for v in structure.variables}
    given = [(np.zeros(term.learner.n), None) for term in structure.risks]
    return FeasibleSet(Evaluator(structure, given), conic=False).nearest(zero)[0]
