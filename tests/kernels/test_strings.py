"""Kernels of strings against direct counting, in stacks, and their error messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz

import kernelopt as ko
from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.testing import check_kernel
from tests.every import every
from tests.grams.stacks import check

WORDS = ["GATTACA", "TATATAT", "AAAAAAA", "gattaca", "GATTACA", "CATGCAT"]
KERNELS = [ko.spectrum(2), ko.spectrum(5), ko.weighted_degree(1), ko.weighted_degree(3, 2)]


def occurrences(u, x):
    """The number of places at which u stands in x, overlaps included."""
    return sum(x.startswith(u, i) for i in range(len(x)))


def spectrum_by_hand(k, x, z):
    return sum(occurrences(u, x) * occurrences(u, z) for u in {x[i : i + k] for i in range(len(x) - k + 1)})


def weighted_degree_by_hand(d, shift, x, z):
    """The sum as it stands in Rätsch, Sonnenburg and Schölkopf (2005), with gamma = 1 and S(l) = shift."""
    total, L = 0.0, len(x)
    for k in range(1, d + 1):
        for l in range(L - k + 1):  # noqa: E741
            for s in range(shift + 1):
                if l + s + k <= L:
                    mu = (x[l + s : l + s + k] == z[l : l + k]) + (x[l : l + k] == z[l + s : l + s + k])
                    total += 2 * (d - k + 1) / (d * (d + 1)) / (2 * (s + 1)) * mu
    return total


def table(function, X, Z):
    return np.array([[function(x, z) for z in Z] for x in X], dtype=float)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    X=st.lists(st.text("ab€", min_size=1, max_size=9), min_size=1, max_size=4),
    Z=st.lists(st.text("ab\U0001f600", min_size=1, max_size=9), min_size=1, max_size=4),
    k=st.integers(1, 4),
)
def test_spectrum_counts_substrings(X, Z, k):
    kernel = ko.spectrum(k)
    assert (kernel(X, Z) == table(lambda x, z: spectrum_by_hand(k, x, z), X, Z)).all()
    assert (kernel(X) == table(lambda x, z: spectrum_by_hand(k, x, z), X, X)).all()
    assert (kernel.gram(X) == kernel(X)).all()
    assert (kernel.diagonal(X) == np.diag(kernel(X))).all()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data(), L=st.integers(1, 7), d=st.integers(1, 8), shift=st.integers(0, 8))
def test_weighted_degree_is_the_sum_of_the_paper_and_semidefinite(data, L, d, shift):
    words = st.lists(st.text("ab", min_size=L, max_size=L), min_size=1, max_size=5)
    X, Z, kernel = data.draw(words), data.draw(words), ko.weighted_degree(d, shift)
    K = kernel(X)
    by_hand = lambda x, z: weighted_degree_by_hand(d, shift, x, z)  # noqa: E731
    np.testing.assert_allclose(kernel(X, Z), table(by_hand, X, Z), rtol=1e-12)
    np.testing.assert_allclose(K, table(by_hand, X, X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-12)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


def test_every_string_of_a_binary_alphabet_gives_a_semidefinite_matrix_at_every_shift():
    X = [f"{i:06b}" for i in range(64)]
    for shift in range(6):
        values = np.linalg.eigvalsh(ko.weighted_degree(2, shift)(X))
        assert values[0] >= -1e-12 * values[-1]


def test_the_weights_of_the_shifts_have_a_symbol_of_at_least_one_half():
    # Rogosinski and Szegő: 1/2 + sum_{s=1}^{n} cos(s phi) / (s + 1) >= 0, with equality for n = 1 at phi = pi
    phi, symbol = np.linspace(0.0, np.pi, 2001), np.ones(2001)
    for s in range(1, 80):
        symbol += np.cos(s * phi) / (s + 1)
        assert symbol.min() >= 0.5 - 1e-12
    weights = np.where(np.arange(30) <= 7, 0.5 / (np.arange(30) + 1.0), 0.0)
    weights[0] = 1.0
    assert np.linalg.eigvalsh(toeplitz(weights))[0] >= 0.5


def test_long_substrings_have_codes_without_overflow():
    rng = np.random.default_rng(0)
    core = "".join(rng.choice(list("ACGT"), 90))
    X = [core, "T" + core[:-1], core[:70] + "A" * 20, core[::-1]]
    for k in (31, 32, 70):  # 4^31 is the largest power below 2^63
        assert (ko.spectrum(k)(X) == table(lambda x, z, k=k: spectrum_by_hand(k, x, z), X, X)).all()
    wide = ["".join(map(chr, rng.integers(0x4E00, 0x9FFF, 40))) for _ in range(2)]
    wide.append(wide[0][5:] + wide[1][:5])
    assert (ko.spectrum(6)(wide) == table(lambda x, z: spectrum_by_hand(6, x, z), wide, wide)).all()


def test_substrings_do_not_run_from_one_string_into_the_next():
    assert ko.spectrum(2)(["AB", "BA", "A"]).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert ko.spectrum(4)(["AB", "BA"]).tolist() == [[0, 0], [0, 0]]
    assert ko.spectrum(4).rank(["AB", "BA"]) == 0


@every(
    "kernel",
    [
        *KERNELS,
        ko.normalized(ko.spectrum(2)),
        ko.spectrum(1) + 2 * ko.weighted_degree(2),
        ko.spectrum(2) * ko.spectrum(3),
    ],
)
def test_kernels_of_strings_pass_the_checks_of_a_kernel(kernel):
    check_kernel(kernel, WORDS)
    np.testing.assert_array_equal(kernel(np.array(WORDS)), kernel(WORDS))


def test_the_rank_is_at_most_the_number_of_letters_and_of_different_strings():
    assert ko.spectrum(1).rank(["ab", "aa", "ba", "bbb"]) == 2  # two letters
    assert ko.spectrum(2).rank(["ab", "ab"]) == ko.weighted_degree(2).rank(["ab", "ab"]) == 1


def test_a_stack_of_kernels_of_strings_is_evaluated_like_any_other():
    grams, new = ko.Grams.from_kernels(KERNELS, WORDS), ["TATATAC", "AAAAAAG"]
    whole = np.array([kernel(WORDS) for kernel in KERNELS])
    check(grams, whole)
    check(grams.block([0, 3]), whole[:, [0, 3]][:, :, [0, 3]])
    joint = np.array([kernel(WORDS + new) for kernel in KERNELS])
    np.testing.assert_allclose(grams.cross(new), joint[:, 6:, :6])
    sphere = ko.Grams.from_kernels([ko.normalized(KERNELS[0])], WORDS)
    np.testing.assert_allclose(grams.subset([0]).normalize("spherical").cross(new), sphere.cross(new))
    words = list(WORDS)
    kept = ko.Grams.from_kernels(KERNELS[:1], words)
    words[0] = "changed"
    np.testing.assert_array_equal(kept[0], whole[0])


@every(
    "X",
    [[], "GATTACA", [b"GAT"], ["GAT", None], ["GAT", 3], ["GAT", ""], {"GAT"}, [["G", "A"]], np.ones((2, 2))],
)
def test_what_is_no_sequence_of_strings_is_refused(X):
    for kernel in (ko.spectrum(2), ko.weighted_degree(2)):
        for call in (kernel, kernel.diagonal, lambda X, k=kernel: k(["GAT"], X)):
            with pytest.raises(InputError, match="X must|Z must"):
                call(X)


def test_strings_of_different_lengths_have_no_common_positions():
    with pytest.raises(
        ShapeError, match="X must hold strings of one length.*2 letters at index 1 instead of 3"
    ):
        ko.weighted_degree(2)(["GAT", "GA"])
    with pytest.raises(ShapeError, match="Z must hold strings of one length"):
        ko.weighted_degree(2)(["GAT"], ["GA"])
    with pytest.raises(ShapeError, match="X must hold strings of one length"):
        ko.weighted_degree(2).diagonal(["GAT", "GA"])


def test_kernels_of_strings_and_of_numbers_are_not_mixed():
    with pytest.raises(ParameterError, match="must take the same points"):
        ko.spectrum(2) + ko.gaussian(1.0)
    with pytest.raises(ParameterError, match="on_columns must take points"):
        ko.on_columns(ko.spectrum(2), 0)
    short = r"Z\[1\], the string 'AC': it has 2 letters, .*choose k of at most 2\."
    with pytest.raises(InputError, match=short):
        ko.normalized(ko.spectrum(3))(["GATTACA"], ["TATA", "AC"])
    with pytest.raises(InputError, match="must take the same points"):
        ko.Grams.from_kernels([ko.spectrum(2), ko.linear()], WORDS)
    with pytest.raises(ShapeError, match="X must be an array of real numbers"):
        ko.Grams.from_kernels([ko.linear()], WORDS)


@every(
    "make",
    [
        lambda: ko.spectrum(0),
        lambda: ko.spectrum(1.5),
        lambda: ko.weighted_degree(0),
        lambda: ko.weighted_degree(2, -1),
    ],
)
def test_lengths_and_shifts_are_whole_numbers(make):
    with pytest.raises(ParameterError, match="must be an integer"):
        make()


def test_repr_is_the_call():
    assert repr(ko.weighted_degree(5, 2)) == "weighted_degree(d=5, shift=2)"
    assert repr(ko.spectrum(3)) == "spectrum(k=3)"
