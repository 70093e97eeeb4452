"""`Method`: one route to the optimum, and what it hands over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from kernelopt.certificates import Certificate
from kernelopt.methods.control import Control
from kernelopt.structure.evaluation import Given
from kernelopt.structure.structure import Point, Structure
from kernelopt.validation import Array

T = TypeVar("T")


class Cost(NamedTuple):
    """What a method is predicted to take on two shared cores.

    Attributes
    ----------
    seconds : float
        To the default tolerance; infinite where the method is not expected to reach it.
    memory : float
        Bytes.
    certified : bool
        Whether the outcome has its certificate, whose time is in `seconds`; otherwise that is added.
    """

    seconds: float
    memory: float = 1e8
    certified: bool = False


@dataclass
class Outcome:
    """What a method hands over: a point, and what proves how good it is.

    Attributes
    ----------
    point : dict from variable id to value
    alphas : list of arrays, or None
        Dual variables for the lower bound, one per risk.
    machines : list of (alpha, scales), or None
        The machines that attain the value of the point; by default those of `alphas`.
    multipliers : list of lists of arrays, or None
        Of each constraint; by default they are those of the relaxation at `alphas`.
    hidden : dict from variable id to value
        Of the variables inside the risks, where the method has them.
    certificate : Certificate, or None
        Bounds that were computed from the problem's data on the way; by default `certify` computes them.
    lower : float
        A lower bound of the minimisation that the certificate's own rules gave on the way.
    solver : str
        The conic solver, or the method's name.
    iterations : int or None
    remedy : str
        What helps where the gap is above the tolerance.
    build_time : float
        Seconds of the method's time that were spent compiling.
    """

    point: Point
    alphas: list[Array] | None = None
    machines: list[Given] | None = None
    multipliers: list[list[Any]] | None = None
    hidden: Point = field(default_factory=dict)
    certificate: Certificate | None = None
    lower: float = float("-inf")
    solver: str = ""
    iterations: int | None = None
    remedy: str = ""
    build_time: float = 0.0


class Method(ABC):
    """One route to the optimum; its options are the fields of the dataclass that it is.

    Attributes
    ----------
    name : str
        As in `solve(problem, method=name)`.
    """

    name: ClassVar[str]

    @abstractmethod
    def match(self, structure: Structure) -> Any:
        """Return what the method works on, read from a structure, or a str that says why it cannot."""

    @abstractmethod
    def cost(self, match: Any) -> Cost:
        """Return what the method is predicted to take."""

    @abstractmethod
    def run(self, match: Any, control: Control) -> Outcome | None:
        """Solve, reporting to `control`; return the best point, None if it was ended before there was one.

        Nothing is written into the user's problem.
        """

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(f.name for f in fields(cls))  # type: ignore[arg-type]
