"""What certificates can be saved of: the readings of a problem as a statement in plain numbers."""

from __future__ import annotations

from typing import Any, Protocol

from kernelopt.certificates.statements.aligned import read_alignment
from kernelopt.certificates.statements.learning import read_learning
from kernelopt.certificates.statements.statement import Statement
from kernelopt.structure.structure import Structure


class Source(Protocol):
    """A problem that was read, which states it with the witness of a certificate. It pickles."""

    def statement(self, certificate: Any) -> Statement:
        """Return the problem in plain numbers, with a witness near the point and the dual variables."""
        ...


def read_source(structure: Structure) -> Source | str:
    """Return the source of the certificates of a problem, or say why they cannot be saved."""
    learning = read_learning(structure)
    if not isinstance(learning, str) or structure.risks:
        return learning
    alignment = read_alignment(structure)
    return alignment if not isinstance(alignment, str) else f"{learning}; {alignment}"
