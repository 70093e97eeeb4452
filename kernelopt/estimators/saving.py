"""`SavedMixin`: estimators are saved to files, and their bounds proved again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelopt.catalog import Formulation
from kernelopt.certificates import certify
from kernelopt.errors import InputError, LabelError
from kernelopt.estimators.contents import estimator_contents
from kernelopt.estimators.labels import read_labels
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.remembered import sampled_checksum
from kernelopt.files import write_file
from kernelopt.grams import Grams
from kernelopt.grams.written import StackReader
from kernelopt.methods.saved import SavedSolution, contents, from_contents, points_checksum, values_checksum
from kernelopt.validation import Array, Index, as_model_path, shown


class SavedMixin:
    """Adds `save` and `certify` to the estimators.

    Attributes
    ----------
    _rows : array of shape (n_used,)
        The samples of the problem, as positions among those of `fit`.
    _checksum : str
        That of these samples.
    _labels_checksum : str
        That of the labels or targets of `formulated`, if that is stated.
    """

    solution_: Any
    classes_: Any
    _trained: Any
    _rows: Index
    _checksum: str

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
        write_file(target, "estimator", *estimator_contents(self))
        return target

    def certify(self, X: Any, y: Any = None) -> Any:
        """Compute the bounds again from the training data, at the learned weights and dual variables.

        Parameters
        ----------
        X, y
            As they were passed to `fit`, in the same order. `OneClassMKL` does not read y. Nor does
            `TripletKernel`, which keeps its comparisons.

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
        samples, labels = self._problem_samples(X), self.problem_labels(y)
        groups = [labels] if len(solutions) == 1 else [[each] for each in labels]
        found = tuple(
            self._certificate(solution, samples, given)
            for solution, given in zip(solutions, groups, strict=True)
        )
        return found if several else found[0]

    def _certificate(self, solution: SavedSolution, samples: Array | KernelStack, labels: list[Any]) -> Any:
        """Return the certificate of one problem on its samples."""
        proof = solution.proof
        if isinstance(proof, str):  # the problem is of a form that no file holds, and is built again
            self._check_labels(labels)
            found = self.formulated(self._trained.between(samples), labels)
            return certify(found if isinstance(found, cp.Problem) else found.problem, solution)
        if isinstance(samples, KernelStack):
            reader = StackReader(proof.arrays, given=[samples.gram().storage])
        else:
            reader = StackReader(proof.arrays, X=self._trained.dictionary.points(samples))
        y = labels[0] if len(labels) == 1 else labels
        return proof.certificate(reader, len(samples), y, solution.certificate.alphas)

    def formulated(self, grams: Grams, labels: list[Any]) -> Formulation | cp.Problem:
        """Return the problem of `fit` on the kernels of its samples.

        An estimator states it if its problem has another form than risks over an l_p ball.

        Parameters
        ----------
        grams : Grams
            What `fit_kernels` has returned.
        labels : list
            What `problem_labels` returns.
        """
        raise NotImplementedError

    def keep_labels(self, labels: list[Any]) -> None:
        """Keep a checksum of what `problem_labels` returns, for `certify`."""
        self._labels_checksum = values_checksum(np.array(labels))

    def _check_labels(self, labels: list[Any]) -> None:
        """Raise unless labels or targets are those of `fit`."""
        stored = getattr(self, "_labels_checksum", None)
        if stored is not None and values_checksum(np.array(labels)) != stored:
            raise InputError(
                "y must be the data that the estimator was fitted on, got other values in certify. Pass the "
                "same y, in the same order."
            )

    def problem_labels(self, y: Any) -> list[Any]:
        """Return the labels or targets of each risk, on the samples of the problem, from those of `fit`."""
        given, classes = self.problem_part(read_labels(y, self)), self.classes_
        unknown = [label for label in np.unique(given).tolist() if label not in classes.tolist()]
        if unknown:
            raise LabelError(
                f"y must hold the labels of fit, {shown(classes.tolist())}, got {shown(unknown)} in certify. "
                "Pass the same y."
            )
        positives = classes[1:] if classes.size == 2 else classes
        return [np.where(given == label, 1.0, -1.0) for label in positives]

    def problem_part(self, y: Any) -> Any:
        """Return labels or targets on the samples of the problem, shape (n_used,), from those of `fit`."""
        if y.size <= self._rows.max():
            raise InputError(
                "y must hold the labels or targets of all samples of fit, got "
                f"{y.size} in certify. Pass the same y."
            )
        return y[self._rows]

    def _problem_samples(self, X: Any) -> Array | KernelStack:
        """Return the samples of the problem from those of `fit`, after a check that they are the same."""
        samples = self.read_new(X)  # type: ignore[attr-defined]
        samples = KernelStack(samples) if getattr(samples, "ndim", None) == 3 else samples
        if len(samples) > self._rows.max() and samples_checksum(samples[self._rows]) == self._checksum:
            return samples[self._rows]
        raise InputError(
            f"X must be the data that the estimator was fitted on, got {len(samples)} samples with other "
            "numbers in certify. Pass the same X, in the same order."
        )


def samples_checksum(samples: Array | KernelStack) -> str:
    """Return a checksum of points or strings, or of the kernels between some samples of a stack."""
    if isinstance(samples, KernelStack):
        return sampled_checksum(samples.gram())
    return points_checksum(samples)


def as_saved(solution: Any) -> SavedSolution:
    """Return what a file keeps of a solution, or the solution of a loaded estimator itself."""
    if isinstance(solution, SavedSolution):
        return solution
    return from_contents(*contents(solution, machines=False))
