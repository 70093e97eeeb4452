"""Files of arrays: written atomically, and read without trusting what they hold.

A file is an NPZ archive with one member more, `header.json`. `numpy.load` opens it, and so does any program
that reads ZIP archives. The members are not compressed, so that no file claims more memory than it has bytes.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
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
BEGINNING = b"PK\x03\x04"  # of every ZIP archive with a member
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
        If the file is damaged, of another kind, of a later version, or not written by kernelopt.
    """
    contents = Path(path).read_bytes()
    if contents and not contents.startswith(BEGINNING[: len(contents)]):
        raise FileError(f"{path} must be a file of kernelopt, got a file that is no NPZ archive. {REMEDY}")
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if HEADER not in members:
                raise FileError(
                    f"{path} must be a file of kernelopt, got an archive without {HEADER}. {REMEDY}"
                )
            header = _header(path, archive.read(_stored(path, members.pop(HEADER), len(contents))), kinds)
            arrays = {}
            for name, info in members.items():
                with archive.open(_stored(path, info, len(contents))) as member:
                    arrays[name.removesuffix(SUFFIX)] = _array(path, name, member, info.file_size)
    except FileError:
        raise
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, OSError, struct.error) as damage:
        raise FileError(
            f"{path} must be a file of kernelopt, got one that is truncated, damaged or foreign "
            f"({damage}). {REMEDY}"
        ) from damage
    return header, arrays


def _stored(path: Any, info: zipfile.ZipInfo, size: int) -> zipfile.ZipInfo:
    """Return a member that takes no more memory than the file, of `size` bytes."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise FileError(
            f"{path} must hold members without compression, got a compressed {info.filename}. {REMEDY}"
        )
    if info.file_size > size:
        raise FileError(
            f"{path} must be at least as large as its members, got {size} bytes and {info.filename} of "
            f"{info.file_size}. {REMEDY}"
        )
    return info


def _header(path: Any, document: bytes, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the header after checking its kind and version."""
    try:
        header = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} must have a header in JSON, got {error}. {REMEDY}") from error
    found = header.get("kernelopt") if isinstance(header, dict) else None
    if found not in kinds:
        raise FileError(
            f"{path} must be a file of kernelopt of the kind {' or '.join(kinds)}, got {found!r}. Pass the "
            "path of such a file."
        )
    version = header.get("version")
    if version != VERSION:
        raise FileError(
            f"{path} must have the version {VERSION} of the format of files, got {version!r}. "
            "Install a newer kernelopt to read a later one; save an earlier one again from what made it."
        )
    return dict(header)


def _array(path: Any, name: str, member: IO[bytes], size: int) -> np.ndarray[Any, Any]:
    """Return the array of a member of `size` bytes, whose own header must agree with that size."""
    try:
        version = npy.read_magic(member)
        shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(
            member
        )
    except ValueError as error:
        raise FileError(f"{path} must hold arrays of numbers, got {error} in {name}. {REMEDY}") from error
    expected = member.tell() + dtype.itemsize * int(np.prod(shape, dtype=object))
    if not name.endswith(SUFFIX) or dtype.kind not in KINDS or expected != size:
        raise FileError(
            f"{path} must hold arrays of numbers or text, got {name} of {size} bytes with dtype {dtype} and "
            f"shape {shape}. {REMEDY}"
        )
    member.seek(0)
    return np.asarray(npy.read_array(member, allow_pickle=False))
