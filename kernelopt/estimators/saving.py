"""`SavedMixin`: estimators are saved to files, and their bounds proved again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from kernelopt.errors import InputError, LabelError
from kernelopt.estimators.contents import estimator_contents
from kernelopt.estimators.kernels import PointKernels
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.files import write_file
from kernelopt.methods.saved import SavedSolution, contents, from_contents
from kernelopt.validation import Index, as_path, shown


class SavedMixin:
    """Adds `save` and `certify` to the estimators.

    Attributes
    ----------
    _rows : array of shape (n_used,)
        The samples of the problem, as positions among those of `fit`.
    """

    solution_: Any
    _trained: Any
    _rows: Index

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator to a file, from which `kernelopt.load` makes an equal one.

        The file has the parameters, the kernels as text, the points of the support, the machines and the
        certificates. It has no Gram matrices and no pickle.

        Parameters
        ----------
        path : str or path-like
            An NPZ archive; an existing file is replaced at once.

        Returns
        -------
        Path

        Raises
        ------
        ParameterError
            If a parameter cannot be written, such as a kernel that is a function of Python.
        """
        check_is_fitted(self)
        target = as_path(path, "path")
        write_file(target, "estimator", *estimator_contents(self))
        return target

    def certify(self, X: Any, y: Any = None) -> Any:
        """Compute the bounds again from the training data, at the learned weights and dual variables.

        Parameters
        ----------
        X, y
            As they were passed to `fit`, in the same order.

        Returns
        -------
        Certificate, or tuple of them where each class has its own problem

        Raises
        ------
        InputError
            If the data are not those of `fit`.
        """
        check_is_fitted(self)
        several = isinstance(self.solution_, tuple)
        solutions = [as_saved(each) for each in (self.solution_ if several else [self.solution_])]
        data, labels = self._problem_samples(X), self.problem_labels(y)
        groups = [labels] if len(solutions) == 1 else [[each] for each in labels]
        found = tuple(
            solution.certify(data, given[0] if len(given) == 1 else given)
            for solution, given in zip(solutions, groups, strict=True)
        )
        return found if several else found[0]

    def problem_labels(self, y: Any) -> list[Any]:
        """Return the labels or targets of each risk, on the samples of the problem, from those of `fit`."""
        if y is None:
            return [None]
        given = column_or_1d(y)
        if given.size <= self._rows.max():
            raise InputError(
                f"y must hold the labels of all samples of fit, got {given.size} in certify. Pass the same y."
            )
        given, classes = given[self._rows], getattr(self, "classes_", None)
        if classes is None:
            return [given]
        unknown = [label for label in np.unique(given).tolist() if label not in classes.tolist()]
        if unknown:
            raise LabelError(
                f"y must hold the labels of fit, {shown(classes.tolist())}, got {shown(unknown)} in certify. "
                "Pass the same y."
            )
        positives = classes[1:] if classes.size == 2 else classes
        return [np.where(given == label, 1.0, -1.0) for label in positives]

    def _problem_samples(self, X: Any) -> Any:
        """Return the points or the stack of the problem from the samples of `fit`."""
        samples = self.read_new(X)  # type: ignore[attr-defined]
        if isinstance(self._trained, PointKernels):
            check_length(len(samples), self._rows)
            return self._trained.dictionary.points(samples[self._rows])
        stack = samples if isinstance(samples, KernelStack) else KernelStack(samples)
        check_length(len(stack), self._rows)
        return stack[self._rows].gram()


def check_length(n: int, rows: Index) -> None:
    """Raise unless there are as many samples as `fit` has used."""
    if n <= rows.max():
        raise InputError(f"X must hold all samples of fit, got {n} in certify. Pass the same X.")


def as_saved(solution: Any) -> SavedSolution:
    """Return what a file keeps of a solution, or the solution of a loaded estimator itself."""
    if isinstance(solution, SavedSolution):
        return solution
    return from_contents(*contents(solution, machines=False))
