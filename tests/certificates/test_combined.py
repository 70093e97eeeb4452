"""Bounds over PSD combinations of given trace: their parts against exact arithmetic and direct formulas."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates.lower.combined import accurate_adjoint, plain_adjoint
from kernelopt.numerics.matrix_inequality import SmallProgram, solve_small
from kernelopt.structure.combined.basis import frobenius_basis
from kernelopt.structure.combined.cone import read_centring
from kernelopt.structure.combined.coordinates import read_coordinates
from tests.every import every
from tests.methods.spectral_master.cases import families, gaussians, learning, points


def coordinates(kernels):
    _, y, _ = points(size=len(kernels[0]))
    return read_coordinates(ko.Structure(learning(kernels, y[:10], ko.hinge())))


def exact_adjoint(K, F):
    """<F F', K> in rational arithmetic."""
    rational = [[Fraction(float(v)) for v in row] for row in F]
    total = Fraction(0)
    for i, row in enumerate(K):
        for j, entry in enumerate(row):
            total += Fraction(float(entry)) * sum(
                a * b for a, b in zip(rational[i], rational[j], strict=True)
            )
    return total


@every("adjoint", [plain_adjoint, accurate_adjoint])
def test_the_errors_of_the_adjoint_are_bounded(adjoint):
    """Columns of mean zero against a nearly constant kernel: the sums cancel to 1e-8 of their terms."""
    X, _, _ = points(size=14)
    at = coordinates(gaussians(X, [1e4, 4.0]))
    F = np.random.default_rng(0).normal(size=(14, 2)) * 1e3
    F -= F.mean(axis=0)
    found = adjoint(at, F)
    values, errors = found.mid, found.rad
    for K, value, error in zip(at.stack, values, errors, strict=True):
        assert abs(Fraction(float(value)) - exact_adjoint(K, F)) <= Fraction(float(error))
    assert errors[0] <= (1e-3 if adjoint is plain_adjoint else 1e-10)


def test_the_part_of_a_form_on_the_ones_is_bounded():
    """<F F', K - H K H> = 2 f'(H F)'K 1 + f'f 1'K 1 with f = F'1 / N, in rational arithmetic."""
    kernels = families()["centred"]
    centring = read_centring(kernels, np.linalg.norm(kernels, axis=(1, 2)))
    rng = np.random.default_rng(0)
    for F in (rng.normal(size=(14, 2)), np.ones((14, 1)), np.linalg.qr(rng.normal(size=(14, 3)))[0]):
        means = [sum(Fraction(float(v)) for v in column) / 14 for column in F.T]
        for K, bound in zip(kernels, centring.errors(F), strict=True):
            rows = [sum(Fraction(float(v)) for v in row) for row in K]
            change = sum(
                2 * f * sum((Fraction(float(v)) - f) * r for v, r in zip(column, rows, strict=True))
                + f * f * sum(rows)
                for column, f in zip(F.T, means, strict=True)
            )
            assert abs(change) <= Fraction(float(bound))
    assert centring.change <= 1e-13
    shifted = kernels + 1e-9
    assert read_centring(shifted, np.linalg.norm(shifted, axis=(1, 2))) is None


@every("name", list(families()))
def test_weights_of_a_psd_combination_are_inside_the_ball_of_the_basis(name):
    """mu = c T y + dependent directions, and |y| <= 1 / shrink where K is PSD of trace c."""
    kernels = families()[name]
    at = coordinates(kernels)
    basis = at.basis
    flat = np.tensordot(basis.T.T, kernels, 1).reshape(basis.T.shape[1], -1)
    assert np.linalg.norm(flat @ flat.T - np.eye(len(flat))) <= 1 - basis.shrink**2 + 1e-13
    K = at.kernel(at.centre)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-13 * eigenvalues[-1]
    assert np.trace(K) == pytest.approx(at.cone.trace, rel=1e-9)
    y = np.linalg.lstsq(at.cone.trace * basis.T, at.centre, rcond=None)[0]
    assert np.linalg.norm(y) <= 1 / basis.shrink


def test_collinear_kernels_have_an_orthonormal_basis_down_to_norms_of_1e_8():
    X, _, _ = points(size=30)
    kernels = gaussians(X, [80.0, 160.0, 320.0, 640.0])
    basis = frobenius_basis(kernels)
    flat = np.tensordot(basis.T.T, kernels, 1).reshape(basis.T.shape[1], -1)
    assert basis.T.shape[1] == 4 and np.abs(basis.T).max() > 1e3
    assert np.linalg.norm(flat @ flat.T - np.eye(4)) <= 1e-6


@every("loss", [ko.hinge(), ko.hard_margin()])
def test_a_constant_relaxation_is_bounded_by_its_constant(loss):
    """At alpha = 0 the minorant of a risk is zero, and the objective on the cone has no slope."""
    _, y, _ = points()
    problem = learning(families()["indefinite"], y[:10], loss)
    assert ko.certify(problem, alpha=np.zeros(10), retrain=False).lower == 0.0


def test_the_small_programme_is_solved_with_its_multipliers():
    """min |x|^2 / 2 - x_1 - x_2 over the unit disc [[1 + x_1, x_2], [x_2, 1 - x_1]] >> 0, and x_1 <= 1/4."""
    S = np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    program = SmallProgram(-np.ones(2), np.eye(2), np.array([[-1.0, 0.0]]), np.array([0.25]), np.eye(2), S)
    x, multipliers, Z = solve_small(program, np.zeros(2), 1e-10, 1.0)
    expected = np.array([0.25, np.sqrt(1 - 1 / 16)])
    assert x == pytest.approx(expected, abs=1e-8)
    residual = program.c + x - program.adjoint(Z) - program.A.T @ multipliers
    assert np.abs(residual).max() <= 1e-8
    assert np.linalg.eigvalsh(Z)[0] > 0 and multipliers[0] > 0
