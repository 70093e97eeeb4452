"""Files: what is written is read again, and nothing that is in a file is trusted."""

import io
import json
import zipfile

import numpy as np
import pytest

import kernelopt as ko
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


GOOD = json.dumps({"kernelopt": "model", "version": 1})


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


class Touch:
    """An object whose unpickling would call a function."""

    def __reduce__(self):
        return print, ("executed",)


def foreign(ours):
    """Files that must be refused, with a piece of the message; `ours` are the bytes of a good one."""
    big = npy(np.zeros(2)).replace(b"(2,)", b"(9999999999,)")[:-8]
    later = json.dumps({"kernelopt": "model", "version": 2})
    yield "empty", lambda p: p.write_bytes(b""), "truncated, damaged or foreign"
    yield "text", lambda p: p.write_text("x,y\n1,2\n"), "got a file that is no NPZ archive"
    yield "truncated", lambda p: p.write_bytes(ours[: len(ours) // 2]), "truncated, damaged or foreign"
    yield "no header", lambda p: archive(p, {"x.npy": npy(np.zeros(2))}), "without header.json"
    yield (
        "a checkpoint",
        lambda p: archive(p, {"header.json": GOOD.replace("model", "checkpoint")}),
        "of the kind model",
    )
    yield "a list", lambda p: archive(p, {"header.json": "[1]"}), "of the kind model, got None"
    yield "no JSON", lambda p: archive(p, {"header.json": "{"}), "a header in JSON"
    yield "deep JSON", lambda p: archive(p, {"header.json": "[" * 200_000}), "a header in JSON"
    yield "later", lambda p: archive(p, {"header.json": later}), "version from 1 to 1, got 2"
    yield (
        "pickle",
        lambda p: archive(p, {"header.json": GOOD, "x.npy": npy(np.array([Touch()]))}),
        "dtype object",
    )
    yield "member", lambda p: archive(p, {"header.json": GOOD, "x.py": b"print(1)"}), "arrays of numbers"
    yield "bomb", lambda p: archive(p, {"header.json": GOOD, "x.npy": big}), "shape (9999999999"
    packed = {"header.json": GOOD, "x.npy": npy(np.zeros(10**6))}
    yield "packed", lambda p: archive(p, packed, zipfile.ZIP_DEFLATED), "members without compression"


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
