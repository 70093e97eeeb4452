"""`load`: what a file of kernelopt holds, without running anything in it."""

from __future__ import annotations

import os
from typing import Any

from kernelopt.errors import FileError
from kernelopt.files import read_file
from kernelopt.methods import saved  # noqa: F401 - it registers solutions
from kernelopt.records import decoded
from kernelopt.validation import as_path


def load(path: str | os.PathLike[str]) -> Any:
    """Return what `save` of a `Solution` or of an estimator, or `kernelopt fit`, has written to a file.

    Nothing in the file is executed: numbers are read as numbers, and kernels by `parse_kernel`.

    Parameters
    ----------
    path : str or path-like
        The file, which is not changed.

    Returns
    -------
    SavedSolution, estimator or Pipeline
        The model of `kernelopt fit` is a pipeline of scikit-learn: it predicts from data frames with the
        columns of the training table. Its last step is the estimator.

    Raises
    ------
    FileError
        If there is no such file, or it is damaged, foreign, of another kind or of a later version, or an
        entry of it is wrong.

    Examples
    --------
    >>> import tempfile, cvxpy as cp, kernelopt as ko
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1]
    >>> theta = cp.Variable(2, nonneg=True)
    >>> K = ko.combine(theta, ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X))
    >>> problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), ko.lp_ball(theta, 2))
    >>> solution = ko.solve(problem)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = ko.load(solution.save(f"{folder}/model.npz"))
    >>> model.decision_function([[-1.0], [5.0]]).round(1)
    array([-2.6,  2.6])
    >>> ko.certify(problem, model).gap < 1e-5
    True
    """
    target = as_path(path, "path")
    if not target.exists():
        raise FileError(
            f"path must be a file that `save` has written, got {target}, where there is none. Correct the "
            "name."
        )
    header, arrays = read_file(target, "solution", "estimator", "table model")
    kind = header["kernelopt"]
    if kind != "solution":
        import kernelopt.estimators.table  # noqa: F401 - it registers estimators; scikit-learn takes long
    found = decoded({kind: header.get("record")}, arrays, target)
    return found.pipeline() if kind == "table model" else found
