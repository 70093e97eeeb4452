"""The text of duals: that of the papers, one notation with `show`, and names for all data."""

from __future__ import annotations

import re
import textwrap

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm
from kernelopt.duality.layout import WIDTH, latex_problem, problem_text
from tests.duality.generic import PROBLEMS, RISKS, A, Ks, least, named, pair, x, y
from tests.every import every
from tests.problems import solved


def text(problem):
    return str(ko.dualize(problem))


def page(lines):
    """Lines without the indentation of the source."""
    return textwrap.dedent(lines).strip("\n").rstrip()


# -------------------------------------------------------------------------------------- the papers


def test_a_machine_of_one_kernel():
    assert str(pair("one fixed kernel")[1]) == page("""
        maximize over alpha
          y'alpha - 1/2 alpha' K alpha
        subject to
          0 <= y * alpha <= 1  (box)
          sum(alpha) == 0        (b)

        where
          y  (8,)  labels
          K  (8, 8)  the Gram matrix
    """)


def test_lanckriets_quadratic_constraints():
    assert text(lanckriet.soft_margin(Ks, y, C=1.0, trace=8.0).problem) == page("""
        maximize over alpha, y[trace]
          2 y'alpha - 8 y[trace]
        subject to
          0 <= y * alpha <= 1                (box)
          sum(alpha) == 0                      (b)
          (alpha' K_m alpha)_m <= y[trace] t  (mu)

        where
          y    (8,)  labels
          K_m  (3, 8, 8)  Gram matrices, m = 1, ..., 3
          t    (3,)  the traces tr K_m
    """)


def test_the_elastic_net_over_kernels():
    """Reciprocals of the weights cost sqrt(u)."""
    assert text(lp_norm.elastic_net(Ks, y, l1=0.75, l2=2.0).problem) == page("""
        maximize over alpha, u
          y'alpha + 3/4 sum(sqrt(u)) - sum(u) - 0.421875
        subject to
          0 <= y * alpha <= 1                (box)
          sum(alpha) == 0                      (b)
          1/2 (alpha' K_m alpha)_m <= 2 u  (theta)
          u >= 0

        where
          y    (8,)  labels
          K_m  (3, 8, 8)  Gram matrices, m = 1, ..., 3
    """)


def test_weights_with_an_absolute_and_a_squared_price():
    assert str(pair("elastic net of kernel weights")[1]) == page("""
        maximize over alpha, u
          y'alpha - |(1/2 (alpha' K_m alpha)_m - u)_+|^2
        subject to
          0 <= y * alpha <= 1  (box)
          sum(alpha) == 0        (b)
          |u|_inf <= 1/2   (norm mu)

        where
          K_m  (3, 8, 8)  Gram matrices, m = 1, ..., 3
          y    (8,)  labels
    """)


def test_the_elastic_net_has_a_ball_in_a_square():
    assert str(pair("elastic net")[1]) == page("""
        maximize over r, r2
          b1'r - 1/2 |r|^2 - 0.2 |r2|^2
        subject to
          |A1' r - 0.4 r2|_inf <= 0.3  (x)

        where
          b1  (6,)  in the objective
          A1  (6, 4)  in the objective
    """)


def test_the_nu_form_of_one_class_learning():
    problem = lp_norm.one_class(Ks[:2], p=2, nu=0.5).problem
    (rho,) = (v for v in problem.variables() if v.name() == "rho")
    largest = float(rho.attributes["bounds"][1])
    assert text(problem) == page(f"""
        maximize over u, v, y[fit], y[rho upper]
          -1/2 |u|_4^2 - {largest:.6g} y[rho upper]
        subject to
          |A1' y[fit]|_2 <= u[0]       (w0)
          |A2' y[fit]|_2 <= u[1]       (w1)
          1 <= sum(v) + y[rho upper]  (rho)
          y[fit] == v                   (z)
          0 <= v <= 1/4     (maximum rho z)
          u, y[rho upper] >= 0

        where
          A1  (8, 8)  in fit
          A2  (8, 2)  in fit
    """)


def test_squares_of_a_symmetric_matrix_have_one_multiplier():
    assert str(pair("squares of a PSD variable")[1]) == page("""
        maximize over alpha, R
          y'alpha - 0.3 |R|_F^2 + 0.6 <R, B1>
        subject to
          0 <= y * alpha <= 1            (box)
          sum(alpha) == 0                  (b)
          [-1.2 R, alpha; alpha', 1] >> 0  (K)

        where
          y   (8,)  labels
          B1  (8, 8)  in the objective
    """)


# -------------------------------------------------------------------------------------- one notation


@every("name", [*PROBLEMS, *RISKS])
def test_the_dual_alone_and_beside_its_primal_is_one_text(name):
    """One notation writes both; every name is of one thing, and every array has its shape and its place."""
    problem, dual = pair(name)
    beside, alone = ko.show(problem, dual), str(dual)
    assert max(map(len, (*str(beside).splitlines(), *alone.splitlines()))) <= WIDTH
    body, _, data = alone.partition("\n\nwhere\n")
    assert body == problem_text(beside.dual)
    assert dual._repr_latex_().startswith(latex_problem(beside.dual))
    names = [symbol for symbol, _ in beside.legend]
    assert set(re.findall(r"^  (\S+) +[(a]", data, re.MULTILINE)) <= set(names)
    variables = {v.text for v in (*beside.primal.variables, *beside.dual.variables)}
    assert len(set(names)) == len(names) and not variables & set(names)
    for symbol, meaning in beside.legend:
        assert re.search(r"\) +\S|^= |^a parameter", meaning), f"{symbol} has only a shape: {meaning}"


def test_arrays_are_named_from_where_they_stand():
    v, X = cp.Variable(4, name="v"), cp.Variable((3, 3), symmetric=True, name="X")
    problem = least(
        np.arange(4.0) @ v + cp.sum_squares(X - A[:3, :3]),
        named(A @ v <= A[:, 0], "rows"),
        cp.multiply(A[0], v) >= -1,
        named(A[1] @ v == 2, "plane"),
    )
    legend = dict(ko.show(problem).legend)
    assert {symbol: legend[symbol] for symbol in ("c", "B1", "A1", "b1", "a1", "a2")} == {
        "c": "(4,)  in the objective", "B1": "(3, 3)  in the objective", "A1": "(6, 4)  in rows",
        "b1": "(6,)  in rows", "a1": "(4,)  in constraint 1", "a2": "(4,)  in plane",
    }  # fmt: skip


def test_the_names_of_constants_and_parameters_are_kept():
    X = cp.Constant(A, name="features")
    p, level = (
        cp.Parameter(4, name="p", value=np.arange(4.0)),
        cp.Parameter(nonneg=True, name="level", value=1),
    )
    v = x()
    problem = least(level * cp.norm2(v - p), named(X @ v <= 3, "rows"), named(X @ v >= -3, "more"))
    legend = dict(ko.show(problem).legend)
    assert legend["features"] == "(6, 4)  in rows, more"
    assert legend["p"] == "(4,)  a parameter, in the objective"
    assert legend["level"] == "a parameter, in the objective"
    assert "features' y[rows]" in text(problem)


def test_a_constant_with_the_name_of_a_variable_gets_a_number():
    v = cp.Variable(4, name="v")
    problem = least(cp.sum_squares(v), named(cp.Constant(A, name="v") @ v >= 1, "rows"))
    assert "v2' y[rows]" in text(problem)


def test_a_variable_with_the_name_of_a_multiplier_keeps_it():
    """The multipliers of the risk get a number; the value and the checks do not depend on names."""
    for norm, names in ((None, {"alpha"}), (4, {"alpha", "gamma"})):
        mu, other = cp.Variable(3, nonneg=True, name="alpha"), cp.Variable(nonneg=True, name="gamma")
        Kernels = [ko.combine(mu[:2], Ks[:2]), ko.combine(mu[2:], Ks[2:])] if norm else ko.combine(mu, Ks)
        risk = ko.risk(Kernels, y, ko.hinge(1.0), **({"norm": norm} if norm else {}))
        problem = least(risk + other, *ko.lp_ball(mu, 2), other >= 1)
        dual = ko.dualize(problem)
        assert not names & {v.name() for v in dual.variables()}
        assert "(alpha2)" in str(ko.show(problem))
        assert dual.check().dual == pytest.approx(float(solved(problem)), rel=1e-6)
        assert ko.derive(problem).residual <= 1e-6


# ---------------------------------------------------------------------------------------- derivations


@every(
    "name", ["elastic net", "sparse group lasso", "one fixed kernel", "lasso", "norms in a norm", "constant"]
)
def test_no_step_is_empty(name):
    steps = ko.derive(pair(name)[0], random_state=1).steps
    assert all(step.lines and step.title.rstrip() == step.title for step in steps)
    assert all(
        not line.text.endswith("over") and "over  of" not in line.text for s in steps for line in s.lines
    )
    assert max(step.residual for step in steps) <= 1e-6


def test_the_steps_of_a_machine_of_one_kernel():
    steps = ko.derive(pair("one fixed kernel")[0]).steps
    assert [step.title for step in steps] == [
        "The Lagrangian", "The minimum over f, b, z", "Weak and strong duality",
    ]  # fmt: skip
    assert steps[1].lines[1].text == "  = max over alpha of y'alpha - 1/2 alpha' K alpha"
    assert steps[2].lines[0].text == "min L <= L <= objective"


def test_a_step_for_each_term_one_for_the_gradient_and_one_for_each_rule():
    steps = ko.derive(pair("lasso")[0]).steps
    assert [step.title for step in steps] == [
        "The Lagrangian", "The conjugate of |A1 x - b1|^2", "The conjugate of |x|_1",
        "The gradient's equation",
        "A gradient's equation is solved", "Weak and strong duality",
    ]  # fmt: skip
    assert [line.text for line in steps[2].lines] == [
        "0.3 |x|_1", "  = max over u of x'u", "  where |u|_inf <= 0.3",
    ]  # fmt: skip
    assert [line.text for line in steps[3].lines] == ["by x: u == A1' r"]
    assert [line.text for line in steps[4].lines] == ["u = A1' r"]


def test_latex_has_no_double_exponents():
    two = ko.show(*pair("fixed kernels, block norm"))._repr_latex_()
    assert "K_{2}^{+}" in two
    squared = ko.show(*pair("reciprocals and a price"))._repr_latex_()
    assert r"\left(\mathbf{1}^\top \left(1 + x\right)^{-1}\right)^{2}" in squared
    assert r"\|c + r\|_{2}" in pair("a norm and its square")[1]._repr_latex_()
