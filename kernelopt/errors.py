"""Exceptions and warnings, one small class per cause."""

from __future__ import annotations

from typing import Any


class KerneloptError(Exception):
    """Root of everything that kernelopt raises on purpose."""


class InputError(KerneloptError, ValueError):
    """An argument has a wrong type or value."""


class ShapeError(InputError):
    """An array has the wrong number of dimensions or the wrong sizes."""


class NotFiniteError(InputError):
    """An array holds NaN or infinite entries."""


class NotSymmetricError(InputError):
    """A kernel matrix differs from its transpose."""


class NotPSDError(InputError):
    """A kernel matrix has a negative eigenvalue where none is allowed."""


class LabelError(InputError):
    """Labels or targets do not fit the loss."""


class ParameterError(InputError):
    """A number such as C, p or a trace is outside its range."""


class FileError(InputError):
    """A file is damaged, or does not hold what is asked for."""


class DualizationError(InputError):
    """A problem has no dual that can be written down: it is not convex, not continuous, or not known."""


class MethodError(KerneloptError):
    """A solution method does not apply to a problem, or cannot finish it."""


class SolverError(KerneloptError, RuntimeError):
    """A solver failed, and no other one is left to be tried."""


class TimeLimitError(SolverError):
    """A time limit ended a call before there was a result that is of use."""


class InfeasibleError(KerneloptError):
    """A problem has no feasible point.

    Parameters
    ----------
    message : str
        What conflicts, and by how much.
    proof : dict or None
        The numbers that show it, to be checked without a solver; the message says how. Where there is a
        proof, ``proof["certificate"].save(path)`` writes it to a file, or says why it cannot be shown in
        fractions.
    """

    def __init__(self, message: str, proof: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.proof = proof


class UnboundedError(KerneloptError):
    """The objective of a problem has no finite bound."""


class InsufficientMemoryError(KerneloptError, MemoryError):
    """An array of a computation with kernels does not fit into memory."""


def insufficient_memory(error: MemoryError, count: int, points: int) -> InsufficientMemoryError:
    """Return a MemoryError of a computation with `count` kernels as one that says what would fit.

    Parameters
    ----------
    error : MemoryError
        What numpy has raised.
    count, points : int
        The numbers of kernels and of points.

    Returns
    -------
    InsufficientMemoryError
        `error` itself where it is one.

    Examples
    --------
    >>> from kernelopt.errors import insufficient_memory
    >>> print(str(insufficient_memory(MemoryError(), 3, 10_000)).partition(", where")[0])
    3 kernels on 10,000 points must fit into memory
    """
    if isinstance(error, InsufficientMemoryError):
        return error
    matrix = 8 * points**2 / 2**30
    return InsufficientMemoryError(
        f"{count} kernels on {points:,} points must fit into memory, where all their matrices, of shape "
        f"({count}, {points}, {points}), take {count * matrix:,.3g} GiB and each one takes {matrix:,.3g} "
        f"GiB, got: {str(error) or 'no memory'}. Of kernels Grams.from_kernels(kernels, X) and a "
        "constraint lp_ball, method='newton' stores no matrix, but the entries at support vectors. Else "
        "take fewer points or kernels, or matrices in float32, which take half."
    )


class Stopped(Exception):
    """Raised inside a computation that must end early, at the time limit or at the request of the caller.

    kernelopt catches it, and returns the best result so far.
    """


class ConvergenceWarning(UserWarning):
    """The certified gap of a result is above the tolerance, or a time limit ended a cross-validation."""


class ConditionWarning(UserWarning):
    """The problem is so badly conditioned that rounding of the data changes its optimum."""


class ScaleWarning(UserWarning):
    """A kernel reads columns of so different scales that the largest one decides alone."""


class LabelWarning(UserWarning):
    """Labels of a classifier are probably targets of a regression."""


class GramWarning(UserWarning):
    """Points of an estimator are probably a kernel matrix."""


class PackageWarning(UserWarning):
    """The object of an entry point of a package cannot be used, and is left out."""
