"""How the loops of this package are compiled by numba: division as numpy does it, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

REORDERED = {"reassoc", "contract"}  # sums in any order; a difference stays the difference it was


def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop compiled at its first use."""
    return _kept(loop, {})


def summed(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop compiled with its sums in the order that suits the processor."""
    return _kept(loop, {"fastmath": REORDERED})


def _kept(loop: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        fast: Callable[..., Any] = njit(loop, cache=True, error_model="numpy", **options)
    except RuntimeError:  # no directory that numba may write to
        fast = njit(loop, error_model="numpy", **options)
    return fast
