"""Calls that do not depend on each other, in several processes, as `n_jobs` of scikit-learn says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from kernelopt.errors import ParameterError
from kernelopt.running import Steps
from kernelopt.validation import shown, whole

T = TypeVar("T")
MOST = 1 << 20  # processes in either sign, more than any machine has


def workers(n_jobs: Any) -> int:
    """Return the number of processes for `n_jobs`: None is one outside of a context of joblib, -1 is all."""
    wanted = "None or a whole number other than zero"
    if n_jobs is not None and whole(n_jobs, "n_jobs", -MOST, wanted) == 0:
        raise ParameterError(f"n_jobs must be {wanted}, got {shown(n_jobs)}. Pass -1 for all processors.")
    return int(effective_n_jobs(n_jobs))


def in_workers(
    work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], n_jobs: Any, doing: str
) -> Iterator[T]:
    """Yield the results of `work(*each)` for each of the arguments, in their order.

    Parameters
    ----------
    work : function
        Of a module, so that another process can import it.
    arguments : sequence of tuples
    n_jobs : int or None
    doing : str
        What the steps are, for the progress line of the running call.
    """
    steps = Steps(doing, len(arguments))
    parallel = Parallel(n_jobs=workers(n_jobs), return_as="generator")
    results = parallel(delayed(work)(*each) for each in arguments)
    try:
        for found in results:
            yield found
            steps.take()
    finally:
        # joblib warns of results that nobody reads, after an error that says why. Tasks in threads set the
        # filters of warnings too, so that it may be raised.
        with warnings.catch_warnings(), suppress(UserWarning):
            warnings.simplefilter("ignore", UserWarning)
            results.close()
