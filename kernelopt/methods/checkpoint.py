"""`Checkpoint`: the file from which an interrupted call of `solve` goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.atom import Atom

from kernelopt.errors import FileError
from kernelopt.grams.written import sampled
from kernelopt.language.terms import terms
from kernelopt.records import digest, read, record, write
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes
from kernelopt.validation import Array

WRITE_SHARE = 0.02  # of the time of a call that is spent on writing
EARLIEST_SECONDS = 0.2  # between two writes: no call that short is worth a file

State = dict[str, Any]
"""What a method needs in order to go on: numbers, arrays, and lists of arrays by name."""


@record("checkpoint")
class Progress(NamedTuple):
    """What a file has: the state of a method, and the fingerprint of its problem."""

    method: str
    problem: str
    state: State


def kept(**state: Any) -> Callable[[], State]:
    """Return a state that is not changed later, as `Control.report` takes it."""
    return lambda: state


class Checkpoint:
    """The file of one call, with the state of the method that runs.

    The bounds are not in it. A resumed method computes them from the data again, and the certificate too, so
    that no file can make a result look better than it is.

    Parameters
    ----------
    path : path-like
        Where it exists, the call goes on from it.
    structure : Structure
        The problem; a file of another problem is refused.

    Raises
    ------
    FileError
        If there is a file which is damaged, no checkpoint, or of another problem.

    Attributes
    ----------
    method : str
        The method that has written the file; empty where there is none.
    """

    def __init__(self, path: Path, structure: Structure) -> None:
        self.path, self.problem = path, fingerprint(structure)
        self.method, self._state = "", State()
        self._due = time.perf_counter() + EARLIEST_SECONDS
        if not path.exists():
            return
        self.method, problem, self._state = read(path, "checkpoint")
        if problem != self.problem:
            raise FileError(
                f"{path} must be a checkpoint of this problem, got one of another problem or of other data. "
                "Delete the file, or pass another path."
            )

    def take(self, method: str) -> State:
        """Return the state that was read, if it is one of the method; empty otherwise, and from then on."""
        state, self._state = self._state, State()
        return state if method == self.method else State()

    def offer(self, method: str, state: Callable[[], State], last: bool) -> None:
        """Write the state of a method if a write is due, or if it is the last one."""
        began = time.perf_counter()
        if not last and began < self._due:
            return
        write(self.path, Progress(method, self.problem, state()))
        self.method, now = method, time.perf_counter()
        self._due = now + max(EARLIEST_SECONDS, (now - began) / WRITE_SHARE)


def fingerprint(structure: Structure) -> str:
    """Return a hash of the problem: its variables and constraints, the data of its risks, its constants.

    Of the kernels it takes the blocks on some points, so that none is evaluated or read as a whole.
    """
    problem = structure.problem
    trees = chain.from_iterable(map(nodes, (problem.objective, *problem.constraints)))
    described = [  # a variable has its number among its data, and that differs by process
        [
            repr(type(node)),
            node.shape,
            [repr(part) for part in node.get_data() or () if isinstance(part, Real | str)],
        ]
        for node in trees
        if isinstance(node, Atom)
    ]
    variables = [[v.shape, repr(v.attributes["nonneg"])] for v in structure.variables]
    constants = [numbers(leaf) for leaf in (*problem.constants(), *problem.parameters())]
    learned = [
        [
            [repr(risk.learner.loss), risk.learner.y, risk.learner.norm, risk.learner.has_intercept],
            [(grams.shape, sampled(grams)) for K in risk.kernels for _, grams in terms(K) or ()],
        ]
        for risk in structure.risks
    ]
    return digest([structure.maximize, described, variables, constants, learned])


def numbers(leaf: cp.Constant | cp.Parameter) -> Array:
    """Return the numbers of a constant or a parameter; the entries of a sparse one with their positions."""
    value = leaf.value
    if sp.issparse(value):
        entries = sp.coo_array(value)
        return np.vstack([entries.row, entries.col, entries.data])
    return np.asarray(value)
