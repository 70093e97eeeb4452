"""The kernel report against definitions, closed forms and what it says of faults."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import KernelCenterer

import kernelopt as ko
from kernelopt.errors import LabelError, NotFiniteError, ShapeError
from kernelopt.estimators import KernelStack, MKLClassifier
from kernelopt.grams import caching
from kernelopt.health import measures
from kernelopt.validation import smallest_relative_eigenvalue
from tests.every import every
from tests.figures import axes
from tests.problems import labels, points

N = 12
X, Y = points(N), labels(N)
GRAMS = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0), ko.gaussian(1.01), ko.polynomial(2)], X)


def aligned(K, L):
    """The centred alignment by scikit-learn's centring."""
    A, B = (KernelCenterer().fit_transform(np.array(M, dtype=float)) for M in (K, L))
    return (A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum())


def test_numbers_are_their_definitions():
    report = ko.kernel_report(GRAMS, Y)
    for i, K in enumerate(GRAMS):
        assert report.asymmetry[i] == 0
        assert report.smallest[i] == pytest.approx(smallest_relative_eigenvalue(K), abs=1e-14)
        lam = np.linalg.eigvalsh(K)
        assert report.effective_rank[i] == pytest.approx(lam.sum() ** 2 / (lam**2).sum())
        assert 1 <= report.effective_rank[i] <= np.linalg.matrix_rank(K)
        assert report.trace[i] == pytest.approx(np.trace(K))
        assert report.alignment[i] == pytest.approx(aligned(K, np.outer(Y, Y)))
        for j, L in enumerate(GRAMS):
            assert report.alignments[i, j] == pytest.approx(aligned(K, L))
    np.testing.assert_allclose(
        np.array(GRAMS.normalize("multiplicative")) * report.scale[:, None, None], np.array(GRAMS)
    )
    assert not report.estimated and report.names == GRAMS.names
    assert report.duplicates() == ((1, 2),) and report.duplicates(0.9999999) == ()


def test_an_array_has_the_report_of_its_symmetric_part():
    skew = np.triu(np.random.default_rng(0).normal(size=(N, N)), 1)
    K = np.array(GRAMS)
    one, two = ko.kernel_report(K, Y), ko.kernel_report(K + (skew - skew.T), Y)
    for name in ("smallest", "effective_rank", "scale", "trace", "alignment", "alignments"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), atol=1e-12)
        np.testing.assert_allclose(getattr(ko.kernel_report(GRAMS, Y), name), getattr(one, name), atol=1e-12)
    A = K + (skew - skew.T)
    np.testing.assert_allclose(two.asymmetry, [np.abs(M - M.T).max() / np.abs(M).max() for M in A])
    assert all("asymmetric" in two.findings(i) for i in range(4)) and not one.findings(0)


def test_closed_forms():
    # the centred identity is H, of norm sqrt(N - 1), and <H, yy'> = N for balanced y: A = 1 / sqrt(N - 1)
    y = np.tile([1.0, -1.0], N // 2)
    L = np.outer(y, y)
    report = ko.kernel_report(np.stack([np.eye(N), L, np.ones((N, N)), 2 + 3 * L]), y)
    np.testing.assert_allclose(report.effective_rank[:3], [N, 1, 1])
    np.testing.assert_allclose(report.scale[:3], [1 - 1 / N, 1, 0], atol=1e-15)
    np.testing.assert_allclose(report.alignment, [1 / np.sqrt(N - 1), 1, np.nan, 1])
    assert [report.findings(i) for i in range(4)] == [
        ("almost diagonal",), (), ("constant",), ("duplicate of 1",)
    ]  # fmt: skip


def test_the_effective_rank_lies_between_one_and_the_rank_also_of_indefinite_matrices(monkeypatch):
    flipped = np.eye(N)[::-1]  # eigenvalues of absolute value one, and no diagonal
    stack = np.stack([-np.eye(N), np.diag([1.0, -1.0] + [0.0] * (N - 2)), flipped, np.zeros((N, N))])
    report = ko.kernel_report(np.concatenate([stack, [np.diag([3.0, -1.0] + [0.0] * (N - 2))]]))
    np.testing.assert_allclose(report.effective_rank, [N, 2, N, 0, (3 + 1) ** 2 / (9 + 1)], rtol=1e-12)
    assert "almost diagonal" not in report.findings(2)  # its points are similar to others, not to themselves
    A = np.random.default_rng(0).normal(size=(6, N, N))
    singular = np.linalg.svd((A + A.transpose(0, 2, 1)) / 2, compute_uv=False)
    nuclear, frobenius = singular.sum(axis=1), np.sqrt((singular**2).sum(axis=1))
    np.testing.assert_allclose(ko.kernel_report(A).effective_rank, (nuclear / frobenius) ** 2, rtol=1e-12)
    monkeypatch.setattr(measures, "EXACT_POINTS", N - 1)  # no sum of absolute eigenvalues from now on
    ranks = ko.kernel_report(np.concatenate([stack, np.array(GRAMS)])).effective_rank
    assert np.isnan(ranks[:3]).all() and ranks[3] == 0
    np.testing.assert_allclose(
        ranks[4:], [np.trace(K) ** 2 / np.linalg.norm(K) ** 2 for K in GRAMS], rtol=1e-12
    )


def test_faults_are_reported_and_raise_nothing():
    K = np.array(GRAMS)
    K[0, 3, 4], K[0, 4, 3], K[0, 7, 7] = np.nan, np.inf, -np.inf
    K[1], K[3] = -K[1], 0
    report = ko.kernel_report(K, Y)
    assert report.missing == (3, 0, 0, 0) and report.first_missing[0] == (3, 4)
    assert report.findings(0) == ("3 entries not finite, first at (3, 4)",)
    assert report.findings(1) == ("indefinite",) and report.smallest[1] == -1
    assert report.findings(3) == ("constant",) and report.smallest[3] == report.effective_rank[3] == 0
    assert np.isnan(report.alignments[0]).all() and np.isnan(report.trace[0])
    whole = ko.kernel_report(GRAMS, Y)
    np.testing.assert_allclose(report.alignments[1, 2], -whole.alignments[1, 2])
    assert report.alignments[2, 2] == 1 and report.alignment[2] == pytest.approx(whole.alignment[2])
    with np.errstate(all="raise"):
        assert ko.kernel_report(np.full((1, 2, 2), np.inf)).missing == (4,)


def test_units_and_pieces_do_not_matter(monkeypatch):
    whole = ko.kernel_report(GRAMS, Y)
    for factor in (1e-200, 1e200):
        scaled = ko.kernel_report(factor * np.array(GRAMS), factor * Y)
        np.testing.assert_allclose(scaled.alignments, whole.alignments, rtol=1e-12)
        np.testing.assert_allclose(scaled.alignment, whole.alignment, rtol=1e-12)
        np.testing.assert_allclose(scaled.scale, factor * whole.scale, rtol=1e-12)
        np.testing.assert_allclose(scaled.effective_rank, whole.effective_rank, rtol=1e-12)
    monkeypatch.setattr(caching, "CHUNK_BYTES", 8 * 4 * N * 5)  # five rows of all matrices at a time
    for grams in (GRAMS, np.array(GRAMS)):
        np.testing.assert_allclose(ko.kernel_report(grams, Y).alignments, whole.alignments, rtol=1e-12)


def test_classes_are_aligned_with_the_kernel_that_is_one_inside_of_them():
    words = np.array(["red", "green", "blue", "red"] * 3)
    same = words[:, None] == words
    report = ko.kernel_report(GRAMS, words)
    np.testing.assert_allclose(report.alignment, [aligned(K, same) for K in GRAMS])
    two = ko.kernel_report(GRAMS, np.where(Y > 0, "yes", "no"))
    np.testing.assert_allclose(two.alignment, ko.kernel_report(GRAMS, Y).alignment)
    np.testing.assert_allclose(ko.kernel_report(GRAMS, Y > 0).alignment, two.alignment)


def test_the_target_may_have_several_columns_and_only_the_first_points():
    T = np.random.default_rng(0).normal(size=(7, 2))
    report = ko.kernel_report(GRAMS, T)
    np.testing.assert_allclose(report.alignment, [aligned(K[:7, :7], T @ T.T) for K in GRAMS])
    said = "The alignment is that with the target of the first 7 points."
    assert str(report).endswith(said) and said in report._repr_html_()
    assert "The alignment" not in str(ko.kernel_report(GRAMS, Y)) + str(ko.kernel_report(GRAMS))


def test_many_points_are_measured_by_estimates(monkeypatch):
    exact = ko.kernel_report(GRAMS)
    monkeypatch.setattr(measures, "EXACT_POINTS", N - 1)
    report = ko.kernel_report(GRAMS)
    assert report.estimated and str(report).endswith("by the method of Lanczos.")
    assert "Lanczos" in report._repr_html_()
    np.testing.assert_allclose(report.smallest, exact.smallest, atol=1e-12)  # N steps find them all
    assert report.alignment is None


@every(
    "y, message",
    [
        (np.ones(N), "y must take at least two values"),
        (["a"] * N, "y must take at least two values"),
        (
            np.arange(N + 1.0),
            r"y must have one entry for each of the first n <= 12 .*got shape \(13,\)",
        ),
        ([], "y must have one entry"),
        (["a", None] * (N // 2), "y must hold labels, got None at index 1"),
    ],
)
def test_a_wrong_target_is_refused(y, message):
    with pytest.raises((LabelError, NotFiniteError, ShapeError), match=message):
        ko.kernel_report(GRAMS, y)


def test_one_matrix_is_a_stack_of_one_and_kernels_are_to_be_evaluated_first():
    K = np.diag([1.0, 2.0, 3.0])
    one, stacked = ko.kernel_report(K), ko.kernel_report(K[None])
    assert one.names == stacked.names == ("K[0]",) and str(one) == str(stacked)
    assert ko.kernel_report([[2.0]]).findings(0) == ("constant",)
    evaluated = r"grams must be matrices of shape \(m, N, N\), got .*Grams.from_kernels\(kernels, X\)"
    for wrong, message in (
        (ko.linear(), evaluated),
        ([ko.linear(), ko.gaussian(1.0)], evaluated),
        ("linear()", evaluated + ".*parse_kernel"),
        (MKLClassifier(), evaluated),
        (None, evaluated),
        (X, r"got \(12, 3\). Stack .*Grams.from_kernels\(kernels, X\)"),
        (KernelStack(GRAMS), "Pass its .grams"),
        ({"a": np.eye(2)}, "Grams.from_array"),
        ([np.eye(2), np.eye(3)], r"same N points, got shapes \[\(2, 2\), \(3, 3\)\]"),
        ([], "at least one kernel on one point"),
        (np.empty((0, 0)), "at least one kernel on one point"),
    ):
        for call in (ko.kernel_report, lambda grams: ko.repair(grams, "clip")):
            with pytest.raises(ShapeError, match=message):
                call(wrong)


def test_the_table_is_text_and_html():
    report = ko.kernel_report(ko.Grams.from_array(np.array(GRAMS), ["lin", "<b>", "c" * 60, "poly"]), Y)
    lines = str(report).splitlines()
    assert lines[0].split("  ")[-1].strip() == "alignment" and len(lines) == 5
    assert "duplicate of 1" in lines[3] and "…" in lines[3]
    html = report._repr_html_()
    assert html.startswith("<table>") and "&lt;b&gt;" in html and "<b>" not in html
    assert repr(report) == "<KernelReport: 4 kernels on 12 points, 1 with findings>"


def test_the_figure_shows_the_alignments():
    K = np.array(GRAMS)
    K[0, 0, 0] = np.nan
    for report in (ko.kernel_report(GRAMS, Y), ko.kernel_report(GRAMS), ko.kernel_report(K, Y)):
        ax = axes()
        assert report.plot(ax=ax) is ax
        drawn = ax.images[0].get_array()
        np.testing.assert_allclose(drawn[:4, :4].filled(np.nan), report.alignments)
        assert (len(drawn) == 5) == (report.alignment is not None)
        assert len(ax.texts) == len(drawn) ** 2
        assert ax.get_yticklabels()[1].get_text() == f"1  {report.names[1]}"
    many = ko.kernel_report(np.stack([np.eye(3) + i for i in range(40)]))
    ax = many.plot(ax=axes())
    assert not ax.texts and len(ax.get_yticks()) <= 40
