"""Checksums of what an estimator was fitted on, which its file has in the place of the data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from kernelopt.grams import Grams
from kernelopt.grams.evaluated import is_numeric
from kernelopt.validation import Array

SAMPLED = 64  # samples whose kernels enter a checksum, so that no kernel is evaluated as a whole


def values_checksum(values: Array) -> str:
    """Return a checksum of an array of doubles."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()


def points_checksum(points: Any) -> str:
    """Return a checksum of points: rows of numbers, or strings."""
    if is_numeric(points):
        return values_checksum(points)
    return hashlib.sha256(repr(points.tolist()).encode("utf-8", "surrogatepass")).hexdigest()


def sampled_checksum(grams: Grams) -> str:
    """Return a checksum of the kernels between some samples, spread over all."""
    spread = np.linspace(0, grams.n_points - 1, min(grams.n_points, SAMPLED)).astype(int)
    return values_checksum(np.asarray(grams.block(spread)))
