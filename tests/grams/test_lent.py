"""Large arrays are used in place, and a later change of their numbers ends a solve."""

from __future__ import annotations

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.errors import InputError
from kernelopt.grams import given, join, lent
from kernelopt.grams.given import LENT_BYTES, as_stack
from kernelopt.grams.lent import checksums
from tests.every import every
from tests.problems import labels, stack

N = 12
CHANGED = "must stay unchanged while a problem uses its memory, got other numbers in"


@pytest.fixture
def lend_always(monkeypatch):
    monkeypatch.setattr(given, "LENT_BYTES", 0)


class Lender:
    """An object that hands out an array which it keeps."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def kinds(path):
    """Each kind of array that is used in place, by its name, with the memory that is written to."""
    double, single = stack(N), stack(N).astype(np.float32)
    single = (single + single.transpose(0, 2, 1)) / np.float32(2)
    view = double.copy()
    hidden = view.view()
    hidden.setflags(write=False)
    part = np.concatenate([double, double])
    lender = Lender(double.copy())
    np.save(path, double)
    shared, private = np.load(path, mmap_mode="r+"), np.load(path, mmap_mode="c")
    return {
        "double": (double, double),
        "single": (single, single),
        "read-only view of memory that can be written to": (hidden, view),
        "part": (part[1:4], part),
        "lender": (lender, lender.array),
        "file": (shared, shared),
        "private copy of a file": (private, private),
    }


def programme(grams, y):
    """A problem with a risk on all points."""
    mu = cp.Variable(len(grams), nonneg=True)
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, grams), y, ko.hinge())), [cp.sum(mu) <= 1])


def test_an_array_is_used_in_place_from_32_megabytes_on():
    order = int(np.sqrt(LENT_BYTES / 8))
    for array in (np.zeros((1, order, order)), np.zeros((2, order, order), np.float32)):
        assert array.nbytes == LENT_BYTES
        found = as_stack(array)
        assert np.shares_memory(found.array, array) and found.lent is not None
    for array in (np.zeros((1, order - 1, order - 1)), np.zeros((1, order, order), np.float32)):
        found = as_stack(array)
        assert not np.shares_memory(found.array, array) and found.lent is None


@pytest.mark.slow
def test_a_change_of_every_kind_of_array_in_place_ends_solve_and_certify(lend_always, tmp_path):
    """Of some arrays a matrix is changed and then a row of it, of the others one of the two, by turns."""
    y = labels(N)
    for k, (name, (array, memory)) in enumerate(kinds(tmp_path / "stack.npy").items()):
        grams = ko.as_grams(array)
        assert np.shares_memory(grams.storage.array, memory), name
        problem = programme(grams, y)
        before = ko.solve(problem, tol=1e-4).value
        parts = (memory[1], memory[1, 2])
        for part in parts if k < 2 else parts[k % 2 :][:1]:
            kept = part.copy()
            part *= 2
            for call in (
                lambda problem=problem: ko.solve(problem, tol=1e-4),
                lambda p=problem: ko.certify(p),
            ):
                with pytest.raises(InputError, match=rf"grams {CHANGED} 1 of {len(grams)} matrices \([01]\)"):
                    call()
            part[...] = kept
        assert ko.solve(problem, tol=1e-4).value == before, name


def test_nothing_is_written_after_a_change(lend_always):
    array = stack(N)
    problem = programme(array, labels(N))
    array[0] += np.eye(N)
    with pytest.raises(InputError, match=CHANGED):
        ko.solve(problem)
    assert problem.status is None and all(v.value is None for v in problem.variables())


def test_a_certificate_of_changed_numbers_is_not_saved(lend_always, tmp_path):
    array = stack(10)
    certificate = ko.solve(programme(array, labels(10)), tol=1e-4).certificate
    array *= 2
    with pytest.raises(InputError, match=CHANGED):
        certificate.save(tmp_path / "proof.npz")


@every("spoil", [np.nan, -1.0, 1e300])
def test_an_error_that_a_change_causes_is_explained_by_the_change(spoil):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(given, "LENT_BYTES", 0)
        array = stack(N)
        problem = programme(array, labels(N))
        array *= spoil
        with np.errstate(all="ignore"), pytest.raises(InputError, match=CHANGED):
            ko.solve(problem)


def test_the_checksum_finds_the_changes_that_a_sum_of_bits_would_not():
    for dtype in (np.float64, np.float32):
        array = stack(N).astype(dtype)
        array = (array + array.transpose(0, 2, 1)) / dtype(2)
        order = np.arange(N)
        order[[3, 7]] = 7, 3
        negative = -array
        changes = [
            array[:, order][:, :, order],
            np.roll(array, 1, axis=0),
            2 * array,
            array / 2,
            negative,
            array * 0,
        ]
        swapped = array.copy()
        swapped[:, [1, 2], [4, 5]] = swapped[:, [2, 1], [5, 4]]
        for changed in [*changes, swapped]:
            assert (checksums(np.ascontiguousarray(changed)) != checksums(array)).all()
        found = [checksums(array)[0]]
        for i, j in ((0, 0), (0, 1), (1, 0), (N - 1, 3)):
            changed = array[:1].copy()
            changed[0, i, j] = np.nextafter(changed[0, i, j], dtype(9))
            found.append(checksums(changed)[0])
        # An entry and its mirror image count alike: a stack is symmetric when it is given.
        assert len(set(found)) == (5 if array[0, 0, 1] != array[0, 1, 0] else 4)


def test_stacks_made_of_a_stack_share_its_check(lend_always):
    array = stack(N)
    grams = ko.as_grams(array)
    derived = {
        "subset": grams.subset([1]),
        "subset in another order": grams.subset([2, 0]),
        "block": grams.block(slice(0, 5)),
        "copied block": grams.block([4, 1]),
        "centred": grams.center(),
        "multiplicative": grams.center().normalize("multiplicative"),
        "spherical": grams.normalize("spherical").subset([0, 2]),
        "trace": grams.normalize("trace").block(slice(2, 9)),
        "joined": join([(2.0, ko.Grams.identity(N)), (1.0, grams), (3.0, grams.subset([0]))]),
        "shallow copy": ko.Grams(copy.copy(grams.storage)),
    }
    deep = [copy.deepcopy(grams.storage), pickle.loads(pickle.dumps(grams.storage))]  # noqa: S301
    for name, part in derived.items():
        assert part.storage.lent == grams.storage.lent, name
        part.check_unchanged()
    array[0, 3, 3] += 1
    for name, part in derived.items():
        with pytest.raises(InputError, match=CHANGED):
            part.check_unchanged()
        with pytest.raises(InputError, match=CHANGED):
            pickle.dumps(part), name
    for storage in deep:
        assert not np.shares_memory(storage.array, array) and storage.array[0, 3, 3] == array[0, 3, 3] - 1
        ko.Grams(storage).check_unchanged()


def counted(monkeypatch, module, name):
    """Count the calls of a function of a module."""
    calls, function = [], getattr(module, name)

    def counting(*args, **options):
        calls.append(args)
        return function(*args, **options)

    monkeypatch.setattr(module, name, counting)
    return calls


def test_the_gate_reads_each_matrix_once(monkeypatch, lend_always):
    passes = counted(monkeypatch, given, "inspected")
    others = [
        counted(monkeypatch, given, f) for f in ("row_maxima", "symmetrised", "as_float_array", "checksums")
    ]
    array = stack(N)
    found = as_stack(array)
    assert [np.shares_memory(call[0], K) for call, K in zip(passes, array, strict=True)] == [True] * len(
        array
    )
    assert others == [[]] * 4
    assert np.array_equal(found.lent.sums, checksums(array))


def test_a_solve_reads_a_shared_array_once_for_its_check(monkeypatch, lend_always):
    array, y = stack(N), labels(N)
    grams = ko.as_grams(array)
    mu = cp.Variable(2, nonneg=True)
    risks = [ko.risk(ko.combine(mu, grams.subset(part)), y, ko.hinge()) for part in ([0, 1], [1, 2])]
    problem = cp.Problem(cp.Minimize(sum(risks)), [ko.trace(ko.combine(mu, grams.subset([0, 2]))) <= 9])
    reads = counted(monkeypatch, lent, "checksums")
    ko.solve(problem, tol=1e-3)
    assert len(reads) == 1


def test_memory_that_nobody_can_write_to_is_not_checked(monkeypatch, lend_always):
    array = stack(N)
    array.setflags(write=False)
    for immutable in (array, [*array]):
        found = ko.as_grams(immutable)
        assert found.storage.lent == ()
    reads = counted(monkeypatch, lent, "checksums")
    lp_norm.primal(array, labels(N), p=2).solve(tol=1e-3)
    assert reads == []


def test_an_array_that_is_averaged_is_copied_and_not_written_to(lend_always):
    array = stack(N)
    array[1, 0, 1] = np.nextafter(array[1, 0, 1], 9)
    kept = array.copy()
    found = as_stack(array)
    assert found.lent is None and not np.shares_memory(found.array, array) and np.array_equal(array, kept)
    assert np.array_equal(found.array[1], (kept[1] + kept[1].T) / 2) and np.array_equal(
        found.array[2], kept[2]
    )


def test_zeros_of_different_signs_are_used_in_place(lend_always):
    array = np.array([[[1.0, -0.0], [0.0, 1.0]]])
    grams = ko.as_grams(array)
    assert np.shares_memory(grams.storage.array, array)
    grams.check_unchanged()
    array[0, 0, 1] = 0.0
    with pytest.raises(InputError, match=CHANGED):
        grams.check_unchanged()
