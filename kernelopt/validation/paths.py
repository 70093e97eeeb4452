"""Validation of paths of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernelopt.errors import InputError
from kernelopt.validation.messages import shown

PICKLES = (".pkl", ".pickle", ".joblib")  # suffixes


def as_path(path: Any, name: str) -> Path:
    """Return the path of a file in an existing folder; messages name the argument `name`."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError(
            f"{name} must be the path of a file, got {shown(path)} ({type(path).__name__}). "
            "Pass text or a pathlib.Path."
        )
    file = Path(path)
    if file.is_dir() or not file.absolute().parent.is_dir():
        found = "a folder" if file.is_dir() else "one in a folder that does not exist"
        raise InputError(
            f"{name} must be the path of a file, got {found}: {file}. Create the folder, name a file."
        )
    return file


def as_model_path(path: Any, name: str) -> Path:
    """Return the path of a file that `save` writes: not one that promises a pickle, which it is not."""
    file = as_path(path, name)
    if file.suffix.lower() in PICKLES:
        raise InputError(
            f"{name} must not end in {file.suffix}, got {file}: the file is an NPZ archive and no pickle. "
            f"Pass {file.with_suffix('.npz')}."
        )
    return file
