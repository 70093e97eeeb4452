"""`Rows`: the points of kernels in blocks, in memory, in files, or on other machines.

A sweep over all points is a function of one block at a time, see `sweeps`, and its results are taken in the
order of the blocks. So they are the same to the last bit for the same blocks, whoever computed them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from kernelopt.errors import FileError, KerneloptError, NotFiniteError, ShapeError
from kernelopt.grams.caching import read_only
from kernelopt.grams.sweeps import Place, Summary, length, summary
from kernelopt.threads import blas_threads, one_blas_thread
from kernelopt.validation import Array, Floats, Index

P = TypeVar("P")
T = TypeVar("T")
Task: TypeAlias = Callable[[Any, Index, P], T]
Part: TypeAlias = tuple[
    int, Index | None
]  # the number of a block, and the numbers of some of its rows; None: of all

FEWEST_ROWS = 1 << 11  # of a block: a task takes milliseconds of them
MOST_BLOCKS = 400  # a task of a cluster takes its scheduler about 1 ms


class Block(NamedTuple):
    """The rows start, ..., stop - 1, and the name by which messages call them."""

    name: str
    start: int
    stop: int


class Rows(ABC):
    """N points of R^d in consecutive blocks.

    Attributes
    ----------
    shape : (N, d)
    blocks : tuple of Block
    columns_in_memory : int
        d where the memory of this process has the points, else 0.
    """

    columns_in_memory = 0

    def __init__(self, blocks: Sequence[Block], width: int) -> None:
        self.blocks, self.shape = tuple(blocks), (blocks[-1].stop, width)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"{type(self).__name__}({n} points of R^{d} in {len(self.blocks)} blocks)"

    @abstractmethod
    def take(self, points: Index | slice) -> Array:
        """Return some of the points, in their order, as an array of float64."""

    def array(self) -> Array:
        """Return all points as an array in the memory of this process."""
        return self.take(slice(None))

    def each(
        self, task: Task[P, T], payload: P, points: Index | None = None
    ) -> Iterator[tuple[Index | slice, T]]:
        """Yield the results of a task on every block with some of the points, in the order of the blocks.

        Parameters
        ----------
        task : function of rows, their numbers and the payload
            Of a module, so that another process can import it.
        payload : object
        points : array of k different integers, optional
            The numbers of the points; None means all N in order.

        Yields
        ------
        tuple
            The positions in `points` of the rows of the block, and what the task returned.

        Raises
        ------
        InputError
            If a block has changed, or the blocks did not have all points.
        """
        numbers = np.arange(len(self)) if points is None else points
        found = list(self._parts(numbers))
        parts: list[Part] = [
            (k, None if len(numbers[at]) == self._size(k) and is_range(numbers[at]) else numbers[at])
            for k, at in found
        ]
        done = 0
        for (_, at), (count, result) in zip(found, self._run(task, payload, parts), strict=True):
            done += count
            yield at, result
        if done != numbers.size:
            raise KerneloptError(
                f"a sweep must cover {numbers.size} points once, got {done}. This is an error of kernelopt."
            )

    def _parts(self, numbers: Index) -> Iterator[tuple[int, Index | slice]]:
        """Yield the numbers of blocks, and the positions of their rows among some numbers."""
        stops = np.array([block.stop for block in self.blocks])
        of_block = np.searchsorted(stops, numbers, side="right")
        if is_range(numbers):
            order: Index | None = None
        else:
            order = np.argsort(of_block, kind="stable")
            of_block = of_block[order]
        bounds = np.searchsorted(of_block, np.arange(len(stops) + 1))
        for k in np.flatnonzero(np.diff(bounds)).tolist():
            part = slice(int(bounds[k]), int(bounds[k + 1]))
            yield k, part if order is None else order[part]

    def _size(self, k: int) -> int:
        return self.blocks[k].stop - self.blocks[k].start

    @abstractmethod
    def _run(self, task: Task[P, T], payload: P, parts: Sequence[Part]) -> Iterator[tuple[int, T]]:
        """Yield for each part the number of rows and the result of the task, see `run`."""

    @cached_property
    def summaries(self) -> list[Summary]:
        """The summaries of the blocks."""
        return [found for _, found in self.each(summary, False)]

    @cached_property
    def centre(self) -> Array:
        """The mean of all points, shape (d,)."""
        return read_only(np.sum([each.total for each in self.summaries], axis=0) / len(self))

    @cached_property
    def ranges(self) -> Array:
        """The difference of the largest and the smallest entry of each column, shape (d,)."""
        with np.errstate(over="ignore"):
            high, low = (np.array([each[k] for each in self.summaries]) for k in (2, 1))
            return np.asarray(high.max(axis=0) - low.min(axis=0))

    def length(self, place: Place, order: int, n: int) -> float:
        """Return the largest length of the first n points after `place`, in the norm of an order."""
        return max(found for _, found in self.each(length, (place, order), np.arange(n)))

    def check_unchanged(self) -> None:  # noqa: B027  of arrays in memory nothing is to be checked
        """Raise an `InputError` that names a block whose numbers are no more those of the first sweep."""

    def check_labels(self, n: int) -> None:  # noqa: B027  an array may have points without labels
        """Raise a `ShapeError` where only the first n points have labels, and that must be an error."""

    def same(self, other: Rows) -> bool:
        """Whether other points are equal."""
        if self is other or self.shape != other.shape:
            return self is other
        parts = (slice(b.start, b.stop) for b in self.blocks)
        return all(np.array_equal(self.take(part), other.take(part)) for part in parts)


class ArrayRows(Rows):
    """Points in an array, which nobody changes.

    Parameters
    ----------
    X : array of shape (N, d)
    sizes : sequence of int, optional
        The numbers of rows of the blocks; by default 2048 each, and more where that makes more than 400
        blocks.
    """

    def __init__(self, X: Array, sizes: Sequence[int] | None = None) -> None:
        self.X, self.columns_in_memory = X, X.shape[1]
        stops = np.cumsum(block_sizes(len(X)) if sizes is None else sizes).tolist()
        if stops[-1] != len(X):
            raise ShapeError(
                f"sizes must add up to the {len(X)} rows, got {stops[-1]}. Pass one size for each block."
            )
        bounds = zip([0, *stops], stops, strict=False)
        super().__init__([Block(f"rows {a}..{b - 1}", a, b) for a, b in bounds], X.shape[1])

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayRows, (self.X, [self._size(k) for k in range(len(self.blocks))])

    def take(self, points: Index | slice) -> Array:
        return self.X[points]

    def array(self) -> Array:
        return self.X

    def _run(self, task: Task[P, T], payload: P, parts: Sequence[Part]) -> Iterator[tuple[int, T]]:
        def work(part: Part) -> tuple[int, T]:
            block = self.blocks[part[0]]
            return run(task, payload, block, self.X[block.start : block.stop], part[1])

        yield from threaded(work, parts)


def rows_of_map(X: Any) -> FileRows | None:
    """Return the rows of a read-only memory map of a whole .npy file; None for any other points."""
    if not isinstance(X, np.memmap) or X.mode != "r" or X.ndim != 2 or X.filename is None:
        return None
    try:
        whole: Any = opened(str(X.filename))
    except FileError:  # a map of another file
        return None
    if (whole.offset, whole.dtype, whole.shape, whole.strides) != (X.offset, X.dtype, X.shape, X.strides):
        return None
    return FileRows([str(X.filename)])


class Source(NamedTuple):
    """Rows of a file."""

    path: str
    start: int
    stop: int


class Header(NamedTuple):
    """The type of the array of a file, its numbers of rows and columns, and the mark of the file."""

    dtype: str
    length: int
    width: int
    mark: tuple[int, int]


class FileRows(Rows):
    """Points in .npy files, which are read a block at a time: parts of one file, or several files.

    Parameters
    ----------
    paths : sequence of path-like
        In the order of the rows. All files have one dtype, float64 or float32, and one number of columns.

    Raises
    ------
    InputError
        If a file is missing or is no such array, or has NaN or infinity. The message names it.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [str(Path(path).absolute()) for path in paths]
        headers = self._headers()
        first, blocks, self._sources, start = headers[0], [], list[Source](), 0
        for path, (dtype, size, width, _) in zip(self.paths, headers, strict=True):
            if (dtype, width) != (first.dtype, first.width):
                raise ShapeError(
                    f"the blocks must have one dtype and one number of columns, {first.dtype} and "
                    f"{first.width} as block {self.paths[0]!r}, got {dtype} and {width} in block "
                    f"{path!r}. Write it again."
                )
            sizes = block_sizes(size) if len(headers) == 1 else [size]
            for stop, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
                name = path if len(sizes) == 1 else f"{path} rows {stop - size}..{stop - 1}"
                blocks.append(Block(name, start, start + size))
                self._sources.append(Source(path, stop - size, stop))
                start += size
        self._marks = dict(zip(self.paths, (each.mark for each in headers), strict=True))
        super().__init__(blocks, first.width)
        for block, found in zip(self.blocks, self.summaries, strict=True):
            if not (np.isfinite(found.low).all() and np.isfinite(found.high).all()):
                raise NotFiniteError(
                    f"block {block.name!r} must have finite numbers, got NaN or infinity. "
                    "Drop or fill such rows."
                )

    def _headers(self) -> list[Header]:
        """Return what the files are."""
        return [header(path) for path in self.paths]

    @cached_property
    def summaries(self) -> list[Summary]:
        return [found for _, found in self.each(summary, True)]

    def check_unchanged(self) -> None:
        now = (found.digest for _, found in self.each(summary, True))
        for block, before, digest in zip(self.blocks, self.summaries, now, strict=True):
            if digest != before.digest:
                raise changed(block)

    def check_labels(self, n: int) -> None:
        for block in self.blocks:
            if block.stop > n:
                raise ShapeError(
                    f"there must be a label for each of the {len(self)} rows, got {n} labels: block "
                    f"{block.name!r} has the rows {block.start} to {block.stop - 1}. Add labels, or leave "
                    "out its file."
                )

    def take(self, points: Index | slice) -> Array:
        numbers = np.arange(len(self))[points]
        found = np.empty((numbers.size, self.shape[1]))
        for k, at in self._parts(numbers):
            found[at] = self._rows(k)[numbers[at] - self.blocks[k].start]
        return found

    def _rows(self, k: int) -> Floats:
        """Return the rows of a block, as a memory map, of a file that is as it was."""
        path, start, stop = self._sources[k]
        if mark(path) != self._marks[path]:
            raise changed(self.blocks[k])
        return opened(path)[start:stop]

    def _run(self, task: Task[P, T], payload: P, parts: Sequence[Part]) -> Iterator[tuple[int, T]]:
        def work(part: Part) -> tuple[int, T]:
            k, numbers = part
            found = run(task, payload, self.blocks[k], self._rows(k), numbers)
            self._rows(k)  # nobody has written to it meanwhile
            return found

        yield from threaded(work, parts)


def run(task: Task[P, T], payload: P, block: Block, X: Floats, numbers: Index | None) -> tuple[int, T]:
    """Return the number of rows and the result of a task on some rows of a block, or on all."""
    if len(X) != block.stop - block.start:
        raise changed(block)
    if numbers is None:
        numbers = np.arange(block.start, block.stop)
    else:
        X = X[numbers - block.start]
    with one_blas_thread():  # with several, sums may differ in the last bit
        return numbers.size, task(X, numbers, payload)


def threaded(work: Callable[[P], T], parts: Sequence[P]) -> Iterator[T]:
    """Yield the results for all parts in order, from as many threads as BLAS uses at the time."""
    threads = min(len(parts), blas_threads())
    if threads < 2:
        yield from map(work, parts)
        return
    pool = ThreadPoolExecutor(threads, "kernelopt")
    try:
        found = [pool.submit(copy_context().run, work, part) for part in parts]  # with the running call
        for each in found:
            yield each.result()
    finally:
        pool.shutdown(cancel_futures=True)


def changed(block: Block) -> FileError:
    """Return the error of a block that is not as it was."""
    return FileError(
        f"block {block.name!r} must stay as it was while kernels are learned from it, got other numbers. "
        "Restore it, or start again."
    )


def block_sizes(n: int) -> list[int]:
    """Return the numbers of rows of the blocks of n rows, all equal but the last."""
    size = max(FEWEST_ROWS, -(-n // MOST_BLOCKS))
    return [min(size, n - start) for start in range(0, n, size)]


def is_range(numbers: Index) -> bool:
    """Whether integers are consecutive."""
    return bool(
        numbers.size and numbers[-1] - numbers[0] == numbers.size - 1 and (np.diff(numbers) == 1).all()
    )


def mark(path: str) -> tuple[int, int]:
    """Return the size of a file and the time of its last change."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise FileError(f"block {path!r} must be a .npy file, got {error}. Restore it.") from error
    return found.st_size, found.st_mtime_ns


def header(path: str) -> Header:
    """Return what a file is, without its numbers."""
    X = opened(path)
    return Header(str(X.dtype), len(X), X.shape[1], mark(path))


def opened(path: str) -> Floats:
    """Return the array of a .npy file as a read-only memory map."""
    wanted = f"block {path!r} must be a .npy file of an array of shape (rows, d) in float64 or float32"
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FileError(f"{wanted}, got {error}. Write it by numpy.save.") from error
    if not isinstance(X, np.ndarray) or X.ndim != 2 or not X.size or X.dtype not in (np.float64, np.float32):
        got = f"shape {X.shape} and dtype {X.dtype}" if isinstance(X, np.ndarray) else type(X).__name__
        raise FileError(f"{wanted}, got {got}. Convert it by numpy.asarray(X, dtype=float).")
    return X
