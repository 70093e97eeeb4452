"""Points in files that the workers of a Dask cluster read, each its part: `rows`.

A block is loaded by a task with a key, so that the scheduler loads it again where a worker has died. A sweep
is one task for each block; `kernelopt.grams.sweeps` has what they compute. The client has the working set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from kernelopt.errors import FileError, InputError, ParameterError, SolverError
from kernelopt.grams.rows import (
    MOST_BLOCKS,
    Block,
    FileRows,
    Header,
    Part,
    Rows,
    Source,
    Task,
    changed,
    header,
    mark,
    opened,
    run,
)
from kernelopt.grams.sweeps import summary, taken
from kernelopt.running import check
from kernelopt.validation import Array, Floats, Index, positive, shown

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["rows"]

P = TypeVar("P")
T = TypeVar("T")

POLL = 0.1
"""Seconds between two looks at the clock of the running call while workers compute."""

LOOK = 1.0
"""Seconds between two questions to the scheduler whether there are workers."""

LARGE_MESSAGE = "1TB"
"""From which Dask warns of a message: the points of a support are meant to be sent."""


def rows(paths: str | Sequence[str | Path], client: Client | None = None, *, patience: float = 60.0) -> Rows:
    """Return points in .npy files, for `kernelopt.Grams.from_kernels` in the place of an array.

    They are read one block at a time, by this process or by the workers of a cluster. Each file is a block; a
    single file is cut into blocks of at least 2048 rows. Results are the same to the last bit with and
    without a cluster, for any number of workers and also where some die, on processors of one kind.

    Parameters
    ----------
    paths : str, or sequence of path-like
        A pattern such as ``"blocks/*.npy"``, whose files are taken in the order of their names, or files in
        the order of the labels. Each has an array of shape (rows, d), all in float64 or all in float32. On a
        cluster every worker must see them under the path that is absolute here, and this process need not.
        There are at most 400 files then.
    client : distributed.Client, optional
        A client of the cluster that computes the sweeps over all points, with `kernelopt[cluster]` there too.
        Without it they are computed here, out of core.
    patience : float > 0, default 60
        Seconds after which a sweep on a cluster without workers ends in an error.

    Returns
    -------
    Rows
        The points, of `shape` (N, d).

    Raises
    ------
    InputError
        If a block is missing, has another dtype or number of columns than the first one, or has NaN or
        infinity. The message names it. So do errors of later sweeps, where a file has changed meanwhile.
    SolverError
        If there are no workers.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> folder = TemporaryDirectory()
    >>> for k in range(3):
    ...     np.save(f"{folder.name}/{k}.npy", np.full((2, 1), float(k)))
    >>> X = ko.cluster.rows(f"{folder.name}/*.npy")
    >>> X.shape
    (6, 1)
    >>> ko.Grams.from_kernels([ko.gaussian(1.0)], X).rows([0]).round(3)
    array([[[1.   , 1.   , 0.607, 0.607, 0.135, 0.135]]])
    >>> folder.cleanup()
    """
    positive(patience, "patience")
    if client is None:
        return FileRows(at_least_one(matching(paths) if isinstance(paths, str) else paths, paths))
    if not hasattr(client, "submit"):
        raise InputError(
            f"client must be a distributed.Client, got {shown(client)} ({type(client).__name__}). Make it by "
            "Client(address), or leave it out to read the files here."
        )
    return DaskRows(paths, client, patience)


def matching(pattern: str) -> list[Path]:
    """Return the files that match a pattern, in the order of their names."""
    path = Path(pattern)
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def at_least_one(found: Sequence[str | Path], paths: str | Sequence[str | Path]) -> list[str | Path]:
    """Return the files that were found for `paths`, or raise an error of none."""
    if not len(found):
        raise FileError(
            f"paths must be at least one .npy file, got none for {shown(paths)}. Check the pattern."
        )
    return [*found]


class DaskRows(FileRows):
    """Points in .npy files that the workers of a Dask cluster hold in their memories, made by `rows`."""

    def __init__(self, paths: str | Sequence[str | Path], client: Client, patience: float) -> None:
        self.client, self.patience = client, patience
        self._token, self._digests = uuid4().hex, list[str]()
        found: Sequence[str | Path] = [*paths]
        if isinstance(paths, str):
            (found,) = self._asked(matching, [str(Path(paths).absolute())])
        super().__init__(at_least_one(found, paths))
        self._digests = [found.digest for found in self.summaries]

    def _headers(self) -> list[Header]:
        return self._asked(header, self.paths)

    def take(self, points: Index | slice) -> Array:
        numbers = np.arange(len(self))[points]
        found = np.empty((numbers.size, self.shape[1]))
        for at, X in self.each(taken, None, numbers):
            found[at] = X
        return found

    def _asked(self, function: Callable[[str], T], paths: list[str]) -> list[T]:
        """Return what workers find of files: this process need not see them."""
        futures = [self.client.submit(function, path, pure=False) for path in paths]
        return list(self._results(futures, [Block(path, 0, 0) for path in paths]))

    @cached_property
    def _loaded(self) -> list[Future]:
        """The blocks in the memories of the workers."""
        if len(self.blocks) > MOST_BLOCKS:
            raise ParameterError(
                f"a cluster takes at most {MOST_BLOCKS} blocks, got {len(self.blocks)}. Write larger files."
            )
        jobs = (Job(source, block) for source, block in zip(self._sources, self.blocks, strict=True))
        return [self.client.submit(load, job, key=f"block-{self._token}-{k}") for k, job in enumerate(jobs)]

    def _run(self, task: Task[P, T], payload: P, parts: Sequence[Part]) -> Iterator[tuple[int, T]]:
        import dask

        name, loaded, futures = uuid4().hex, self._loaded, list[Any]()
        holders = self.client.who_has(loaded)  # a block should not move, but it may: to a worker without work
        # A payload that is scattered would be lost with its worker, and no task would make it again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE_MESSAGE}):
            sent = self.client.submit(itself, Payload(payload), key=f"payload-{name}")
            for k, numbers in parts:
                digest = self._digests[k] if self._digests else ""
                job = Job(self._sources[k], self.blocks[k], digest, numbers)
                key, at = f"{task.__name__}-{name}-{k}", holders.get(loaded[k].key) or None
                rest = {"key": key, "workers": at, "allow_other_workers": bool(at)}
                futures.append(self.client.submit(run_loaded, task, sent, loaded[k], job, **rest))
        yield from self._results(futures, [self.blocks[k] for k, _ in parts])

    def check_unchanged(self) -> None:
        jobs = [Job(*pair) for pair in zip(self._sources, self.blocks, strict=True)]
        futures = [self.client.submit(digest_now, job, pure=False) for job in jobs]
        found = zip(self.blocks, self._digests, self._results(futures, self.blocks), strict=True)
        for block, before, digest in found:
            if digest != before:
                raise changed(block)

    def _results(self, futures: list[Future], blocks: Sequence[Block]) -> Iterator[Any]:
        """Yield the results of tasks in order; the running call may end meanwhile, and then they do too."""
        try:
            for future, block in zip(futures, blocks, strict=True):
                yield self._result(future, block)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(futures)
            raise

    def _result(self, future: Future, block: Block) -> Any:
        """Return the result of a task, or raise its error, or one of a cluster that has no workers."""
        from distributed import CancelledError, KilledWorker, wait

        asked = alone = monotonic()
        try:
            while True:
                check()
                try:
                    wait([future], timeout=POLL)
                    return future.result()
                except TimeoutError:
                    now = monotonic()
                if now - asked > LOOK:
                    asked, alone = now, now if self.client.nthreads() else alone
                if now - alone > self.patience:
                    raise SolverError(
                        f"block {block.name!r} needs a worker, got none for {self.patience:g} s. Start "
                        "workers, and go on from the checkpoint of the call."
                    )
        except KilledWorker as error:
            raise SolverError(
                f"block {block.name!r} was lost with each worker that had it, got {error}. Give the workers "
                "more memory, or write smaller files."
            ) from error
        except (CancelledError, OSError) as error:
            if isinstance(error, FileError):
                raise
            raise SolverError(
                f"block {block.name!r} needs a cluster, got {type(error).__name__}: {error}. Start it, "
                "connect another client, and go on from the checkpoint of the call."
            ) from error


@dataclass(frozen=True)
class Job:
    """What a worker is to read, or to do with what was read.

    Attributes
    ----------
    source : Source
    block : Block
    digest : str
        Of the bytes of the block; empty where it is not known yet.
    numbers : array of int, or None
        The rows that are asked for; None means all.
    """

    source: Source
    block: Block
    digest: str = ""
    numbers: Index | None = None


@dataclass(frozen=True)
class Payload:
    """An object that Dask does not look into."""

    content: Any


class Loaded(NamedTuple):
    """The rows of a block, the digest of their bytes, and the mark of their file before it was read."""

    X: Floats
    digest: str
    mark: tuple[int, int]


def load(job: Job) -> Loaded:
    """Return a block as its file is."""
    path, start, stop = job.source
    before, X = mark(path), opened(path)[start:stop].copy()
    return Loaded(X, summary(X, np.arange(len(X)), True).digest, before)


def digest_now(job: Job) -> str:
    """Return the digest of a block as its file is."""
    return load(job).digest


def itself(payload: Payload) -> Payload:
    """Return the payload: a task whose result other tasks take."""
    return payload


def run_loaded(task: Task[P, T], payload: Payload, loaded: Loaded, job: Job) -> tuple[int, T]:
    """Return the result of a task on rows that were loaded, perhaps for the second time.

    A file with another mark, perhaps a copy on another machine, must have the same bytes.
    """
    if job.digest not in ("", loaded.digest):
        raise changed(job.block)
    if mark(job.source.path) != loaded.mark and digest_now(job) != loaded.digest:
        raise changed(job.block)
    return run(task, payload.content, job.block, loaded.X, job.numbers)
