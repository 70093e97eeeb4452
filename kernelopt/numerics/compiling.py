"""The numba decorator of this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, overload

Loop = Callable[..., Any]

REASSOCIATION = {"reassoc", "contract"}  # LLVM flags: sums in any order, and fused multiply-add


@overload
def compiled(loop: Loop, /) -> Loop: ...


@overload
def compiled(*, any_order: bool) -> Callable[[Loop], Loop]: ...


def compiled(loop: Loop | None = None, /, *, any_order: bool = False) -> Loop:
    """Return a function that numba compiles at its first call, for a decorator or at the place of the call.

    The machine code divides as numpy does, runs without the interpreter lock, and is cached on disk where
    that is possible. numba is imported by the first call of `compiled`, which takes about a second.

    Parameters
    ----------
    loop : function of arrays and numbers
    any_order : bool, default False
        Whether sums may be taken in any order, so that they vectorise. NaN and infinity are respected.
    """
    return partial(_compiled, any_order=any_order) if loop is None else _compiled(loop, any_order)


@cache
def _compiled(loop: Loop, any_order: bool) -> Loop:
    from numba import njit  # slow to import, and only some methods need it

    options: dict[str, Any] = {"fastmath": REASSOCIATION} if any_order else {}
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
