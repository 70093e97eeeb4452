"""Reading risks near similarities: what is recognised, and what is said where something is not."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity
from kernelopt.certificates.lower.minorants import minorant
from kernelopt.extend import as_fidelity
from kernelopt.numerics.ball import Ball
from kernelopt.structure.learning import read_pieces
from kernelopt.structure.nearness import read_fidelity, read_nearness
from kernelopt.structure.trees import weighted_terms
from tests.every import every
from tests.problems import why_not

N = 5
rng = np.random.default_rng(0)
S = rng.normal(size=(2, N, N))
S = S + S.transpose(0, 2, 1)
Y = np.array([1.0, -1, 1, -1, 1])
LAM, V = np.linalg.eigh(S[0])
K = cp.Variable((N, N), PSD=True, name="K")
L = cp.Variable((N, N), PSD=True, name="L")
MU = cp.Variable(N, nonneg=True, name="mu")
ANY = rng.normal(size=(N, N))
ANY = ANY + ANY.T


@every("spectral", [True, False])
def test_the_minorant_of_nearly_orthogonal_vectors_is_within_its_errors(spectral):
    """(v'z)^2 cancels for z nearly orthogonal to v. Fractions give it, with the exactly feasible z."""
    draws, n = np.random.default_rng(1), 40
    vectors = np.linalg.qr(draws.normal(size=(n, n)))[0]
    z = 1e8 * vectors[:, 0] + draws.normal(size=n)
    mu, X = cp.Variable(n, nonneg=True), cp.Variable((n, n), PSD=True)
    K = ko.combine(mu, ko.Grams.rank_one(vectors)) if spectral else X
    structure = ko.Structure(problem(ko.risk(K, np.sign(z), ko.squared(1.0), bias=False)))
    below = minorant(structure.risks[0], z)
    exact = np.array([Fraction(v) for v in z])
    columns = np.vectorize(Fraction, otypes=[object])(vectors.T)
    wanted = (columns @ exact) ** 2 if spectral else np.outer(exact, exact).ravel()
    (slope,) = below.slopes.values()
    pairs = zip(slope.mid.tolist(), slope.rad.tolist(), wanted, strict=True)
    assert all(abs(Fraction(mid) + w / 2) <= Fraction(rad) for mid, rad, w in pairs)
    assert (slope.rad <= 1e-12 * float(z @ z)).all()


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (cp.sum(cp.abs(K - S[0])), "l1"),
        (cp.sum(cp.abs(S[0] - K)), "l1"),
        (cp.norm1(K - S[0]), "l1"),
        (cp.norm(K - S[0], "fro"), "frobenius"),
        (cp.pnorm(cp.vec(K - S[0], order="C"), 2), "frobenius"),
        (cp.sum_squares(K - S[0]), "squared_frobenius"),
        (cp.quad_over_lin(K - S[0], 4.0), "squared_frobenius"),
        (cp.sum_squares(K + np.zeros((N, N)) - S[0] / 2 - S[0] / 2), "squared_frobenius"),
    ],
)
def test_fidelities_are_recognised_and_have_the_values_of_cvxpy(term, kind):
    ((weights, e),) = weighted_terms(3.0 * term, np.ones(1))
    read = read_fidelity(weights, e)
    assert read is not None and read.fidelity == as_fidelity(kind) and read.variable is K
    assert read.target == pytest.approx(S[0])
    K.save_value(ANY)
    assert read.value(ANY) == pytest.approx(3 * float(term.value))
    # A subgradient gives a minorant, and it is tight: Fenchel's equality.
    U = read.subgradient(ANY)
    assert np.vdot(read.price * U, ANY) - read.conjugate_cost(U).mid == pytest.approx(read.value(ANY))
    K.save_value(None)


@pytest.mark.parametrize(
    "term",
    [
        cp.sum(cp.abs(2 * K - S[0])),
        cp.sum(cp.abs(K - rng.normal(size=(N, N)))),
        cp.sum(cp.abs(K[:3, :3] - S[0][:3, :3])),
        cp.sum(cp.abs(K - L)),
        cp.sum(cp.multiply(np.arange(N * N).reshape(N, N), cp.abs(K - S[0]))),
        cp.sum(cp.abs(K - S[0]), axis=0)[0],
        cp.norm(K - S[0], "nuc"),
        cp.norm_inf(K - S[0]),
        cp.pnorm(cp.vec(K - S[0], order="F"), 3),
        cp.sum_squares(cp.diag(K) - 1),
    ],
)
def test_other_terms_are_not(term):
    assert any(read_fidelity(*pair) is None for pair in weighted_terms(term, np.ones(term.size)))


def problem(objective, *constraints):
    return cp.Problem(cp.Minimize(objective), list(constraints))


RISK = ko.risk(K, Y, ko.hinge())
NEAR = cp.sum(cp.abs(K - S[0]))


def test_a_problem_written_by_hand_is_read():
    doubled = 2 * ko.risk(K, Y, ko.hinge()) + 0.5 * (NEAR + cp.sum(cp.abs(K - S[1]))) / 2 + 7
    read = read_nearness(ko.Structure(problem(doubled, 2 * cp.trace(K) == 6)))
    assert not isinstance(read, str)
    assert (read.factor, read.offset, read.fidelity, read.price) == (2.0, 7.0, ko.fidelities.l1(), 0.125)
    assert read.blocks[0].total == 3.0 and read.blocks[0].targets == pytest.approx(S)
    spectral = ko.risk(V @ cp.diag(MU) @ V.T, Y, ko.hinge()) + cp.norm(MU - LAM)
    read = read_nearness(ko.Structure(problem(spectral, 4 == cp.sum(MU))))
    assert not isinstance(read, str)
    assert read.blocks[0].total == 4.0 and read.blocks[0].kernel(LAM) == pytest.approx(S[0])


@pytest.mark.parametrize(
    ("built", "said"),
    [
        (problem(RISK, cp.trace(K) == 1), "fidelities of one kind and price"),
        (problem(RISK + NEAR + cp.norm(K - S[1], "fro"), cp.trace(K) == 1), "one kind and price"),
        (problem(RISK + NEAR + cp.lambda_max(K), cp.trace(K) == 1), "lambda_max(K) is not a price times"),
        (problem(RISK + NEAR, cp.trace(K) == 1, K[0, 0] == 1), "does not fix the trace"),
        (problem(RISK + NEAR, cp.trace(K) == 1, 2 * cp.trace(K) == 2), "second that bounds K"),
        (problem(RISK + NEAR, (cp.trace(K) <= 1).set_label("size")), "fixed by =="),
        (problem(RISK + NEAR + cp.norm1(L - S[1]), cp.trace(K) == 1), "L is no kernel of the risk"),
        (problem(NEAR), "one risk"),
        (problem(RISK + cp.Parameter(name="rho", nonneg=True) * NEAR), "the parameters rho have no values"),
        (problem(RISK + NEAR + ko.risk(L, Y, ko.hinge())), "has 2"),
        (problem(ko.risk(K + L, Y, ko.hinge()) + NEAR), "PSD variable"),
        (problem(ko.risk([K, L], Y, ko.hinge()) + NEAR + cp.norm1(L - S[1])), "norm=inf"),
        (problem(ko.risk(K, Y, ko.logistic()) + NEAR), "one of the hinges or the squared loss, not logistic"),
        (problem(ko.risk(K, Y, ko.epsilon_insensitive()) + NEAR), "not epsilon_insensitive"),
        (problem(ko.risk(K, Y, ko.hard_margin()) + NEAR), "not hard_margin"),
        (
            problem(ko.risk(ko.combine(MU, ko.Grams.rank_one(2 * V)), Y, ko.hinge()) + cp.norm1(MU - LAM)),
            "orthonormal",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(built, said):
    assert said in why_not("first-order-dual", built)
    assert said in str(ko.explain(built))
    # Parameters without a value are refused before any method is asked.
    with pytest.raises(ko.KerneloptError, match="first-order-dual|rho"):
        ko.solve(built, "first-order-dual")


def test_sizes_are_read_with_their_multipliers():
    for constraint, reach, multiplier in (
        (cp.trace(K) == 2, 2.0, 3.0),
        (3 * cp.trace(K) == 6, 2.0, 1.0),
        (2 == cp.trace(K), 2.0, 3.0),
        (1 - cp.trace(K) >= 0, 1.0, 3.0),
    ):
        pieces = read_pieces(ko.Structure(problem(cp.lambda_max(K), constraint)))
        assert not isinstance(pieces, str)
        piece, copy = pieces[0], pieces[0].variable
        assert piece.reach(copy) == pytest.approx(reach)
        found = sum(piece.multipliers({}, piece.support({copy: Ball(3 * np.eye(N).ravel())})).values())
        assert abs(found) == pytest.approx(multiplier)
    assert isinstance(read_pieces(ko.Structure(problem(cp.sum(K), cp.trace(K) == -1))), str)
    assert isinstance(read_pieces(ko.Structure(problem(cp.sum(K), cp.trace(K) + cp.trace(L) == 1))), str)


def test_every_similarity_formulation_is_read():
    for build in (similarity.single_kernel, similarity.kernel_per_similarity, similarity.restricted_spectral):
        for fidelity in ("l1", "frobenius", "squared_frobenius"):
            for trace in (None, 2.0):
                learning = build(S, Y[:3], rho=0.3, trace=trace, fidelity=fidelity)
                read = read_nearness(ko.Structure(learning.problem))
                assert not isinstance(read, str)
                assert (read.fidelity, read.price, read.n_points) == (as_fidelity(fidelity), 0.3, N)
                assert sum(len(block.targets) for block in read.blocks) == 2
