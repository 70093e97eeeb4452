"""Random comparisons."""

from __future__ import annotations


def random_triplets(n, size, rng):
    return rng.permuted(rng.random((size, n)).argsort(axis=1)[:, :3], axis=1)
