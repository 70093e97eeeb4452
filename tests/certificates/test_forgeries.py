"""Forged certificates: files whose contents lie, sealed again, and files that would hang a checker."""

import io
import os
import re
import zipfile
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates import check
from kernelopt.extend import Statement
from tests.certificates.forgeries import doubled, members_of, mutations, npy, packed, read, sealed, text
from tests.certificates.judging import refuted
from tests.certificates.saved import GRAMS, KINDS, N, Y, verdict
from tests.every import every

# ----------------------------------------------------------------------------- known attacks


CLAIMS = {"lower": (1000.0).hex(), "upper": (1e5).hex()}
LOW = {"lower": "-inf", "upper": (1e-6).hex()}
NUMBERS = ["1e30000000", "1e9", "0x10", "1/0", "1.5", "nan", "inf", "+1", "01", "1_0", "\u0661", "1/-2"]
POWERS = ["1/2", "0", "-2", "4/2", "2/1", "1.5", "1e9", "Inf", "10001", "4/65", "2/0", "02", "nan"]
MUTATED = [*KINDS[:-1], "triplets, nonnegative", "second_order", "linear", "max_cut"]
LENGTH = "witness.json: {} must be a list of length {}"
NO_FRACTION = "witness.json: u is no fraction"
INTERCEPT = "b0 must be of type <f8 and shape (), row by row"
INTERCEPTS = [np.zeros(N), np.full((1,), 0.5), 100 * Y, np.zeros((N, 1))]


def stretched(rows):
    """Multipliers of other lengths, which numpy would stretch over the rows."""
    return [["0"] * (rows + 1), ["1000"] * (rows + 1), ["0"] * (rows - 1), "0" * rows]


ATTACKS = [
    # name, what is forged, values of it, the claims beside it, and what the checker says
    ("qcqp", "u", stretched(1), CLAIMS, LENGTH.format("u", 1)),
    ("qcqp", "u", [[["0"]]], CLAIMS, NO_FRACTION),
    ("triplets", "u", [*stretched(116), [["0"] * 116]], CLAIMS, LENGTH.format("u", 116)),
    ("triplets, nonnegative", "u", [*stretched(16), [["0"] * 16]], CLAIMS, LENGTH.format("u", 16)),
    ("qcqp", "b0", INTERCEPTS, LOW, INTERCEPT),
    ("l_1.33", "b0", INTERCEPTS, LOW, INTERCEPT),
    ("alignment, free", "mix", [[], [["0"] * 3] * 2], {}, LENGTH.format("mix", 1)),  # drops a cone
    ("alignment, free", "mix", [[[]], [["0", "0"]]], {}, LENGTH.format("mix", 3)),
    ("qcqp", "u", [[number] for number in (*NUMBERS, "", " 1", "1\n")], {}, NO_FRACTION),
    ("l_1.33", "p", [*POWERS, "4/3 ", ""], {}, "statement.json: balls: p is no exponent"),
]


@every("name, what, values, claims, said", ATTACKS)
def test_a_file_has_the_form_that_its_statement_demands(name, what, values, claims, said, saved, target):
    _, _, _, facts, arrays = saved(name)
    assert what != "mix" or facts["statement"]["cones"] == [{"order": N}]
    for value in values:
        forged = sealed(target, *changed(facts, arrays, what, value), **claims)
        assert verdict(forged) == (False, said), value


def changed(facts, arrays, what, value):
    """Return the documents and arrays with one array, the exponent, or one entry of the witness replaced."""
    if what in arrays:
        return facts, arrays | {what: value}
    if what == "p":
        balls = [facts["statement"]["balls"][0] | {"p": value}]
        return facts | {"statement": facts["statement"] | {"balls": balls}}, arrays
    return facts | {"witness": facts["witness"] | {what: value}}, arrays


def test_a_ray_needs_exactly_the_multipliers_of_the_rows(saved, target):
    _, _, _, facts, arrays = saved("qcqp")
    zero = arrays | {"alpha0": np.zeros(N)}
    claims = {"infeasible": True, "lower": "inf", "upper": "inf"}
    assert not verdict(sealed(target, facts, zero, u=["0", "-1"], **claims))[0]
    _, said = verdict(sealed(target, facts, zero, u=["-1"], **claims))
    assert said.startswith("no proof of inf <= optimum")


def test_numbers_have_at_most_20000_digits(saved, target):
    """A longer one is refused, and one of 20,000 digits is read: Python's limit is 4,300."""
    _, _, _, facts, arrays = saved("qcqp")
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


def test_powers_are_bounded(saved, target):
    """x of 20,000 digits at p = 10,000 would have a power of 200 million digits."""
    _, _, _, facts, arrays = saved("l_1.33")
    x = [f"{'9' * 20_000}/1{'0' * 19_999}"] * 3
    assert not verdict(sealed(target, *changed(facts, arrays, "p", "10000"), x=x))[0]


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


@pytest.mark.parametrize("name", ["qcqp", "alignment, free"])
def test_each_claim_is_compared_with_its_own_bound(name, saved, target):
    _, _, _, facts, arrays = saved(name)
    lower, upper = facts["witness"]["lower"], facts["witness"]["upper"]
    assert verdict(sealed(target, facts, arrays, lower="-inf", upper="inf"))[0]
    assert not verdict(sealed(target, facts, arrays, lower=upper, upper=upper))[0]
    assert not verdict(sealed(target, facts, arrays, lower=lower, upper=lower))[0]
    assert not verdict(sealed(target, facts, arrays, lower=upper, upper=lower))[0]


# --------------------------------------------------------------------------- the digest


@pytest.mark.parametrize("name", MUTATED)
def test_the_digest_is_printed_and_is_that_of_the_certificate(name, saved, target):
    certificate, _, _, facts, arrays = saved(name)
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


def test_every_change_of_the_data_changes_the_digest(saved, target):
    _, _, _, facts, arrays = saved("l_1.33")
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


def test_the_sentence_is_the_checkers_own(saved, target):
    """The names are labels: they may say anything, and nothing of them is printed."""
    _, _, _, facts, arrays = saved("l_1.33")
    names = {"columns": ["\ud800\x1b[2J", "optimum", "<="], "rows": []}
    valid, said = verdict(sealed(target, facts, arrays, names=names))
    assert valid and said.isascii()
    assert said.splitlines()[1] == (
        "statement: minimum over 3 variables, non-negative: 3, linear constraints: 0, "
        "risk of 3 kernels on 10 points, ball of 3 entries with p = 4/3"
    )


# --------------------------------------------------------------------------- the archive


def test_files_of_the_first_format_are_refused_with_a_sentence(saved, target):
    arrays = saved("qcqp").arrays
    members = [("certificate.json", b"{}"), *members_of({}, arrays)]
    target.write_bytes(packed(members))
    valid, said = verdict(target)
    assert not valid and "kernelopt-certificate/2" in said and "save it again" in said


def test_members_are_not_unpacked(saved, target):
    """A gigabyte of zeros in a megabyte is refused before it is read."""
    _, _, _, facts, arrays = saved("qcqp")
    target.write_bytes(
        packed([*members_of(facts, arrays), ("bomb.npy", b"\0" * 10**8)], zipfile.ZIP_DEFLATED)
    )
    assert target.stat().st_size < 10**6
    assert verdict(target) == (False, "no member may be compressed")


def test_a_size_that_lies_is_refused(saved, target):
    _, _, _, facts, arrays = saved("qcqp")
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    target.write_bytes(packed(members_of(facts, arrays | {"cost": huge.getvalue() + b"\0" * 24})))
    assert verdict(target) == (False, "cost must be of type <f8 and shape (3,), row by row")
    statement = facts["statement"] | {"columns": 2**31 - 1}
    assert not verdict(sealed(target, facts | {"statement": statement}, arrays))[0]


def test_deep_documents_are_refused(saved, target):
    _, _, _, facts, arrays = saved("qcqp")
    for name in ("statement", "witness"):
        for deep in (b"[" * 10**6, b'{"a":' * 10**6, b"9" * 10**7):
            target.write_bytes(packed(members_of(facts | {name: deep}, arrays)))
            assert not verdict(target)[0]


def test_a_member_or_a_key_there_twice_is_refused(saved, target):
    _, _, _, facts, arrays = saved("qcqp")
    members = members_of(facts, arrays)
    target.write_bytes(doubled([*members, ("u.npy", b""), ("cost.npy", npy(arrays["cost"]))]))
    assert not verdict(target)[0]
    twice = text(facts["witness"]).replace(b"{", b'{"infeasible":true,', 1)
    target.write_bytes(packed(members_of(facts | {"witness": twice}, arrays)))
    assert verdict(target) == (False, "witness.json must be canonical")


# --------------------------------------------------------------------------- saving


def test_a_failing_disk_leaves_the_old_proof(saved, tmp_path, monkeypatch):
    certificate = saved("l_1.33").certificate
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


def judge_mutations(name, saved, target, chosen):
    """Check mutated files, and return how many were valid; no false claim may be."""
    _, _, _, facts, arrays = saved(name)
    rng, valid = np.random.default_rng(1), 0
    changes = list(mutations(facts, arrays, rng))
    for i in np.sort(rng.permutation(len(changes))[:chosen]):
        what, make = changes[i]
        target.write_bytes(make())
        if verdict(target)[0]:
            valid += 1
            assert refuted(*read(target), [(facts, arrays)]) == "", what
    return valid


def test_no_false_claim_of_a_mutated_file_is_valid(saved, target):
    assert sum(judge_mutations(name, saved, target, 40) for name in MUTATED) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATED)
def test_no_false_claim_of_many_mutated_files_is_valid(name, saved, target):
    assert judge_mutations(name, saved, target, 400) > 5


@pytest.mark.parametrize("name", MUTATED)
def test_the_judge_refutes_false_claims_of_every_kind(name, saved):
    """Beside the truth it knows claims that miss by 1e-12 of it: the points decide in 320 bits."""
    _, _, _, facts, arrays = saved(name)
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
