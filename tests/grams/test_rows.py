"""Points in blocks, in memory and in files: the same numbers, and errors that name the block."""

import os

import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.errors import FileError, InputError, NotFiniteError, ShapeError
from kernelopt.grams import caching, evaluated, functions, normalized
from kernelopt.grams import rows as blocks
from kernelopt.grams.rows import ArrayRows, FileRows
from kernelopt.grams.sweeps import Place, length
from kernelopt.learner.smo import smo_pairs
from kernelopt.numerics.compiling import compiled

SIZES = [700, 300, 1100]
N = sum(SIZES)
STARTS = np.cumsum([0, *SIZES])


@pytest.fixture(autouse=True)
def machine_code():
    """The loop of the search that Python, until it is compiled, rounds otherwise."""
    compiled(smo_pairs)


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((N, 4))


@pytest.fixture
def paths(X, tmp_path):
    return written(X, tmp_path)


def written(X, folder):
    found = [folder / f"{k:03}.npy" for k in range(len(SIZES))]
    for path, a, b in zip(found, STARTS, STARTS[1:], strict=False):
        np.save(path, X[a:b])
    return found


def labels(X):
    return np.where(X[:, 0] * X[:, 1] > 0.1 * X[:, 2], 1, -1)


def solved(points, y, tol=1e-3, **options):
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in (0.5, 1.0, 3.0)], points)
    return lp_norm.primal(grams, y, p=1).solve("newton", tol=tol, **options)


def equal(a, b):
    assert (a.lower, a.upper) == (b.lower, b.upper)
    np.testing.assert_array_equal(a.alpha, b.alpha)
    np.testing.assert_array_equal(a.weights, b.weights)


def numbers_and_rows(X, numbers, payload):
    return numbers, np.array(X) + payload


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_files_have_the_rows_of_their_array(X, tmp_path, dtype):
    X = X.astype(dtype)
    several, one = FileRows(written(X, tmp_path)), tmp_path / "one.npy"
    np.save(one, np.asfortranarray(X))
    chosen = np.random.default_rng(1).permutation(N)[:50]
    for rows in (several, FileRows([one]), ArrayRows(X.astype(float), SIZES)):
        assert rows.shape == (N, 4)
        np.testing.assert_array_equal(rows.array(), X)
        np.testing.assert_array_equal(rows.take(chosen), X[chosen])
        np.testing.assert_array_equal(rows.take(slice(650, 1010)), X[650:1010])
        np.testing.assert_allclose(rows.centre, X.mean(axis=0, dtype=float), atol=1e-12)
        np.testing.assert_array_equal(rows.ranges, np.ptp(X.astype(float), axis=0))
        longest = np.linalg.norm(X[:900, 1:3] - rows.centre[1:3], axis=1).max()
        assert rows.length(Place(rows.centre, np.array([1, 2])), 2, 900) == pytest.approx(longest)
        rows.check_unchanged()
    assert repr(several) == "FileRows(2100 points of R^4 in 3 blocks)"
    assert several.same(ArrayRows(X.astype(float)))
    assert not several.same(ArrayRows(X.astype(float)[::-1]))


def test_a_sweep_has_every_point_once_in_the_order_of_the_blocks(X, paths):
    for points in (None, np.arange(200, 1500), np.random.default_rng(1).permutation(N)[:90], np.array([5])):
        every = np.arange(N) if points is None else points
        for rows in (ArrayRows(X, SIZES), FileRows(paths)):
            seen, first = np.full(every.size, -1), []
            for at, (numbers, found) in rows.each(numbers_and_rows, 1.0, points):
                seen[at] = numbers
                first.append(numbers.min())
                np.testing.assert_array_equal(found, X[numbers] + 1)
            np.testing.assert_array_equal(seen, every)
            assert first == sorted(first)


def test_a_sweep_that_misses_a_block_is_an_error(X):
    class Lossy(ArrayRows):
        def _run(self, task, payload, parts):
            for k, found in enumerate(super()._run(task, payload, parts)):
                yield (0, None) if k == 1 else found

    with pytest.raises(ko.errors.KerneloptError, match="2100 points once, got 1800"):
        list(Lossy(X, SIZES).each(numbers_and_rows, 0.0))


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_the_result_of_files_is_that_of_their_array(X, paths, tmp_path, tol):
    y = labels(X)
    expected = solved(ArrayRows(X, SIZES), y, tol)
    equal(solved(FileRows(paths), y, tol), expected)
    np.save(tmp_path / "one.npy", X)
    plain = solved(X, y, tol)
    equal(solved(FileRows([tmp_path / "one.npy"]), y, tol), plain)
    assert expected.gap <= tol
    assert max(expected.lower, plain.lower) <= min(expected.upper, plain.upper)


def test_other_kernels_and_methods_read_files_too(X, paths):
    kernels = [ko.gaussian(1.0), ko.polynomial(2), ko.laplacian(1.0) + ko.identity()]
    mine, plain = ko.Grams.from_kernels(kernels, FileRows(paths)), ko.Grams.from_kernels(kernels, X)
    some = np.array([3, 1500, 800])
    np.testing.assert_allclose(mine.rows(some), plain.rows(some), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mine.diagonals, plain.diagonals, rtol=1e-12)
    np.testing.assert_allclose(mine.combine([1, 0, 2]), plain.combine([1, 0, 2]), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mine.cross(X[:2]), plain.cross(X[:2]), rtol=1e-12, atol=1e-14)
    with pytest.raises(InputError, match="must take rows of numbers"):
        ko.Grams.from_kernels([ko.spectrum(2)], FileRows(paths))


def test_a_file_that_changes_between_sweeps_is_named(X, paths):
    found = FileRows(paths)
    np.save(paths[1], X[: SIZES[1]])
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        list(found.each(numbers_and_rows, 0.0))
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        found.take(np.array([800]))
    found.take(np.array([3]))  # of a file that is as it was


def test_a_change_that_keeps_the_time_of_the_file_is_found(X, paths):
    found, before = FileRows(paths), paths[2].stat()
    np.save(paths[2], X[: SIZES[2]])
    os.utime(paths[2], ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(FileError, match=r"002.npy.*must stay as it was"):
        found.check_unchanged()


def test_a_file_that_is_lost_or_shorter_is_named(X, paths):
    found = FileRows(paths)
    paths[1].unlink()
    with pytest.raises(FileError, match=r"001.npy.*must be a .npy file"):
        list(found.each(numbers_and_rows, 0.0))


@pytest.mark.parametrize(
    ("spoilt", "error", "message"),
    [
        (lambda X: np.where(X == X[7, 1], np.nan, X), NotFiniteError, "finite numbers"),
        (lambda X: np.where(X == X[7, 1], np.inf, X), NotFiniteError, "finite numbers"),
        (lambda X: X[:, :3], ShapeError, "float64 and 4 .*got float64 and 3"),
        (lambda X: X.astype(np.float32), ShapeError, "float64 and 4 .*got float32 and 4"),
        (lambda X: X[0], FileError, "shape .rows, d. in float64 or float32, got shape .4,."),
        (lambda X: X.astype(complex), FileError, "got shape .300, 4. and dtype complex128"),
        (lambda X: np.array(["a", "b"]), FileError, "got shape .2,. and dtype <U1"),
    ],
)
def test_a_block_that_is_wrong_is_named(X, paths, spoilt, error, message):
    np.save(paths[1], spoilt(X[STARTS[1] : STARTS[2]]))
    with pytest.raises(error, match=message) as caught:
        FileRows(paths)
    assert "001.npy" in str(caught.value)


def test_a_block_that_is_missing_is_named(paths):
    paths[1].unlink()
    with pytest.raises(FileError, match=r"001.npy.*No such file"):
        FileRows(paths)


def test_files_without_labels_for_all_rows_are_refused(X, paths):
    with pytest.raises(
        ShapeError, match=r"2100 rows, got 900 labels: block .*001.npy' has the rows 700 to 999"
    ):
        solved(FileRows(paths), labels(X)[:900])
    assert solved(ArrayRows(X, SIZES), labels(X)[:900]).gap <= 1e-3  # an array may have points without labels


def test_a_sum_of_many_kernels_is_the_sum_of_their_images(X, monkeypatch):
    monkeypatch.setattr(evaluated, "all_cached", lambda shape: False)
    kernels = [ko.gaussian(0.7), ko.polynomial(2), ko.gaussian(2.0), ko.laplacian(1.0), ko.identity()]
    w, alpha = np.array([0.5, 0.2, 0.0, 1.0, 2.0]), np.zeros(N)
    chosen = np.random.default_rng(1).permutation(N)[:400]
    alpha[chosen] = np.random.default_rng(2).standard_normal(400)
    storage = ko.Grams.from_kernels(kernels, ArrayRows(X, SIZES)).storage
    expected = w @ [np.asarray(k(X)) @ alpha for k in kernels]
    np.testing.assert_allclose(storage.image(w, alpha), expected, atol=1e-11)
    storage.images(alpha, np.flatnonzero(alpha))  # known from here on
    np.testing.assert_allclose(storage.image(2 * w, alpha), 2 * expected, atol=1e-11)


def sparse_alpha(count):
    """Coefficients of some of the points, enough for sums over cells of the distance."""
    alpha = np.zeros(N)
    alpha[np.random.default_rng(1).permutation(N)[:count]] = np.random.default_rng(2).standard_normal(count)
    return alpha


def test_forms_are_sums_over_blocks(X, paths, monkeypatch):
    """Of a dense matrix, for whole supports and in parts, with a kernel that is summed otherwise."""
    monkeypatch.setattr(evaluated, "all_cached", lambda shape: False)
    kernels = [ko.gaussian(0.7), ko.polynomial(2), ko.gaussian(2.0) + 0.5 * ko.identity(), ko.laplacian(1.0)]
    alpha = sparse_alpha(700)
    expected = [alpha @ np.asarray(k(X)) @ alpha for k in kernels]
    found = []
    for numbers in (caching.CHUNK_BYTES, 8 * 4 * 150):  # all points of the support at once, 150 at a time
        monkeypatch.setattr(caching, "CHUNK_BYTES", numbers)
        mine, files = (
            ko.Grams.from_kernels(kernels, rows).storage for rows in (ArrayRows(X, SIZES), FileRows(paths))
        )
        found.append(mine.forms(1e150 * alpha) / 1e300)
        np.testing.assert_allclose(found[-1], expected, rtol=1e-11)
        np.testing.assert_allclose(mine.forms(alpha), expected, rtol=1e-11)
        np.testing.assert_array_equal(files.forms(alpha), mine.forms(alpha))
        np.testing.assert_array_equal(mine.subset(np.array([2, 0])).forms(alpha), mine.forms(alpha)[[2, 0]])
        np.testing.assert_array_equal(files.passing_forms(alpha), mine.passing_forms(alpha))
        np.testing.assert_allclose(files.passing_forms(alpha), expected, rtol=1e-11)
    np.testing.assert_allclose(*found, rtol=1e-13)


@pytest.mark.parametrize("kind", ["multiplicative", "spherical", "trace"])
def test_normalized_files_have_the_bits_of_their_array(X, paths, kind, monkeypatch):
    """And never all points are in memory."""
    monkeypatch.setattr(evaluated, "MANY_POINTS", 100)
    for module in (evaluated, normalized):
        monkeypatch.setattr(module, "all_cached", lambda shape: False)
    y, largest, take = labels(X), [], FileRows.take
    kernels = [ko.gaussian(w) for w in (0.5, 1.0)] + [2 * ko.gaussian(3.0)]
    solutions = []
    for rows in (ArrayRows(X, SIZES), FileRows(paths)):
        monkeypatch.setattr(
            FileRows, "take", lambda rows, points: largest.append(take(rows, points)) or largest[-1]
        )
        grams = ko.Grams.from_kernels(kernels, rows).normalize(kind)
        np.testing.assert_array_equal(grams.diagonals, np.broadcast_to(grams.diagonals[:, :1], (3, N)))
        solutions.append(lp_norm.primal(grams, y, p=1).solve("newton", tol=1e-3))
    equal(*solutions)
    most = N if kind == "multiplicative" else N - 1  # a mean over all pairs takes 64 MB of points at a time
    assert 0 < max(map(len, largest)) <= most
    plain = np.stack([np.asarray(k(X)) for k in kernels])
    scale = plain[:, 0, 0] - (plain.mean(axis=(1, 2)) if kind == "multiplicative" else 0.0)
    np.testing.assert_allclose(1 / grams.diagonals[:, 0] * plain[:, 0, 0], scale, rtol=1e-12)


def test_diagonals_and_new_points_are_read_a_block_at_a_time(X, paths, monkeypatch):
    kernels, new = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2)], X[:2] + 1
    rows = FileRows(paths)
    grams = ko.Grams.from_kernels(kernels, rows)
    monkeypatch.setattr(FileRows, "take", None)
    expected = np.stack([np.asarray(k(X)) for k in kernels])
    np.testing.assert_allclose(grams.diagonals, expected.diagonal(axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(grams.cross(new), [k(new, X) for k in kernels], rtol=1e-12)


def test_a_machine_of_a_file_predicts_from_the_points_of_its_support(X, paths, tmp_path, monkeypatch):
    y = labels(X)
    solution, read, take = solved(FileRows(paths), y), [], FileRows.take
    monkeypatch.setattr(FileRows, "take", lambda rows, points: read.append(len(points)) or take(rows, points))
    machine = ko.load(solution.save(tmp_path / "machine.npz"))
    assert sum(read) == np.count_nonzero(solution.alpha)
    found = machine.decision_function(X[:50])
    np.testing.assert_allclose(found, solution.decision_function()[:50], rtol=1e-9)


def test_several_threads_sum_as_one_does(X, monkeypatch):
    place, wanted = Place(np.zeros(4)), []
    for threads in (1, 3):
        monkeypatch.setattr(blocks, "blas_threads", lambda threads=threads: threads)
        wanted.append([found for _, found in ArrayRows(X, SIZES).each(length, (place, 2))])
    assert wanted[0] == wanted[1]
    np.testing.assert_allclose(wanted[0][1], np.linalg.norm(X[700:1000], axis=1).max())


def test_a_large_memory_map_is_read_from_its_file(X, tmp_path, monkeypatch):
    monkeypatch.setattr(functions, "IN_PLACE_BYTES", 1000)
    path = tmp_path / "points.npy"
    np.save(path, X)
    kernels, a = [ko.gaussian(1.0), ko.laplacian(2.0)], np.linspace(-1, 1, N)
    mapped = np.load(path, mmap_mode="r")
    grams = ko.Grams.from_kernels(kernels, mapped)
    assert isinstance(grams.storage.rows, FileRows)
    np.testing.assert_array_equal(grams.apply(a), ko.Grams.from_kernels(kernels, X).apply(a))
    # Parts of it, maps that may be written to and maps of other files are copied.
    raw = np.memmap(tmp_path / "raw", float, "w+", shape=X.shape)
    raw[:] = X
    raw = np.memmap(tmp_path / "raw", float, "r", shape=X.shape)
    others = (mapped[::-1], mapped[1:], mapped[:, :2], np.load(path, mmap_mode="c"), raw)
    for part in others:
        copied = ko.Grams.from_kernels(kernels, part)
        assert isinstance(copied.storage.rows, ArrayRows)
        np.testing.assert_array_equal(copied[0], ko.Grams.from_kernels(kernels, np.array(part))[0])
    np.save(path, X + 1)
    with pytest.raises(FileError, match="must stay as it was"):
        grams.storage.rows.take(np.arange(3))
