"""What a file keeps of an estimator: parameters, kernels, what `fit` has set, and certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.estimators.defaults import Block
from kernelopt.estimators.dictionary import Dictionary
from kernelopt.estimators.kernels import PointKernels, StackKernels
from kernelopt.estimators.parameters import as_json, from_json
from kernelopt.estimators.remembered import RememberedStack, raw_grams, sampled_checksum
from kernelopt.kernels import Kernel
from kernelopt.methods.saved import contents, from_contents, starting
from kernelopt.validation import Array, as_float_array, as_indices, as_vector, shown

Contents = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name
Kernels = PointKernels | StackKernels
LARGEST = int(np.iinfo(np.intp).max)
ELSEWHERE = {  # what follows from solutions and kernels, and the formulation, which no file holds
    "solution_",
    "certificate_",
    "history_",
    "weights_unique_",
    "dual_gap_",
    "n_iter_",
    "kernels_",
    "kernel_names_",
    "_trained",
    "_formulation",
}


def estimator_contents(estimator: Any) -> Contents:
    """Return what a file keeps of a fitted estimator: its parameters, and all that `fit` has set."""
    parameters = estimator.get_params(deep=False)
    header: dict[str, Any] = {
        "class": type(estimator).__name__,
        "parameters": {name: as_json(value, name) for name, value in parameters.items()},
        "fitted": {},
        "solutions": [],
    }
    estimator_named(header["class"], type(estimator))
    arrays: dict[str, Any] = {}
    for name, value in vars(estimator).items():
        if name in parameters or name in ELSEWHERE:
            continue
        if isinstance(value, np.ndarray) and value.dtype != object:
            arrays[f"fitted.{name}"] = value
        else:
            header["fitted"][name] = as_json(value, name)
    solutions = estimator.solution_ if isinstance(estimator.solution_, tuple) else (estimator.solution_,)
    for k, solution in enumerate(solutions):
        described, numbers = contents(solution, machines=False)
        header["solutions"].append(described)
        arrays |= {f"solution.{k}.{name}": array for name, array in numbers.items()}
    header["kernels"], of_kernels = kernel_contents(estimator._trained)
    return header, arrays | {f"kernels.{name}": array for name, array in of_kernels.items()}


def kernel_contents(trained: Kernels) -> Contents:
    """Return what a file keeps of the kernels of an estimator."""
    names, arrays = list(trained.names), {"constants": trained.constants}
    if isinstance(trained, PointKernels):
        blocks = trained.dictionary.blocks
        for k, block in enumerate(blocks):
            arrays |= {f"origin.{k}": block.origin, f"unit.{k}": block.unit}
        kernels = [as_json(kernel, "a kernel") for kernel in trained.kernels]
        columns = [list(block.columns) for block in blocks]
        header: dict[str, Any] = {"form": "points", "names": names, "kernels": kernels, "columns": columns}
        if trained.points.ndim == 1:
            return header | {"strings": trained.points.tolist()}, arrays
        return header, arrays | {"points": trained.points}
    stack = trained.stack
    if not isinstance(stack, RememberedStack):
        grams = raw_grams(stack, trained.spherical)
        stack = RememberedStack(
            names, stack.samples, grams.n_points, sampled_checksum(grams), trained.spherical
        )
    header = {
        "form": "stack",
        "names": names,
        "spherical": trained.spherical,
        "n_points": stack.n_points,
        "checksum": stack.checksum,
    }
    return header, arrays | {"samples": stack.samples, "kept": trained.kept}


def estimator_named(name: str, kind: type | None = None) -> type:
    """Return the estimator of kernelopt with a name, which must be `kind` where that is given.

    Raises
    ------
    InputError
        If there is none: a name from a file is looked up here, and nothing else is imported.
    """
    package = import_module("kernelopt.estimators")
    found = {each: getattr(package, each) for each in package.__all__}
    known = {each: cls for each, cls in found.items() if isinstance(cls, type) and hasattr(cls, "fit")}
    if name not in known or known[name] is not (kind or known[name]):
        raise InputError(
            f"an estimator that is saved must be one of {', '.join(known)}, got {shown(name)}. Save what it "
            "has learned: solution_.save(path)."
        )
    return known[name]


def estimator_from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Return the estimator of `estimator_contents`; an error of Python or of kernelopt where it is wrong."""
    parameters = {str(name): from_json(value) for name, value in header["parameters"].items()}
    estimator = estimator_named(header["class"])(**parameters)
    trained = kernels_from_contents(header["kernels"], starting(arrays, "kernels."))
    estimator.keep_solutions(
        [
            from_contents(each, starting(arrays, f"solution.{k}."))
            for k, each in enumerate(header["solutions"])
        ]
    )
    fitted = {name: from_json(value) for name, value in header["fitted"].items()}
    for name, value in (fitted | starting(arrays, "fitted.")).items():
        if not name.isidentifier() or hasattr(estimator, name) or name in ELSEWHERE:  # no method is replaced
            raise ValueError(f"no attribute that fit sets: {name!r}")
        setattr(estimator, name, value)
    check_machines(estimator, trained)
    estimator._trained, estimator.kernel_names_ = trained, trained.names
    estimator.kernels_ = trained.kernels if isinstance(trained, PointKernels) else None
    as_indices(getattr(estimator, "_rows", 0), LARGEST, "rows")
    return estimator


def check_machines(estimator: Any, trained: Kernels) -> None:
    """Raise unless the machines of an estimator, if it has any, fit to each other and to its kernels."""
    if not hasattr(estimator, "dual_coef_"):
        return
    m, s = len(trained.names), len(trained.points if isinstance(trained, PointKernels) else trained.kept)
    for name, ndim in (("dual_coef_", 2), ("intercept_", 1), ("weights_", (1, 2))):
        as_float_array(getattr(estimator, name), name, ndim=ndim)
    k = estimator.intercept_.size
    machines = {(k, s), (m, s)} if k == 1 else {(k, s)}  # a sum of functions has a row for each kernel
    fits = estimator.dual_coef_.shape in machines and estimator.weights_.shape in ((m,), (k, m))
    if not fits or estimator.support_.shape != (s,):
        raise ValueError(f"machines of {k} classes, {m} kernels and {s} points expected")


def kernels_from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Kernels:
    """Return the kernels of `kernel_contents`."""
    names = tuple(map(str, header["names"]))
    constants = as_vector(arrays["constants"], "constants", len(names))
    if header["form"] == "stack":
        samples = as_indices(arrays["samples"], int(header["n_points"]), "samples")
        kept = np.asarray(arrays["kept"])
        kept = as_indices(kept, samples.size, "kept") if kept.size else np.empty(0, dtype=np.intp)
        spherical = bool(header["spherical"])
        stack = RememberedStack(names, samples, int(header["n_points"]), str(header["checksum"]), spherical)
        return StackKernels(names, constants, stack, kept, spherical)
    kernels = tuple(from_json(each) for each in header["kernels"])
    if len(kernels) != len(names) or not all(isinstance(kernel, Kernel) for kernel in kernels):
        raise ValueError(f"{len(names)} kernels expected")
    blocks = tuple(
        block_from(columns, arrays[f"origin.{k}"], arrays[f"unit.{k}"])
        for k, columns in enumerate(header["columns"])
    )
    if "strings" in header:
        points = np.array([*map(str, header["strings"])], dtype=object)
    else:
        points = as_float_array(arrays["points"], "points", ndim=2)
    return PointKernels(names, constants, kernels, Dictionary(kernels, names, blocks), points)


def block_from(columns: Sequence[int], origin: Array, unit: Array) -> Block:
    """Return a block of columns with their origin and unit."""
    chosen = as_indices(columns, LARGEST, "columns", "columns")
    sizes = (as_vector(each, "the origin or unit", chosen.size) for each in (origin, unit))
    return Block(tuple(chosen.tolist()), *sizes)
