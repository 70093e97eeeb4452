"""Exceptions and warnings, one small class per cause."""

from __future__ import annotations

from typing import Any


class KerneloptError(Exception):
    """Root of everything that kernelopt raises on purpose."""


class InputError(KerneloptError, ValueError):
    """A value from outside is not what the mathematics needs."""


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


class DualizationError(InputError):
    """A problem has no dual that can be written down: it is not convex, not continuous, or not known."""


class MethodError(KerneloptError):
    """A solution method does not apply to a problem, or cannot finish it."""


class SolverError(KerneloptError, RuntimeError):
    """Every solver that was tried failed to return a point."""


class InfeasibleError(KerneloptError):
    """A problem has no feasible point.

    Attributes
    ----------
    proof : dict or None
        The numbers that show it, to be checked without a solver; the message says how.
    """

    def __init__(self, message: str, proof: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.proof = proof


class UnboundedError(KerneloptError):
    """The objective of a problem has no finite bound."""


class Stopped(Exception):
    """Raised inside work that is to end early: the time is up, or the caller ended it.

    The verbs of kernelopt catch it and return what they have.
    """


class ConvergenceWarning(UserWarning):
    """The certified gap of a result is above the tolerance."""


class ConditionWarning(UserWarning):
    """The problem is so badly conditioned that its optimum means little."""


class PackageWarning(UserWarning):
    """What a package brings through an entry point cannot be used."""
