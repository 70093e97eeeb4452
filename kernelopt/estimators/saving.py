"""`SavedMixin`: estimators are saved to files, and their bounds proved again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import cvxpy as cp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelopt.catalog import Formulation
from kernelopt.certificates import Certificate, certify
from kernelopt.errors import InputError, LabelError, ParameterError
from kernelopt.estimators.kernels import TrainedKernels
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.sparse import SparseKernels, SparsePoints
from kernelopt.grams import Grams
from kernelopt.grams.written import sampled
from kernelopt.installed import installed
from kernelopt.losses import Loss
from kernelopt.methods.saved import SavedSolution, saved
from kernelopt.records import check_parts, digest, encoded, record, write
from kernelopt.validation import Array, Index, as_indices, as_model_path, shown

Trained = TrainedKernels | SparseKernels
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
    trained: Trained,
) -> Any:
    """Return the estimator of `estimator_parts`."""
    estimator = estimator_named(name)(**parameters)
    estimator._keep_solutions(solutions)
    for attribute, value in fitted.items():
        if not attribute.isidentifier() or hasattr(estimator, attribute) or attribute in ELSEWHERE:
            raise ValueError(f"no attribute that fit sets: {attribute!r}")  # no method is replaced
        setattr(estimator, attribute, value)
    check_fitted(estimator, trained)
    estimator._trained, estimator.kernel_names_, estimator.kernels_ = trained, trained.names, trained.kernels
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


def check_fitted(estimator: Any, trained: Trained) -> None:
    """Raise unless the attributes of an estimator are those that `fit` sets, and their sizes agree.

    Its class states them and their forms by `_fitted_forms`.
    """
    forms: Mapping[str, Any] = estimator._fitted_forms
    features = getattr(estimator, "n_features_in_", None)
    points = trained.check(features)
    sizes = check_parts(
        {name: getattr(estimator, name) for name in forms}, forms, m=len(trained.names), s=points
    )
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


SAME = 1e-9  # relative difference of two roundings of one constant, one width or one mean of targets


class SavedMixin:
    """Adds `save` and `certify` to the estimators.

    Attributes
    ----------
    _rows : array of shape (n_used,)
        The samples of the problem, as positions among those of `fit`.
    _checksum : str
        That of these samples.
    _labels_checksum : str
        That of their labels or targets, and of their weights.
    """

    solution_: Any
    classes_: Any
    _trained: Trained
    _rows: Index
    _checksum: str
    _labels_checksum: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator to a file, from which `kernelopt.load` makes an equal one.

        The file has the parameters, the kernels as text, the points of the support, the machines and the
        certificates. It has no Gram matrices and no pickle.

        Parameters
        ----------
        path : str or path-like
            The name of an NPZ archive, which is taken as it is; an existing file is replaced at once.

        Returns
        -------
        Path

        Raises
        ------
        InputError
            If the path ends in .pkl, .pickle or .joblib, or its folder does not exist.
        ParameterError
            If a parameter cannot be written, such as a kernel or a formulation that is a function of Python.
        """
        check_is_fitted(self)
        target = as_model_path(path, "path")
        write(target, self)
        return target

    def certify(self, X: Any, y: Any = None, **data: Any) -> Any:
        """Compute the bounds again from the training data, at the learned weights and dual variables.

        The problem is stated from the parameters of the estimator and the data, exactly as `fit` states it.
        The estimator, or the file that it was loaded from, adds candidates alone: whatever they are, the
        bounds hold. Estimators that choose C state their problem at `C_`.

        Parameters
        ----------
        X, y, **data
            As they were passed to `fit`, in the same order, with `sample_weight`, `triplets` or
            `X_unlabeled` by name where `fit` had them. `OneClassMKL` does not read y.

        Returns
        -------
        Certificate, or tuple of them where each class has its own problem

        Raises
        ------
        InputError
            If the data are not those of `fit`, or if a fitted attribute is not what the parameters and the
            data give: then the machine that predicts is not one of the problem.
        """
        check_is_fitted(self)
        several = isinstance(self.solution_, tuple)
        given = self.solution_ if several else [self.solution_]
        solutions = [saved(each, machines=False) for each in given]
        stated = copy(self)
        problems = stated._stated(X, y, **data)
        self._check_same(stated)
        found = tuple(
            certify(problem, solution, retrain=not solution.certificate.machines)
            for problem, solution in zip(problems, solutions, strict=True)
        )
        self._check_machines(X, problems, found)
        return found if several else found[0]

    def _check_machines(self, X: Any, problems: Sequence[cp.Problem], found: Sequence[Certificate]) -> None:
        """Raise unless the machines that predict have values within the certified bounds of their problems.

        Only estimators whose machines are those of the problem can say so.
        """

    def _stated(self, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        """Return the problems of `fit` on these data, and set the attributes that `fit` reads from them."""
        found = self._formulated(*self._problem_data(X, y, **data))
        return [found if isinstance(found, cp.Problem) else found.problem]

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Array]]:
        """Read the data of `fit`, and return the kernels and the labels or targets of the problem."""
        raise NotImplementedError

    def _formulated(self, grams: Grams, labels: list[Array]) -> Formulation | cp.Problem:
        """Return the problem of `fit` on what `_problem_data` returns."""
        raise NotImplementedError

    def _keep_labels(self, labels: list[Array]) -> list[Array]:
        """Keep a checksum of labels or targets and of the weights of samples, and return the list."""
        self._labels_checksum = digest(np.array(labels, dtype=float))
        return labels

    def _changed(self, name: str) -> InputError:
        """Return the error of an attribute that is not what the parameters and the data give."""
        return InputError(
            f"{name} must be what fit makes of the parameters and the data, got another value in certify of "
            f"{type(self).__name__}. Either the file was changed, or a parameter was set after fit, or "
            "random_state is no integer: fit again."
        )

    def _check_same(self, stated: Self) -> None:
        """Raise unless the attributes that `stated` has set on a copy are those of this estimator."""
        if stated._checksum != self._checksum or not np.array_equal(stated._rows, self._rows):
            raise InputError(
                f"X must be the data that the estimator was fitted on, got {stated._rows.size} samples with "
                "other numbers in certify. Pass the same X, in the same order."
            )
        known, given = (np.ravel(getattr(each, "classes_", [])).tolist() for each in (self, stated))
        if known != given:
            other = [label for label in given if label not in known] or given
            raise LabelError(
                f"y must hold the labels of fit, {shown(known)}, got {shown(other)} in certify. Pass the "
                "same y."
            )
        if stated._labels_checksum != self._labels_checksum:
            raise InputError(
                "y must be the data that the estimator was fitted on, with the same sample_weight, got other "
                "values in certify. Pass the same y, in the same order."
            )
        if hasattr(self, "support_"):
            stated._trained = stated._trained.only(np.flatnonzero(np.isin(self._rows, self.support_)))
        for name, value in vars(stated).items():
            if not same(value, getattr(self, name, value)):
                raise self._changed("the kernels" if name == "_trained" else name)


record("estimator", SavedMixin, estimator_parts)(estimator_of)


def same(found: Any, stored: Any) -> bool:
    """Whether two values differ by no more than the roundings of two machines."""
    if found is stored:
        return True
    if is_dataclass(found):
        pairs = ((getattr(found, each.name), getattr(stored, each.name, None)) for each in fields(found))
        return type(found) is type(stored) and all(same(*pair) for pair in pairs)
    if isinstance(found, list | tuple):
        return len(found) == len(stored) and all(map(same, found, stored))
    if isinstance(found, float) or (isinstance(found, np.ndarray) and found.dtype.kind == "f"):
        numbers, size = np.asarray(stored), SAME * np.abs(found).max(initial=0.0)
        fits = numbers.dtype.kind in "fiu" and numbers.shape == np.shape(found)
        return fits and np.allclose(numbers, found, rtol=SAME, atol=size)
    return bool(np.array_equal(found, stored))


def samples_checksum(samples: Array | KernelStack | SparsePoints) -> str:
    """Return a checksum of points or strings, or of the kernels between some samples of a stack."""
    if isinstance(samples, SparsePoints):
        return samples.checksum
    return digest(sampled(samples.gram()) if isinstance(samples, KernelStack) else samples)
