"""The problems whose certificates can be saved: those that can be stated in plain numbers."""

from __future__ import annotations

from kernelopt.certificates.statements.aligned import read_alignment
from kernelopt.certificates.statements.columns import Source
from kernelopt.certificates.statements.learning import read_learning
from kernelopt.structure.structure import Structure


def read_source(structure: Structure) -> Source | str:
    """Return the source of a problem, or the reason why its certificates cannot be saved."""
    learning = read_learning(structure)
    if not isinstance(learning, str) or structure.risks:
        return learning
    alignment = read_alignment(structure)
    return alignment if not isinstance(alignment, str) else f"{learning}; {alignment}"
