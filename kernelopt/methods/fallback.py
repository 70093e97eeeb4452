"""A feasible point with machines trained on a sample, for calls that end before a method has a point."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import cvxpy as cp
import numpy as np

from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.errors import SolverError, Stopped
from kernelopt.language.terms import terms
from kernelopt.losses import Loss
from kernelopt.methods.control import PATIENCE, Control
from kernelopt.methods.engine.working_set import RestrictedLoss, with_each_label
from kernelopt.methods.method import Outcome
from kernelopt.methods.results import matrix_seconds
from kernelopt.structure.evaluation import Evaluator, Given
from kernelopt.structure.learning import read_sets
from kernelopt.structure.structure import Point, RiskTerm, Structure
from kernelopt.structure.trees import number
from kernelopt.validation import Array, Index


def fallback_outcome(structure: Structure, control: Control) -> Outcome | None:
    """Return an outcome at a simple feasible point; None where none is known, or its value is infinite.

    Its machines are trained on a random sample of the labelled points, and their alpha is zero elsewhere. The
    sample grows while the time left suffices for the kernel on twice as many points, and between these and
    all points; without a deadline it is all points. If not even the first sample can be used in time, there
    is no outcome.
    """
    control.check(matrix_seconds(structure))  # of the certificate of the outcome
    zero = [(np.zeros(term.learner.n), np.ones(len(term.kernels))) for term in structure.risks]  # f = 0
    evaluator = Evaluator(structure, zero)
    point = simple_point(structure, evaluator)
    if point is None:
        return None
    evaluator.write(point)
    evaluator.machines()
    if not np.isfinite(number(structure.lifted.objective.args[0])):
        return None
    n = max((term.learner.n for term in structure.risks), default=0)
    size, found, seconds = min(PATIENCE.sample, n), None, 0.0
    with suppress(Stopped, SolverError):
        while True:
            control.check(seconds / PATIENCE.sample_share)
            began = control.seconds - control.compiling
            samples = [trained(structure, term, size, control) for term in structure.risks]
            spent = control.seconds - control.compiling - began
            evaluation = sum(of_kernels for _, of_kernels in samples)
            if evaluation * n > size * control.remaining:  # the values at all points would be late
                break
            found = Outcome(
                point,
                [alpha for (alpha, _), _ in samples],
                [machine for machine, _ in samples],
                solver="none",
                remedy="The weights are the middle of their set, and the machines are trained on "
                f"{size} of {n} points. Give it more time, or try another method.",
                remedy_at_limit=True,
            )
            if size == n:
                break
            larger = min(2 * size, n)
            seconds, size = (spent * larger + evaluation * n) * larger / size**2, larger
    return found


def trained(structure: Structure, term: RiskTerm, size: int, control: Control) -> tuple[Given, float]:
    """Return (alpha, scales) of a machine that is trained on a sample, and the seconds of its kernels."""
    learner, began = term.learner, control.seconds - control.compiling
    points = sample(structure, learner.n, size)
    Ks = [block(K, points) for K in term.kernels]
    evaluation = control.seconds - control.compiling - began
    control.check()
    part = replace(learner, y=learner.y[points], loss=on_sample(learner.loss, learner.y, points))
    machine, alpha = part.train(Ks), np.zeros(learner.n)
    alpha[points] = machine.alpha
    return (alpha, machine.scales), evaluation


def sample(structure: Structure, n: int, size: int) -> Index:
    """Return a random sample among n labelled points, with points of each label of every risk."""
    if size >= n:
        return np.arange(n)
    learners = [term.learner for term in structure.risks if term.learner.loss.kind == "labels"]
    labels = [learner.y for learner in learners if learner.n == n]
    return with_each_label(np.random.default_rng(0).permutation(n), labels, size)


def block(K: cp.Expression, points: Index) -> Array:
    """Return the value of a kernel between some points; of a sum only these entries are computed."""
    parts = terms(K)
    if parts is None or points.size == K.shape[0]:
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


def simple_point(structure: Structure, evaluator: Evaluator) -> Point | None:
    """Return a feasible point in closed form, or None if none is known.

    It has equal shares in each set whose `start` is known, or else is the projection of zero on the feasible
    set, where that needs no conic solver.
    """
    sets = read_sets(structure)
    starts = [None] if isinstance(sets, str) else [part.start() for part in sets]
    if None not in starts:
        return {v: x for start in starts for v, x in (start or {}).items()}
    zero = {v.id: np.zeros(v.shape) for v in structure.variables}
    return FeasibleSet(evaluator, conic=False).nearest(zero)[0]
