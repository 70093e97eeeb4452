"""The numba decorators of this package: IEEE division as in numpy, no interpreter lock, a cache on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit

REASSOCIATION = {"reassoc", "contract"}  # LLVM flags: sums in any order, and fused multiply-add


def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is compiled at its first call and runs without the interpreter lock."""
    return _jit(loop, {})


def summed(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same with sums in any order, so that they vectorise; NaN and infinity are respected."""
    return _jit(loop, {"fastmath": REASSOCIATION})


def _jit(loop: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        fast: Any = njit(loop, cache=True, error_model="numpy", nogil=True, **options)
    except RuntimeError:  # no directory that numba may write to
        return njit(loop, error_model="numpy", nogil=True, **options)  # type: ignore[no-any-return]
    # The cached machine code contains the compiled functions that this one calls, also those of other
    # files of its package, while numba compares the time of its own file only. The stamp of all files
    # replaces that time. The attribute is private: without it numba would use its own stamp.
    cache_file: Any = getattr(getattr(fast, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamp(Path(loop.__code__.co_filename).parent)
    return fast  # type: ignore[no-any-return]


@lru_cache
def stamp(package: Path) -> list[tuple[str, float, int]]:
    """Return name, time of change and size of every source file of a package."""
    files = [(file.name, file.stat()) for file in sorted(package.glob("*.py"))]
    return [(name, found.st_mtime, found.st_size) for name, found in files]
