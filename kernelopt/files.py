"""Files of arrays: written atomically, and read without trusting what they hold.

A file is an NPZ archive with one member more, `header.json`. `numpy.load` opens it, and so does any program
that reads ZIP archives. The members are not compressed, so that no file claims more memory than it has bytes.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from kernelopt.errors import FileError
from kernelopt.interrupts import after_block

VERSION = 2  # of the format; a reader refuses files of others
HEADER = "header.json"
SUFFIX = ".npy"
KINDS = "biufU"  # of numpy's dtypes: numbers, booleans and text, but no Python objects
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest date of a ZIP member: equal contents give equal files
REMEDY = "Pass the path of a file that kernelopt has written, or write it again."
Arrays = dict[str, np.ndarray[Any, Any]]


def write_file(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a file at once: a call that fails leaves what was there before.

    The contents go to a temporary file in the same folder, which then takes the place of `path`. Ctrl-C acts
    after that.

    Parameters
    ----------
    path : str or path-like
    kind : str
        What the file holds, such as "checkpoint". `read_file` asks for it.
    header : dict
        Numbers, text, lists and dicts, as JSON has them.
    arrays : dict of arrays
        Numbers, booleans or text.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written to.
    """
    document = json.dumps({"kernelopt": kind, "version": VERSION, **header}, allow_nan=False)
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, EARLIEST), document)
        for key, array in arrays.items():
            with archive.open(zipfile.ZipInfo(key + SUFFIX, EARLIEST), "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a temporary file in the same folder, which takes the place of `path` at the end.

    Where the block, or the writing to the disk, fails, `path` stays what it was and no file is left. Ctrl-C
    acts after the block: an archive that it leaves open raises other errors.
    """
    target = Path(path)
    name = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    with after_block():
        try:
            with name.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            name.replace(target)
        except BaseException:
            with suppress(OSError):
                name.unlink()
            raise


def read_file(path: str | os.PathLike[str], *kinds: str) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_file` has written, of one of some kinds.

    Nothing in the file is executed, and no member takes more memory than it has bytes in the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileError
        If the file is damaged, of another kind or version, or not written by kernelopt.
    """
    contents = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            for member in archive.infolist():
                if member.compress_type or not member.file_size == member.compress_size <= len(contents):
                    raise ValueError(f"{member.filename} is compressed, or larger than the file")
            header = dict(json.loads(archive.read(HEADER)))
            found, version = header["kernelopt"], header["version"]
            names = [name for name in archive.namelist() if name != HEADER]
            arrays = {name.removesuffix(SUFFIX): _array(name, archive.read(name)) for name in names}
    except Exception as damage:  # of zipfile, json and numpy: the file is not trusted
        raise FileError(
            f"{path} must be a file of kernelopt, got one that is truncated, damaged or foreign "
            f"({type(damage).__name__}: {damage}). {REMEDY}"
        ) from damage
    if found not in kinds:
        raise FileError(
            f"{path} must be a file of kernelopt of the kind {' or '.join(kinds)}, got {found!r}. Pass the "
            "path of such a file."
        )
    if version != VERSION:
        raise FileError(
            f"{path} must have the version {VERSION} of the format of files, got {version!r}. "
            "Install a newer kernelopt to read a later one; save an earlier one again from what made it."
        )
    return header, arrays


def _array(name: str, member: bytes) -> np.ndarray[Any, Any]:
    """Return the array of a member, which must be of numbers or text, and as large as its own header says."""
    stream = io.BytesIO(member)
    header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
    shape, columns_first, dtype = header(stream)
    if not name.endswith(SUFFIX) or dtype.kind not in KINDS:
        raise ValueError(f"{name} is no array of numbers or text, but of dtype {dtype}")
    array: np.ndarray[Any, Any] = np.frombuffer(member, dtype, offset=stream.tell())
    return array.reshape(shape, order="F" if columns_first else "C").copy("K")
