"""What `kernelopt fit` has written, in Python: its estimator behind the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from kernelopt.errors import InputError, ShapeError
from kernelopt.estimators.saving import SavedMixin
from kernelopt.records import record
from kernelopt.validation import Array, as_float_array, shown

TABLE_MODEL = "table model"  # the kind of the files of `kernelopt fit`
Task = Literal["classification", "regression"]


class TableColumns(TransformerMixin, BaseEstimator):
    """The points of a table, as `kernelopt fit` has made them: it learns nothing more.

    Parameters
    ----------
    numeric : sequence of str
        Columns of numbers.
    categories : dict from str to sequence of str
        Columns of text with their values. Each value is a coordinate, 1 where it holds and 0 elsewhere.
    shift, scale : arrays of shape (d,)
        A point is (x - shift) / scale, in the order of `coordinates`.
    """

    def __init__(
        self, numeric: Sequence[str], categories: Mapping[str, Sequence[str]], shift: Array, scale: Array
    ) -> None:
        self.numeric = numeric
        self.categories = categories
        self.shift = shift
        self.scale = scale

    @property
    def coordinates(self) -> list[str]:
        """The names of the d coordinates of a point."""
        return coordinate_names(self.numeric, self.categories)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> TableColumns:
        """Return the columns themselves: their shift and scale are those of the file."""
        return self

    def transform(self, X: Any) -> Array:
        """Return rows as points.

        Parameters
        ----------
        X : data frame, or array of shape (n, d)
            A data frame has the columns of the table in any order, and may have others, which are not read.
            An array has the d `coordinates`, before they are shifted and scaled.

        Returns
        -------
        array of shape (n, d)

        Raises
        ------
        InputError
            If a column is missing, has no numbers, or a text that the training table did not have.
        """
        if hasattr(X, "columns"):
            X = self._of_frame(X)
        X = as_float_array(X, "X", ndim=2)
        if X.shape[1] != len(self.coordinates):
            raise ShapeError(
                f"X must have the columns {', '.join(self.coordinates)}, got {X.shape[1]} columns. Pass a "
                "data frame with the columns of the training table, or these columns as an array."
            )
        points: Array = (X - self.shift) / self.scale
        return points

    def _of_frame(self, frame: Any) -> Array:
        names = [str(name) for name in frame.columns]
        missing = [name for name in (*self.numeric, *self.categories) if name not in names]
        if missing:
            raise InputError(
                f"X must have the columns of the training table, got none named {', '.join(missing)}. Rename "
                f"or add them. There are: {', '.join(names)}."
            )
        columns = [as_float_array(frame[name], f"X[{name!r}]", ndim=1) for name in self.numeric]
        for name, known in self.categories.items():
            cells = [str(cell).strip() for cell in frame[name]]
            unknown = [cell for cell in cells if cell not in known]
            if unknown:
                raise InputError(
                    f"X[{name!r}] must hold texts of the training table ({', '.join(known)}), got "
                    f"{shown(unknown[0])}. Leave out these rows, or fit again with them."
                )
            columns += [np.array([cell == value for cell in cells], dtype=float) for value in known]
        return np.column_stack(columns)


def coordinate_names(numeric: Sequence[str], categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of the coordinates of points: numbers, and for each text whether it holds."""
    return [*numeric, *(f"{name}={value}" for name, known in categories.items() for value in known)]


@record("columns", TableColumns)
def table_columns(
    numeric: tuple[str, ...],
    categories: dict[str, tuple[str, ...]],
    shift: Annotated[Array, "d"],
    scale: Annotated[Array, "d"],
) -> TableColumns:
    """Return the columns that a file describes."""
    columns = TableColumns(numeric, categories, shift, scale)
    if len(columns.coordinates) != shift.size or not (scale > 0).all():
        raise ValueError(f"{len(columns.coordinates)} shifts and positive scales expected, got {scale}")
    return columns


@record(TABLE_MODEL)
@dataclass(frozen=True)
class TableFile:
    """What a file of `kernelopt fit` has.

    Attributes
    ----------
    columns : TableColumns
    estimator : fitted estimator
    target : str
    dropped : tuple of str
        The columns that were left out.
    task : "classification" or "regression"
    rows : int
        Of the training table.
    score : float
        On the training rows.
    scores : tuple of float, or None
        Of the cross-validation.
    chosen : float or None
        The C that the cross-validation has chosen.
    """

    columns: TableColumns
    estimator: SavedMixin
    target: str
    dropped: tuple[str, ...]
    task: Task
    rows: int
    score: float
    scores: tuple[float, ...] | None
    chosen: float | None

    def pipeline(self) -> Pipeline:
        """Return the columns and the estimator as a pipeline."""
        return Pipeline([("columns", self.columns), ("estimator", self.estimator)])
