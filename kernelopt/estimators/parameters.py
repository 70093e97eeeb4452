"""Parameters and attributes of estimators as JSON, and back."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from kernelopt.errors import InputError, ParameterError
from kernelopt.installed import installed
from kernelopt.kernels import Kernel, kernel_text, parse_kernel
from kernelopt.losses import Loss
from kernelopt.validation import shown

INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # JSON has no numbers for these

REMEDIES = {
    "kernels": "Put a kernel of your own into a package, as CONTRIBUTING.md describes, or pass its matrices "
    "as a KernelStack.",
    "formulation": "Put a formulation of your own into a package, as CONTRIBUTING.md describes, and pass its "
    "name in the catalogue. Without a file, model.certify(X, y) proves its bounds again.",
    "random_state": "Give a whole number as the seed of a Generator.",
    "method": "Pass the name of the method.",
}


def as_json(value: Any, what: str) -> Any:
    """Return numbers, text, None, kernels, losses, and lists, dicts, slices and arrays of them as JSON.

    Raises
    ------
    ParameterError
        If it is something else, such as a function. The message names it `what`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, Kernel):
        try:
            return {"kernel": kernel_text(value)}
        except InputError as error:
            raise ParameterError(f"{what} cannot be saved: {error}") from error
    losses = installed("losses") if isinstance(value, Loss) else {}
    name = next((n for n, kind in losses.items() if type(value) is kind), None)
    if name is not None:
        arguments = {field.name: as_json(getattr(value, field.name), what) for field in fields(value)}
        return {"loss": name, "arguments": arguments}
    if isinstance(value, list):
        return [as_json(entry, what) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [as_json(entry, what) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[as_json(k, what), as_json(v, what)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [as_json(end, what) for end in (value.start, value.stop, value.step)]}
    if isinstance(value, np.ndarray):
        return {"array": as_json(value.tolist(), what), "object": value.dtype == object}
    function = getattr(value, "__name__", None) if callable(value) else None
    got = f"the function {function}" if function else f"{shown(value)} ({type(value).__name__})"
    raise ParameterError(
        f"{what} of an estimator that is saved must be made of numbers, text, kernels and losses, got {got}. "
        f"{REMEDIES.get(what, 'Pass one of these.')}"
    )


def from_json(document: Any) -> Any:
    """Return the value of which `as_json` has made a document; an error of Python where there is none."""
    if isinstance(document, list):
        return [from_json(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    (form, content), *rest = document.items()
    match form:
        case "number":
            return INFINITE[content]
        case "kernel":
            return parse_kernel(content)
        case "loss":
            arguments = {name: from_json(value) for name, value in dict(rest)["arguments"].items()}
            return installed("losses")[content](**arguments)
        case "tuple":
            return tuple(from_json(content))
        case "dict":
            return {from_json(key): from_json(value) for key, value in content}
        case "slice":
            return slice(*from_json(content))
        case "array":
            return np.array(from_json(content), dtype=object if dict(rest)["object"] else None)
    raise ValueError(f"unknown form {form!r}")
