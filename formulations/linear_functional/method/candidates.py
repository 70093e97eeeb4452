"""The first stage: one regularised function per kernel, kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import kernelopt as ko
from formulations.linear_functional.method.filters import Array
from formulations.linear_functional.method.spectrum import Candidate, candidate
from formulations.linear_functional.setting import Setting

PART_BYTES = 32_000_000
PART_KERNELS = 16


@dataclass(frozen=True, eq=False)
class Candidates:
    """The functions x_j of the M kernels, O(n M) numbers.

    Attributes
    ----------
    data : Setting
    columns : array of shape (n_2, M), X
        Their values on the points of the second stage.
    coefficients : array of shape (M, n), b
        x_j(u) = sum_i b_ji k_j(u, u_i); zero on the points that the first stage did not see.
    alpha : array of shape (M,)
        The regularisation of each, in the convention that was asked for.
    errors : array of shape (M,)
        Bounds of the distances of the columns from those of exact arithmetic, for Tikhonov's filter on
        training or held-out points. Other columns are data as they were computed, with zeros here.
    keys : tuple of M bytes
        Equal where kernels and regularisation are, so that exact columns are the same.
    """

    data: Setting
    columns: Array
    coefficients: Array
    alpha: Array
    errors: Array
    keys: tuple[bytes, ...]


def candidates(data: Setting, n_jobs: int | None) -> Candidates:
    """Return the candidates; at most one part of the kernels per job is held at a time."""
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    columns = np.empty((data.judged.size, data.M))
    coefficients, alpha = np.zeros((data.M, data.n)), np.empty(data.M)
    errors, keys = np.empty(data.M), list[bytes]()
    j = 0
    # The jobs are the parallelism: threads of BLAS wait for each other, forty times longer on a busy machine.
    with threadpool_limits(1, user_api="blas"):
        for found in parallel(tasks(data)):
            for one in found:
                columns[:, j], alpha[j], errors[j] = one.column, one.alpha, one.error
                keys.append(one.key)
                coefficients[j, data.trained] = one.coefficients
                j += 1
    return Candidates(data, columns, coefficients, alpha, errors, tuple(keys))


def tasks(data: Setting) -> Iterator[Any]:
    """Yield the work on a few kernels at a time, each on a stack of its own.

    A stack keeps what it evaluated (up to 1 GB), and is not to be read by two threads: the block of all
    labelled points is a new stack, which is let go with its task.
    """
    step = int(np.clip(PART_BYTES // (8 * data.n**2), 1, PART_KERNELS))
    for start in range(0, data.M, step):
        yield joblib.delayed(part_of_candidates)(data, range(start, min(start + step, data.M)))


def part_of_candidates(data: Setting, kernels: range) -> list[Candidate]:
    """Return the candidates of some kernels."""
    part: ko.Grams = data.grams.block(slice(0, data.n))
    chosen = data.regularization
    return [
        candidate(part, j, chosen if isinstance(chosen, str) else float(chosen[j]), data) for j in kernels
    ]
