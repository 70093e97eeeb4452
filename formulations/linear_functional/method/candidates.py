"""The first stage: one regularised function per kernel, kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import kernelopt as ko
from formulations.linear_functional.method.spectrum import Candidate, candidate
from formulations.linear_functional.regularization_data import RegularizationData
from kernelopt.extend import Array

PART_BYTES = 32_000_000  # of the kernel matrices that a job holds at a time
PART_KERNELS = 16  # that a job takes at a time at most, so that there are tasks for every job


@dataclass(frozen=True, eq=False)
class Candidates:
    """The functions x_j of the M kernels, O(n M) numbers.

    Attributes
    ----------
    data : RegularizationData
    columns : array of shape (n_2, M), X
        Their values on the points of the second stage.
    coefficients : array of shape (M, n), b
        x_j(u) = sum_i b_ji k_j(u, u_i); zero on the points that are not trained on.
    alpha : array of shape (M,)
        The regularisation of each, in the convention of the data.
    errors : array of shape (M,)
        Bounds of the distances of the columns from those of exact arithmetic, for Tikhonov's filter on
        training or held-out points. All other columns count as exact, with errors of zero.
    keys : tuple of M bytes
        Equal where kernels and regularisation are, so that exact columns are the same.
    """

    data: RegularizationData
    columns: Array
    coefficients: Array
    alpha: Array
    errors: Array
    keys: tuple[bytes, ...]


def candidates(data: RegularizationData, n_jobs: int | None) -> Candidates:
    """Return the candidates; at most one part of the kernels per job is held at a time."""
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    columns = np.empty((data.evaluated.size, data.M))
    coefficients, alpha = np.zeros((data.M, data.n)), np.empty(data.M)
    errors, keys = np.empty(data.M), list[bytes]()
    j = 0
    # One thread of BLAS per job: with more threads than cores a busy machine took forty times as long.
    with threadpool_limits(1, user_api="blas"):
        for found in parallel(tasks(data)):
            for one in found:
                columns[:, j], alpha[j], errors[j] = one.column, one.alpha, one.error
                keys.append(one.key)
                coefficients[j, data.trained] = one.coefficients
                j += 1
    return Candidates(data, columns, coefficients, alpha, errors, tuple(keys))


def tasks(data: RegularizationData) -> Iterator[Any]:
    """Yield tasks of a few kernels each.

    A stack keeps the matrices that it evaluated (up to 1 GB), and two threads must not read one stack.
    So every task makes a stack of its own, the block of all labelled points, which is freed at its end.
    """
    step = int(np.clip(PART_BYTES // (8 * data.n**2), 1, PART_KERNELS))
    for start in range(0, data.M, step):
        yield joblib.delayed(part_of_candidates)(data, range(start, min(start + step, data.M)))


def part_of_candidates(data: RegularizationData, kernels: range) -> list[Candidate]:
    """Return the candidates of some kernels."""
    part: ko.Grams = data.grams.block(slice(0, data.n))
    chosen = data.regularization
    return [
        candidate(part, j, chosen if isinstance(chosen, str) else float(chosen[j]), data) for j in kernels
    ]
