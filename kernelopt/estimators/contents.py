"""What a file keeps of an estimator: parameters, kernels, what `fit` has set, and certificates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.estimators.checksums import sampled_checksum
from kernelopt.estimators.defaults import Block
from kernelopt.estimators.dictionary import Dictionary
from kernelopt.estimators.kernels import PointKernels, StackKernels
from kernelopt.estimators.parameters import as_json, from_json
from kernelopt.estimators.remembered import RememberedStack, raw_grams
from kernelopt.files import check_forms, check_members, forms
from kernelopt.grams.arguments import as_names
from kernelopt.grams.written import as_stored
from kernelopt.kernels import Kernel
from kernelopt.methods.saved import contents, from_contents, starting
from kernelopt.validation import Array, as_float_array, as_indices, as_vector, boolean, shown, whole

Contents = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name
Kernels = PointKernels | StackKernels
LARGEST = int(np.iinfo(np.intp).max)
KINDS = {"int": "iu", "float": "f"}  # of forms of attributes, by the letters of numpy's dtypes
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
    header["kernels"]["features"] = getattr(
        estimator, "n_features_in_", None
    )  # else alone, where few are read
    arrays |= {f"kernels.{name}": array for name, array in of_kernels.items()}
    return header | {"arrays": forms(arrays)}, arrays


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
        return header, arrays | {"points": as_stored(trained.points)}
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
    check_forms(header, arrays)
    check_members(arrays, "solution", header["solutions"])
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
    check_fitted(estimator, trained, header["kernels"]["features"])
    estimator._trained, estimator.kernel_names_ = trained, trained.names
    estimator.kernels_ = trained.kernels if isinstance(trained, PointKernels) else None
    return estimator


def check_fitted(estimator: Any, trained: Kernels, features: int | None) -> None:
    """Raise unless the attributes of an estimator are those that `fit` sets, and their sizes agree.

    Parameters
    ----------
    estimator : estimator
        Its class states the attributes and their forms by `fitted_forms`.
    trained : its kernels
    features : int or None
        The number of columns of samples that are points or similarities.
    """
    points = trained.points if isinstance(trained, PointKernels) else trained.kept
    sizes = {"m": len(trained.names), "s": len(points)}
    for name, stated in estimator.fitted_forms.items():
        check_form(name, getattr(estimator, name), stated.split(", "), sizes)
    named = np.shape(getattr(estimator, "feature_names_in_", ()))
    if getattr(estimator, "n_features_in_", None) != features or named not in ((0,), (features,)):
        raise ValueError(f"the features must be {features}, got other numbers or names")
    support = getattr(estimator, "support_", estimator._rows)
    if not np.isin(support, as_indices(estimator._rows, LARGEST, "_rows", unique=True)).all():
        raise ValueError("support_ must hold samples of _rows")
    if "classes_" in estimator.fitted_forms:
        classes, k = np.asarray(estimator.classes_), sizes.get("k")
        count = classes.size if k is None else max(2, k)
        if classes.shape != (count,) or count < 2 or not np.array_equal(np.unique(classes), classes):
            raise ValueError(f"classes_ must be {count} different labels in ascending order, got {classes}")


def check_form(name: str, value: Any, stated: Sequence[str], sizes: dict[str, int]) -> None:
    """Raise unless an attribute has one of some forms: its kind, and a letter for the size of each axis.

    `sizes` has the sizes by letters, and takes up those of new ones.
    """
    kind = stated[0].split()[0]
    if kind == "labels":
        return
    if kind == "digest":
        if not re.fullmatch("[0-9a-f]{64}", value):
            raise ValueError(f"{name} must be a checksum, got {shown(value)}")
        return
    array = np.asarray(value)
    if array.dtype.kind in KINDS[kind] and np.isfinite(array).all():
        for form in stated:
            axes = form.split()[1:]
            found = dict(zip(axes, array.shape, strict=False)) | sizes
            if len(axes) == array.ndim and array.shape == tuple(found[axis] for axis in axes):
                sizes |= found
                return
    raise ValueError(f"{name} must be {' or '.join(stated)} with the sizes {sizes}, got {shown(value)}")


def kernels_from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Kernels:
    """Return the kernels of `kernel_contents`."""
    constants = as_vector(arrays["constants"], "constants")
    names = as_names(header["names"], constants.size)
    if header["form"] == "stack":
        n_points = whole(header["n_points"], "n_points")
        samples = as_indices(arrays["samples"], n_points, "samples")
        kept = np.asarray(arrays["kept"])
        kept = as_indices(kept, samples.size, "kept") if kept.size else np.empty(0, dtype=np.intp)
        spherical = boolean(header["spherical"], "spherical")
        check_form("checksum", header["checksum"], ["digest"], {})
        stack = RememberedStack(names, samples, n_points, header["checksum"], spherical)
        return StackKernels(names, constants, stack, kept, spherical)
    kernels = tuple(from_json(each) for each in header["kernels"])
    if len(kernels) != len(names) or not all(isinstance(kernel, Kernel) for kernel in kernels):
        raise ValueError(f"{len(names)} kernels expected")
    check_members(arrays, "origin", header["columns"])
    blocks = tuple(
        block_from(columns, arrays[f"origin.{k}"], arrays[f"unit.{k}"])
        for k, columns in enumerate(header["columns"])
    )
    points: Any = arrays["points"]
    if points.dtype.kind == "U":
        points = points.astype(object)
    else:
        points = as_float_array(points, "points", ndim=2)
        width, features = sum(len(block.columns) for block in blocks), header["features"]
        largest = max((column for block in blocks for column in block.columns), default=0)
        if points.shape[1] != (width or features) or largest >= features:
            raise ValueError(f"points of {width or features} columns expected, got shape {points.shape}")
    return PointKernels(names, constants, kernels, Dictionary(kernels, names, blocks), points)


def block_from(columns: Sequence[int], origin: Array, unit: Array) -> Block:
    """Return a block of columns with their origin and unit."""
    chosen = as_indices(columns, LARGEST, "columns", "columns")
    if bool in map(type, columns):
        raise ValueError(f"columns must be numbers of columns, got {shown(columns)}")
    sizes = (as_vector(each, "the origin or unit", chosen.size) for each in (origin, unit))
    return Block(tuple(chosen.tolist()), *sizes)
