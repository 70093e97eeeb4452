"""Files: what is written is read again, and nothing that is in a file is trusted."""

import io
import json
import os
import signal
import sys
import zipfile
from functools import cache
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from numpy.lib import format as npy_format

import kernelopt as ko
from kernelopt.estimators import MKLClassifier
from kernelopt.files import read_file, write_file

ARRAYS = {
    "x": np.array([[1.0, -np.inf], [np.nan, 0.1]]),
    "counts": np.arange(3),
    "flags": np.array([True, False]),
    "names": np.array(["a", "β"]),
    "scalar": np.array(2.5),
    "none": np.empty((0, 3), dtype=np.float32),
}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "a.npz"
    write_file(path, "model", {"text": "é", "list": [1, 2.5, None]}, ARRAYS)
    return path


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, contents in members.items():
            file.writestr(name, contents)


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


GOOD = json.dumps({"kernelopt": "model", "version": 2})


def test_a_file_is_read_as_it_was_written_by_us_and_by_numpy(written):
    header, arrays = read_file(written, "model")
    assert (header["text"], header["list"]) == ("é", [1, 2.5, None])
    assert list(arrays) == list(ARRAYS)
    with np.load(written, allow_pickle=False) as theirs:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
            np.testing.assert_array_equal(theirs[name], array)
            assert arrays[name].dtype == array.dtype


def test_equal_contents_give_equal_files(written, tmp_path):
    again = tmp_path / "b.npz"
    write_file(again, "model", {"text": "é", "list": [1, 2.5, None]}, ARRAYS)
    assert again.read_bytes() == written.read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(written):
    before = written.read_bytes()
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_file(written, "model", {}, {"x": np.zeros(1000), "bad": np.array([object()])})
    with pytest.raises(ValueError, match="Out of range float"):
        write_file(written, "model", {"x": float("nan")}, {})
    assert written.read_bytes() == before
    assert [file.name for file in written.parent.iterdir()] == [written.name]


def saved_solution(C):
    theta = cp.Variable(2, nonneg=True, name="theta")
    grams = np.array([np.eye(4), np.ones((4, 4))])
    risk = ko.risk(ko.combine(theta, grams), [1, -1, 1, -1], ko.hinge(C))
    return ko.solve(cp.Problem(cp.Minimize(risk), [cp.sum(theta) <= 1]))


def saved_estimator(C):
    return MKLClassifier("linear()", C=C).fit(np.arange(8.0)[:, None], [0, 1] * 4)


WRITERS = {
    "solution": saved_solution,
    "estimator": saved_estimator,
    "certificate": lambda C: saved_solution(C).certificate,
}


@cache
def old_and_new(name):
    return [WRITERS[name](C) for C in (0.5, 1.0)]


@pytest.fixture(params=WRITERS)
def saving(request, tmp_path):
    """A path, the bytes of the file that stands there, and the one that replaces it, and how."""
    old, new = old_and_new(request.param)
    path = tmp_path / "a.npz"
    new.save(path)
    later = path.read_bytes()
    old.save(path)
    return path, path.read_bytes(), later, new


def stands(path, *contents):
    """Whether one of these files stands at the path, and no other file in its folder."""
    return [file.name for file in path.parent.iterdir()] == [path.name] and path.read_bytes() in contents


class InterruptAt:
    """A trace function that sends SIGINT before the k-th operation of the code that writes files."""

    def __init__(self, k):
        self.k = k

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(("files.py", "statement.py", "contextlib.py")):
            return None
        frame.f_trace_opcodes = True
        return self.within

    def within(self, frame, event, arg):
        if event == "opcode":
            self.k -= 1
            if self.k == 0:
                signal.raise_signal(signal.SIGINT)
        return self.within


def operations(save, path):
    """The number of operations of a save."""
    counter, before = InterruptAt(-1), sys.gettrace()
    sys.settrace(counter)
    try:
        save(path)
    finally:
        sys.settrace(before)
    return -1 - counter.k


def test_control_c_at_any_operation_leaves_the_old_file_or_the_whole_new_one(saving):
    path, earlier, later, new = saving
    count, before, found = operations(new.save, path), sys.gettrace(), set()
    assert count > 200
    for k in [*range(1, count - 100, count // 30), *range(count - 100, count + 1, 2)]:
        path.write_bytes(earlier)
        sys.settrace(InterruptAt(k))
        try:
            with pytest.raises(KeyboardInterrupt):
                new.save(path)
        finally:
            sys.settrace(before)
        assert stands(path, earlier, later)
        found.add(path.read_bytes())
    assert found == {earlier, later}
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is the caller's again
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "what", [(os, "fsync"), (Path, "replace"), (npy_format, "write_array"), (zipfile.ZipFile, "writestr")]
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("after", [False, True])
def test_an_error_inside_the_writing_leaves_the_old_file(saving, what, error, after, monkeypatch):
    """It may be raised after the call that writes has done its work: then the new file may stand."""
    path, earlier, later, new = saving
    original, called = getattr(*what), []

    def failing(*args, **options):
        called.append(0)
        if after:
            original(*args, **options)
        raise error

    monkeypatch.setattr(*what, failing)
    try:
        new.save(path)
    except error:
        assert stands(path, earlier, *([later] if after and what[1] == "replace" else []))
    else:
        assert not called and stands(path, later)  # certificates are written without `numpy.lib.format`


class Touch:
    """An object whose unpickling would call a function."""

    def __reduce__(self):
        return print, ("executed",)


def foreign(ours):
    """Files that must be refused, with a piece of the message; `ours` are the bytes of a good one."""
    big = npy(np.zeros(2)).replace(b"(2,)", b"(9999999999,)")[:-9]
    later, earlier = (json.dumps({"kernelopt": "model", "version": v}) for v in (3, 1))
    yield "empty", lambda p: p.write_bytes(b""), "truncated, damaged or foreign"
    yield "text", lambda p: p.write_text("x,y\n1,2\n"), "foreign (BadZipFile: File is not a zip file)"
    yield "truncated", lambda p: p.write_bytes(ours[: len(ours) // 2]), "truncated, damaged or foreign"
    yield "no header", lambda p: archive(p, {"x.npy": npy(np.zeros(2))}), "no item named 'header.json'"
    yield (
        "a checkpoint",
        lambda p: archive(p, {"header.json": GOOD.replace("model", "checkpoint")}),
        "of the kind model",
    )
    yield "a list", lambda p: archive(p, {"header.json": "[1]"}), "foreign (TypeError"
    yield "no JSON", lambda p: archive(p, {"header.json": "{"}), "foreign (JSONDecodeError"
    yield "deep JSON", lambda p: archive(p, {"header.json": "[" * 200_000}), "foreign (RecursionError"
    yield "later", lambda p: archive(p, {"header.json": later}), "version 2 of the format of files, got 3"
    yield "earlier", lambda p: archive(p, {"header.json": earlier}), "save an earlier one again"
    yield (
        "pickle",
        lambda p: archive(p, {"header.json": GOOD, "x.npy": npy(np.array([Touch()]))}),
        "dtype object",
    )
    yield (
        "member",
        lambda p: archive(p, {"header.json": GOOD, "x.py": b"print(1)"}),
        "foreign (ValueError: the magic string",
    )
    yield "bomb", lambda p: archive(p, {"header.json": GOOD, "x.npy": big}), "shape (9999999999"
    packed = {"header.json": GOOD, "x.npy": npy(np.zeros(10**6))}
    yield (
        "packed",
        lambda p: archive(p, packed, zipfile.ZIP_DEFLATED),
        "is compressed, or larger than the file",
    )


def test_foreign_truncated_and_malicious_files_raise_and_run_nothing(written, tmp_path, capsys):
    for name, make, piece in foreign(written.read_bytes()):
        path = tmp_path / f"{name}.npz"
        make(path)
        with pytest.raises(ko.errors.FileError) as caught:
            read_file(path, "model")
        assert piece in str(caught.value), name
        assert str(path) in str(caught.value)
    assert capsys.readouterr().out == ""
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.npz", "model")


def test_a_file_with_changed_bytes_is_refused_or_equal(written, tmp_path):
    """Every member has a checksum; the names and the dates of the archive have none."""
    rng, path = np.random.default_rng(0), tmp_path / "changed.npz"
    original = written.read_bytes()
    for _ in range(300):
        changed = bytearray(original)
        for at in rng.integers(0, len(changed), size=rng.integers(1, 4)):
            changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            header, arrays = read_file(path, "model")
        except ko.errors.FileError:
            continue
        assert header["text"] == "é"
        for name in set(arrays) & set(ARRAYS):
            np.testing.assert_array_equal(arrays[name], ARRAYS[name])


def test_a_file_may_be_read_by_those_who_may_read_other_files(tmp_path):
    (tmp_path / "other").write_text("text")
    write_file(tmp_path / "file.npz", "test", {}, {})
    assert (tmp_path / "file.npz").stat().st_mode == (tmp_path / "other").stat().st_mode
