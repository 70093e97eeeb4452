"""The gate of stacks that are given as arrays: one pass, no needless copy, and single precision."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from formulations import lp_norm
from kernelopt.errors import NotFiniteError, NotSymmetricError
from kernelopt.extend import as_grams
from kernelopt.grams import ArrayStorage, given, stored
from kernelopt.grams.given import IN_PLACE_BYTES, TILE, as_stack
from kernelopt.validation import row_maxima
from tests.every import every
from tests.problems import labels, stack

ORDERS = (1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 37)
TYPES = (np.float64, np.float32)
N = 40


def symmetric(n, dtype, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n)) * 10.0 ** np.arange(n)[::-1].clip(max=4)
    return (A + A.T).astype(dtype)


@pytest.fixture
def compile_always(monkeypatch):
    monkeypatch.setattr(stored, "COMPILED_ENTRIES", 0)


def positions(n):
    """Entries in the first, a middle and the last tile, on and off the diagonal."""
    places = sorted({0, n // 2, min(TILE, n - 1), n - 1})
    return [(i, j) for i in places for j in places]


# ------------------------------------------------------------------------------- copied or used


def used_itself(array):
    return np.shares_memory(as_grams(array).storage.array, array)


def test_an_array_is_used_in_place_from_32_megabytes_on():
    order = int(np.sqrt(IN_PLACE_BYTES / 8))
    for array in (np.zeros((1, order, order)), np.zeros((2, order, order), np.float32)):
        assert array.nbytes == IN_PLACE_BYTES and np.shares_memory(as_stack(array).array, array)
    for array in (np.zeros((1, order - 1, order - 1)), np.zeros((1, order, order), np.float32)):
        assert not np.shares_memory(as_stack(array).array, array)


def test_an_array_that_is_averaged_is_copied_and_not_written_to(monkeypatch):
    monkeypatch.setattr(given, "IN_PLACE_BYTES", 0)
    array = stack(N)
    array[1, 0, 1] = np.nextafter(array[1, 0, 1], 9)
    kept = array.copy()
    found = as_stack(array).array
    assert not np.shares_memory(found, array) and np.array_equal(array, kept)
    assert np.array_equal(found[1], (kept[1] + kept[1].T) / 2) and np.array_equal(found[2], kept[2])


# ------------------------------------------------------------------------------------ the pass


@pytest.mark.parametrize("dtype", TYPES, ids=["double", "single"])
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("compiled_from", [0, np.inf], ids=["compiled", "numpy"])
def test_the_pass_finds_the_row_maxima_and_every_asymmetric_or_infinite_entry(
    compiled_from, n, dtype, monkeypatch
):
    monkeypatch.setattr(given, "COMPILED_ENTRIES", compiled_from)
    K = symmetric(n, dtype)
    assert np.array_equal(as_stack(K[None]).largest_entries[0], np.abs(K).max(axis=1))
    for i, j in positions(n):
        changed = K.copy()
        changed[i, j] += dtype(1e-9) * np.abs(K).max() if dtype is float else 0
        found = as_stack(changed[None])
        assert np.array_equal(found.array[0], found.array[0].T) and np.array_equal(K, K.T)
        assert np.array_equal(found.largest_entries[0], np.abs(found.array[0]).max(axis=1)), (i, j)
        changed[i, j] = K[i, j] + np.abs(K).max()
        with nullcontext() if i == j else pytest.raises(NotSymmetricError, match="symmetric to 1e-08"):
            as_stack(changed[None])
        for value in (np.nan, -np.inf):
            changed[i, j] = value
            with pytest.raises(NotFiniteError, match=rf"{value} at index \(0, {i}, {j}\)"):
                as_stack(changed[None])


def test_zeros_of_different_signs_are_symmetric():
    given = as_stack(np.array([[[1.0, -0.0], [0.0, 1.0]]]))
    assert np.signbit(given.array[0, 0, 1]) and not given.assumes


@every("at", ((0, 1), (N - 1, 0), (7, 7)))
def test_a_later_matrix_that_is_not_finite_is_reported_first(at):
    broken = np.stack([symmetric(N, float, seed) for seed in range(3)])
    broken[0, 3, 2] += 1e6
    broken[1][at] = -np.inf
    where = rf"grams must be finite, got -inf at index \(1, {at[0]}, {at[1]}\) \(1 such entries\)"
    with pytest.raises(NotFiniteError, match=where):
        as_grams(broken)
    broken[1][at] = 0.0
    broken[1] += broken[1].T
    with pytest.raises(NotSymmetricError, match=r"grams\[0\] must be symmetric to 1e-08 relative"):
        as_grams(broken)


def test_rounding_is_averaged_in_either_precision():
    for dtype, share in ((np.float64, 1e-10), (np.float32, 1e-9)):
        K = np.array([[1.0, share], [0.0, 1.0]], dtype)[None]
        K.setflags(write=False)
        mean = as_grams(K)
        assert mean[0][0, 1] == mean[0][1, 0] == dtype(share) / 2 and K[0, 0, 1] == dtype(share)
        assert mean.magnitudes.tolist() == [[1.0, 1.0]]


# ---------------------------------------------------------------------------------- the copies


def test_other_layouts_and_types_become_contiguous_copies():
    expected = stack(N)
    for other in (np.asfortranarray(expected), expected[:, ::-1, ::-1], expected.astype(">f8"), [*expected]):
        if isinstance(other, np.ndarray):
            other.setflags(write=False)
        held = as_grams(other).storage.array
        assert np.array_equal(held, np.asarray(other)) and held.flags.c_contiguous
        assert held.dtype == np.float64 and not held.flags.writeable
    assert np.array_equal(as_grams(np.eye(3, dtype=int)[None])[0], np.eye(3))
    assert as_grams(np.eye(3, dtype=np.float16)[None]).storage.array.dtype == np.float64


def test_what_another_object_hands_out_is_copied():
    class Lender:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    lender = Lender(stack(N))
    grams = as_grams(lender)
    lender.array[:] = 0.0
    assert np.array_equal(grams, stack(N))


# --------------------------------------------------------------------------- products of a stack


@every("dtype, n", [(dtype, n) for dtype in TYPES for n in (1, 5, 8, TILE + 3)])
def test_products_read_single_precision_as_doubles(dtype, n):
    rng = np.random.default_rng(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "BLOCK_ENTRIES", 100)
        Ks = np.stack([symmetric(n, dtype, seed) for seed in range(4)])
        exact = Ks.astype(float)
        for size in (0, np.inf):
            patch.setattr(stored, "COMPILED_ENTRIES", size)
            grams = as_grams(Ks)
            assert grams.storage.array.dtype == dtype and grams[0].dtype == np.float64
            tight = {"rel": 1e-13, "abs": 1e-12 * np.abs(exact).max()}
            for w in (rng.normal(size=4), np.array([0.0, 2.0, 0.0, -1.0]), np.zeros(4)):
                expected = sum(weight * K for weight, K in zip(w, exact, strict=True))
                assert grams.combine(w) == pytest.approx(expected, **tight)
            for k in (n, max(1, n // 2)):
                for a in (rng.normal(size=k), np.where(np.arange(k) % 3 == 1, 0.7, 0.0), np.zeros(k)):
                    assert grams.apply(a) == pytest.approx(exact[:, :, :k] @ a, **tight)
            some = np.array([n - 1, 0])
            assert np.array_equal(grams.rows(some), exact[:, some])
            assert np.array_equal(grams.entries(some, some[::-1]), exact[:, some, some[::-1]])
            assert np.array_equal(grams.diagonals, np.stack([np.diag(K) for K in exact]))
            assert np.array_equal(grams.magnitudes, row_maxima(exact))
            for rows in (slice(0, n, 2), some):
                part = grams.block(rows)
                assert np.array_equal(part, exact[:, rows][:, :, rows])
                assert part.combine(np.ones(4)) == pytest.approx(np.asarray(part).sum(axis=0), **tight)
                ones = np.ones(part.n_points)
                assert part.apply(ones) == pytest.approx(np.asarray(part) @ ones, **tight)
            assert np.array_equal(grams.subset([0, 2])[1], exact[2])
            assert np.asarray(grams).dtype == np.float64


def test_images_of_few_points_read_only_their_rows(compile_always):
    """Rows outside the support may hold anything: they are not read."""
    Ks = np.stack([symmetric(N, float, seed) for seed in range(3)])
    a = np.zeros(N)
    a[[3, 11, 12, 30, 31]] = 1.0, -2.0, 0.5, 0.25, 3.0
    poisoned = np.full(Ks.shape, np.nan)
    poisoned[:, a != 0] = Ks[:, a != 0]
    assert ArrayStorage(poisoned).apply(a) == pytest.approx(Ks @ a, rel=1e-13, abs=1e-9)


def test_a_combination_reads_only_the_kernels_with_a_weight():
    Ks = np.stack([symmetric(N, float, seed) for seed in range(3)])
    Ks[1] = np.nan
    assert np.array_equal(ArrayStorage(Ks).combine(np.array([2.0, 0.0, 0.0])), 2 * Ks[0])


@every("method", ["interleaved", "block-descent", "cutting-plane"])
def test_a_stack_in_single_precision_is_solved_as_its_doubles(method):
    single = stack(30).astype(np.float32)
    single = (single + single.transpose(0, 2, 1)) / np.float32(2)
    y = labels(30)
    values = [lp_norm.primal(Ks, y, p=4 / 3).solve(method, tol=1e-7) for Ks in (single, single.astype(float))]
    assert values[0].value == pytest.approx(values[1].value, rel=2e-7)
    assert values[0].certificate.lower <= values[1].certificate.upper
    assert values[1].certificate.lower <= values[0].certificate.upper


@pytest.mark.parametrize("method", ["interleaved", "block-descent"])
def test_a_certificate_computes_each_image_once_and_combines_nothing(method, monkeypatch):
    """Calls that read the stack after the method has returned its last bounds."""
    read = {"images": [], "combinations": 0, "matrices": 0}
    apply, combine, gram = ArrayStorage._apply, ArrayStorage.combine, ArrayStorage.gram

    def counted_apply(self, a):
        read["images"].append(a.tobytes())
        return apply(self, a)

    def counted_combine(self, w):
        read["combinations"] += 1
        return combine(self, w)

    def counted_gram(self, i):
        read["matrices"] += 1
        return gram(self, i)

    problem = lp_norm.primal(stack(150), labels(150), p=2)
    counters = {"_apply": counted_apply, "combine": counted_combine, "gram": counted_gram}

    def start_counting(report):
        """The last report before the certificate starts the count."""
        for name, counter in counters.items():
            monkeypatch.setattr(ArrayStorage, name, counter)
        read.update(images=[], combinations=0, matrices=0)

    monkeypatch.setattr(stored, "COMPILED_ENTRIES", 0)
    solution = problem.solve(method, callback=start_counting)
    assert solution.status == "optimal"
    assert len(read["images"]) == len(set(read["images"])) <= 2
    assert read["combinations"] == read["matrices"] == 0
