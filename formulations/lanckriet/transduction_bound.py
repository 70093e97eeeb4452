"""The transductive error bound of the paper, computed for a solution."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from kernelopt.extend import Learned, as_generator, positive, shown, whole

ENUMERATED = 12  # points up to which all 2^N <= 4096 sign vectors are looked at, about as many as are sampled


@dataclass(frozen=True)
class TransductionBound:
    r"""A bound on the error on the unlabelled points, and its parts.

    Parameters
    ----------
    bound : float
        :math:`margin\_error + (4 + confidence + capacity) / \sqrt n`; above 1 it says nothing.
    margin_error : float
        Mean of :math:`\max(1 - y_i f(x_i), 0)` on the labelled points.
    confidence : float
        :math:`\sqrt{2 \log(1/\delta)}`.
    capacity : float
        :math:`\sqrt{complexity\, \|w\|^2 / n}`.
    complexity : float
        :math:`E_\sigma \max_K \sigma'K\sigma` over the kernel set, sigma uniform in :math:`\{-1, +1\}^N`.
    complexity_bound : float
        Its upper bound in closed form.
    """

    bound: float
    margin_error: float
    confidence: float
    capacity: float
    complexity: float
    complexity_bound: float


def transduction_bound(
    solution: ko.Solution,
    delta: float = 0.05,
    *,
    y: ArrayLike | None = None,
    samples: int = 2000,
    random_state: int | np.random.Generator | None = 0,
) -> TransductionBound:
    r"""The bound on the test error of a machine trained on n points and applied to n others.

    .. math::

        \frac1n \sum_i \max(1 - y_i f(x_i), 0)
        + \frac{1}{\sqrt n}\Big(4 + \sqrt{2\log(1/\delta)} + \sqrt{C(\mathcal K) \|w\|^2 / n}\Big)

    with probability 1 - delta over the choice of the labelled half. For mu >= 0 and trace c,
    :math:`C(\mathcal K) = c\, E_\sigma \max_i \sigma'K_i\sigma / r_i`, enumerated for N <= 12 and
    sampled otherwise; for free signs it is at most c N, which is used.

    Parameters
    ----------
    solution : Solution
        Of a Lanckriet criterion, with as many unlabelled points as labelled ones.
    delta : float in (0, 1), default 0.05
        The probability that the bound does not hold.
    y : array of shape (n,), optional
        The labels that were used; by default the labels of the solution.
    samples : int > 0, default 2000
        Draws of sigma where N > 12.
    random_state : int, Generator or None, default 0
        The seed of the draws.

    Returns
    -------
    TransductionBound
        The theorem is for machines without intercept. The intercept of the solution is part of f here, and
        does not enter the bound otherwise. The paper prints n for N in the complexity, which is too small:
        N = 2 n is used.

    Raises
    ------
    ParameterError
        If delta is not in (0, 1) or the numbers of labelled and unlabelled points differ.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorem 24.

    Examples
    --------
    Four orthogonal points, two of them with labels: alpha = (1, -1), |w|^2 = 2, and with r = c = 4 the
    complexity is sigma'sigma = 4.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> bound = lanckriet.transduction_bound(lanckriet.hard_margin([np.eye(4)], [1, -1]).solve())
    >>> round(bound.complexity, 4), round(bound.capacity, 4), round(bound.bound, 2)
    (4.0, 2.0, 5.97)
    """
    delta = positive(delta, "delta", below=1)
    samples, rng = whole(samples, "samples"), as_generator(random_state)
    learned = getattr(solution, "learned", [])
    if len(learned) != 1:
        raise ko.InputError(
            "solution must be a Solution of a Lanckriet criterion, with one machine, got "
            f"{shown(solution)}. Pass what soft_margin(...).solve() returns."
        )
    machine = learned[0]
    n, kernel = machine.alpha.size, machine.kernel
    labels = ko.hard_margin().targets(machine.y if y is None else y, n)
    if len(kernel) != 2 * n or labels.size != n:
        raise ko.errors.ParameterError(
            f"the bound needs as many unlabelled points as labelled ones, got {n} labelled of {len(kernel)} "
            f"and {labels.size} labels. Learn with n further points, without labels."
        )
    margins = labels * solution.decision_function()[:n]
    error = float(np.maximum(1 - margins, 0).mean())
    square = float(machine.alpha @ kernel[:n, :n] @ machine.alpha)
    complexity, closed = complexities(machine, samples, rng)
    confidence = float(np.sqrt(2 * np.log(1 / delta)))
    capacity = float(np.sqrt(complexity * square / n))
    bound = error + (4 + confidence + capacity) / np.sqrt(n)
    return TransductionBound(float(bound), error, confidence, capacity, complexity, closed)


def complexities(machine: Learned, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the complexity of the kernel set of the machine, and its closed upper bound."""
    kernel = machine.kernel
    N, c = len(kernel), float(np.trace(kernel)) + (machine.tau or 0.0) * len(kernel)
    if not machine.inductive:
        return c * N, c * N
    grams = [K for part in machine.parts for K in part.grams]
    traces = np.array([float(np.trace(K)) for K in grams])
    used = [K / r for K, r in zip(grams, traces, strict=True) if r > 0]
    closed = c * min(len(used), N * max(float(np.linalg.eigvalsh(K)[-1]) for K in used))
    return min(c * mean_largest_form(used, N, samples, rng), closed), closed


def mean_largest_form(
    matrices: list[NDArray[np.float64]], N: int, samples: int, rng: np.random.Generator
) -> float:
    """Return E_sigma max_i sigma'M_i sigma, exactly for N <= 12."""
    if N <= ENUMERATED:
        signs = np.array(list(product((-1.0, 1.0), repeat=N)))
    else:
        signs = rng.choice((-1.0, 1.0), size=(samples, N))
    forms = np.array([np.einsum("si,ij,sj->s", signs, M, signs, optimize=True) for M in matrices])
    return float(forms.max(axis=0).mean())
