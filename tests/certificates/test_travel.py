"""Certificates that travel: saved, checked without kernelopt in fractions, and rejected when changed."""

import ast
import copy
import decimal
import math
import pickle
import subprocess
import sys
import time
import zipfile
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm
from kernelopt.certificates import check
from kernelopt.certificates.impossible import risk_above_its_bound
from kernelopt.certificates.statements.conflicts import inseparable, linear_conflict
from kernelopt.certificates.statements.statement import rounded
from kernelopt.certificates.statements.witness import exact_seconds
from kernelopt.losses.curve import Curve
from kernelopt.running import ProgressLine
from tests.certificates.forgeries import read, sealed
from tests.certificates.saved import (
    GRAMS,
    KINDS,
    LEARNING,
    OPTIMA,
    TARGETS,
    N,
    Y,
    data,
    eigenvalue,
    verdict,
)
from tests.every import every
from tests.exact_fractions import exact

CHECKER = Path(check.__file__)

# ------------------------------------------------------------------------------------ the checker


def test_the_checker_is_one_file_and_needs_numpy_alone():
    text = CHECKER.read_text()
    assert len(text.splitlines()) < 400  # a half reads the file by its schema, a half is the proof
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert {name.partition(".")[0] for name in imported} - {"numpy"} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", ["l_2", "linear", "second_order", "max_cut"])
def test_a_copy_of_the_checker_and_the_module_give_the_same_verdict(name, saved, target, tmp_path):
    path = saved(name).path
    target.write_bytes(path.read_bytes()[:-1] + b"?")
    alone = tmp_path / "check.py"
    alone.write_text(CHECKER.read_text())
    module = ["-m", "kernelopt.certificates.check"]
    for command, file, code in ((["-I", str(alone)], path, 0), (module, target, 1)):
        said = subprocess.run(  # noqa: S603
            [sys.executable, *command, str(file)], capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (code, "")
        assert said.stdout.startswith("INVALID: " if code else "VALID: ")


def claims_of(facts):
    return [float.fromhex(facts["witness"][claim]) for claim in ("lower", "upper")]


def proved(path):
    """Return the bounds that the checker proves, in fractions."""
    return check.bounds(*check.opened(path.read_bytes()))


@pytest.mark.parametrize("name", LEARNING)
def test_certificates_are_valid_and_as_tight_as_the_solution(name, saved):
    certificate, value, path, facts, _ = saved(name)
    valid, text = verdict(path)
    assert valid, text
    lower, upper = claims_of(facts)
    size = max(1.0, abs(value))
    assert lower <= upper and upper - lower <= 1e-5 * size
    assert lower <= certificate.upper + 1e-9 * size and certificate.lower - 1e-9 * size <= upper
    assert all(isinstance(bound, Fraction) for bound in proved(path))  # a double would be rounded


@pytest.mark.parametrize("name", OPTIMA)
def test_the_bounds_in_fractions_hold_the_known_optimum(name, saved):
    path, optimum = saved(name).path, OPTIMA[name]
    assert verdict(path)[0]
    lower, upper = proved(path)
    slack = Fraction(1, 10**15) if name == "max_cut" else 0  # of the root of five in doubles
    assert lower - slack <= optimum <= upper + slack
    assert float(upper - lower) <= (0.0 if name in ("linear", "signs") else 1e-6) * float(optimum)


def test_the_statement_has_the_users_numbers(saved):
    """The matrices are not a solver's, whose off-diagonal entries are rounded multiples of root two."""
    _, _, path, _, arrays = saved("eigenvalue")
    assert np.array_equal(arrays["G0"], [np.eye(3), np.full((3, 3), -0.1)])
    certificate = ko.certify(eigenvalue())
    assert certificate.statement_digest == check.digest(*check.opened(path.read_bytes())[::2])
    assert pickle.loads(pickle.dumps(certificate)).statement_digest == certificate.statement_digest  # noqa: S301


def test_the_bounds_of_a_ball_are_those_of_the_textbook(saved):
    """Computed again with 80 digits: l(alpha) - |s|_4 / 2 and the SVM at theta, p = 4/3."""
    _, _, _, facts, A = saved("l_1.33")
    facts = facts["witness"]
    with decimal.localcontext(prec=80):
        number = np.frompyfunc(decimal.Decimal, 1, 1)
        K, alpha, beta = (number(A[k]) for k in ("K0", "alpha0", "beta0"))
        forms = [alpha @ G @ alpha for G in K]
        lower = number(Y) @ alpha - sum(s**4 for s in forms).sqrt().sqrt() / 2
        theta = [decimal.Decimal(v.numerator) / v.denominator for v in map(Fraction, facts["x"])]
        assert sum(t ** (decimal.Decimal(4) / 3) for t in theta) <= 1
        fit = sum(t * G for t, G in zip(theta, K, strict=True)) @ beta
        margins = number(Y) * (fit + decimal.Decimal(A["b0"].item()))
        upper = beta @ fit / 2 + sum(max(0, 1 - v) for v in margins)
        claims = [decimal.Decimal(float.fromhex(facts[k])) for k in ("lower", "upper")]
        assert 0 <= lower - claims[0] <= 1e-12
        assert abs(claims[1] - upper) <= 1e-11  # the difference is the ridge


@pytest.mark.parametrize("name", [*KINDS, "linear", "max_cut"])
def test_a_claim_one_digit_beyond_the_proof_is_rejected(name, saved, target):
    _, _, _, facts, arrays = saved(name)
    assert verdict(sealed(target, facts, arrays))[0]
    for claim, number, beyond in zip(("lower", "upper"), claims_of(facts), (np.inf, -np.inf), strict=True):
        better = float(np.nextafter(number, beyond)).hex()
        assert not verdict(sealed(target, facts, arrays, **{claim: better}))[0]


@pytest.mark.parametrize("name", KINDS)
def test_no_byte_of_a_file_can_be_changed(name, saved, target):
    path = saved(name).path
    raw, rng = path.read_bytes(), np.random.default_rng(0)
    with zipfile.ZipFile(path) as archive:
        starts = [member.header_offset for member in archive.infolist()]
    places = [*rng.integers(len(raw), size=12), *(start + 60 for start in starts[:6]), len(raw) - 1]
    for place in places:
        changed = bytearray(raw)
        changed[place] ^= 1 << int(rng.integers(8))
        target.write_bytes(changed)
        assert not verdict(target)[0], place


WITNESS = ("alpha", "beta", "b", "ridge", "L", "y", "h", "s", "t", "Y", "S", "T")


@pytest.mark.parametrize("name", [*KINDS, "second_order", "max_cut"])
def test_a_resealed_lie_is_rejected(name, saved, target):
    """Every array is changed in turn beside claims that are 1e-4 too good: no witness proves them."""
    _, _, _, facts, arrays = saved(name)
    lower, upper = claims_of(facts)
    size, rng = 1e-4 * max(1.0, abs(lower + upper) / 2), np.random.default_rng(1)
    for key in (key for key in arrays if key[:-1] in WITNESS):
        changed = arrays | {key: arrays[key] * (1 + 1e-3 * rng.normal(size=arrays[key].shape))}
        for lie in ({"lower": (upper + size).hex()}, {"upper": (lower - size).hex()}):
            assert not verdict(sealed(target, facts, changed, **lie))[0], key


@every(
    "name, key, factor",
    [
        ("l_2", "K0", 0.9),  # the file states the new kernel then, whose bounds are others
        *(("max_cut", key, factor) for key, factor in (("Y0", 0.5), ("G0", 2.0), ("cost", 2.0), ("T0", 1.1))),
        ("second_order", "Y0", 0.5),
        ("second_order", "cost", 2.0),
        ("linear", "right", 2.0),
        ("linear", "value", 2.0),
    ],
)
def test_changed_data_and_witnesses_do_not_prove_the_old_claims(name, key, factor, saved, target):
    _, _, _, facts, arrays = saved(name)
    assert not verdict(sealed(target, facts, arrays | {key: arrays[key] * factor}))[0]


@every("key", ["alpha0", "beta0", "h0", "ridge0", "L0", "K0", "cost", "t0"])
def test_infinite_and_missing_numbers_prove_nothing(key, saved, target):
    _, _, _, facts, arrays = saved("l_2")
    for value in (np.nan, np.inf):
        changed = arrays | {key: np.full_like(arrays[key], value)}
        assert not verdict(sealed(target, facts, changed))[0], value
    fewer = {name: a for name, a in arrays.items() if name != key}
    assert not verdict(sealed(target, facts, fewer))[0]


def test_files_that_are_none_prove_nothing(tmp_path):
    (tmp_path / "no.npz").write_text("not a certificate")
    assert not verdict(tmp_path / "no.npz")[0]
    assert not verdict(tmp_path / "absent.npz")[0]


# --------------------------------------------------------------------------------- its inequalities


def positive_definite(M):
    """By exact elimination."""
    M = exact(M)
    for j in range(len(M)):
        if M[j, j] <= 0:
            return False
        M = M - np.outer(M[:, j], M[j]) / M[j, j] * (np.arange(len(M)) > j)[:, None]
    return True


def test_semidefinite_is_never_said_of_an_indefinite_matrix():
    rng = np.random.default_rng(0)
    verdicts = set()
    for shift in (-1e-3, -1e-9, 1e-9, 1e-3):
        for _ in range(5):
            V = np.linalg.qr(rng.normal(size=(5, 5)))[0]
            M = V @ np.diag([shift, 0.5, 1, 2, 3]) @ V.T
            M = (M + M.T) / 2
            L = np.linalg.cholesky(M + 2 * max(0.0, -shift) * np.eye(5) - 1e-13 * np.eye(5))
            shown = bool(check.semidefinite(exact(M), exact(L)))
            verdicts.add((shift, shown))
            assert not shown or positive_definite(M)
    assert verdicts == {(-1e-3, False), (-1e-9, False), (1e-9, True), (1e-3, True)}
    assert not check.semidefinite(exact([[1.0, 0.5], [0.4, 1.0]]), exact(np.zeros((2, 2))))


def plainly_semidefinite(M, L):
    """The definition in fractions."""
    R = exact(M) - exact(L) @ exact(L).T
    return bool((R == R.T).all() and (2 * R.diagonal() >= abs(R).sum(axis=0)).all())


@every("seed", range(12))
def test_integers_give_the_products_and_verdicts_of_fractions(seed):
    """Entries of both signs from 1e-300 to 1e8: many digits, and residuals of one unit in the last."""
    rng = np.random.default_rng(seed)
    spread = [1.0, 8.0, 100.0, 300.0][seed % 4]
    A, B = (rng.normal(size=(5, 5)) * 10.0 ** rng.uniform(-spread, 8, size=(5, 5)) for _ in range(2))
    assert (check.product(A, B) == exact(A) @ exact(B)).all()
    G = rng.normal(size=(3, 5, 5))
    assert (check.product(A[0, :3], G) == np.tensordot(exact(A[0, :3]), exact(G), 1)).all()
    assert check.product(G, A, 2)[1] == (exact(G[1]) * exact(A)).sum()
    L, fits = np.tril(A), spread <= 8  # entries of more than 120 bits together prove nothing
    product = exact(L) @ exact(L).T
    for added in (Fraction(0), Fraction(1, 2**1200), Fraction(-1, 2**1200)):
        M = product.copy()
        M[4, 4] += added
        assert check.semidefinite(M, L) == (fits and added >= 0)
    M = np.array(product, dtype=float)
    assert check.semidefinite(M, L) == (fits and plainly_semidefinite(M, L))


@pytest.mark.parametrize("p", ["1", "2", "3/2", "4", "inf"])
def test_within_needs_one_share_for_every_entry(p):
    v, power = np.array([0.5, 0.25, 0.125]), np.inf if p == "inf" else float(Fraction(p))
    h = float(np.linalg.norm(v, power)) * (1 + 1e-12)
    t = np.zeros(3) if p == "inf" else (v / h) ** power * (1 + 1e-14)
    assert check.within(exact(v), Fraction(h), p, exact(t))
    assert not check.within(exact(v), Fraction(h * 0.99), p, exact(t))
    if p != "inf":
        assert not check.within(exact(v), Fraction(h), p, exact([*t[:2], -t[2]]))
        with pytest.raises(ValueError, match="shorter|longer"):  # one share must not serve three entries
            check.within(exact(v), Fraction(h), p, exact([1.0]))


def test_shapes_that_numpy_would_stretch_prove_nothing():
    """A length below zero over no rows, and a factor with three axes, would show anything."""
    none = np.zeros(0, dtype=object)
    assert not check.within(none, Fraction(-1), "inf", none)
    assert not check.within(none, Fraction(-1), "2", none)
    assert not check.semidefinite(exact(-np.eye(2)), exact(np.zeros((2, 2, 2))))
    assert not check.semidefinite(exact(-np.eye(2)), exact(np.ones((1, 1))))


@every("seed", range(20))
def test_peak_is_the_largest_value_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    slope, l1 = Fraction(int(rng.integers(-4, 5)), 2), Fraction(int(rng.integers(0, 3)), 2)
    curvature = Fraction(int(rng.integers(-2, 5)), 2)
    low, high = -float(rng.integers(0, 3)), float(rng.integers(0, 3))
    found = check.peak(slope, curvature, l1, low, high)
    grid = [low + (high - low) * Fraction(i, 240) for i in range(241)] if high > low else [Fraction(low)]
    values = [slope * a - curvature * a * a / 2 - l1 * abs(a) for a in map(Fraction, grid)]
    assert max(values) <= found <= max(values) + Fraction(1, 1000)
    unbounded = check.peak(slope, curvature, l1, low, np.inf)
    assert (unbounded is None) == (curvature < 0 or (curvature == 0 and slope > l1))
    assert unbounded is None or unbounded >= found


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1, 2), Fraction(10) ** 400])
def test_claims_are_rounded_outward_to_the_next_double(value):
    down, up = rounded(value, -np.inf), rounded(value, np.inf)
    assert down <= value <= up
    assert value == down == up or math.nextafter(down, np.inf) == up


# ------------------------------------------------------------------------------- saving


def test_a_copy_of_a_certificate_saves_the_same_file(saved, tmp_path):
    certificate, _, path, _, _ = saved("qcqp")
    copies = [copy.deepcopy(certificate), pickle.loads(pickle.dumps(certificate))]  # noqa: S301
    for i, again in enumerate(copies):
        assert again.save(tmp_path / f"{i}.npz").read_bytes() == path.read_bytes()


def test_a_certificate_states_the_parameters_of_its_solve(tmp_path):
    C = cp.Parameter(pos=True, value=1.0)
    theta = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, GRAMS), Y, ko.hinge(C))), ko.lp_ball(theta, 2))
    certificate = ko.solve(problem).certificate
    C.value = 7.0
    _, arrays = read(certificate.save(tmp_path / "c.npz"))
    assert np.abs(arrays["ends0"]).max() == 1.0
    assert verdict(tmp_path / "c.npz")[0]


def test_long_work_is_predicted_and_announced(saved, tmp_path, monkeypatch):
    """The prediction grows with n^2 m + n^3, and is said before the work."""
    certificate = saved("l_2").certificate
    assert certificate.source.seconds == exact_seconds(3, N) < 0.1
    assert exact_seconds(10, 1000) > 8 * exact_seconds(5, 400) > 0
    monkeypatch.setattr("kernelopt.certificates.certificate.LONG", 1e-4)
    lines = []
    monkeypatch.setattr(ProgressLine, "show", lambda self, line, seconds: lines.append(line))
    with pytest.warns(
        ko.errors.ConditionWarning, match=r"saving a certificate takes about 0 s here.*n\^2"
    ) as caught:
        certificate.save(tmp_path / "c.npz")
    assert caught[0].filename == __file__
    assert ["the witness" in lines[0], "the bounds" in lines[1]] == [True, True]


def test_a_hundred_points_are_saved_in_seconds(tmp_path):
    """In fractions of Python it took a minute of processor time; now well under one second."""
    grams, y = data(1, 100)
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, grams)
    problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), [ko.trace(K) == 100])
    certificate = ko.certify(problem, weights=np.ones(3))
    began = time.process_time()
    path = certificate.save(tmp_path / "c.npz")
    assert verdict(path)[0]
    assert time.process_time() - began < 5


def test_a_strangers_weights_travel_too(tmp_path):
    """Poor weights and no dual variable of a solver: a wide bracket, proved."""
    theta = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, GRAMS), Y, ko.hinge())), ko.lp_ball(theta, 2))
    certificate = ko.certify(problem, weights=[1.0, 1.0, 1.0])
    assert verdict(certificate.save(tmp_path / "c.npz"))[0]


class half_squares(ko.Loss):
    """A loss of a user's, without C."""

    kind = "targets"

    def expression(self, fit, y):
        return cp.sum_squares(fit - y) / 2

    def curve(self, y):
        zero, far = np.zeros(y.size), np.full(y.size, np.inf)
        return Curve(y, zero + 1, zero, -far, far)


def test_a_loss_of_ones_own_travels(tmp_path):
    theta = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(theta, GRAMS), TARGETS, half_squares())
    certificate = ko.solve(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2))).certificate
    assert verdict(certificate.save(tmp_path / "c.npz"))[0]
    facts, _ = read(tmp_path / "c.npz")
    known = lp_norm.primal(GRAMS, TARGETS, loss=ko.squared(1.0)).solve()
    assert float.fromhex(facts["witness"]["lower"]) == pytest.approx(known.value, rel=1e-6)


def test_what_cannot_be_stated_says_why(tmp_path):
    logistic = lp_norm.primal(GRAMS, Y, loss=ko.logistic()).solve()
    with pytest.raises(ko.errors.MethodError, match="logistic.*no exact value"):
        logistic.certificate.save(tmp_path / "c.npz")
    odd = lp_norm.primal(GRAMS, Y, p=1.2345678).solve()
    with pytest.raises(ko.errors.ParameterError, match="fraction"):
        odd.certificate.save(tmp_path / "c.npz")
    with pytest.raises(ko.errors.MethodError, match="not made from a problem"):
        ko.Certificate(0.0, 1.0, "none").save(tmp_path / "c.npz")


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


# ------------------------------------------------------------------------------- infeasibility


def infeasible(problem, **options):
    with pytest.raises(ko.InfeasibleError) as caught:
        ko.solve(problem, **options)
    return caught.value


def proves_infeasibility(error, path):
    """The file is valid, claims infinity, and is not valid with a multiplier of the wrong sign."""
    error.proof["certificate"].save(path)
    valid, text = verdict(path)
    facts, arrays = read(path)
    assert valid and float.fromhex(facts["witness"]["lower"]) == np.inf, text
    u = facts["witness"]["u"]
    if u:
        assert not verdict(sealed(path, facts, arrays, u=[f"-{v}" for v in u]))[0]
    return facts["witness"]["names"]


def weighted():
    mu = cp.Variable(3, nonneg=True, name="mu")
    K = ko.combine(mu, GRAMS)
    return mu, K, ko.risk(K, Y, ko.hinge())


def traces(mu, K):
    return [(ko.trace(K) == N).set_label("trace"), (ko.trace(K) <= 3).set_label("cap")]


def bounds_beside_a_trace(mu, K):
    floor, roof = (mu[0] >= 2).set_label("floor"), (mu[0] <= 1).set_label("roof")
    return [floor, (ko.trace(K) <= 100).set_label("trace"), roof]


def cycle(mu, K):
    with pytest.warns(ko.errors.ConditionWarning, match="contradict"):
        gains = ko.triplet_gains(K, [[3, 4, 5], [0, 1, 2], [1, 2, 0], [2, 0, 1]])
    return [gains >= 0.1, ko.trace(K) == N]


CYCLE = "0 is closer to 1 than to 2 (row 1), 1 is closer to 2 than to 0 (row 2)"
CONFLICTS = [
    (traces, "-1 x (trace) + 1 x (cap) reads 0 <= -7", ["trace", "cap"]),
    (bounds_beside_a_trace, "1 x (floor) + 1 x (roof) reads 0 <= -1", ["floor", "trace", "roof"]),
    (cycle, CYCLE, [f"{i} is closer to {j} than to {k}" for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]),
]


@pytest.mark.parametrize(("constraints", "said", "rows"), CONFLICTS)
def test_only_the_constraints_in_conflict_are_named_and_proved(constraints, said, rows, tmp_path):
    mu, K, risk = weighted()
    error = infeasible(cp.Problem(cp.Minimize(risk), constraints(mu, K)))
    assert said in str(error)
    assert proves_infeasibility(error, tmp_path / "c.npz")["rows"] == rows


def test_a_trace_that_no_psd_combination_has_is_told(tmp_path):
    formulation = lanckriet.sdp([np.diag([2.0, -1, 0, 0]), np.diag([0, -1.0, 2, 0])], [1, -1, 1, -1], C=1.0)
    error = infeasible(formulation.problem)
    assert "no combination of the kernels with (trace) is positive semidefinite" in str(error)
    proves_infeasibility(error, tmp_path / "c.npz")


def test_samples_that_no_kernel_separates_are_named(tmp_path):
    """Exclusive or with linear kernels: the mean of 0 and 1 is that of 2 and 3."""
    X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [5.0, 5.0]])
    Ks = np.array([X @ X.T, np.outer(X[:, 0], X[:, 0])])
    mu = cp.Variable(2, nonneg=True)
    risk = ko.risk(ko.combine(mu, Ks), [1, 1, -1, -1, 1], ko.hard_margin())
    error = infeasible(cp.Problem(cp.Minimize(risk), [cp.sum(mu) == 1]))
    proves_infeasibility(error, tmp_path / "c.npz")
    statement = error.proof["certificate"]
    alpha = statement.arrays["alpha0"]
    assert alpha.sum() == 0 and not (Ks @ alpha).any() and (alpha * [1, 1, -1, -1, 1] >= 0).all()
    above, below = (", ".join(map(str, np.flatnonzero(sign * alpha > 0))) for sign in (1, -1))
    assert f"no kernel separates the samples {above} (+1) from {below} (-1)" in str(error)


def test_a_risk_above_its_bound_says_by_how_much_and_is_proved(tmp_path):
    """K = I / 4 + ... at trace 1: the least risk is 4 - 4 / 8 = 3.5, at alpha = y."""
    mu = cp.Variable(2, nonneg=True, name="mu")
    K = ko.combine(mu, np.array([np.eye(4), np.ones((4, 4))]))
    risk = ko.risk(K, [1, 1, -1, -1], ko.hinge())
    for label in (None, "fit"):
        bounded = risk <= 0.1 if label is None else (risk <= 0.1).set_label(label)
        error = infeasible(cp.Problem(cp.Minimize(cp.sum(mu)), [bounded, ko.trace(K) <= 1]))
        name = "constraint 0" if label is None else label
        assert f"{name}: risk(combine(mu, 2 kernels)) <= 0.1, is below the least value" in str(error)
        assert "allow, 3.5: loosen its bound by 3.4 at least" in str(error)
        found = error.proof["certificate"]
        assert 3.5 - 1e-6 <= found.lower <= 3.5 <= found.upper
        assert verdict(found.save(tmp_path / "c.npz"))[0]
        assert 3.5 - 1e-6 <= float.fromhex(read(tmp_path / "c.npz")[0]["witness"]["lower"]) <= 3.5


def test_a_risk_below_its_bound_is_not_blamed():
    mu, _, risk = weighted()
    problem = cp.Problem(cp.Minimize(0), [risk <= 1e3, cp.sum(mu) <= 1])
    assert risk_above_its_bound(ko.Structure(problem)) is None


def test_a_proof_in_doubles_is_a_certificate_that_says_why_it_cannot_be_saved(tmp_path):
    mu, _, risk = weighted()
    error = infeasible(cp.Problem(cp.Minimize(risk), [cp.sum_squares(mu) <= 1, mu[0] >= 2]))
    assert "constraint 1: 2.0 <= mu[0]" in str(error)
    found = error.proof["certificate"]
    assert (found.lower, found.upper, found.feasible) == (np.inf, np.inf, False)
    assert np.array_equal(found.proof, error.proof["ray"])
    with pytest.raises(ko.errors.MethodError, match="Farkas ray in doubles"):
        found.save(tmp_path / "c.npz")


def test_a_separable_sample_is_not_shown_inseparable():
    """Rows 1e6 + {-1, 0, 1, 2}: separable by a threshold, though the hulls nearly meet."""
    x = 1e6 + np.array([-1.0, 0.0, 1.0, 2.0])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    assert inseparable([np.outer(x, x)], y, True, np.array([0.0, -1.0, 1.0, 0.0]), nonneg=True) is None


def test_large_conflicts_are_left_to_doubles():
    """400 samples in one point: shown in fractions it would take minutes."""
    y = np.tile([1.0, -1.0], 200)
    assert inseparable([np.ones((400, 400))], y, True, y, nonneg=True) is None
    assert inseparable([np.ones((4, 4))], y[:4], True, y[:4], nonneg=True) is not None


def test_a_feasible_point_far_away_is_no_conflict():
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(0), [x[0] - x[1] >= 1, x[0] - (1 + 1e-9) * x[1] <= 0.5])
    assert linear_conflict(ko.Structure(problem)) is None


# ----------------------------------------------------------------------- what nothing bounds


def test_weights_that_nothing_bounds_are_named():
    _, K, risk = weighted()
    with pytest.raises(ko.UnboundedError, match=rf"Nothing bounds mu: add trace\(K\) == {N}"):
        ko.solve(cp.Problem(cp.Minimize(risk - ko.trace(K))), "exact")


def test_a_value_that_is_not_attained_is_told():
    _, _, risk = weighted()
    with (
        pytest.warns(ko.errors.ConditionWarning, match=r"^Nothing bounds mu: add trace\(K\)"),
        pytest.warns(ko.ConvergenceWarning, match=r"Nothing bounds mu: add trace\(K\).*not attained"),
    ):
        solution = ko.solve(cp.Problem(cp.Minimize(risk)), "exact")
    assert len(solution.history) == 1  # no second solver searches for an optimum that there is not
