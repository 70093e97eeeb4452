"""The findings of a check: the statements that hold, and those that do not."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelopt.errors import ConvergenceWarning, ParameterError
from kernelopt.validation import shown

Property = tuple[str, float, Iterable[float]]
"""A statement, a tolerance, and residuals: the statement holds if none of them is above the tolerance."""
PLANTED_ROUNDING = 1e-9  # relative: the largest difference of a planted value from the optimum


class Findings:
    """The statements of a check, sorted by whether they hold. They are reported together at the end.

    Attributes
    ----------
    subject : str
        What is checked.
    stated : list of str
        The statements that hold.
    wrong : list of str
        The statements that do not hold, with the numbers.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.stated: list[str] = []
        self.wrong: list[str] = []
        self._parts: list[str] = []

    def state(self, statement: str, holds: object, found: object = "") -> None:
        """Record whether a statement holds; `found` is reported if it does not."""
        statement = ": ".join([*self._parts, statement])
        if holds:
            self.stated.append(statement)
        else:
            self.wrong.append(f"{statement}: not so" + (f", got {found}" if f"{found}" else ""))

    @contextmanager
    def part(self, *what: str) -> Iterator[None]:
        """Record an exception of the body as a failure, so that the other parts are still checked.

        Statements of the body begin with the name of the part. A ConvergenceWarning is ignored: statements on
        gaps say the same.
        """
        outer = self._parts
        self._parts = [*outer, *what]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield
        except Exception as error:  # of foreign code, which may raise anything
            self.wrong.append(": ".join([*self._parts, f"raised {type(error).__name__}: {error}"]))
        finally:
            self._parts = outer

    def state_all(self, properties: Iterable[Property]) -> Findings:
        """Record which properties hold, and raise as `done` does.

        A residual that is NaN, or raises, is above every tolerance.
        """
        with self.part():
            for statement, tolerance, residuals in properties:
                worst = None
                with self.part(statement):
                    worst = float(np.max([0.0, *residuals]))
                if worst is not None:
                    self.state(statement, worst <= tolerance, f"an error of {worst:.1e}")
        return self.done()

    def done(self) -> Findings:
        """Return these findings, or raise AssertionError with everything that is wrong."""
        if self.wrong:
            listed = "".join(f"\n* {line}" for line in self.wrong)
            total = len(self.wrong) + len(self.stated)
            raise AssertionError(f"{self.subject}: {len(self.wrong)} of {total} statements fail{listed}")
        return self

    def __str__(self) -> str:
        return f"{self.subject}\n" + "\n".join(f"* {line}" for line in self.stated)


def require(given: Any, kind: type, caller: str, cure: str) -> None:
    """Raise ParameterError unless a check is given an object of its kind."""
    if not isinstance(given, kind):
        got = f"{type(given).__name__}: {shown(given)}"
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ParameterError(f"{caller} takes {article} {kind.__name__}, got {got}. {cure}")


def planted_between(lower: float, upper: float, value: float) -> bool:
    """Whether bounds contain a planted value, up to its rounding; an infinite value has none."""
    slack = PLANTED_ROUNDING * (abs(value) or 1.0) if np.isfinite(value) else 0.0
    return not (lower > value + slack or upper < value - slack)


def apart(one: Any, two: Any, least: float = 1.0) -> float:
    """Return the largest difference of numbers or arrays, relative to max(least, their largest entry)."""
    size = max(least, float(np.abs(one).max()), float(np.abs(two).max()))
    return float(np.abs(np.subtract(one, two)).max()) / size


def excess(one: Any, two: Any, least: float = 1.0) -> float:
    """Return by how much one number is above another, relative to max(least, its size)."""
    return float((one - two) / max(least, abs(one)))
