"""`Method`: the interface of a solution method, with its predicted cost and its outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from kernelopt.certificates import Certificate
from kernelopt.methods.control import Control
from kernelopt.methods.sizing import CLOSED_SECONDS
from kernelopt.structure.evaluation import Given
from kernelopt.structure.structure import Point, Structure
from kernelopt.validation import Array

T = TypeVar("T")


class Cost(NamedTuple):
    """The predicted cost of a method on two shared cores.

    Parameters
    ----------
    seconds : float
        Time to the default tolerance; infinite where the method is not expected to reach it.
    memory : float
        Peak memory in bytes.
    certified : bool
        Whether the method computes its certificate itself, within `seconds`. Otherwise the predicted time of
        the certificate is added to `seconds`.
    certification : float
        Seconds of the certificate that the method computes itself.
    """

    seconds: float
    memory: float = 1e8  # the process itself: most methods need little beside the kernels
    certified: bool = False
    certification: float = CLOSED_SECONDS


@dataclass
class Outcome:
    """The result of a method: a point, and the dual variables that bound the optimum.

    Parameters
    ----------
    point : dict from variable id to value
        Where the upper bound is evaluated.
    alphas : list of arrays, or None
        Dual variables for the lower bound, one per risk.
    machines : list of (alpha, scales), or None
        The machines that attain the value of the point; by default the machines of `alphas`.
    multipliers : list of lists of arrays, or None
        The multipliers of each constraint; by default the multipliers of the relaxation at `alphas`.
    hidden : dict from variable id to value
        The values of the variables inside the risks, where the method computes them.
    certificate : Certificate, or None
        Bounds that the method computed from the problem's data; by default `certify` computes them.
    lower : float
        A lower bound of the minimisation, computed by the functions that the certificate uses.
    solver : str
        The conic solver, or the method's name.
    iterations : int or None
        Of the method.
    remedy : str
        Advice for the user where the gap is above the tolerance.
    remedy_at_limit : bool
        Whether that is of use too where the caller or the time limit has ended the call.
    build_time : float
        Seconds of the method's time that were spent compiling.
    details : dict from name to number or text
        What the method tells of its work beside the bounds, such as the number of machines it has trained.
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
    remedy_at_limit: bool = False
    build_time: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


class Method(ABC):
    """A solution method. A subclass is a dataclass, and its fields are the options of the method.

    Attributes
    ----------
    name : str
        The name in `solve(problem, method=name)`.
    """

    name: ClassVar[str]

    @abstractmethod
    def match(self, structure: Structure) -> Any:
        """Return the data of the method, or a sentence why it does not apply.

        Parameters
        ----------
        structure : Structure
            What the problem consists of.
        """

    @abstractmethod
    def cost(self, match: Any) -> Cost:
        """Return the predicted cost of the method.

        Parameters
        ----------
        match : object
            What `match` has returned.
        """

    @abstractmethod
    def run(self, match: Any, control: Control) -> Outcome | None:
        """Solve the problem and report the bounds; return the best outcome.

        The result is None if the method was ended before it had a point. The user's problem is not changed.

        Parameters
        ----------
        match : object
            What `match` has returned.
        control : Control
            Of this call: it takes the bounds, and says when to stop.
        """

    def remark(self, match: Any) -> str:
        """Return a sentence on how the method would solve the problem, for `explain`; by default none.

        Parameters
        ----------
        match : object
            What `match` has returned.
        """
        return ""

    def conclusions(self, match: Any, certificate: Certificate) -> dict[str, Any]:
        """Return what follows from a certificate that meets the tolerance, for `Solution.details`.

        By default it is nothing. Long work calls `kernelopt.extend.check` between its steps.

        Parameters
        ----------
        match : object
            What `match` has returned.
        certificate : Certificate
            Of the outcome.
        """
        return {}

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(f.name for f in fields(cls))  # type: ignore[arg-type]
