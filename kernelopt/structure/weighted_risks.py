"""Objectives that are sums of risks with positive factors, plus an affine function of the variables."""

from __future__ import annotations

from typing import NamedTuple

from kernelopt.structure.affine import Affine
from kernelopt.structure.structure import RiskTerm, Structure


class WeightedRisks(NamedTuple):
    """min sum_k factors_k * risks_k + rest with factors > 0 and an affine function of the variables."""

    risks: tuple[RiskTerm, ...]
    factors: tuple[float, ...]
    rest: Affine

    @property
    def offset(self) -> float:
        """The constant of `rest`."""
        return float(self.rest.constant[0])


def weighted_risks(structure: Structure) -> WeightedRisks | str:
    """Return the objective as a sum of risks with positive factors and an affine rest, or why it is none."""
    if not structure.risks:
        return "it needs a risk, the problem has 0"
    if structure.unset:
        return structure.unset
    factors, rest = structure.objective.coefficients, structure.rest
    if structure.maximize or factors is None or rest is None or not min(factors) > 0:
        return "its objective must be positive multiples of its risks, plus an affine function of the weights"
    return WeightedRisks(structure.risks, tuple(float(each) for each in factors), rest)


class OneRisk(NamedTuple):
    """min factor * risk + offset with factor > 0."""

    risk: RiskTerm
    factor: float
    offset: float


def one_risk(structure: Structure) -> OneRisk | str:
    """Return the objective as factor * risk + offset with factor > 0, or a sentence why it is none."""
    if len(structure.risks) != 1:
        return f"it needs one risk, the problem has {len(structure.risks)}"
    read = weighted_risks(structure)
    if isinstance(read, str):
        return read
    if read.rest.matrices:
        wanted = "a positive multiple of the risk, plus a constant"
        return f"its objective must be {wanted}, got prices of the weights"
    return OneRisk(read.risks[0], read.factors[0], read.offset)
