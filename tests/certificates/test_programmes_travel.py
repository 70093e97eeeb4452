"""Certificates of linear, second-order and semidefinite programmes: saved, and checked without kernelopt."""

import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates import check
from tests.certificates.forgeries import read, sealed
from tests.certificates.judging import second_opinion

CYCLE = np.roll(np.eye(5), 1, axis=0)
LAPLACIAN = (2 * np.eye(5) - CYCLE - CYCLE.T) / 4


def linear():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 1])


def signs():
    """A third is no double: the optimum 1/3 is between two neighbours."""
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Maximize(x[0] - x[1]), [3 * x[0] + x[2] <= 1, x[2] >= 0])


def second_order():
    """3 y_0 + 4 y_1 over the unit disc."""
    y = cp.Variable(2)
    return cp.Problem(cp.Maximize(3 * y[0] + 4 * y[1] + 1), [cp.norm(y) <= 1])


def rows_and_columns():
    """Cones along both axes: each row of norm 1 and each column of norm at most 2."""
    Z = cp.Variable((2, 3))
    cost = np.array([[3.0, 0.0, 4.0], [5.0, 12.0, 0.0]])
    cones = [cp.norm(Z, 2, axis=1) <= 1, cp.norm(Z, 2, axis=0) <= 2]
    return cp.Problem(cp.Maximize(cp.sum(cp.multiply(cost, Z))), cones)


def max_cut():
    X = cp.Variable((5, 5), PSD=True)
    return cp.Problem(cp.Maximize(cp.trace(LAPLACIAN @ X)), [cp.diag(X) == 1])


def eigenvalue():
    """The largest eigenvalue of a matrix with entries that are no multiples of a power of two."""
    t = cp.Variable()
    return cp.Problem(cp.Minimize(t), [t * np.eye(3) >> np.full((3, 3), 0.1)])


def squares():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])


OPTIMA = {
    linear: Fraction(1, 2),
    signs: Fraction(1, 3),
    second_order: 6,
    rows_and_columns: 18,
    max_cut: 5 * (5 + np.sqrt(5)) / 8,
    eigenvalue: Fraction(3 * Fraction(0.1)),
    squares: Fraction(1, 2),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Certify after a bare solve, and save once."""
    folder, known = tmp_path_factory.mktemp("programmes"), {}

    def save(make):
        if make not in known:
            problem = make()
            problem.solve(solver="CLARABEL")
            known[make] = ko.certify(problem).save(folder / f"{make.__name__}.npz")
        return known[make]

    return save


def proved(path):
    """Return the bounds that the checker proves, in fractions."""
    return check.bounds(*check.opened(path.read_bytes()))


@pytest.mark.parametrize("make", OPTIMA)
def test_the_bounds_in_fractions_hold_the_known_optimum(make, saved):
    lower, upper = proved(saved(make))
    valid, said = check.verdict(saved(make))
    assert valid
    second_opinion(saved(make), valid, said)
    slack = Fraction(1, 10**15) if make is max_cut else 0  # of the root of five in doubles
    assert lower - slack <= OPTIMA[make] <= upper + slack
    assert float(upper - lower) < 1e-6 * float(OPTIMA[make])


@pytest.mark.parametrize("make", [linear, signs])
def test_a_linear_programme_has_its_exact_optimum(make, saved):
    assert proved(saved(make)) == (OPTIMA[make], OPTIMA[make])


@pytest.mark.parametrize("make", [linear, second_order, max_cut])
def test_the_checker_needs_no_kernelopt(make, saved, tmp_path):
    copy = tmp_path / "check.py"
    copy.write_text(Path(check.__file__).read_text())
    command = [sys.executable, "-I", str(copy), str(saved(make))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout[:6]) == (0, "VALID:")


def test_the_statement_has_the_users_numbers(saved):
    """The matrices are not a solver's, whose off-diagonal entries are rounded multiples of root two."""
    _, arrays = read(saved(eigenvalue))
    assert np.array_equal(arrays["G0"], [np.eye(3), np.full((3, 3), -0.1)])
    certificate = ko.certify(eigenvalue())
    assert certificate.statement_digest == check.digest(*check.opened(saved(eigenvalue).read_bytes())[::2])
    assert pickle.loads(pickle.dumps(certificate)).statement_digest == certificate.statement_digest  # noqa: S301


@pytest.mark.parametrize(
    ("make", "name", "change"),
    [
        (max_cut, "Y0", 0.5), (max_cut, "G0", 2.0), (max_cut, "cost", 2.0), (max_cut, "T0", 1.1),
        (second_order, "Y0", 0.5), (second_order, "cost", 2.0),
        (linear, "right", 2.0), (linear, "value", 2.0),
    ],
)  # fmt: skip
def test_changed_data_and_witnesses_are_refused(make, name, change, saved, tmp_path):
    facts, arrays = read(saved(make))
    path = sealed(tmp_path / "changed.npz", facts, {**arrays, name: arrays[name] * change})
    assert not check.verdict(path)[0]


@pytest.mark.parametrize("make", [linear, max_cut])
def test_claims_beyond_the_proof_are_refused(make, saved, tmp_path):
    for side, towards in (("lower", np.inf), ("upper", -np.inf)):
        facts, arrays = read(saved(make))
        claim = float.fromhex(facts["witness"][side])
        facts["witness"][side] = float(np.nextafter(claim, towards)).hex()
        assert not check.verdict(sealed(tmp_path / "claim.npz", facts, arrays))[0]


def test_beyond_fractions_the_file_says_so(tmp_path):
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(x))), [cp.sum(x) == 0, x >= -3, x <= 3])
    problem.solve(solver="CLARABEL")
    certificate = ko.certify(problem)
    valid, said = check.verdict(certificate.save(tmp_path / "c.npz"))
    assert not valid
    assert said.startswith(
        f"{certificate.lower!r} <= optimum <= {certificate.upper!r} is claimed without a proof"
    )
    assert "rigorous in floating point" in said
    with pytest.raises(ko.errors.KerneloptError, match="ExpCone"):
        _ = certificate.statement_digest


def test_an_infeasible_programme_is_no_proof_in_fractions(tmp_path):
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(x[0]), [cp.norm(x) <= 1, x[0] >= 2])
    valid, said = check.verdict(ko.certify(problem).save(tmp_path / "c.npz"))
    assert not valid
    assert "inf <= optimum" in said
