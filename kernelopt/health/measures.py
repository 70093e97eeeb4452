"""The numbers of a kernel report: of one matrix, and the centred alignments of all."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import LabelError, ShapeError
from kernelopt.grams import Grams
from kernelopt.numerics.decompositions import RANK_TOLERANCE, extreme_eigenvalues
from kernelopt.validation import (
    PSD_TOLERANCE,
    Array,
    Floats,
    Index,
    as_classes,
    as_float_array,
    is_real,
    plain,
)

Stack: TypeAlias = Grams | Floats

EXACT_POINTS = 2000  # up to which all eigenvalues are computed: about a second for each kernel
NUMBERS = ("asymmetry", "smallest", "effective_rank", "scale", "trace")


def measured(K: Array, target: Array | None) -> dict[str, Any]:
    """Return the numbers of a report of one matrix of shape (N, N), and its largest entry as "size".

    All are NaN where entries are missing.
    """
    missing = ~np.isfinite(K)
    found: dict[str, Any] = dict.fromkeys((*NUMBERS, "alignment", "size"), np.nan)
    found |= {"missing": int(missing.sum()), "first_missing": None}
    if missing.any():
        i, j = np.argwhere(missing)[0].tolist()
        return found | {"first_missing": (i, j)}
    size = float(np.abs(K).max())
    S = K / (size or 1.0)
    asymmetry = float(np.abs(S - S.T).max())
    S = (S + S.T) / 2
    low, high, rank = spectrum(S)
    trace = float(np.trace(S))
    return found | {
        "size": size,
        "asymmetry": asymmetry,
        "smallest": low / (max(abs(low), abs(high)) or 1.0),
        "effective_rank": rank,
        "scale": size * (trace / len(S) - float(S.mean())),
        "trace": size * trace,
        "alignment": np.nan if target is None else target_alignment(S, target),
    }


def is_estimated(N: int) -> bool:
    """Whether extreme eigenvalues are estimates on so many points."""
    return N > EXACT_POINTS


def spectrum(S: Array) -> tuple[float, float, float]:
    """Return the smallest and the largest eigenvalue and the effective rank; estimates for many points.

    The effective rank is (sum |lambda|)^2 / sum lambda^2. Without all eigenvalues it is (tr S)^2 / |S|_F^2,
    which is the same for a semidefinite S, and NaN for an S that is known to be indefinite. It is known where
    the smallest eigenvalue or tr S < |S|_F tells it.
    """
    norm = float(np.linalg.norm(S))
    if not is_estimated(len(S)):
        values = np.linalg.eigvalsh(S)
        return float(values[0]), float(values[-1]), (float(np.abs(values).sum()) / (norm or 1.0)) ** 2
    low, high = extreme_eigenvalues(S)
    trace, rounding = float(np.trace(S)), PSD_TOLERANCE * norm
    indefinite = low < -PSD_TOLERANCE * max(abs(low), abs(high)) or trace < norm - rounding
    return low, high, np.nan if indefinite else (trace / (norm or 1.0)) ** 2


def centred(S: Array) -> Array:
    """Return H S H; zero where that is only rounding."""
    means = S.mean(axis=0)
    found = S - means - (means[:, None] - means.mean())
    return np.zeros_like(S) if np.linalg.norm(found) <= RANK_TOLERANCE * np.linalg.norm(S) else found


def target_alignment(S: Array, Y: Array) -> float:
    """Return the centred alignment of a kernel with YY' on the first n points, for centred columns of Y."""
    S = S[: len(Y), : len(Y)]
    norms = float(np.linalg.norm(centred(S)) * np.linalg.norm(Y.T @ Y))
    return float((S @ Y * Y).sum()) / norms if norms else np.nan


def centred_alignments(given: Stack, sizes: Array) -> Array:
    """Return the centred alignments of the matrices with each other, NaN for a constant or unknown one."""
    good = np.flatnonzero(np.isfinite(sizes))
    found = np.full((len(given),) * 2, np.nan)
    if good.size:
        grams = in_units(given, good, sizes[good])
        inner, norms = grams.center().inner(), np.sqrt(grams.inner().diagonal())
        lengths = np.sqrt(inner.diagonal())
        lengths[lengths <= RANK_TOLERANCE * norms] = np.nan
        found[np.ix_(good, good)] = inner / np.outer(lengths, lengths)
        found[good, good] = np.where(np.isnan(lengths), np.nan, 1.0)
    return found


def in_units(given: Stack, chosen: Index, sizes: Array) -> Grams:
    """Return the symmetric parts of some matrices, divided by their sizes where products may overflow."""
    if isinstance(given, Grams) and ((sizes == 0) | ((sizes > 1e-100) & (sizes < 1e100))).all():
        return given.subset(chosen)
    K = np.asarray(given)[chosen] / np.where(sizes > 0, sizes, 1.0)[:, None, None]
    return Grams.from_array((K + K.transpose(0, 2, 1)) / 2)


def as_target(y: ArrayLike, N: int) -> Array:
    """Return the target as centred columns, shape (n, q)."""
    given = plain(y, "y")
    words = given.dtype.kind == "O" and not all(is_real(entry) for entry in given.ravel())
    if words or given.dtype.kind in "USb":
        classes, codes = np.unique(as_classes(y), return_inverse=True)
        Y = np.eye(classes.size)[codes]
    else:
        Y = as_float_array(y, "y", ndim=(1, 2))
        Y = Y[:, None] if Y.ndim == 1 else Y
    if not 0 < len(Y) <= N or not Y.size:
        raise ShapeError(
            f"y must have one entry for each of the first n <= {N} points, got shape {given.shape}. Put the "
            "labelled points first."
        )
    Y = Y / (np.abs(Y).max() or 1.0)
    spread = Y - Y.mean(axis=0)
    if np.abs(spread).max() <= RANK_TOLERANCE:
        raise LabelError(
            f"y must take at least two values, got one on {len(Y)} points. Leave y out to measure the "
            "kernels alone."
        )
    return np.asarray(spread)
