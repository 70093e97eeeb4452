"""What `kernelopt fit` has written, in Python: its estimator behind the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from kernelopt.errors import InputError, NotFiniteError, ShapeError
from kernelopt.estimators.saving import SavedMixin
from kernelopt.records import record
from kernelopt.validation import Array, as_float_array, is_number, shown
from kernelopt.validation.messages import listed, suggestion

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
            Its cells are numbers or text. An array has the d `coordinates`, before they are shifted and
            scaled.

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

    def _of_frame(self, X: Any) -> Array:
        used, names = [*self.numeric, *self.categories], [str(name) for name in X.columns]
        missing = [name for name in used if name not in names]
        if missing:
            others = [name for name in names if name not in used]
            raise InputError(
                f"{source(X)} must have the columns of the training table, got none named "
                f"{listed([*map(repr, missing)])}.{suggestion(missing[0], others)} Rename or add them. There "
                f"are: {listed(names)}."
            )
        frame = pd.DataFrame({name: list(X[name]) for name in used}, dtype=object)
        frame.attrs = getattr(X, "attrs", {})
        frame = self.filled(frame)
        refuse_cells(frame, frame.isna(), "every cell must have a value")
        numbers = as_numbers(frame[list(self.numeric)])
        remedy = "Correct these cells, or say that the decimal mark of the file is a comma."
        refuse_cells(frame, numbers.isna(), "columns must hold numbers", remedy)
        refuse_cells(frame, np.isinf(numbers), "numbers must be finite", error=NotFiniteError)
        texts = frame[list(self.categories)].map(lambda cell: str(cell).strip())
        for name, known in self.categories.items():
            must = f"the column {name!r} must hold texts of the training table ({listed(known)})"
            remedy = "Correct or leave out these rows, or fit again with them."
            refuse_cells(frame, ~texts[[name]].isin(known), must, remedy)
        indicators = [
            texts[[name]].to_numpy() == np.array([known]) for name, known in self.categories.items()
        ]
        return np.ascontiguousarray(np.hstack([numbers, *indicators]), dtype=np.float64)

    def filled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame of the used columns as it is: gaps are errors."""
        return frame


class ImputedColumns(TableColumns):
    """`TableColumns` whose cells without a value are filled, as by `kernelopt fit --impute`.

    Parameters
    ----------
    fill : dict from str to str
        What stands for a missing cell of each column: the median of its numbers, or its most frequent text,
        in the training table.
    numeric, categories, shift, scale
        As for `TableColumns`.
    """

    def __init__(
        self,
        numeric: Sequence[str],
        categories: Mapping[str, Sequence[str]],
        shift: Array,
        scale: Array,
        fill: Mapping[str, str],
    ) -> None:
        super().__init__(numeric, categories, shift, scale)
        self.fill = fill

    def filled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame of the used columns without gaps."""
        decimal = frame.attrs.get("decimal", ".")
        texts = {
            name: text.replace(".", decimal) if name in self.numeric else text
            for name, text in self.fill.items()
        }
        whole = pd.DataFrame({name: frame[name].where(frame[name].notna(), texts[name]) for name in frame})
        whole.attrs = frame.attrs
        return whole


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of the cells, NaN where a cell holds something else or nothing.

    Python's own "1_000" is text, and "2.500" where the decimal mark of the file is a comma.
    """
    decimal = frame.attrs.get("decimal", ".")

    def number(cell: Any) -> float:
        if isinstance(cell, str) and "_" not in cell and (decimal == "." or "." not in cell):
            with suppress(ValueError):
                return float(cell.replace(decimal, "."))
        return float(cell) if is_number(cell) else np.nan

    return frame.map(number).astype(float)


def refuse_cells(
    frame: pd.DataFrame,
    wrong: pd.DataFrame,
    must: str,
    remedy: str = "Correct or leave out these rows.",
    error: type[InputError] = InputError,
) -> None:
    """Raise an error if some cells are wrong, which names all columns, the rows and the first of the cells.

    Parameters
    ----------
    frame : data frame of n rows
    wrong : data frame of truth values
        Some columns of the frame, with the n rows.
    must : str
        What was expected.
    remedy : str
        What to do.
    error : class of an InputError
    """
    found = wrong.loc[:, wrong.any()]
    if not found.empty:
        rows, name = np.flatnonzero(found.any(axis=1)) + 1, found.columns[0]
        first = int(np.flatnonzero(found[name])[0])
        counts = listed([f"{name!r} ({count})" for name, count in found.sum().items()])
        raise error(
            f"{must}, got {shown(frame[name].iloc[first])} in row {first + 1} of {name!r} in "
            f"{source(frame)}. Such cells are in {rows.size} of {len(frame)} rows below the header "
            f"({listed([str(row) for row in rows], 3)}), in {counts}. {remedy}"
        )


def source(frame: Any) -> str:
    """Return the file of a data frame that the command line has read, else "X"."""
    return str(getattr(frame, "attrs", {}).get("path", "X"))


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


@record("imputed columns", ImputedColumns)
def imputed_columns(
    numeric: tuple[str, ...],
    categories: dict[str, tuple[str, ...]],
    shift: Annotated[Array, "d"],
    scale: Annotated[Array, "d"],
    fill: dict[str, str],
) -> ImputedColumns:
    """Return the columns that a file describes."""
    columns = table_columns(numeric, categories, shift, scale)
    if [*fill] != [*numeric, *categories]:
        raise ValueError(f"a text for each column expected, got {fill}")
    return ImputedColumns(**columns.get_params(), fill=fill)


@record(TABLE_MODEL)
@dataclass(frozen=True)
class TableModel:
    """What `kernelopt fit` has learned from a table, and its file has.

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
    estimator: Any
    target: str
    dropped: tuple[str, ...]
    task: Task
    rows: int
    score: float
    scores: tuple[float, ...] | None
    chosen: float | None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SavedMixin):
            raise ValueError(f"estimator must be a fitted estimator, got {shown(self.estimator)}")

    @property
    def measure(self) -> str:
        """What `score` is."""
        return "accuracy" if self.task == "classification" else "R^2"

    @property
    def classes(self) -> list[Any]:
        """The classes, none of a regression."""
        return self.estimator.classes_.tolist() if self.task == "classification" else []

    def pipeline(self) -> Pipeline:
        """Return the columns and the estimator as a pipeline."""
        return Pipeline([("columns", self.columns), ("estimator", self.estimator)])
