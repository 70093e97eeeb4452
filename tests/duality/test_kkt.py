"""The table of the conditions of optimality has a row for all of them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.language.fidelity import Distance
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes
from tests.duality.generic import ENTRIES, PROBLEMS, RISKS, table_at
from tests.every import every
from tests.problems import labels, stack

SIGNED = ("nonneg", "nonpos", "PSD", "NSD", "bounds")
# A solution is certified to 1e-5, and the residual of a condition is relative to the part it belongs to.
CONDITIONS = 2e-4
ADDED = 1e-6  # the parts have the errors of a conic solver
WIDTH = 80  # columns of a terminal
n = 6
y, Ks = labels(n), stack(n)


def rows(table):
    found = {}
    for condition in table.conditions:
        assert not condition.why_not and np.isfinite(condition.residual)
        found.setdefault(condition.kind, []).append(condition.where)
    return found


def check_covers(table, problem):
    """Every constraint, variable, sign, risk and fidelity has its rows, and no row occurs twice."""
    found, structure = rows(table), Structure(problem)
    for kind in found.values():
        assert len(kind) == len(set(kind))
    complements = found.get("complementarity", [])
    for i, constraint in enumerate(structure.lifted.constraints):
        name = constraint.label or f"constraint {i}"
        assert name in found["primal feasibility"] and name in complements
    for variable in structure.variables:
        name = variable.name()
        assert name in found["stationarity"]
        signs = [a for a in SIGNED if variable.attributes.get(a) not in (None, False)]
        assert not signs or any(row.startswith(f"{name} ") for row in found["primal feasibility"])
        own = [f"gradient by {name}", f"{name} lower", f"{name} upper", f"{name} sign"]
        assert not signs or set(own) & set(complements), name
    terms = found.get("subgradient", [])
    assert sum(row.startswith("risk") for row in terms) == len(structure.risks)
    fidelities = {id(node) for node in nodes(problem.objective.args[0]) if isinstance(node, Distance)}
    assert sum(row.startswith("distance") for row in terms) == len(fidelities)
    (gap,) = (c for c in table.conditions if c.kind == "gap")
    parts = sum(c.residual for c in table.conditions if c.kind in ("complementarity", "subgradient"))
    assert abs(parts - gap.residual) <= ADDED * gap.scale, (parts, gap)


@every("name", ENTRIES)
def test_the_table_of_a_formulation_covers_all_conditions(name):
    data = ENTRIES[name].example(np.random.default_rng(0))
    table = ko.kkt_table(data.solve())
    check_covers(table, data.problem)
    assert table.residual <= CONDITIONS
    assert max(map(len, str(table).splitlines())) <= WIDTH


MORE = ("linear", "bounds", "PSD and nonneg", "spectrahedron", "norm ball", "exponential cone")
LEARNED = ("bounded", "two risks of a PSD variable", "ridge and fixed part", "two losses, priced")


@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
@every("name", [*MORE, *LEARNED])
def test_the_table_of_any_problem_covers_all_conditions(name):
    problem = {**PROBLEMS, **RISKS}[name]()
    check_covers(ko.kkt_table(ko.solve(problem)), problem)


def where(table):
    return {(c.kind, c.where): c for c in table.conditions}


def losses_of_machine(certificate, loss, K):
    """loss(z) + alpha'z - l(alpha) of the machine z = K alpha + b, which is not negative."""
    (alpha,), (machine,) = certificate.alphas, certificate.machines
    z = K @ alpha + machine.intercept
    return loss.value(z, y) + alpha @ z - loss.dual_value(alpha, y)


@every("scale", [1.0, 3.0])
def test_the_parts_of_a_kernel_that_is_a_variable(scale):
    """<S - alpha alpha', K> at a point that is not optimal, against the matrices of the dual by hand.

    In min w risk(K) over K >> 0 with tr K <= 2 the price of the trace is w / 2 |alpha|^2, and w / 2 S is the
    price times I.
    """
    K = cp.Variable((n, n), PSD=True, name="K")
    risk = ko.risk(K, y, ko.squared(1.0), bias=False)
    problem = cp.Problem(cp.Minimize(scale * risk), [(cp.trace(K) <= 2).set_label("trace")])
    point, alpha = 2 * np.eye(n) / n, y / 3

    certificate, found = table_at(problem, {K: point}, alpha=alpha, retrain=False)
    forced = np.outer(alpha, alpha)
    S = float(alpha @ alpha) * np.eye(n)
    expected = scale / 2 * float(np.vdot(S - forced, point))
    expected += scale * losses_of_machine(certificate, ko.squared(1.0), point)
    parts = [found["complementarity", "gradient by K"], found["subgradient", "risk K"]]
    assert sum(part.residual for part in parts) == pytest.approx(expected, rel=1e-6)  # S is not unique
    assert found["complementarity", "trace"].residual == pytest.approx(0, abs=1e-8)


def test_the_parts_of_weights_are_those_of_the_formula():
    """At weights (1, 0) and any alpha: <s - (alpha'K_m alpha)_m, mu> with s = 2 y t on the trace."""
    mu = cp.Variable(2, nonneg=True, name="mu")
    risk = ko.risk(ko.combine(mu, Ks[:2]), y, ko.squared(1.0))
    problem = cp.Problem(cp.Minimize(risk), [(cp.sum(mu) <= 1).set_label("sum")])
    alpha = (y - y.mean()) / 4
    certificate, found = table_at(problem, {mu: [1.0, 0.0]}, alpha=alpha, retrain=False)
    forms = np.array([alpha @ K @ alpha for K in Ks[:2]])
    expected = (forms.max() - forms[0]) / 2 + losses_of_machine(certificate, ko.squared(1.0), Ks[0])
    parts = [found["complementarity", "gradient by mu"], found["subgradient", "risk mu"]]
    assert sum(part.residual for part in parts) == pytest.approx(expected, abs=1e-7)


def test_bounds_have_rows_of_their_own():
    x = cp.Variable(2, bounds=[np.array([0.5, -1.0]), np.array([3.0, 2.0])], name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [(x[0] + x[1] <= 4).set_label("cap")])
    found = where(ko.kkt_table(ko.solve(problem)))
    assert found["complementarity", "x lower"].relative < 1e-6
    _, found = table_at(problem, {x: [2.0, 0.0]})
    assert found["complementarity", "x lower"].residual == pytest.approx(1.5 + 1.0, rel=1e-6)
    assert not any(kind == "subgradient" for kind, _ in found)


def test_the_products_and_the_terms_add_up_to_the_gap():
    """At a point that is not optimal: <multiplier, slack> and u g(a) + cost - <y, a> are not negative."""
    x = cp.Variable(3, name="x")
    A, b = np.arange(6.0).reshape(2, 3), np.array([1.0, 2])
    objective = cp.sum_squares(A @ x - b) + 0.5 * cp.norm1(x)
    problem = cp.Problem(cp.Minimize(objective), [(cp.sum(x) <= 0.1).set_label("sum")])
    found = table_at(problem, {x: [0.0, -0.5, 0.3]})[1].values()
    parts = [c.residual for c in found if c.kind in ("complementarity", "subgradient")]
    (gap,) = (c.residual for c in found if c.kind == "gap")
    assert len(parts) == 3 and min(parts) >= 0 and sum(parts) == pytest.approx(gap, rel=1e-5)
