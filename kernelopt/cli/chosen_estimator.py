"""The estimator that the options of `kernelopt fit` choose."""

from __future__ import annotations

import argparse
from inspect import Parameter, isfunction, signature
from typing import Any

from kernelopt.errors import ParameterError
from kernelopt.estimators import FormulationClassifier, MKLClassifier, MKLRegressor
from kernelopt.estimators.classifier import LOSSES
from kernelopt.estimators.formulation import TAKES, checked_options, entry_named
from kernelopt.estimators.table import Task
from kernelopt.validation import one_of

SHARED = ("kernels", "normalize", "method", "tol", "time_limit")  # parameters of all estimators
MKL_PARAMETERS = ("p", "C", "loss", "epsilon", "multiclass", "class_weight")
WORDS = {"true": True, "false": False, "none": None}


def chosen_estimator(options: argparse.Namespace, task: Task, classes: int) -> Any:
    """Return the estimator.

    A formulation has its arguments from `--option` and from the options of their names. One that takes a loss
    has it from `--loss` and `--C`.

    Raises
    ------
    ParameterError
        If options do not fit to each other or to the task.
    """
    given = {name: getattr(options, name) for name in (*SHARED, *MKL_PARAMETERS)}
    given = {name: value for name, value in given.items() if value is not None}
    default = options.parser.get_default("formulation")
    if options.formulation == default and not options.option:
        estimator = MKLClassifier() if task == "classification" else MKLRegressor()
        for name in given.keys() - estimator.get_params(deep=False).keys():
            raise ParameterError(
                f"--{name.replace('_', '-')} must be left out for {task}, got {given[name]}."
            )
        return estimator.set_params(**given)
    entry = entry_named(options.formulation)
    taken = signature(entry.build).parameters
    first = next(iter(taken.values()))
    if task == "regression" or classes > 2:
        raise ParameterError(
            f"--formulation must be {default} for regression and for more than two classes, got "
            f"{entry.name}. Leave --formulation and --option out."
        )
    kernels = first.annotation is Parameter.empty or "Grams" in str(first.annotation)
    if entry.takes not in TAKES or not kernels:
        raise ParameterError(
            f"--formulation must take kernels, with {', '.join(TAKES)}, got {entry.name}, which takes "
            f"{first.name} with {entry.takes}. Solve it in Python."
        )
    arguments = dict(map(named_value, options.option))
    if "loss" in arguments:
        raise ParameterError(f"--option must not set the loss, got {arguments['loss']}. Pass --loss and --C.")
    if "loss" in taken and ("loss" in given or ("C" in given and "C" not in taken)):
        loss = one_of(given.pop("loss", "hinge"), "--loss", tuple(LOSSES))
        arguments["loss"] = LOSSES[loss](given.pop("C", 1.0))
    own = (*SHARED, "C") if "C" in taken or entry.takes == "triplets" else SHARED  # of FormulationClassifier
    arguments |= {name: value for name, value in given.items() if name not in own}
    for name in checked_options(arguments, entry.build, entry.name, {}):
        if isfunction(taken[name].default) and arguments[name] is not None:
            raise ParameterError(
                f"--option must hold numbers or texts, and {name!r} is a function. Fit in Python."
            )
    shared = {name: value for name, value in given.items() if name in own}
    return FormulationClassifier(entry.name, options=arguments, **shared)


def named_value(text: str) -> tuple[str, Any]:
    """Return the name and the value of NAME=VALUE; a number, true, false or none is meant as such.

    Examples
    --------
    >>> named_value("gamma1=0.1"), named_value("trace=none"), named_value("cone=psd")
    (('gamma1', 0.1), ('trace', None), ('cone', 'psd'))
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"--option must be NAME=VALUE, got {text!r}.")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    try:
        number = float(value)
    except ValueError:
        return name, value
    return name, int(value) if value.lstrip("+-").isdigit() else number
