"""The table of the conditions of optimality as a figure."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality import KKT
from kernelopt.duality.conditions import Condition
from kernelopt.plotting import plot_kkt
from tests.figures import apart, axes, boxes, words

TABLE = KKT(
    (
        Condition("primal feasibility", "ball", 0.0),
        Condition(
            "primal feasibility", "a constraint with a name that is longer than any axis has room for", 3e-3
        ),
        Condition("stationarity", "theta", 2e-9, 2.0),
        Condition("machine", "f = K alpha", np.nan, why_not="no machine"),
        Condition("gap", "objective - dual function", np.inf),
    )
)


def markers(ax):
    """The place of each row's marker, and whether it is filled."""
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    return {int(p.get_ydata()[0]): (p.get_xdata()[0], p.get_markerfacecolor() != "white") for p in points}


def test_each_residual_stands_at_its_value():
    ax = axes(7, 3)
    assert plot_kkt(TABLE, 1e-6, ax=ax) is ax
    found = markers(ax)
    assert found[1] == (3e-3, False) and found[2] == (pytest.approx(1e-9), True)
    assert 3 not in found and found[0][1] and not found[4][1]
    left, right = ax.get_xlim()
    assert left < found[0][0] <= 1e-9 and 3e-3 <= found[4][0] < right  # arrows at the ends
    texts = words(ax.texts)
    assert {"not measured", "3e-03", "inf", "primal feasibility", "machine", "gap"} <= set(texts)
    assert "tolerance 1e-06" in ax.get_xlabel()
    labels = words(ax.get_yticklabels())
    assert labels[0] == "ball" and len(labels) == 5 and max(map(len, labels)) <= 40
    ax.figure.draw_without_rendering()
    assert apart(boxes([*ax.get_yticklabels(), *ax.texts]))


def test_the_table_of_a_solution_is_within_its_tolerance():
    x = cp.Variable(2, nonneg=True, name="x")
    problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [(cp.sum(x) >= 1).set_label("total")])
    table = ko.kkt_table(ko.solve(problem))
    ax = plot_kkt(table, ax=axes())
    assert len(markers(ax)) == len(table.conditions) and all(filled for _, filled in markers(ax).values())


def test_a_table_of_zeros_and_one_of_nothing_are_drawn():
    assert markers(plot_kkt(KKT((Condition("gap", "a", 0.0),)), ax=axes()))[0][1]
    assert not markers(plot_kkt(KKT(()), ax=axes()))


def test_wrong_arguments_of_the_conditions():
    with pytest.raises(ko.InputError, match=r"got 'table' in plot_kkt. Pass kernelopt.kkt_table\(solution\)"):
        plot_kkt("table")
    with pytest.raises(ko.InputError, match="tol must be"):
        plot_kkt(TABLE, tol=0)
