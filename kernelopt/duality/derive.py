"""`derive`: the dual of a problem in steps, with a check of each step at a random point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.layout import WIDTH, broken, latex_array, legend_text, problem_text
from kernelopt.duality.statement import Statement
from kernelopt.duality.steps import Derivative, Step
from kernelopt.structure.structure import Structure
from kernelopt.threads import COMPILING, quietly
from kernelopt.validation import as_generator


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """The dual of a problem in steps; made by `derive`. It prints as text, and as LaTeX in a notebook.

    Attributes
    ----------
    primal, dual : Statement
    steps : tuple of Step
    legend : tuple of (name, meaning)
    """

    primal: Statement
    dual: Statement
    steps: tuple[Step, ...]
    legend: tuple[tuple[str, str], ...]

    @property
    def residual(self) -> float:
        """The largest residual of the steps that were checked, nan where none was."""
        return float(max((step.residual for step in self.steps if not step.why_not), default=np.nan))

    def __str__(self) -> str:
        parts = []
        for i, step in enumerate(self.steps, 1):
            lines = [line for part in step.lines for line in broken(part.text, WIDTH, "  ", "      ")]
            checked = broken(f"check: {step.checked}", WIDTH, "  ", "    ")
            parts.append("\n".join([f"{i}. {step.title}", *lines, *checked]))
        primal, dual = map(problem_text, (self.primal, self.dual))
        whole = [f"The problem\n{primal}", *parts, f"The dual\n{dual}"]
        return "\n\n".join(whole) + legend_text(self.legend)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        rows = [f"**The problem**\n\n$$\n{latex_array(self.primal)}\n$$"]
        for i, step in enumerate(self.steps, 1):
            formulas = " \\\\\n".join(f"& {line.tex}" for line in step.lines)
            body = f"\n\n$$\n\\begin{{aligned}}\n{formulas}\n\\end{{aligned}}\n$$" if step.lines else ""
            rows.append(f"**{i}. {step.title}**{body}\n\nCheck: {step.checked}.")
        rows.append(f"**The dual**\n\n$$\n{latex_array(self.dual)}\n$$")
        return "\n\n".join(rows)


def derive(problem: cp.Problem, random_state: Any = 0) -> Derivation:
    r"""The dual of a problem in steps, with a check of each step at a random point.

    The steps are the Lagrangian L(x, y); one for each convex term, as a maximum over its dual variables,

    .. math:: u\, g(a) = \max_y\ \langle y, a \rangle - \mathrm{cost}(y, u);

    the gradient's equation by every variable; each rule that makes the dual what stands on a board; and weak
    and strong duality. A risk is a term too: the minimum over f, z and b is a maximum over alpha.

    Parameters
    ----------
    problem : cp.Problem
        Any convex problem that `dualize` takes, with risks or without.
    random_state : int, numpy Generator or None, default 0
        Of the points at which the steps are checked. They are feasible, half way between the optimum and a
        random point.

    Returns
    -------
    Derivation
        Its `steps` have a `title`, the `lines`, and a `check` with the `residual` that was measured. Where
        the numbers of a check cannot be computed, as for a problem without an optimum, the residual is nan
        and `why_not` says why. It prints as text of at most 80 columns, and as LaTeX in a notebook.

    Raises
    ------
    DualizationError
        As `dualize`.

    Notes
    -----
    The maximum of a term is computed by a solver and compared with the value of the function. The objective
    less the dual function is the sum of the rows of `kkt_table`, at any points. A rule is checked by solving
    the dual before and after it, and the last step by solving the primal for itself.

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> x = cp.Variable(2, nonneg=True, name="x")
    >>> problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [(cp.sum(x) >= 1).set_label("total")])
    >>> derivation = ko.derive(problem)
    >>> for step in derivation.steps:
    ...     print(step.title)
    ...     for line in step.lines:
    ...         print("  " + line.text)
    The Lagrangian
      L = x[0] + 2 x[1] + y[total] (1 - sum(x))
    The gradient's equation
      by x: y[total] <= c
    Weak and strong duality
      min L <= L <= objective
      max min L = min objective, if there is a strictly feasible point
    >>> derivation.residual < 1e-6
    True
    """
    rng = as_generator(random_state, "random_state")
    with COMPILING, quietly(), np.errstate(all="ignore"):
        return Derivation(*Derivative(Structure(problem), rng).parts())
