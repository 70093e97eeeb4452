"""The problems whose certificates can be saved: those that can be stated in plain numbers."""

from __future__ import annotations

from typing import Any, Protocol

from kernelopt.certificates.statements.aligned import read_alignment
from kernelopt.certificates.statements.learning import read_learning
from kernelopt.certificates.statements.statement import Statement
from kernelopt.structure.structure import Structure


class Source(Protocol):
    """A problem in a form that can be stated with the witness of a certificate. It can be pickled."""

    @property
    def seconds(self) -> float:
        """The predicted seconds of a statement and of its bounds in fractions."""
        ...

    def statement(self) -> Statement:
        """Return the problem in plain numbers, without a witness."""
        ...

    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set a witness near the point and the dual variables of a certificate."""
        ...


def read_source(structure: Structure) -> Source | str:
    """Return the source of a problem, or the reason why its certificates cannot be saved."""
    learning = read_learning(structure)
    if not isinstance(learning, str) or structure.risks:
        return learning
    alignment = read_alignment(structure)
    return alignment if not isinstance(alignment, str) else f"{learning}; {alignment}"
