"""What `kernelopt fit` learns: the estimator that its options choose, and its score by cross-validation."""

from __future__ import annotations

import argparse
from inspect import Parameter, isfunction, signature
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from kernelopt.cli.output import Output, say
from kernelopt.errors import InputError, ParameterError
from kernelopt.estimators import (
    FormulationClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    compare,
)
from kernelopt.estimators.classifier import LOSSES
from kernelopt.estimators.formulation import entry_named
from kernelopt.estimators.table import Task
from kernelopt.validation import one_of

SHARED = ("kernels", "normalize", "method", "tol", "time_limit")  # parameters of all estimators
MKL_PARAMETERS = ("p", "C", "loss", "epsilon", "multiclass", "class_weight")
COMPARED_ROWS = 2000  # up to which other models are compared: of more rows they take minutes
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
    if first.annotation is not Parameter.empty and "Grams" not in str(first.annotation):
        raise ParameterError(
            f"--formulation must take kernels, got {entry.name}, which takes {first.name}. Solve it in "
            "Python."
        )
    arguments = dict(map(named_value, options.option))
    if "loss" in arguments:
        raise ParameterError(f"--option must not set the loss, got {arguments['loss']}. Pass --loss and --C.")
    if "loss" in taken and ("loss" in given or ("C" in given and "C" not in taken)):
        loss = one_of(given.pop("loss", "hinge"), "--loss", tuple(LOSSES))
        arguments["loss"] = LOSSES[loss](given.pop("C", 1.0))
    own = (*SHARED, "C") if "C" in taken or entry.takes == "triplets" else SHARED  # of FormulationClassifier
    arguments |= {name: value for name, value in given.items() if name not in own}
    for name in arguments.keys() & taken.keys():
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


def cross_validate(
    estimator: Any, X: Any, y: Any, task: Task, k: int, *, choose_C: bool
) -> tuple[tuple[float, ...], float | None]:
    """Return the scores of an estimator on k parts of the rows, each learned from the other parts, and C.

    C is None where it was given or there is none.

    The parts are random with the seed 0, and for classes of equal shares of each class.

    Parameters
    ----------
    estimator : estimator, not fitted
    X : array of shape (n, d)
    y : array of shape (n,)
    task : "classification" or "regression"
    k : int >= 2
    choose_C : bool
        Whether C is chosen, where the estimator is no `FormulationClassifier`.

    Raises
    ------
    InputError
        If a class has fewer than k rows, or a regression fewer than 2 k.
    """
    refuse_few(y, task, k)
    splits = parts(task, k)
    if choose_C and isinstance(estimator, MKLClassifier | MKLRegressor):
        parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name != "C"}
        kind = MKLClassifierCV if isinstance(estimator, MKLClassifier) else MKLRegressorCV
        search = kind(cv=splits, **parameters).fit(X, y)
        column = search.Cs_.tolist().index(search.C_)
        return tuple(search.scores_[:, column].tolist()), search.C_
    scores = cross_val_score(estimator, X, y, cv=splits, error_score="raise")
    return tuple(scores.tolist()), None


def parts(task: Task, k: int) -> Any:
    """Return the splitter of the rows into k random parts, for classes of equal shares of each class."""
    return (StratifiedKFold if task == "classification" else KFold)(k, shuffle=True, random_state=0)


def compare_with_others(
    estimator: Any, X: Any, y: Any, task: Task, k: int, output: Output
) -> dict[str, list[Any]] | None:
    """Print the scores of an estimator and of others on the parts of `cross_validate`; return the columns."""
    if not isinstance(estimator, MKLClassifier | MKLRegressor):
        return None
    if len(X) > COMPARED_ROWS:
        say(
            f"{len(X)} rows: other models are not compared above {COMPARED_ROWS}, since that takes minutes. "
            "kernelopt.estimators.compare does it in Python"
        )
        return None
    try:
        found = compare(estimator, X, y, cv=parts(task, k))
    except InputError as error:  # too few rows for the choice of hyperparameters in each part
        say(f"other models are not compared: {error}")
        return None
    output.line(f"on the same {k} parts, with kernels and models that need no learned weights:")
    output.table(*found.table())
    return found.as_dict()


def refuse_few(y: Any, task: Task, k: int) -> None:
    """Raise `InputError` if a part would have no row of some class, or no variance."""
    if task == "regression":
        if len(y) < 2 * k:
            raise InputError(
                f"--cv must leave two rows in each part, got {k} parts of {len(y)} rows. Pass at most --cv "
                f"{len(y) // 2}, or add rows."
            )
        return
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < k:
        rarest = labels.tolist()[counts.argmin()]
        remedy = f"Pass --cv {counts.min()}, or add" if counts.min() > 1 else "Add"
        raise InputError(
            f"--cv must be at most the number of rows of each class, got {k} and {counts.min()} of the class "
            f"{rarest!r}. {remedy} rows of the class."
        )
