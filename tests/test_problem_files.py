"""Problems in files of other programs: SDPA's sparse format and MPS."""

from __future__ import annotations

import gzip

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko

SMALL = """"a comment
* another
2 = mDIM
2 = nBLOCK
(2, -2) = bLOCKsTRUCT
{1.0, 1.5}
0 1 1 2 -1.0
1 1 1 1 1.0
1 1 2 2 1.0
0 2 2 2 0.25
2 2 1 1 1.0
2 2 2 2 1e0
"""
MPS = """NAME small
ROWS
 N cost
 G c1
 E c2
 L c3
COLUMNS
 x cost 1 c1 1
 x c2 1 c3 1
 y cost 2 c1 1
RHS
 rhs c1 1 c2 0.25
 rhs c3 5
BOUNDS
 UP bnd y 3
ENDATA
"""


def written(tmp_path, text, name="small.dat-s"):
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.mark.parametrize("orders", ["(2, -2) = bLOCKsTRUCT", "2 -2", "{+2,-2}"])
def test_a_file_is_the_problem_that_it_states(tmp_path, orders):
    """minimise x1 + 1.5 x2 with [[x1, 1], [1, x1]] >> 0, x2 >= 0.25 and x2 >= 0."""
    problem = ko.read_sdpa(written(tmp_path, SMALL.replace("(2, -2) = bLOCKsTRUCT", orders)))
    assert [c.label for c in problem.constraints] == ["block 1", "block 2"]
    certificate = ko.solve(problem).certificate
    assert certificate.lower <= 1.375 <= certificate.upper <= 1.375 + 1e-5
    assert np.allclose(problem.variables()[0].value, [1, 0.25], atol=1e-5)
    x = problem.variables()[0]
    x.value = np.array([3.0, 5.0])
    block, diagonal = problem.constraints
    assert np.array_equal(block.args[0].value, [[3, 1], [1, 3]])
    assert np.array_equal(diagonal.expr.value, -np.array([5, 4.75]))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("0 1 1 2 -1.0", "0 1 2 1 -1.0", 7, "on or above the diagonal"),
        ("0 2 2 2", "0 2 1 2", 10, "on the diagonal of a diagonal block"),
        ("1 1 2 2", "1 3 2 2", 9, "blocks 1 to 2, got 3"),
        ("1 1 2 2", "3 1 2 2", 9, "matrices 0 to 2, got 3"),
        ("1 1 2 2", "1 1 2 3", 9, "columns 1 to 2, got 3"),
        ("1 1 2 2", "1 1 0 2", 9, "rows 1 to 2, got 0"),
        ("1 1 2 2", "1 1 1.5 2", 9, "rows 1 to 2, got 1.5"),
        ("-1.0", "1e999", 7, "finite doubles"),
        ("-1.0", "nan", 7, "finite doubles"),
        ("-1.0", "one", 7, "finite doubles"),
        ("1 1 2 2 1.0", "1 1 2 2", 9, "got '1 1 2 2'"),
        ("1 1 2 2 1.0", "1 1 1 1 2.0", 9, "each entry once"),
        ("(2, -2)", "(2)", 5, "the orders of its 2 blocks"),
        ("(2, -2) = bLOCKsTRUCT", "2 0", 5, "other than 0"),
        ("{1.0, 1.5}", "{1.0, 1.5, 2.0}", 6, "the 2 entries of c"),
        ("2 = mDIM", "0 = mDIM", 3, "a number of variables"),
        ("2 = nBLOCK", "2.5", 4, "a number of blocks"),
        ("0 2 2 2 0.25\n2 2 1 1 1.0\n2 2 2 2 1e0\n", "", 9, "none in block 2"),
        ("(2, -2) = bLOCKsTRUCT" + SMALL.split("bLOCKsTRUCT")[1], "", 5, "the end of the file"),
        (SMALL, "", 1, "the end of the file"),
    ],
)
def test_a_damaged_file_is_an_error_with_the_line(tmp_path, old, new, line, what):
    assert old in SMALL
    with pytest.raises(ko.InputError, match=rf"(?s){what}.*in line {line} of .*small.*Correct the line"):
        ko.read_sdpa(written(tmp_path, SMALL.replace(old, new, 1)))


def problems():
    rng = np.random.default_rng(0)
    x, X = cp.Variable(3, nonneg=True, name="x"), cp.Variable((3, 3), PSD=True, name="X")
    M = rng.normal(size=(3, 3))
    M = M @ M.T + np.eye(3)
    box = cp.Variable((2, 2), symmetric=True, bounds=[-2, 1])
    return {
        "linear": cp.Problem(cp.Minimize(x @ [1.0, 2.0, 3.0] + 4), [cp.sum(x) == 1, x[0] <= 0.1 / 3]),
        "trace": cp.Problem(cp.Minimize(cp.trace(M @ X)), [cp.trace(X) == 1, X[0, 1] >= 0.01]),
        "both": cp.Problem(cp.Maximize(-cp.sum(x) - cp.trace(X)), [cp.diag(x) + X >> M]),
        "bounds": cp.Problem(cp.Maximize(cp.sum(box)), [box << 0.5 * np.eye(2)]),
    }


@pytest.mark.parametrize("name", problems())
def test_a_written_problem_is_read_back_with_its_optimum(tmp_path, name):
    problem, file = problems()[name], tmp_path / "again.dat-s"
    ko.write_sdpa(problem, file)
    again = ko.read_sdpa(file)
    offset = 4.0 if name == "linear" else 0.0
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    assert sign * (again.solve() + offset) == pytest.approx(problem.solve(), abs=1e-5)
    text = file.read_text()
    ko.write_sdpa(again, file)
    assert [line for line in text.splitlines() if line[0] != '"'] == file.read_text().splitlines()


@pytest.mark.parametrize("name", ["linear", "trace"])
def test_an_equation_comes_back_as_one_with_the_certified_value_of_the_problem(tmp_path, name):
    """As two inequalities it would have no interior, and certificates no upper bound."""
    problem, file = problems()[name], tmp_path / "equation.dat-s"
    ko.write_sdpa(problem, file)
    again = ko.read_sdpa(file)
    (equation,) = (c for c in again.constraints if c.label.startswith("equations of"))
    assert type(equation).__name__ == "Equality" and equation.size == 1
    known, found = ko.solve(problem).certificate, ko.solve(again).certificate
    offset = 4.0 if name == "linear" else 0.0
    assert max(known.gap, found.gap) <= 1e-5
    assert found.lower + offset <= known.upper and known.lower <= found.upper + offset
    again.solve(solver=cp.CLARABEL)
    assert ko.certify(again).gap <= 1e-5
    again.variables()[0].value = None
    assert np.isfinite(ko.certify(again).upper)  # phase one finds a point inside


def test_exact_pairs_of_entries_are_equations_wherever_they_stand(tmp_path):
    """x1 = 2 from two entries of a block, x1 + x2 = 0 from two of both. Two entries 0 >= 0 are no pair."""
    entries = ["0 1 1 1 2", "1 1 1 1 1", "1 1 2 2 1", "2 1 2 2 1", "0 1 3 3 -2", "1 1 3 3 -1", "0 1 4 4 0"]
    entries += ["1 2 1 1 1", "2 2 1 1 1", "0 2 2 2 0", "1 2 3 3 -1", "2 2 3 3 -1"]
    text = "\n".join(["2", "2", "-4 -3", "1 1", *entries, ""])
    problem = ko.read_sdpa(written(tmp_path, text))
    sizes = [(c.label, type(c).__name__, c.size) for c in problem.constraints]
    assert sizes == [
        ("equations of block 1", "Equality", 2), ("block 1", "Inequality", 1), ("block 2", "Inequality", 2),
    ]  # fmt: skip
    assert problem.solve() == pytest.approx(0.0, abs=1e-6)
    assert np.allclose(problem.variables()[0].value, [2, -2], atol=1e-6)


def test_what_has_no_such_format_is_named(tmp_path):
    x = cp.Variable(2, name="x")
    file = tmp_path / "no.dat-s"
    grams = np.array([np.eye(2)])
    risk = ko.risk(ko.combine(cp.Variable(1, nonneg=True), grams), [1, -1], ko.hinge())
    for problem, what in (
        (cp.Problem(cp.Minimize(cp.norm(x))), "the objective"),
        (cp.Problem(cp.Minimize(x[0]), [(cp.norm(x) <= 1).set_label("ball")]), "ball"),
        (cp.Problem(cp.Minimize(x[0]), [cp.SOC(x[0], x)]), "SOC in constraint 0"),
        (cp.Problem(cp.Minimize(risk)), "the objective"),
    ):
        with pytest.raises(ko.InputError, match=rf"(?s){what} in write_sdpa"):
            ko.write_sdpa(problem, file)
    assert not file.exists()


@pytest.mark.parametrize("packed", [False, True])
def test_a_linear_programme_is_read_by_highs(tmp_path, packed):
    file = written(tmp_path, MPS, "small.mps")
    if packed:
        (tmp_path / "small.mps.gz").write_bytes(gzip.compress(file.read_bytes()))
        file = tmp_path / "small.mps.gz"
    problem = ko.read_mps(file)
    assert [c.label for c in problem.constraints] == ["equations", "lower", "upper"]
    certificate = ko.solve(problem).certificate
    assert certificate.lower <= 1.75 <= certificate.upper <= 1.75 + 1e-6
    assert np.allclose(problem.variables()[0].value, [0.25, 0.75])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nonsense", "cannot read"),
        (MPS.replace(" UP bnd", " BV bnd"), "integer"),
        ("NAME e\nROWS\nENDATA", "no var"),
    ],
)
def test_a_file_that_is_no_linear_programme_is_an_error(tmp_path, text, what):
    with pytest.raises(ko.InputError, match=what):
        ko.read_mps(written(tmp_path, text, "bad.mps"))
