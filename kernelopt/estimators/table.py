"""What `kernelopt fit` has written, in Python: its estimator behind the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from kernelopt.errors import InputError, ShapeError
from kernelopt.estimators.contents import estimator_from_contents
from kernelopt.validation import Array, as_float_array, as_vector, shown

TABLE_MODEL = "table model"  # the kind of the files of `kernelopt fit`


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

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> TableColumns:
        """Return the columns of a header; wrong ones raise KeyError, TypeError or ValueError."""
        categories = {str(name): tuple(map(str, known)) for name, known in dict(found["categories"]).items()}
        numeric = tuple(map(str, found["numeric"]))
        d = len(coordinate_names(numeric, categories))
        shift, scale = (as_vector(found[name], name, d) for name in ("shift", "scale"))
        if not (scale > 0).all():
            raise ValueError("scale must be positive")
        return cls(numeric, categories, shift, scale)

    def as_dict(self) -> dict[str, Any]:
        """Return the record for a header in JSON; `from_dict` is the inverse."""
        return {
            "numeric": list(self.numeric),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "shift": self.shift.tolist(),
            "scale": self.scale.tolist(),
        }

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


def pipeline_from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Pipeline:
    """Return the model of a file of `kernelopt fit` as a pipeline of its columns and its estimator."""
    estimator = estimator_from_contents(header["estimator"], arrays)
    return Pipeline([("columns", TableColumns.from_dict(header["features"])), ("estimator", estimator)])
