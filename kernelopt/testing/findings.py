"""The findings of a check: the statements that hold, and those that do not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kernelopt.errors import ConvergenceWarning


class Findings:
    """The statements of a check, sorted by whether they hold. They are reported together at the end.

    Attributes
    ----------
    subject : str
        What is checked.
    stated : list of str
        The statements that hold.
    wrong : list of str
        The ones that do not, with the numbers.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.stated: list[str] = []
        self.wrong: list[str] = []

    def state(self, statement: str, holds: object, found: object = "") -> bool:
        """Record and return whether a statement holds; `found` is reported if it does not."""
        if holds:
            self.stated.append(statement)
        else:
            self.wrong.append(f"{statement}: not so" + (f", got {found}" if f"{found}" else ""))
        return bool(holds)

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """Record an exception of the body as a failure, so that the other parts are still checked.

        A ConvergenceWarning is ignored: statements on gaps say the same.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield
        except Exception as error:  # of foreign code, which may raise anything
            self.wrong.append(f"{what}: raised {type(error).__name__}: {error}")

    def raise_if_wrong(self) -> None:
        """Raise AssertionError with everything that is wrong."""
        if self.wrong:
            listed = "".join(f"\n* {line}" for line in self.wrong)
            total = len(self.wrong) + len(self.stated)
            raise AssertionError(f"{self.subject}: {len(self.wrong)} of {total} statements fail{listed}")

    def __str__(self) -> str:
        return f"{self.subject}\n" + "\n".join(f"* {line}" for line in self.stated)
