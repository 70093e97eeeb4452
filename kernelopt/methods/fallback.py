"""A feasible point with machines trained on a sample, for calls that end before a method has a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cvxpy as cp
import numpy as np

from kernelopt import running
from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.errors import SolverError, Stopped
from kernelopt.language.learner import on_labelled
from kernelopt.language.terms import terms
from kernelopt.learner import BlockMachine, Machine
from kernelopt.losses import Loss
from kernelopt.methods.engine.working_set import RestrictedLoss, with_each_label
from kernelopt.methods.method import Outcome
from kernelopt.methods.results import matrix_seconds
from kernelopt.numerics.compiling import numba_clock
from kernelopt.running import check, seconds_left
from kernelopt.structure.evaluation import Evaluator, Given
from kernelopt.structure.learning import read_sets
from kernelopt.structure.structure import Point, RiskTerm, Structure
from kernelopt.structure.trees import number
from kernelopt.validation import Array, Index

FIRST_SAMPLE, GROWTH = 150, 2  # points of the first sample, and the factor to the size of the next
SHARE = 0.9  # of the seconds left that the next sample may take, with its machines at all points


def fallback_outcome(structure: Structure) -> Outcome | None:
    """Return an outcome at a simple feasible point; None where none is known, or its value is infinite.

    Its machines are trained on a random sample of the labelled points, and their alpha is zero elsewhere. The
    sample is as large as the deadline of the running call allows; without a deadline it is all points. If not
    even the first sample can be used in time, there is no outcome.
    """
    check(matrix_seconds(structure))  # of the certificate of the outcome
    point = simple_point(structure)
    if point is None or not np.isfinite(value_at_zero_machines(structure, point)):
        return None
    found: Outcome | None = None
    try:
        for sample in Samples(structure):
            machines: list[Given] = [sample.trained(term) for term in structure.risks]
            found = Outcome(
                point,
                [alpha for alpha, _ in machines],
                machines,
                solver="none",
                remedy="The weights are the middle of their set, and the machines are trained on "
                f"{sample.size} of {sample.n} points. Give it more time, or try another method.",
                remedy_at_limit=True,
            )
    except (Stopped, SolverError):
        pass
    return found


class Samples:
    """Growing random samples of the labelled points of all risks, with points of each label.

    An iteration ends where the machines of the next sample would be too late.
    """

    def __init__(self, structure: Structure) -> None:
        learners = [term.learner for term in structure.risks]
        self.n = max((learner.n for learner in learners), default=0)
        self.labels = [each.y for each in learners if each.loss.kind == "labels"]
        self.size = min(FIRST_SAMPLE, self.n)
        self.evaluation = self.training = 0.0  # seconds for the present sample

    def __iter__(self) -> Iterator[Samples]:
        while True:
            check()
            self.evaluation = self.training = 0.0
            yield self
            larger = min(GROWTH * self.size, self.n)
            if self.size == self.n or self.seconds(larger) > SHARE * seconds_left():
                return
            self.size = larger

    def seconds(self, size: int) -> float:
        """Return the predicted seconds of the training on a sample and of its machines at all points."""
        squares, rows = (size / self.size) ** 2, self.n * size / self.size**2
        return self.evaluation * (squares + rows) + self.training * squares

    def of(self, n: int) -> Index:
        """Return the sample among n labelled points."""
        if self.size >= n:
            return np.arange(n)
        labels = [each for each in self.labels if each.size == n]
        return with_each_label(np.random.default_rng(0).permutation(n), labels, self.size)

    def trained(self, term: RiskTerm) -> tuple[Array, Array]:
        """Return (alpha, scales) of the machine at the present kernels that is trained on the sample."""
        learner = term.learner
        points = self.of(learner.n)
        began = seconds_without_compilation()
        Ks = on_labelled(term.kernels, learner.n) if points.size == learner.n else None
        blocks = [block(K, points) for K in term.kernels] if Ks is None else Ks
        evaluated = seconds_without_compilation()
        check()
        part = replace(learner, y=learner.y[points], loss=on_sample(learner.loss, learner.y, points))
        machine: Machine | BlockMachine = part.train(blocks)
        self.evaluation += evaluated - began
        self.training += seconds_without_compilation() - evaluated
        if self.evaluation * self.n / self.size > seconds_left():  # its values at all points would be late
            raise Stopped
        alpha = np.zeros(learner.n)
        alpha[points] = machine.alpha
        return alpha, machine.scales


def seconds_without_compilation() -> float:
    """Return the seconds of the clock of calls, less those in which numba has compiled."""
    return running.clock() - numba_clock.seconds


def block(K: cp.Expression, points: Index) -> Array:
    """Return the value of a kernel between some points; of a sum only these entries are computed."""
    parts = terms(K)
    if parts is None:
        return np.asarray(K.value)[np.ix_(points, points)]
    return np.asarray(sum(grams.block(points).combine(np.ravel(w.value)) for w, grams in parts))


def on_sample(loss: Loss, y: Array, points: Index) -> Loss:
    """Return the loss on some samples, each with its own weight where the weights differ."""
    arrays = [name for name, value in vars(loss).items() if isinstance(value, np.ndarray)]
    if not arrays or points.size == y.size:
        return loss
    if arrays == ["C"]:
        return replace(loss, C=loss.C[points])  # type: ignore[attr-defined, type-var]
    return RestrictedLoss(loss.curve(y), points)


def simple_point(structure: Structure) -> Point | None:
    """Return a feasible point in closed form, or None if none is known.

    It has equal shares in each set whose `start` is known, or else is the projection
    of zero on the feasible set, where that needs no conic solver.
    """
    sets = read_sets(structure)
    starts = [None] if isinstance(sets, str) else [part.start() for part in sets]
    if None not in starts:
        return {v: x for start in starts for v, x in (start or {}).items()}
    zero = {v.id: np.zeros(v.shape) for v in structure.variables}
    evaluator = Evaluator(structure, zero_machines(structure))
    return FeasibleSet(evaluator, conic=False).nearest(zero)[0]


def value_at_zero_machines(structure: Structure, point: Point) -> float:
    """Return the objective at a point and f = 0, without bounds of its rounding errors."""
    evaluator = Evaluator(structure, zero_machines(structure))
    evaluator.write(point)
    evaluator.machines()
    return number(structure.lifted.objective.args[0])


def zero_machines(structure: Structure) -> list[Given]:
    """Return (alpha, scales) of the machine f = 0 for each risk.

    The scales matter: several kernels without them would be trained at all points.
    """
    return [(np.zeros(term.learner.n), np.ones(len(term.kernels))) for term in structure.risks]
