"""What a file keeps of an estimator: parameters, kernels, what `fit` has set, and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Annotated, Any

import numpy as np

from kernelopt.errors import InputError, ParameterError
from kernelopt.estimators.kernels import PointKernels, StackKernels
from kernelopt.estimators.remembered import RememberedStack, raw_grams
from kernelopt.grams.arguments import as_names
from kernelopt.grams.written import sampled
from kernelopt.installed import installed
from kernelopt.kernels import as_strings
from kernelopt.losses import Loss
from kernelopt.methods.saved import SavedSolution, saved
from kernelopt.records import Digest, check_parts, digest, encoded, record
from kernelopt.validation import Array, Index, as_indices, shown

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
REMEDIES = {
    "kernels": "Put a kernel of your own into a package, as CONTRIBUTING.md describes, or pass its matrices "
    "as a KernelStack.",
    "formulation": "Put a formulation of your own into a package, as CONTRIBUTING.md describes, and pass its "
    "name in the catalogue. Without a file, model.certify(X, y) proves its bounds again.",
    "random_state": "Give a whole number as the seed of a Generator.",
    "method": "Pass the name of the method.",
}


def loss_parts(loss: Any) -> dict[str, Any]:
    """Return the name and the arguments of a loss."""
    names = [name for name, kind in installed("losses").items() if type(loss) is kind]
    if not names:
        raise ParameterError(f"a loss must be one that is installed in order to be saved, got {loss!r}.")
    return {"name": names[0], "arguments": {field.name: getattr(loss, field.name) for field in fields(loss)}}


@record("loss", Loss, loss_parts)
def loss(name: str, arguments: dict[str, Any]) -> Any:
    """Return the loss of a name."""
    return installed("losses")[name](**arguments)


def stack_parts(trained: StackKernels) -> dict[str, Any]:
    """Return what is kept of precomputed kernels: no matrices, but a checksum."""
    stack = trained.stack
    if not isinstance(stack, RememberedStack):
        grams = raw_grams(stack, trained.spherical)
        checksum = digest(sampled(grams))
        stack = RememberedStack(stack.names, stack.samples, grams.n_points, checksum, trained.spherical)
    return {
        "constants": trained.constants,
        "names": stack.names,
        "samples": stack.samples,
        "n_points": stack.n_points,
        "checksum": stack.checksum,
        "kept": trained.kept,
        "spherical": trained.spherical,
    }


@record("stack", StackKernels, stack_parts)
def stack_kernels(
    constants: Annotated[Array, "m"],
    names: Annotated[tuple[str, ...], "m"],
    samples: Annotated[Index, "n"],
    n_points: int,
    checksum: Digest,
    kept: Annotated[Index, "s"],
    spherical: bool,
) -> StackKernels:
    """Return precomputed kernels, whose matrices come with new samples."""
    samples = as_indices(samples, n_points, "samples")
    if kept.size:
        as_indices(kept, samples.size, "kept")
    names = as_names(names, constants.size)
    stack = RememberedStack(names, samples, n_points, checksum, spherical)
    return StackKernels(constants, stack, kept, spherical)


def estimator_parts(estimator: Any) -> dict[str, Any]:
    """Return what a file keeps of a fitted estimator: its parameters, and all that `fit` has set."""
    parameters, found = estimator.get_params(deep=False), estimator.solution_
    for name, value in parameters.items():
        if name in REMEDIES:
            encoded(value, name, REMEDIES[name])
    name = type(estimator).__name__
    estimator_named(name, type(estimator))
    kept = {k: v for k, v in vars(estimator).items() if k not in parameters and k not in ELSEWHERE}
    solutions = found if isinstance(found, tuple) else (found,)
    return {
        "name": name,
        "parameters": parameters,
        "fitted": kept,
        "solutions": tuple(saved(each, machines=False) for each in solutions),
        "trained": estimator._trained,
    }


def estimator_of(
    name: str,
    parameters: dict[str, Any],
    fitted: dict[str, Any],
    solutions: tuple[SavedSolution, ...],
    trained: PointKernels | StackKernels,
) -> Any:
    """Return the estimator of `estimator_parts`."""
    estimator = estimator_named(name)(**parameters)
    estimator.keep_solutions(solutions)
    for attribute, value in fitted.items():
        if not attribute.isidentifier() or hasattr(estimator, attribute) or attribute in ELSEWHERE:
            raise ValueError(f"no attribute that fit sets: {attribute!r}")  # no method is replaced
        setattr(estimator, attribute, value)
    check_fitted(estimator, trained)
    estimator._trained, estimator.kernel_names_ = trained, trained.names
    estimator.kernels_ = trained.kernels if isinstance(trained, PointKernels) else None
    return estimator


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


def check_fitted(estimator: Any, trained: PointKernels | StackKernels) -> None:
    """Raise unless the attributes of an estimator are those that `fit` sets, and their sizes agree.

    Its class states them and their forms by `fitted_forms`.
    """
    forms: Mapping[str, Any] = estimator.fitted_forms
    points = trained.points if isinstance(trained, PointKernels) else trained.kept
    sizes = check_parts(
        {name: getattr(estimator, name) for name in forms}, forms, m=len(trained.names), s=len(points)
    )
    features = getattr(estimator, "n_features_in_", None)
    if isinstance(trained, PointKernels) and points.dtype == object:
        as_strings(points, "points")
    elif isinstance(trained, PointKernels):
        blocks = trained.dictionary.blocks
        used = [column for block in blocks for column in block.columns]
        width = len(used) or features
        if type(features) is not int or points.shape[1] != width or not 0 <= max(used, default=0) < features:
            raise ValueError(f"points of {width} columns expected, got shape {points.shape}")
    named = getattr(estimator, "feature_names_in_", None)
    if named is not None and named.shape != (features,):
        raise ValueError(f"{features} names of features expected, got shape {named.shape}")
    support = getattr(estimator, "support_", estimator._rows)
    if not np.isin(support, as_indices(estimator._rows, LARGEST, "_rows", unique=True)).all():
        raise ValueError("support_ must hold samples of _rows")
    if "classes_" in forms:
        classes, k = np.asarray(estimator.classes_), sizes.get("k")
        count = classes.size if k is None else max(2, k)
        if classes.shape != (count,) or count < 2 or not np.array_equal(np.unique(classes), classes):
            raise ValueError(f"classes_ must be {count} different labels in ascending order, got {classes}")
