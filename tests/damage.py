"""Every damage of a header and of arrays: removed, emptied, of another type, shortened, lengthened, NaN."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelopt.errors import FileError
from kernelopt.records import decoded, encoded

GONE = object()
OTHERS = (None, "no", 3, [], {}, True, float("nan"))


def damaged(header: Any, arrays: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield contents of a file with one damage each, and its name."""
    document = json.loads(json.dumps(header))
    for place in places(document):
        inner: Any = document
        for key in place:
            inner = inner[key]
        for what, value in entries(inner):
            changed = at = copy.deepcopy(document)
            for key in place[:-1]:
                at = at[key]
            if value is GONE:
                del at[place[-1]]
            else:
                at[place[-1]] = value
            yield f"{'.'.join(map(str, place))} {what}", changed, arrays
    for name, array in arrays.items():
        for what, value in numbers(np.asarray(array)):
            rest = {key: other for key, other in arrays.items() if key != name}
            yield f"array {name} {what}", document, rest if value is GONE else rest | {name: value}


def places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all entries of a JSON document."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in the place of an entry of a header."""
    yield "removed", GONE
    for other in OTHERS:
        if type(other) is not type(value):
            yield f"replaced by {other!r}", other
    if isinstance(value, str | list) and value:
        yield "emptied", value[:0]
        yield "shortened", value[:-1]
        yield "lengthened", value + value[-1:]
    if isinstance(value, dict) and value:
        yield "emptied", {}


def numbers(array: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in the place of an array."""
    yield "removed", GONE
    yield "as text", array.astype(str) if array.dtype.kind != "U" else np.arange(array.size)
    yield "with an axis more", array[None]
    if array.ndim and array.size:
        yield "emptied", array[..., :0]
        yield "shortened", array[:-1]
        yield "lengthened", np.concatenate([array, array[-1:]])
        yield "as one number", array.ravel()[0]
    if array.dtype.kind in "iu":
        yield "as floats", array + 0.5
    if array.dtype.kind == "f":
        yield "as float32", array.astype(np.float32)
        for entry in (np.nan, np.inf) if array.size else ():
            spoiled = array.copy()
            spoiled.flat[-1] = entry
            yield f"with {entry}", spoiled


def check_damages(value: Any, predict: Any) -> int:
    """Check that each damage is a `FileError`, or leaves the predictions as they were; return their number.

    Parameters
    ----------
    value : what is saved
    predict : function of what was saved
        It returns an array.
    """
    header, arrays = encoded(value)
    expected, count, wrong = predict(decoded(header, arrays, "the file")), 0, {}
    for name, changed, others in damaged(header, arrays):
        count += 1
        try:
            found = decoded(changed, others, "the file")
        except FileError:
            continue
        try:
            same = np.array_equal(predict(found), expected)
        except Exception as error:
            wrong[name] = repr(error)
            continue
        if not same:
            wrong[name] = "other predictions"
    assert not wrong
    return count
