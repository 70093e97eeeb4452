"""Records: values of registered classes in one file each, and back through their constructors.

`record` registers a class, or a function that makes its values, under a name. `write` puts the parts of a
value into the header of a file, as JSON, and its arrays beside it. `read` makes the value again: a name that
is not registered is refused, and the parts must be what the annotations of the constructor say. Of an array
of doubles these are its axes, by letters that stand for equal sizes, as in ``Annotated[Array, "m", "k m"]``
for either of two shapes. Its entries are finite.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import reprlib
from collections.abc import Callable, Mapping
from math import inf, isfinite, nan
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from kernelopt.errors import FileError, ParameterError
from kernelopt.files import REMEDY, Arrays, read_file, write_file

SCALARS: dict[Any, Any] = {bool: bool | np.bool_, int: int | np.integer, float: float, str: str}
Digest = Annotated[str, "[0-9a-f]{64}"]
"""A checksum: what is annotated with a text is matched with the text as a pattern."""

Builder = TypeVar("Builder", bound=Callable[..., Any])


class Form(NamedTuple):
    """How the values of a class are written and made again."""

    name: str
    parts: Callable[[Any], Any]
    build: Callable[..., Any]
    hints: dict[str, Any] | None  # of the parts by name; None where they are one value


FORMS: dict[str, Form] = {}
FORM_OF: dict[type, Form] = {}


def record(
    name: str, kind: type | None = None, parts: Callable[[Any], Any] | None = None, omit: tuple[str, ...] = ()
) -> Callable[[Builder], Builder]:
    """Return a decorator that registers a class, or a function that makes its values.

    Parameters
    ----------
    name : str
        What stands in files.
    kind : type, optional
        The class. Values of its subclasses are written too. By default it is what is decorated.
    parts : function of a value, optional
        It returns the arguments of the constructor, a dict; by default the attributes of their names.
    omit : tuple of str
        Arguments that are left out, and take their defaults.
    """

    def add(build: Builder) -> Builder:
        hints = get_type_hints(build, include_extras=True)
        hints = {each: hint for each, hint in hints.items() if each not in ("return", *omit)}
        read = parts or (lambda value: {each: getattr(value, each) for each in hints})
        register(name, build if kind is None else kind, read, build, hints)  # type: ignore[arg-type]
        return build

    return add


def register(
    name: str,
    kind: type,
    parts: Callable[[Any], Any],
    build: Callable[..., Any],
    hints: dict[str, Any] | None = None,
) -> None:
    """Register a class by a function that makes its values of one part, such as a text, and its inverse."""
    FORMS[name] = FORM_OF[kind] = Form(name, parts, build, hints)


register("number", float, str, {"inf": inf, "-inf": -inf, "nan": nan}.__getitem__)  # JSON has none for these
register("tuple", tuple, list, tuple)
register("slice", slice, lambda cut: [cut.start, cut.stop, cut.step], lambda ends: slice(*ends))
register("items", dict, lambda pairs: [[key, value] for key, value in pairs.items()], dict)
register("objects", np.ndarray, np.ndarray.tolist, lambda entries: np.array(entries, dtype=object))


def write(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value of a registered class to a file, at once: a call that fails leaves what was there before.

    Raises
    ------
    ParameterError
        If a part of it is of a class that is not registered, such as a function.
    OSError
        If the folder does not exist or cannot be written to.
    """
    document, arrays = encoded(value)
    ((kind, content),) = document.items()
    write_file(path, kind, {"record": content}, arrays)


def read(path: str | os.PathLike[str], *kinds: str) -> Any:
    """Return the value of a file, of a class that is registered under one of the names `kinds`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileError
        If the file is damaged, of another kind or version, or not written by kernelopt.
    """
    header, arrays = read_file(path, *kinds)
    return decoded({header["kernelopt"]: header.get("record")}, arrays, path)


def encoded(value: Any, where: str = "", remedy: str = "Pass one of these.") -> tuple[Any, Arrays]:
    """Return a value as JSON, and its arrays by the places where they stand in it.

    Raises
    ------
    ParameterError
        As `write`. The message calls the value `where`, and ends with the remedy.
    """
    arrays: Arrays = {}

    def at(value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str) or (type(value) is float and isfinite(value)):
            return value
        if isinstance(value, list):
            return [at(entry, f"{where}.{k}") for k, entry in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": each(at, value, where)}
        if isinstance(value, np.ndarray) and (stored := without_objects(value)) is not None:
            arrays[where] = stored
            return {"array" if stored is value else "text": [stored.dtype.str, *stored.shape]}
        form = next((FORM_OF[kind] for kind in type(value).__mro__ if kind in FORM_OF), None)
        if form is None:
            got = f"{getattr(value, '__name__', reprlib.repr(value))} ({type(value).__name__})"
            raise ParameterError(
                f"{where} of what is saved must be made of numbers, text, kernels and losses, got {got}. "
                f"{remedy}"
            )
        parts = form.parts(value)
        if form.hints is None:
            return {form.name: at(parts, where)}
        parts |= {name: float(parts[name]) for name, hint in form.hints.items() if hint is float}
        check_parts(parts, form.hints)
        return {form.name: each(at, parts, where)}

    return at(value, where), arrays


def each(at: Callable[[Any, str], Any], parts: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a function of each part and its place."""
    return {name: at(part, f"{where}.{name}".lstrip(".")) for name, part in parts.items()}


def digest(value: Any) -> str:
    """Return the SHA-256 of a value as `encoded` writes it, in hexadecimal."""
    document, arrays = encoded(value)
    found = hashlib.sha256(json.dumps(document).encode())
    for array in arrays.values():
        found.update(array.tobytes())
    return found.hexdigest()


def without_objects(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return an array as a file can hold it, strings as an array of text; None of other objects.

    An array of text cuts off null characters at the end of strings: with those they are no text either.
    """
    if array.dtype != object:
        return array
    text = array.astype(str)
    same = all(isinstance(entry, str) for entry in array.flat) and bool((text == array).all())
    return text if same else None


def decoded(document: Any, arrays: Mapping[str, Any], source: object) -> Any:
    """Return the value from the document and the arrays that `encoded` has made of it.

    Raises
    ------
    FileError
        If an entry is missing or wrong. The message calls the file `source`.
    """

    def at(document: Any, where: str) -> Any:
        if isinstance(document, list):
            return [at(entry, f"{where}.{k}") for k, entry in enumerate(document)]
        if not isinstance(document, dict):
            return document
        ((name, content),) = document.items()
        if name == "dict":
            return each(at, content, where)
        if name in ("array", "text"):
            array = left.pop(where)
            if [array.dtype.str, *array.shape] != content:
                raise ValueError(f"the array {where} must have the dtype and shape {content} of the header")
            return array if name == "array" else array.astype(object)
        form = FORMS[name]
        if form.hints is None:
            return form.build(at(content, where))
        parts = each(at, content, where)
        check_parts(parts, form.hints)
        return form.build(**parts)

    left = dict(arrays)
    try:
        value = at(document, "")
        if left:
            raise ValueError(f"no entry has the arrays {', '.join(left)}")
        return value
    except Exception as error:  # of the checks, and of any constructor: the file is not trusted
        raise FileError(
            f"{source} must hold what kernelopt has written, got a wrong or missing entry "
            f"({type(error).__name__}: {error}). {REMEDY}"
        ) from error


def check_parts(parts: Mapping[str, Any], hints: Mapping[str, Any], **sizes: int) -> dict[str, int]:
    """Return the sizes by letters, or raise a ValueError unless the parts are what their annotations say.

    Parameters
    ----------
    parts : dict
    hints : dict
        The annotation of each part.
    **sizes
        Sizes that are known beforehand.
    """
    if parts.keys() != hints.keys():
        raise ValueError(f"entries {', '.join(hints)} expected, got {', '.join(parts)}")
    for name, hint in hints.items():
        if not fits(parts[name], hint, sizes):
            raise ValueError(f"{name} must be {hint} with the sizes {sizes}, got {reprlib.repr(parts[name])}")
    return sizes


def fits(value: Any, hint: Any, sizes: dict[str, int]) -> bool:
    """Whether a value is what an annotation says; `sizes` takes up the sizes of new letters."""
    form, args = get_origin(hint), get_args(hint)
    if form is Annotated:
        return fits(value, args[0], sizes) and any(agrees(value, text, sizes) for text in args[1:])
    if form in (Union, UnionType):
        return any(fits(value, each, sizes) for each in args)
    if form is Literal:
        return isinstance(value, str) and value in args
    if form is tuple and isinstance(value, tuple):
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return len(value) == len(kinds) and all(map(fits, value, kinds, [sizes] * len(value)))
    if form is dict and isinstance(value, dict):
        return all(fits(key, args[0], sizes) and fits(entry, args[1], sizes) for key, entry in value.items())
    if form is np.ndarray and isinstance(value, np.ndarray):
        finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.dtype == get_args(args[1])[0] and finite
    if hint in (int, float) and isinstance(value, bool):
        return False
    return hint is Any or (form is None and isinstance(value, SCALARS.get(hint, hint)))


def agrees(value: Any, text: str, sizes: dict[str, int]) -> bool:
    """Whether a string matches a pattern, or the axes of an array or a tuple have the sizes of letters."""
    if isinstance(value, str):
        return re.fullmatch(text, value) is not None
    axes, shape = text.split(), np.shape(value)
    return len(axes) == len(shape) and all(
        map(lambda axis, size: sizes.setdefault(axis, size) == size, axes, shape)
    )
