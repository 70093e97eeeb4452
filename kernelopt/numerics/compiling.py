"""How the loops of this package are compiled by numba: division as numpy does it, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

REORDERED = {"reassoc", "contract"}  # sums in any order; a difference stays the difference it was
SOURCES = sorted(Path(__file__).parent.glob("*.py"))
STAMP = [(file.name, file.stat().st_mtime, file.stat().st_size) for file in SOURCES]


def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop compiled at its first use. It lets other threads run: one may watch it."""
    return _kept(loop, {})


def summed(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop compiled with its sums in the order that suits the processor."""
    return _kept(loop, {"fastmath": REORDERED})


def _kept(loop: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        fast: Any = njit(loop, cache=True, error_model="numpy", nogil=True, **options)
    except RuntimeError:  # no directory that numba may write to
        fast = njit(loop, error_model="numpy", nogil=True, **options)
    # What is kept holds the loops that it calls, of other files too, but numba only sees whether its own
    # file has changed. The attribute is private; were it to go, this would be back to that.
    kept: Any = getattr(getattr(fast, "_cache", None), "_cache_file", None)
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = STAMP
    return fast  # type: ignore[no-any-return]
