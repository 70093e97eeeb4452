"""The history of a solution as figures need it: with its gaps, and with the certificate as its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.errors import InputError
from kernelopt.validation import Array

if TYPE_CHECKING:
    from kernelopt.methods.saved import SavedSolution
    from kernelopt.methods.solution import Solution


def certified_history(solution: Solution | SavedSolution, gap: bool) -> Array:
    """Return the history of a solution and its end, the certificate, as an array of shape (k, 4).

    Its columns are seconds, lower bound, upper bound and relative gap. Rows without a finite bound are left
    out, and with `gap` those with one finite bound too.

    Raises
    ------
    InputError
        If no row is left.
    """
    end = (
        solution.build_time + solution.solve_time + solution.certify_time,
        solution.lower,
        solution.upper,
    )
    floor = solution.certificate.floor
    rows = np.array([(*row, relative_gap(*row[1:], floor)) for row in (*solution.history, end)])
    wanted, columns = ("gap", rows[:, 3:]) if gap else ("bound", rows[:, 1:3])
    kept: Array = rows[np.isfinite(columns).any(axis=1)]
    if not kept.size:
        raise InputError(
            f"a history must have a report with a finite {wanted}, got {len(solution.history)} reports of "
            f"the method {solution.method!r}, and {solution.lower:g} <= optimum <= {solution.upper:g} at the "
            "end. Solve with more time or another method; kernelopt.explain(problem) lists those that apply."
        )
    return kept
