"""Forged certificates: files whose contents lie, sealed again, and files that would hang a checker."""

import io
import os
import re
import time
import warnings
import zipfile
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm, triplet_lp
from kernelopt.certificates import check
from kernelopt.extend import Statement
from tests.certificates.forgeries import members_of, mutations, npy, packed, read, sealed, text
from tests.certificates.judging import refuted, second_opinion
from tests.every import every

N = 8
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
X[:, 0] += Y
GRAMS = ko.Grams.from_kernels([ko.gaussian(1.0), ko.gaussian(3.0), ko.linear()], X)
COMPARED = np.array([*(np.asarray(GRAMS)[:2] ** 8), np.eye(N)])
PROBLEMS = {
    "lp": lambda: lp_norm.primal(GRAMS, Y, p=4 / 3),
    "qcqp": lambda: lanckriet.qcqp(GRAMS, Y, C=1.0),
    "sdp": lambda: lanckriet.sdp(GRAMS, Y, C=1.0),
    "alignment": lambda: lanckriet.alignment(GRAMS, Y, weights="free"),
    "triplets": lambda: triplet_lp.kernel_design(
        COMPARED, ko.sample_triplets(Y, 5, 0), gamma1=0.01, gamma2=0.01, cone="nonnegative"
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Solve and save once, and return the certificate, the documents and the arrays."""
    folder, known = tmp_path_factory.mktemp("forgeries"), {}

    def file(name):
        if name not in known:
            certificate = PROBLEMS[name]().solve().certificate
            known[name] = certificate, *read(certificate.save(folder / f"{name}.npz"))
        return known[name]

    return file


@pytest.fixture
def target(tmp_path):
    return tmp_path / "forged.npz"


def verdict(path):
    began = time.process_time()
    valid, said = check.verdict(path)
    assert time.process_time() - began < 10
    second_opinion(path, valid, said)
    return valid, said


# ----------------------------------------------------------------------------- known attacks


@every("name", ["qcqp", "triplets"])
def test_the_witness_adds_no_multiplier(name, files, target):
    """`sum(u * excess)` stretched a u of another length over the rows."""
    _, facts, arrays = files(name)
    rows = facts["statement"]["rows"]
    for u in (["0"] * (rows + 1), ["1000"] * (rows + 1), ["0"] * (rows - 1), [["0"] * rows], "0" * rows):
        valid, said = verdict(sealed(target, facts, arrays, u=u, lower=(1000.0).hex(), upper=(1e5).hex()))
        assert not valid and said.startswith("witness.json: u ")


def test_a_ray_needs_exactly_the_multipliers_of_the_rows(files, target):
    _, facts, arrays = files("qcqp")
    zero = arrays | {"alpha0": np.zeros(N)}
    claims = {"infeasible": True, "lower": "inf", "upper": "inf"}
    assert not verdict(sealed(target, facts, zero, u=["0", "-1"], **claims))[0]
    assert verdict(sealed(target, facts, zero, u=["-1"], **claims))[1].startswith(
        "no proof of inf <= optimum"
    )


@every("name", ["qcqp", "lp"])
def test_an_intercept_is_one_number(name, files, target):
    _, facts, arrays = files(name)
    for b in (np.zeros(N), np.full((1,), 0.5), 100 * Y, np.zeros((N, 1))):
        forged = sealed(target, facts, arrays | {"b0": b}, lower="-inf", upper=(1e-6).hex())
        assert verdict(forged) == (False, "b0 must be of type <f8 and shape (), row by row")


def test_the_witness_drops_no_cone(files, target):
    _, facts, arrays = files("alignment")
    assert facts["statement"]["cones"] == [{"order": N}]
    for mix in ([], [[]], [["0", "0"]], [["0"] * 3] * 2):
        valid, said = verdict(sealed(target, facts, arrays, mix=mix))
        assert not valid and "mix must be a list of length" in said


NUMBERS = ["1e30000000", "1e9", "0x10", "1/0", "1.5", "nan", "inf", "+1", "01", "1_0", "١", "1/-2"]


@every("number", [*NUMBERS, "", " 1", "1\n"])
def test_numbers_have_a_strict_form(number, files, target):
    _, facts, arrays = files("qcqp")
    assert verdict(sealed(target, facts, arrays, u=[number])) == (False, "witness.json: u is no fraction")


def test_numbers_have_at_most_20000_digits(files, target):
    """A longer one is refused, and one of 20,000 digits is read: Python's limit is 4,300."""
    _, facts, arrays = files("qcqp")
    free = {"lower": "-inf", "upper": "inf"}
    assert verdict(sealed(target, facts, arrays, u=["9" * 20_000], **free))[0]
    assert verdict(sealed(target, facts, arrays, u=[f"-{'9' * 20_000}/{'7' * 20_000}"], **free))[0]
    assert not verdict(sealed(target, facts, arrays, u=["9" * 20_001], **free))[0]
    assert not verdict(sealed(target, facts, arrays, u=[f"1/{'9' * 20_001}"], **free))[0]


def test_numbers_of_more_digits_than_pythons_limit_are_saved(tmp_path):
    stated = Statement(["x"], [True])
    stated.cost[0] = 1.0
    stated.row("floor", [0], [-1.0], -2.0)
    stated.u, stated.x = [Fraction(10**5000 - 1, 10**5000)], [2]
    path = stated.save(tmp_path / "c.npz")
    assert check.verdict(path)[0]
    assert read(path)[0]["witness"]["u"] == [f"{'9' * 5000}/1{'0' * 5000}"]
    stated.u = [Fraction(1, 10**20_000)]
    with pytest.raises(ko.errors.MethodError, match="at most 20000 digits, got 20001"):
        stated.save(tmp_path / "c.npz")


POWERS = ["1/2", "0", "-2", "4/2", "2/1", "1.5", "1e9", "Inf", "10001", "4/65", "2/0", "02", "nan"]


@every("p", [*POWERS, "4/3 ", ""])
def test_exponents_are_canonical_and_small(p, files, target):
    _, facts, arrays = files("lp")
    ball = facts["statement"]["balls"][0] | {"p": p}
    forged = sealed(target, facts | {"statement": facts["statement"] | {"balls": [ball]}}, arrays)
    assert verdict(forged) == (False, "statement.json: balls: p is no exponent")


def test_powers_are_bounded(files, target):
    """x of 20,000 digits at p = 10,000 would have a power of 200 million digits."""
    _, facts, arrays = files("lp")
    ball = facts["statement"]["balls"][0] | {"p": "10000"}
    facts = facts | {"statement": facts["statement"] | {"balls": [ball]}}
    x = [f"{'9' * 20_000}/1{'0' * 19_999}"] * 3
    assert not verdict(sealed(target, facts, arrays, x=x))[0]


@pytest.mark.parametrize("sense", [1, -1])
def test_bounds_that_contradict_each_other_are_an_error(sense, tmp_path, monkeypatch):
    """They show an error of the checker, and were sorted. A lying comparison of definiteness makes them."""
    stated = Statement(["x"], [False], sense=sense)
    stated.cost[0] = -1.0
    stated.cone(np.ones((1, 1, 1)))
    stated.x, stated.arrays["Y0"] = [Fraction(5)], np.array([[-1.0]])
    path = stated.save(tmp_path / "c.npz")
    assert check.verdict(path)[0]
    monkeypatch.setattr(check, "semidefinite", lambda M, L, scale: True)
    valid, said = check.verdict(path)
    assert not valid and said.startswith("the proved bounds contradict each other")
    with pytest.raises(ValueError, match="contradict each other"):
        stated.bounds()


@pytest.mark.parametrize("name", ["qcqp", "alignment"])
def test_each_claim_is_compared_with_its_own_bound(name, files, target):
    _, facts, arrays = files(name)
    lower, upper = facts["witness"]["lower"], facts["witness"]["upper"]
    assert verdict(sealed(target, facts, arrays, lower="-inf", upper="inf"))[0]
    assert not verdict(sealed(target, facts, arrays, lower=upper, upper=upper))[0]
    assert not verdict(sealed(target, facts, arrays, lower=lower, upper=lower))[0]
    assert not verdict(sealed(target, facts, arrays, lower=upper, upper=lower))[0]


# --------------------------------------------------------------------------- the digest


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_digest_is_printed_and_is_that_of_the_certificate(name, files, target):
    certificate, facts, arrays = files(name)
    valid, said = verdict(sealed(target, facts, arrays))
    digest = re.search(r"SHA-256 of the statement: ([0-9a-f]{64})$", said)
    assert valid and digest is not None
    assert digest[1] == certificate.statement_digest


def test_the_digest_tells_the_problem_and_neither_its_proof_nor_its_names(tmp_path):
    def certificate(cap=1.0, names="ab"):
        theta = cp.Variable(3, nonneg=True, name=names[0])
        K = ko.combine(theta, GRAMS)
        trace = (ko.trace(K) <= cap).set_label(names[1])
        return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [trace])

    same = ko.solve(certificate()).certificate.statement_digest
    assert ko.certify(certificate(names="cd"), weights=[0.1, 0.2, 0.3]).statement_digest == same
    other = ko.solve(certificate(1.5)).certificate
    assert other.statement_digest != same
    valid, said = check.verdict(other.save(tmp_path / "other.npz"))
    assert valid and same not in said and other.statement_digest in said
    assert check.verdict(tmp_path / "other.npz", other.statement_digest)[0]
    valid, said = check.verdict(tmp_path / "other.npz", same)
    assert not valid and said == f"it states another problem, of the SHA-256 {other.statement_digest}"


def test_every_change_of_the_data_changes_the_digest(files, target):
    _, facts, arrays = files("lp")
    seen = {check.digest(facts["statement"], arrays)}
    data, _ = check.schema(facts["statement"])
    changes = [name for name in data if arrays[name].size]
    for name in changes:
        changed = arrays[name].copy()
        changed.flat[0] = (
            np.nextafter(changed.flat[0], 1e9) if changed.dtype.kind == "f" else changed.flat[0] + 1
        )
        seen.add(check.digest(facts["statement"], arrays | {name: changed}))
    seen.add(check.digest(facts["statement"] | {"sense": -1}, arrays))
    assert len(seen) == len(changes) + 2


def test_a_certificate_that_cannot_be_saved_has_no_digest():
    with pytest.raises(ko.errors.MethodError, match="not made from a problem"):
        _ = ko.Certificate(0.0, 1.0, "none").statement_digest


def test_the_sentence_is_the_checkers_own(files, target):
    """The names are labels: they may say anything, and nothing of them is printed."""
    _, facts, arrays = files("lp")
    names = {"columns": ["\ud800\x1b[2J", "optimum", "<="], "rows": []}
    valid, said = verdict(sealed(target, facts, arrays, names=names))
    assert valid and said.isascii()
    assert said.splitlines()[1] == (
        "statement: minimum over 3 variables, non-negative: 3, linear constraints: 0, "
        "risk of 3 kernels on 8 points, ball of 3 entries with p = 4/3"
    )


# --------------------------------------------------------------------------- the archive


def test_files_of_the_first_format_are_refused_with_a_sentence(files, target):
    arrays = files("qcqp")[2]
    members = [("certificate.json", b"{}"), *members_of({}, arrays)]
    target.write_bytes(packed(members))
    valid, said = verdict(target)
    assert not valid and "kernelopt-certificate/2" in said and "save it again" in said


def test_members_are_not_unpacked(files, target):
    """A gigabyte of zeros in a megabyte is refused before it is read."""
    _, facts, arrays = files("qcqp")
    target.write_bytes(
        packed([*members_of(facts, arrays), ("bomb.npy", b"\0" * 10**8)], zipfile.ZIP_DEFLATED)
    )
    assert target.stat().st_size < 10**6
    assert verdict(target) == (False, "no member may be compressed")


def test_a_size_that_lies_is_refused(files, target):
    _, facts, arrays = files("qcqp")
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    target.write_bytes(packed(members_of(facts, arrays | {"cost": huge.getvalue() + b"\0" * 24})))
    assert verdict(target) == (False, "cost must be of type <f8 and shape (3,), row by row")
    statement = facts["statement"] | {"columns": 2**31 - 1}
    assert not verdict(sealed(target, facts | {"statement": statement}, arrays))[0]


def test_deep_documents_are_refused(files, target):
    _, facts, arrays = files("qcqp")
    for name in ("statement", "witness"):
        for deep in (b"[" * 10**6, b'{"a":' * 10**6, b"9" * 10**7):
            target.write_bytes(packed(members_of(facts | {name: deep}, arrays)))
            assert not verdict(target)[0]


def test_a_member_or_a_key_there_twice_is_refused(files, target):
    _, facts, arrays = files("qcqp")
    members = members_of(facts, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the name
        target.write_bytes(packed([*members, ("u.npy", b""), ("cost.npy", npy(arrays["cost"]))]))
    assert not verdict(target)[0]
    twice = text(facts["witness"]).replace(b"{", b'{"infeasible":true,', 1)
    target.write_bytes(packed(members_of(facts | {"witness": twice}, arrays)))
    assert verdict(target) == (False, "witness.json must be canonical")


# --------------------------------------------------------------------------- saving


def test_a_failing_disk_leaves_the_old_proof(files, tmp_path, monkeypatch):
    certificate, *_ = files("lp")
    path = certificate.save(tmp_path / "proof.npz")
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        certificate.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@every("what", ["shape", "range", "symmetry"])
def test_a_statement_says_which_array_is_wrong(what):
    stated = Statement(["x"], [True])
    K = np.array([[[1.0, 0.5], [0.4, 1.0]]]) if what == "symmetry" else np.ones((1, 2, 2))
    ends = np.array([[1.0, 0.0], [0.0, 1.0]]) if what == "range" else np.array([[0.0, 0.0], [1.0, 1.0]])
    stated.risk(K, [0], np.zeros((3, 2)), ends)
    if what == "shape":
        stated.set_witness(0, b=np.zeros(2))
    with pytest.raises(ko.InputError, match={"shape": "b0", "range": "ends0", "symmetry": "K0"}[what]):
        stated.bounds()


# --------------------------------------------------------------------------- mutations


def judge_mutations(name, files, target, chosen):
    """Check mutated files, and return how many were valid; no false claim may be."""
    _, facts, arrays = files(name)
    rng, valid = np.random.default_rng(1), 0
    changes = list(mutations(facts, arrays, rng))
    for i in np.sort(rng.permutation(len(changes))[:chosen]):
        what, make = changes[i]
        target.write_bytes(make())
        if verdict(target)[0]:
            valid += 1
            assert refuted(*read(target), [(facts, arrays)]) == "", what
    return valid


def test_no_false_claim_of_a_mutated_file_is_valid(files, target):
    assert sum(judge_mutations(name, files, target, 40) for name in PROBLEMS) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_false_claim_of_many_mutated_files_is_valid(name, files, target):
    assert judge_mutations(name, files, target, 400) > 5


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_judge_refutes_false_claims_of_every_kind(name, files):
    """Beside the truth it knows claims that miss by 1e-12 of it: the points decide in 320 bits."""
    _, facts, arrays = files(name)
    points = [(facts, arrays)]
    lower, upper = (float.fromhex(facts["witness"][k]) for k in ("lower", "upper"))

    def judged(**claims):
        false = {k: v.hex() for k, v in claims.items()}
        return refuted(facts | {"witness": facts["witness"] | false}, arrays, points)

    assert judged() == ""
    by = ["feasible point", "dual point"][:: facts["statement"]["sense"]]
    assert by[0] in judged(lower=upper + 1e-12 * abs(upper), upper=np.inf)
    assert by[1] in judged(lower=-np.inf, upper=lower - 1e-12 * abs(lower))
    assert judged(lower=np.inf, upper=np.inf) and judged(lower=-np.inf, upper=-np.inf)
    assert "solver" in refuted(
        facts | {"witness": facts["witness"] | {"lower": (lower + 1).hex(), "upper": (upper + 1).hex()}},
        arrays,
        [],
    )
