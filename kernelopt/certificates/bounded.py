"""Problems whose bounds are computed in closed form by rules of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.certificate import Certificate

Values = dict[int, np.ndarray]  # by variable id
Multipliers = dict[str, Any]  # by label of the constraint; None where the solver returned none


class BoundedProblem(cp.Problem, ABC):  # type: ignore[misc]
    """A problem without risks whose optimum is bounded in closed form, by formulas of its paper.

    `solve` uses these bounds, whichever method found the point, and `certify` uses them where they are
    better than the general ones. They must hold for any values and multipliers.
    """

    @abstractmethod
    def bounds(self, values: Values, multipliers: Multipliers) -> Certificate:
        """Return bounds from the values and multipliers of a solver, which need not be feasible.

        The keys of the certificate's point are the problem's variables.
        """
