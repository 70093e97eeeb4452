"""Problems that bring bounds of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.certify import Certificate

Values = dict[int, np.ndarray]  # by variable id
Multipliers = dict[str, Any]  # by label of the constraint; None where a solver left nothing


class BoundedProblem(cp.Problem, ABC):  # type: ignore[misc]
    """A problem without risks whose optimum is bounded in closed form, by rules that its paper gives.

    `solve` takes these bounds in the place of those of `certify`, whichever method found the point.
    """

    @abstractmethod
    def bounds(self, values: Values, multipliers: Multipliers) -> Certificate:
        """Return bounds from whatever a solver left: values of the variables, and multipliers.

        The certificate's point has the problem's own variables as keys.
        """
