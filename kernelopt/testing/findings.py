"""What a check finds: all that is wrong is collected, and said at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kernelopt.errors import ConvergenceWarning


class Findings:
    """What a check states and what it finds wrong.

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
        """Note whether a statement holds; `found` says what was found instead."""
        if holds:
            self.stated.append(statement)
        else:
            self.wrong.append(f"{statement}: not so" + (f", got {found}" if f"{found}" else ""))
        return bool(holds)

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """Note an exception as something wrong, and go on with the other parts; remarks on gaps are none."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield
        except Exception as error:  # what a user's formulation raises may be anything
            self.wrong.append(f"{what}: raised {type(error).__name__}: {error}")

    def raise_if_wrong(self) -> None:
        """Raise AssertionError with everything that is wrong."""
        if self.wrong:
            listed = "".join(f"\n* {line}" for line in self.wrong)
            total = len(self.wrong) + len(self.stated)
            raise AssertionError(f"{self.subject}: {len(self.wrong)} of {total} statements fail{listed}")

    def __str__(self) -> str:
        return f"{self.subject}\n" + "\n".join(f"* {line}" for line in self.stated)
