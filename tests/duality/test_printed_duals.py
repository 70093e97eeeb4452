"""The text of duals: that of the papers, one notation with `show`, and names for all data."""

from __future__ import annotations

import re
import textwrap

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm, similarity
from kernelopt.duality.layout import WIDTH, latex_problem, problem_text
from tests.duality.generic import PROBLEMS, RISKS, A, Ks, least, n, named, pair, weights, x, y
from tests.every import every
from tests.problems import solved


def text(problem):
    return str(ko.dualize(problem))


def page(lines):
    """Lines without the indentation of the source."""
    return textwrap.dedent(lines).strip("\n").rstrip()


def learned_kernels(objective):
    """The dual of a hinge and the weights of three kernels, where only the objective depends on their set."""
    return page(f"""
        maximize over alpha
          {objective}
        subject to
          0 <= y * alpha <= 1  (box)
          sum(alpha) == 0        (b)

        where
          y    (8,)  labels
          K_m  (3, 8, 8)  Gram matrices, m = 1, ..., 3
    """)


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


def test_lp_norm_multiple_kernel_learning():
    """Problem (D) of Kloft et al. (2011), q = 4 at p = 4/3."""
    theta = weights()
    risk = ko.risk(ko.combine(theta, Ks), y, ko.hinge(1.0))
    assert text(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 4 / 3))) == learned_kernels(
        "y'alpha - 1/2 |(alpha' K_m alpha)_m|_4"
    )


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
    """l(alpha) - 1 / (2 l2) sum_m (sqrt(alpha'K_m alpha) - l1)_+^2, from reciprocals of the weights."""
    assert text(lp_norm.elastic_net(Ks, y, l1=0.75, l2=2.0).problem) == learned_kernels(
        "y'alpha - 1/4 |((sqrt(alpha' K_m alpha))_m - 3/4)_+|^2"
    )


def test_weights_with_an_absolute_and_a_squared_price():
    assert str(pair("elastic net of kernel weights")[1]) == learned_kernels(
        "y'alpha - |(1/2 (alpha' K_m alpha)_m - 1/2)_+|^2"
    )


def test_the_elastic_net_has_a_soft_threshold():
    assert str(pair("elastic net")[1]) == page("""
        maximize over y[square]
          -1/2 |y[square]|^2 - 1.25 |(|A1' y[square]| - 0.3)_+|^2 - b1'y[square]

        where
          A1  (6, 4)  in the objective
          b1  (6,)  in the objective
    """)


def test_the_nu_form_of_one_class_learning():
    """-1/2 |(alpha'K_m alpha)_m|_2 for K_m = A_m A_m', and a price of 1'alpha < 1 from the bound of rho."""
    problem = lp_norm.one_class(Ks[:2], p=2, nu=0.5).problem
    (rho,) = (v for v in problem.variables() if v.name() == "rho")
    largest = float(rho.attributes["bounds"][1])
    assert text(problem) == page(f"""
        maximize over y[fit]
          -1/2 |(|A1' y[fit]|_2, |A2' y[fit]|_2)|_4^2 - {largest:.6g} (1 - sum(y[fit]))_+
        subject to
          0 <= y[fit] <= 1/4  (maximum rho z)

        where
          A1  (8, 8)  in fit
          A2  (8, 2)  in fit
    """)


def test_squares_of_a_symmetric_matrix_have_one_multiplier():
    assert str(pair("squares of a PSD variable")[1]) == page("""
        maximize over alpha, y[square]
          y'alpha - 0.833333 |y[square]|_F^2 - <B1, y[square]>
        subject to
          0 <= y * alpha <= 1                                 (box)
          sum(alpha) == 0                                       (b)
          [2 y[square], alpha; alpha', 1] >> 0  (S >= alpha alpha')

        where
          y   (8,)  labels
          B1  (8, 8)  in the objective
    """)


def test_a_learned_similarity_reads_as_the_dual_by_hand():
    assert text(similarity.single_kernel(Ks[0] - np.eye(n), y, rho=0.5, trace=3.0).problem) == page("""
        maximize over alpha, U0, y[trace]
          y'alpha - 1/2 <U0, S0> - 3 y[trace]
        subject to
          0 <= y * alpha <= 1                                       (box)
          sum(alpha) == 0                                             (b)
          [U0 + 2 y[trace] I, alpha; alpha', 1] >> 0  (S >= alpha alpha')
          |U0| <= 1                                        (domain of U0)

        where
          y   (8,)  labels
          S0  (8, 8)  a given similarity
    """)


def test_the_lasso():
    assert str(pair("lasso")[1]) == page("""
        maximize over y[square]
          -1/2 |y[square]|^2 - b1'y[square]
        subject to
          |A1' y[square]| <= 0.3  (norm x)

        where
          b1  (6,)  in the objective
          A1  (6, 4)  in the objective
    """)


CLOSED = (
    "elastic net", "elastic net as a constraint", "elastic net of non-negative weights", "sparse group lasso",
    "a norm and its square", "a norm and its square, non-negative", "elastic net of kernel weights",
    "reciprocal price", "weights in a box",
)  # fmt: skip


@every("name", CLOSED)
def test_sums_with_closed_conjugates_leave_no_multipliers_of_atoms(name):
    _, dual = pair(name)
    left = [v.name() for v in dual.variables() if not re.match(r"alpha|y\[", v.name())]
    assert left == []


# -------------------------------------------------------------------------------------- one notation


@every("name", [*PROBLEMS, *RISKS])
def test_the_dual_alone_and_beside_its_primal_is_one_text(name):
    """One notation writes both; every name is of one thing, and every array has its shape and its place."""
    problem, dual = pair(name)
    beside, alone = ko.show(problem, dual), str(dual)
    assert max(map(len, (*str(beside).splitlines(), *alone.splitlines()))) <= WIDTH
    body, _, data = alone.partition("\n\nwhere\n")
    assert body == problem_text(beside.dual) and dual._repr_latex_() == latex_problem(beside.dual)
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
    assert "v1' y[rows]" in text(problem)


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


@every("name", [*CLOSED, "one fixed kernel", "lasso", "norms in a norm", "constant"])
def test_no_step_is_empty(name):
    steps = ko.derive(pair(name)[0], random_state=1).steps
    assert all(step.lines and step.title.rstrip() == step.title for step in steps)
    assert all(not step.title.endswith("over") for step in steps)
    assert max(step.residual for step in steps) <= 1e-6


def test_the_steps_of_a_machine_of_one_kernel():
    steps = ko.derive(pair("one fixed kernel")[0]).steps
    assert [step.title for step in steps] == [
        "The Lagrangian", "The minimum over f, z, b", "Weak and strong duality",
    ]  # fmt: skip
    assert steps[1].lines[1].text == "  = -1/2 alpha' K alpha"
    assert steps[2].lines[0].text == "min L <= L <= objective"


def test_each_term_of_a_minimum_is_written_once():
    """The linear part of a nonlinear constraint, and |x|_1 of x >= 0, stand with the linear terms."""
    v = x(nonneg=True)
    bound = named(cp.norm1(v) / 2 + cp.sum_squares(v) / 4 <= 1, "elastic")
    (step,) = (s for s in ko.derive(least(-cp.sum(v), bound)).steps if s.title == "The minimum over x")
    assert step.lines[0].text == ("min over x >= 0 of 1/4 y[elastic] |x|^2 + (1/2 y[elastic] - 1) sum(x)")
    assert step.lines[1].text == "  = -|(1 - 1/2 y[elastic])_+|^2 / y[elastic]"


def test_the_soft_threshold_is_a_step():
    steps = ko.derive(pair("elastic net")[0]).steps
    assert (
        steps[1].lines[-1].text == "  (the conjugate of a sum is the infimal convolution of the conjugates)"
    )
    assert steps[2].lines[-1].text == (
        "min over |u[norm x]| <= 0.3 of |A1' y[square] + u[norm x]| = (|A1' y[square]| - 0.3)_+"
    )


def test_latex_has_no_double_exponents():
    two = ko.show(*pair("fixed kernels, block norm"))._repr_latex_()
    assert r"{K^{(2)}}^{+}" in two
    squared = ko.show(*pair("reciprocals and a price"))._repr_latex_()
    assert r"\left(\mathbf{1}^\top \left(1 + x\right)^{-1}\right)^{2}" in squared
    assert r"\|c\|_{2}" in pair("a norm and its square")[1]._repr_latex_()
