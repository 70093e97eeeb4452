"""The estimator that the options of `kernelopt fit` choose."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.cli.target import Target, Task
from kernelopt.estimators import FormulationClassifier, MKLClassifier, MKLRegressor
from kernelopt.estimators.classifier import LOSSES
from kernelopt.estimators.formulation import TAKES
from kernelopt.estimators.regressor import TARGET_LOSSES
from kernelopt.validation.options import suggestion

MKL_PARAMETERS = ("p", "C", "loss", "epsilon", "multiclass", "class_weight")
SHARED = ("kernels", "normalize", "method", "tol", "time_limit")  # parameters of all estimators
ARRAYS = ("ArrayLike", "NDArray", "ndarray")  # of the annotation of an argument that is an array
WORDS = {"true": True, "false": False, "none": None}


def chosen_estimator(options: argparse.Namespace, task: Task) -> Any:
    """Return the estimator, or end with an error on options that do not fit to each other."""
    given = {name: getattr(options, name) for name in (*SHARED, *MKL_PARAMETERS)}
    given = {name: value for name, value in given.items() if value is not None}
    if options.formulation == default_formulation(options) and not options.option:
        estimator = MKLClassifier() if task == "classification" else MKLRegressor()
        check_loss(options, tuple(LOSSES) if task == "classification" else TARGET_LOSSES, task)
        for name in given:
            if name not in estimator.get_params(deep=False):
                refuse(options, name, f"for {task}")
        return estimator.set_params(**given)
    entry = checked_entry(options, task)
    shared = {name: value for name, value in given.items() if name in SHARED}
    own = {name: value for name, value in given.items() if name in MKL_PARAMETERS}
    if entry.takes == "triplets" and "C" in own:
        shared["C"] = own.pop("C")  # of the machine that is trained on the learned kernel
    return FormulationClassifier(entry.name, options=builder_options(options, entry, own), **shared)


def check_classes(options: argparse.Namespace, estimator: Any, target: Target) -> None:
    """End with an error if the formulation is for two classes and the target has more."""
    count = np.unique(target.y).size
    if isinstance(estimator, FormulationClassifier) and count > 2:
        options.parser.error(
            f"--formulation must be left out for more than two classes, got {options.formulation} and "
            f"{count} classes in {options.target!r}. Leave --formulation and --option out: "
            f"{default_formulation(options)} takes any number of classes"
        )


def default_formulation(options: argparse.Namespace) -> str:
    """Return the formulation whose estimators are MKLClassifier and MKLRegressor."""
    return str(options.parser.get_default("formulation"))


def checked_entry(options: argparse.Namespace, task: Task) -> Entry:
    """Return the formulation of the catalogue, or end with an error."""
    found, name = catalogue(), options.formulation
    if name not in found:
        meant = suggestion(name, found)
        options.parser.error(f"--formulation must be one of {', '.join(found)}, got {name!r}.{meant}")
    if task == "regression":
        options.parser.error(
            f"--formulation must be {default_formulation(options)} for regression, got {name}"
        )
    if found[name].takes not in TAKES:
        options.parser.error(
            f"--formulation must take {', '.join(TAKES)}, got {name}, which takes {found[name].takes}. Solve "
            "it in Python"
        )
    first = next(iter(signature(found[name].build).parameters.values()))
    if first.annotation is not Parameter.empty and "Grams" not in str(first.annotation):
        options.parser.error(
            f"--formulation must take kernels, got {name}, which takes {first.name}. Solve it in Python"
        )
    return found[name]


def builder_options(options: argparse.Namespace, entry: Entry, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a formulation, from --option and the options of the same name.

    A formulation that takes a loss gets it from --loss and --C.
    """
    known = dict(list(signature(entry.build).parameters.items())[2:])  # after the kernels and the data
    wrong = [text for text in options.option if not text.partition("=")[1]]
    if wrong:
        options.parser.error(f"--option must be NAME=VALUE, got {wrong[0]!r}")
    given = dict(map(named_value, options.option))
    unknown = [name for name in given if name not in known]
    if unknown:
        meant = suggestion(unknown[0], known)
        options.parser.error(
            f"--option must be one of {', '.join(known)} for {entry.name}, got {unknown[0]!r}.{meant}"
        )
    refuse_objects(options, entry, [name for name, value in given.items() if value is not None])
    if "loss" in given:
        options.parser.error(f"--option must not set the loss, got loss={given['loss']}. Pass --loss and --C")
    rest = dict(own)
    if "loss" in known and ("loss" in rest or ("C" in rest and "C" not in known)):
        check_loss(options, tuple(LOSSES), "classification")
        given["loss"] = LOSSES[rest.pop("loss", "hinge")](rest.pop("C", 1.0))
    for name, value in rest.items():
        if name not in known:
            refuse(options, name, f"for {entry.name}, whose options are {', '.join(known)}")
        given[name] = value
    missing = [name for name, p in known.items() if p.default is Parameter.empty and name not in given]
    if missing:
        refuse_objects(options, entry, missing)
        needed = " ".join(f"{name}=VALUE" for name in missing)
        options.parser.error(f"{entry.name} needs {', '.join(missing)}: pass --option {needed}")
    return given


def refuse_objects(options: argparse.Namespace, entry: Entry, names: Iterable[str]) -> None:
    """End with an error if some arguments of a formulation are arrays or functions."""
    parameters = signature(entry.build).parameters
    objects = [name for name in names if is_object(parameters[name])]
    if objects:
        given = ", ".join(f"{name!r}: ..." for name in objects)
        options.parser.error(
            f"--option must hold a number or a text, and {', '.join(objects)} of {entry.name} is an array or "
            f"a function. Fit in Python: FormulationClassifier({entry.name!r}, options={{{given}}}) of "
            "kernelopt.estimators"
        )


def is_object(parameter: Parameter) -> bool:
    """Whether an argument of a formulation is an array, by its annotation, or a function, by its default."""
    if parameter.default is not Parameter.empty and callable(parameter.default):
        return True
    return any(word in str(parameter.annotation) for word in ARRAYS)


def named_value(text: str) -> tuple[str, Any]:
    """Return the name and the value of NAME=VALUE; a number, true, false or none is meant as such.

    Examples
    --------
    >>> named_value("gamma1=0.1"), named_value("trace=none"), named_value("cone=psd")
    (('gamma1', 0.1), ('trace', None), ('cone', 'psd'))
    """
    name, _, value = text.partition("=")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    try:
        number = float(value)
    except ValueError:
        return name, value
    return name, int(value) if value.lstrip("+-").isdigit() else number


def check_loss(options: argparse.Namespace, losses: tuple[str, ...], task: str) -> None:
    """End with an error if the loss is not for the task."""
    if options.loss is not None and options.loss not in losses:
        options.parser.error(f"--loss must be one of {', '.join(losses)} for {task}, got {options.loss}")


def refuse(options: argparse.Namespace, name: str, why: str) -> None:
    """End with an error about an option that must not be given."""
    option = "C" if name == "C" else name.replace("_", "-")
    options.parser.error(f"--{option} must be left out {why}, got {getattr(options, name)}")
