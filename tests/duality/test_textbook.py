"""The duals of twelve problems as a lecturer writes them, in text and in LaTeX."""

from __future__ import annotations

import re
import textwrap

import pytest

import kernelopt as ko
from tests.duality import textbook
from tests.every import every

# ruff: noqa: E501 - LaTeX is not broken
BOARD = {
    "linear": r"""
        minimize over lambda
        b'lambda
        A' lambda == c
        lambda >= 0

        b^\top \lambda
        A^\top\,\lambda = c
        \lambda \geq 0
    """,
    "lasso": r"""
        maximize over r
        b'r - 1/2 |r|^2
        |A' r|_inf <= 0.3

        b^\top r - \frac{1}{2}\,\|r\|_{2}^{2}
        \|A^\top\,r\|_{\infty} \leq 0.3
    """,
    "ridge": r"""
        maximize over r
        b'r - 1/2 |r|^2 - |A' r|^2

        b^\top r - \frac{1}{2}\,\|r\|_{2}^{2} - \|A^\top\,r\|_{2}^{2}
    """,
    "support_vectors": r"""
        maximize over y[margin]
        sum(y[margin]) - 1/2 y[margin]' Q y[margin]
        0 <= y[margin] <= 2
        y'y[margin] == 0

        \mathbf{1}^\top y_{\mathrm{margin}} - \frac{1}{2}\,y_{\mathrm{margin}}^\top Q y_{\mathrm{margin}}
        0 \leq y_{\mathrm{margin}} \leq 2
        y^\top y_{\mathrm{margin}} = 0
    """,
    "logistic_regression": r"""
        maximize over p
        -sum(p log p) - sum((1 - p) log (1 - p)) - 1/2 p' Q p
        p >= 0

        -\mathbf{1}^\top \left(p \log p\right) - \mathbf{1}^\top \left(\left(1 - p\right) \log \left(1 - p\right)\right) - \frac{1}{2}\,p^\top Q p
        p \geq 0
    """,
    "max_cut": r"""
        minimize over nu
        sum(nu)
        Diag(nu) - 1/4 L >> 0

        \mathbf{1}^\top \nu
        \operatorname{Diag}(\nu) - \frac{1}{4}\,L \succeq 0
    """,
    "ellipsoid": r"""
        maximize over lambda1, ..., lambda6
        log det(sum_i lambda_i a_i a_i') + 2 - sum_i lambda_i
        lambda1, ..., lambda6 >= 0

        \log\det\left(\sum_i \lambda_{i}\,a_{i}\,a_{i}^\top\right) + 2 - \sum_i \lambda_{i}
        \lambda_{1}, \ldots, \lambda_{6} \geq 0
    """,
    "maximum_entropy": r"""
        minimize over lambda
        log sum exp(-A' lambda) + b'lambda
        lambda >= 0

        \log \mathbf{1}^\top \exp\left(-A^\top\,\lambda\right) + b^\top \lambda
        \lambda \geq 0
    """,
    "basis_pursuit": r"""
        maximize over nu
        -b'nu
        |A' nu|_inf <= 1

        -b^\top \nu
        \|A^\top\,\nu\|_{\infty} \leq 1
    """,
    "nearest_correlation": r"""
        maximize over nu
        1/2 |G|_F^2 - 1/2 |(G - Diag(nu))_+|_F^2 - sum(nu)

        \frac{1}{2}\,\|G\|_{F}^{2} - \frac{1}{2}\,\|\left(G - \operatorname{Diag}(\nu)\right)_{+}\|_{F}^{2} - \mathbf{1}^\top \nu
    """,
    "trust_region": r"""
        maximize over z, lambda1, nu, lambda2
        0.1 lambda2 - 1/4 |z|^2 - 1/4 |lambda2 e1 - R z - q - nu 1|^2 / lambda1 - lambda1 - 1/2 nu
        lambda1, lambda2 >= 0

        0.1\,\lambda_{2} - \frac{1}{4}\,\|z\|_{2}^{2} - \frac{1}{4}\,\frac{\|\lambda_{2}\,e_{1} - R\,z - q - \nu\,1\|_{2}^{2}}{\lambda_{1}} - \lambda_{1} - \frac{1}{2}\,\nu
        \lambda_{1}, \lambda_{2} \geq 0
    """,
    "lp_learning": r"""
        maximize over alpha
        y'alpha - 1/2 |(alpha' K_m alpha)_m|_4
        0 <= y * alpha <= 1
        sum(alpha) == 0

        y^\top \alpha - \frac{1}{2}\,\|\left(\alpha^\top K_m \alpha\right)_m\|_{4}
        0 \leq y \odot \alpha \leq 1
        \mathbf{1}^\top \alpha = 0
    """,
    "soft_margin": r"""
        maximize over alpha, S, y[trace]
        2 y'alpha - 8 y[trace]
        0 <= y * alpha <= 1
        sum(alpha) == 0
        [S, alpha; alpha', 1] >> 0
        y[trace] t == (<K_m, S>)_m

        2\,y^\top \alpha - 8\,y_{\mathrm{trace}}
        0 \leq y \odot \alpha \leq 1
        \mathbf{1}^\top \alpha = 0
        \begin{bmatrix} S & \alpha \\ \alpha^\top & 1 \end{bmatrix} \succeq 0
        y_{\mathrm{trace}}\,t = \left(\langle K_m, S\rangle\right)_m
    """,
}  # fmt: skip


@every("name", BOARD)
def test_the_dual_is_what_a_lecturer_writes(name):
    dual = ko.dualize(getattr(textbook, name)())
    statement = dual._written.dual
    text, tex = (part.splitlines() for part in textwrap.dedent(BOARD[name]).strip().split("\n\n"))
    head = f"{'maximize' if statement.maximize else 'minimize'} over {', '.join(v.text for v in statement.variables)}"
    assert [head, statement.value.text, *(line.whole.text for line in statement.lines)] == text
    assert [statement.value.tex, *(line.whole.tex for line in statement.lines)] == tex


@every("name", BOARD)
def test_the_point_and_the_multipliers_come_back(name):
    found = ko.dualize(getattr(textbook, name)()).check()
    assert found.gap <= 1e-6 and found.feasibility <= 1e-6 and found.stationarity <= 1e-6


@every("name", BOARD)
def test_latex_has_the_table_of_the_data(name):
    dual = ko.dualize(getattr(textbook, name)())
    where = str(dual).partition("\n\nwhere\n")[2]
    tex = dual._repr_latex_()
    for symbol, meaning in re.findall(r"^  (\S+)  +\((.+?)\)", where, re.MULTILINE):
        assert r"\mathrm{(" in tex and symbol and meaning
    assert "over  of" not in str(ko.derive(getattr(textbook, name)())) and r"\max_{}" not in tex


def test_the_legend_of_a_dual_says_what_the_multipliers_without_a_label_belong_to():
    dual = ko.dualize(textbook.trust_region())
    for name, k in (("lambda1", 0), ("nu", 1), ("lambda2", 2)):
        assert re.search(rf"^  {name} +multiplier of the constraint {k}$", str(dual), re.MULTILINE)
    assert r"\nu & \mathrm{multiplier\ of\ the\ constraint\ 1}" in dual._repr_latex_()
    assert "multiplier of" not in str(ko.show(dual.primal, dual))  # there they stand beside their constraints


def test_the_products_of_features_have_a_name():
    dual = ko.dualize(textbook.support_vectors())
    assert "Q  = Diag(y) X X' Diag(y)" in str(dual)
    assert r"Q = \operatorname{Diag}(y)" in ko.show(dual.primal, dual)._repr_latex_()


def test_the_multiplier_of_a_kernel_in_the_cone_is_read_off():
    """Z = S - alpha alpha' of K >> 0, at a risk of weight 2."""
    problem = textbook.soft_margin()
    where = {name.text: value.text for name, value in ko.show(problem).where}
    assert where == {"y[cone]": "S - alpha alpha'"}


def test_matrix_parameters_are_printed_whole():
    import cvxpy as cp
    import numpy as np

    P = cp.Parameter((4, 3), name="P", value=np.ones((4, 3)))
    v = cp.Variable(3, name="v")
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(v)), [(P @ v >= 1).set_label("rows")]))
    assert "P' y[rows]" in str(dual) and "P[" not in str(dual)
    assert dual.solve() == pytest.approx(1 / 3, rel=1e-6)
