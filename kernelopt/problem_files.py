"""Problems in files of other programs: SDPA's sparse format, and MPS for linear programmes."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.stated import without_attributes
from kernelopt.errors import FileError, InputError
from kernelopt.files import replacing
from kernelopt.structure.affine import affine
from kernelopt.structure.gate import check_problem, check_values
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import short
from kernelopt.validation import as_path

PUNCTUATION = str.maketrans(",(){}", "     ")  # SDPA's readers take these characters for spaces
COMMENTS = ('"', "*")
LONGEST = 60  # characters of a line in a message
SIDES = {"Inequality": (-1,), "NonPos": (-1,), "NonNeg": (1,), "Equality": (1, -1), "Zero": (1, -1)}
Entries = dict[tuple[int, int], dict[int, float]]  # (row, column) -> matrix -> value, of one block


class Lines:
    """The lines of a file in SDPA's format without its comments; errors name the line."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.number = existing(path, "read_sdpa"), 0
        lines = enumerate(self.path.read_text("utf-8", "replace").splitlines(), 1)
        held = (
            (i, line.translate(PUNCTUATION).split()) for i, line in lines if not line.startswith(COMMENTS)
        )
        self.rest = [(i, words) for i, words in held if words][::-1]

    def numbers(self, count: int, what: str, comment: bool = False) -> list[float]:
        """Return the `count` finite numbers of the next line, after which a word may begin a comment."""
        self.number, words = self.rest.pop() if self.rest else (self.number + 1, [])
        found = list(takewhile(np.isfinite, map(as_number, words)))
        if len(found) != count or (words[count:] and not comment):
            raise self.error(what, repr(" ".join(words)[:LONGEST]) if words else "the end of the file")
        return found

    def size(self, what: str) -> int:
        """Return the first number of the next line, which must be whole and positive."""
        (found,) = self.numbers(1, what, comment=True)
        if found < 1 or found % 1:
            raise self.error(what, f"{found:g}")
        return int(found)

    def entry(self, m: int, orders: list[float]) -> tuple[int, int, int, int, float]:
        """Return the matrix, the block, the row, the column and the value of the next line."""
        *numbers, value = self.numbers(5, "matrix, block, row, column and value of an entry, finite doubles")
        k, b, i, j = place = [int(number) for number in numbers]
        order = int(abs(orders[b - 1])) if 1 <= b <= len(orders) else 1
        names = ("matrices 0", "blocks 1", "rows 1", "columns 1")
        for name, at, given, last in zip(names, place, numbers, (m, len(orders), order, order), strict=True):
            if at != given or not int(name[-1]) <= at <= last:
                raise self.error(f"{name} to {last}", f"{given:g}")
        if i > j or (i < j and orders[b - 1] < 0):
            where = "on the diagonal of a diagonal block" if orders[b - 1] < 0 else "on or above the diagonal"
            raise self.error(f"entries {where}", f"row {i}, column {j}")
        return k, b, i, j, value

    def error(self, expected: str, got: str) -> FileError:
        """Return an error about the line that was read last."""
        return FileError(
            f"a file in SDPA's format must have {expected}, got {got} in line {self.number} of "
            f"{self.path} in read_sdpa. Correct the line."
        )


def existing(path: Any, caller: str) -> Path:
    """Return the path of a file that exists."""
    file = as_path(path, "path")
    if not file.is_file():
        raise FileError(
            f"path must be the path of a file that exists, got {file} in {caller}. Correct the path."
        )
    return file


def as_number(word: str) -> float:
    """Return a word as a number, nan where it is none."""
    try:
        return float(word)
    except ValueError:
        return np.nan


def read_sdpa(path: str | os.PathLike[str]) -> cp.Problem:
    r"""Read a semidefinite programme in SDPA's sparse format.

    .. math::

        \min_x\ c^\top x \quad\text{subject to}\quad \sum_{i=1}^m x_i F_i - F_0 \succeq 0

    with block-diagonal symmetric matrices F_0, ..., F_m.

    Parameters
    ----------
    path : str or path-like
        Lines that begin with ``"`` or ``*`` are comments. Then come m, the number of blocks, the orders of
        the blocks (negative for a diagonal block), the m entries of c, and the entries of the F_i on or above
        the diagonal, each in a line ``matrix block row column value``. Rows and columns are counted from one.

    Returns
    -------
    cp.Problem
        Its variable is `x` of shape (m,). Each block is a constraint with the label ``block 1``,
        ``block 2``, ...; a diagonal block is an inequality. The format has no equations: where an entry of a
        diagonal block is exactly the negative of a later one, as `write_sdpa` writes an equation, the two
        are one equation in the place of the first, with the label ``equations of block 1``, ....

    Raises
    ------
    FileError
        If there is no such file, or the text is not in the format. The message names the line. Entries below
        the diagonal, second values of one entry, blocks without an entry, and numbers beyond the range of
        doubles are errors.

    References
    ----------
    .. [1] Fujisawa, Kojima, Nakata and Yamashita, SDPA user's manual (2002), section 5.
    .. [2] Borchers, SDPLIB 1.2, Optimization Methods and Software 11 (1999).

    Examples
    --------
    >>> import pathlib, tempfile, kernelopt as ko
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "small.dat-s")
    ...     _ = file.write_text("1\n1\n2\n1.0\n0 1 1 2 -1.0\n1 1 1 1 1.0\n1 1 2 2 1.0\n")
    ...     problem = ko.read_sdpa(file)
    >>> certificate = ko.solve(problem).certificate
    >>> bool(certificate.lower <= 1 <= certificate.upper <= 1 + 1e-6)
    True
    """
    lines = Lines(path)
    m = lines.size("a number of variables, at least 1")
    count = lines.size("a number of blocks, at least 1")
    orders = lines.numbers(
        count, f"the orders of its {count} blocks, whole numbers other than 0", comment=True
    )
    if any(not order or order % 1 for order in orders):
        raise lines.error("orders of blocks that are whole numbers other than 0", f"{orders}"[:LONGEST])
    c = lines.numbers(m, f"the {m} entries of c, finite doubles")
    blocks: list[Entries] = [{} for _ in orders]
    while lines.rest:
        k, b, i, j, value = lines.entry(m, orders)
        values = blocks[b - 1].setdefault((i - 1, j - 1), {})
        if k in values:
            raise lines.error("each entry once", f"a second value of matrix {k}, block {b}, ({i}, {j})")
        values[k] = value
    for b, entries in enumerate(blocks, 1):
        if not entries:
            raise lines.error("entries in every block", f"none in block {b} up to the end")
    x = cp.Variable(m, name="x")
    pairs = opposite_rows([entries if n < 0 else {} for n, entries in zip(orders, blocks, strict=True)])
    constraints = []
    for b, (order, entries, twins) in enumerate(zip(orders, blocks, pairs, strict=True), 1):
        constraints += block_constraints(int(order), entries, twins, x, f"block {b}")
    return cp.Problem(cp.Minimize(cp.Constant(np.array(c), name="c") @ x), constraints)


def opposite_rows(diagonals: list[Entries]) -> list[dict[int, bool]]:
    """Return by block the rows that are negatives of each other, and of each whether it is the first one."""
    pairs: list[dict[int, bool]] = [{} for _ in diagonals]
    open_rows: dict[frozenset[tuple[int, float]], list[tuple[int, int]]] = {}
    for b, entries in enumerate(diagonals):
        for (i, _), values in sorted(entries.items()):
            row = {k: v for k, v in values.items() if v}
            firsts = open_rows.get(frozenset((k, -v) for k, v in row.items()), [])
            if row and firsts:
                first, at = firsts.pop(0)
                pairs[first][at], pairs[b][i] = True, False
            else:
                open_rows.setdefault(frozenset(row.items()), []).append((b, i))
    return pairs


def block_constraints(
    order: int, entries: Entries, twins: dict[int, bool], x: cp.Variable, label: str
) -> list[cp.Constraint]:
    """Return sum_i x_i F_i - F_0 >> 0, or >= 0 for a diagonal block, with one equation for two `twins`."""
    n = abs(order)
    found = [(i, j, k, v) for (i, j), values in entries.items() for k, v in values.items()]
    found += [(j, i, k, v) for i, j, k, v in found if i != j]
    rows, columns, matrices, values = np.array(found).T
    at = rows if order < 0 else rows + n * columns
    F = sp.csc_array(
        (values, (at.astype(int), matrices.astype(int))), shape=(n ** (1 + (order > 0)), x.size + 1)
    )

    def slack(F: Any) -> cp.Expression:
        return F[:, 1:] @ x - F[:, [0]].toarray().ravel()

    if order > 0:
        return [(cp.reshape(slack(F), (n, n), order="F") >> 0).set_label(label)]
    firsts = sorted(i for i, first in twins.items() if first)
    found = [(slack(F[firsts]) == 0).set_label(f"equations of {label}")] if firsts else []
    if len(twins) < n:
        rest = F[[i for i in range(n) if i not in twins]] if twins else F
        found.append((slack(rest) >= 0).set_label(label))
    return found


def write_sdpa(problem: cp.Problem, path: str | os.PathLike[str]) -> None:
    """Write a linear or semidefinite programme in SDPA's sparse format.

    Parameters
    ----------
    problem : cp.Problem
        With an affine objective and affine arguments of `==`, `>=`, `<=` and `>> 0`. The attributes of
        variables are written as constraints. The format has no equations: each is written as two
        inequalities, which `read_sdpa` reads as one equation. Of symmetric variables the entries of the upper
        triangle are variables of the file. A maximum is written as the minimum of minus the objective.
        Parameters have their values.
    path : str or path-like
        Coefficients are written so that they are read back as the same doubles. A constant of the objective
        stands in a comment, since the format has none.

    Raises
    ------
    InputError
        If the objective or a constraint is not of these kinds; the message names it.

    Examples
    --------
    >>> import pathlib, tempfile, cvxpy as cp, kernelopt as ko
    >>> X = cp.Variable((2, 2), PSD=True)
    >>> problem = cp.Problem(cp.Minimize(cp.trace(X)), [X[0, 1] >= 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ko.write_sdpa(problem, pathlib.Path(folder, "small.dat-s"))
    ...     again = ko.read_sdpa(pathlib.Path(folder, "small.dat-s"))
    >>> bool(abs(again.solve() - problem.solve()) < 1e-6)
    True
    """
    check_problem(problem)
    check_values(problem)
    file_path = as_path(path, "path")
    structure = Structure(problem)
    plain = without_attributes(structure.lifted, structure.variables).problem
    variables = [v for v in plain.variables() if v.size]
    blocks: list[tuple[int, Any]] = []

    def coefficients(e: cp.Expression, of: str) -> Any:
        """Return -F_0, F_1, ..., F_m of an affine expression, one column each."""
        found = None if structure.risks else affine(e)
        if found is None:
            raise InputError(
                f"a problem in SDPA's format must be affine in its variables, got {short(e)} in {of} in "
                "write_sdpa. Write it with linear matrix inequalities."
            )
        parts = [found.matrices.get(v, sp.csr_array((e.size, v.size))) for v in variables]
        return sp.hstack([sp.csr_array(found.constant[:, None]), *parts], format="csr")

    objective = coefficients(plain.objective.args[0], "the objective").toarray()[0]
    if structure.maximize:
        objective = 0.0 - objective
    for i, constraint in enumerate(plain.constraints):
        label, kind = constraint.label or f"constraint {i}", type(constraint).__name__
        e = constraint.expr if kind in SIDES else constraint.args[0]
        if kind == "PSD" and e.ndim == 2:
            blocks.append((e.shape[0], coefficients(e, label)))
        elif kind in SIDES:
            blocks += [(-e.size, side * coefficients(e, label)) for side in SIDES[kind]]
        else:
            raise InputError(
                "the constraints of a problem in SDPA's format must be ==, >=, <= and >> 0, got "
                f"{kind} in {label} in write_sdpa. Write it as a linear matrix inequality."
            )
    lines = [f'"objective: plus {objective[0]!r}' for _ in [0] if objective[0]]
    lines += [str(objective.size - 1), str(len(blocks)), " ".join(str(n) for n, _ in blocks)]
    lines.append(" ".join(repr(float(v)) for v in objective[1:]))
    for b, (n, F) in enumerate(blocks, 1):
        F = F.tocoo()
        rows, columns = (F.row, F.row) if n < 0 else (F.row % n, F.row // n)
        for i, j, k, v in zip(rows, columns, F.col, F.data, strict=True):
            if i <= j and v:
                lines.append(f"{k} {b} {i + 1} {j + 1} {float(v if k else -v)!r}")
    with replacing(file_path) as file:
        file.write("\n".join([*lines, ""]).encode())


def read_mps(path: str | os.PathLike[str]) -> cp.Problem:
    r"""Read a linear programme in MPS or LP format by HiGHS.

    Parameters
    ----------
    path : str or path-like
        A file that HiGHS reads: ``.mps``, ``.lp``, or one of these with ``.gz``.

    Returns
    -------
    cp.Problem
        Its variable is `x`, with the bounds of the columns. The rows are the constraints with the labels
        ``equations``, ``lower`` and ``upper``, in the order of the file.

    Raises
    ------
    FileError
        If there is no such file, HiGHS cannot read it, or the problem is no linear programme with real
        variables.

    Examples
    --------
    >>> import pathlib, tempfile, kernelopt as ko
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "small.lp")
    ...     _ = file.write_text("min\n obj: x + 2 y\nst\n c1: x + y >= 1\nend\n")
    ...     problem = ko.read_mps(file)
    >>> bool(abs(problem.solve() - 1) < 1e-6)
    True
    """
    import highspy

    file, solver = existing(path, "read_mps"), highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    failed = solver.readModel(str(file)) == highspy.HighsStatus.kError
    model = solver.getModel()
    lp = model.lp_
    why = "one that HiGHS cannot read" if failed else ""
    if any(kind != highspy.HighsVarType.kContinuous for kind in lp.integrality_):
        why = "integer variables"
    if model.hessian_.dim_:
        why = "a quadratic objective"
    if why or not lp.num_col_:
        raise FileError(
            f"a file must hold a linear programme with real variables, got {why or 'no variables'} in {file} "
            "in read_mps. Correct the file; `highs FILE` says more."
        )
    matrix = lp.a_matrix_
    A = sp.csc_array((matrix.value_, matrix.index_, matrix.start_), shape=(lp.num_row_, lp.num_col_)).tocsr()
    low, high = np.array(lp.row_lower_), np.array(lp.row_upper_)
    x = cp.Variable(lp.num_col_, name="x", bounds=[np.array(lp.col_lower_), np.array(lp.col_upper_)])
    constraints = []
    for label, rows, side in (
        ("equations", low == high, low), ("lower", (low < high) & (low > -np.inf), low),
        ("upper", (low < high) & (high < np.inf), high),
    ):  # fmt: skip
        if rows.any():
            left, right = A[rows] @ x, side[rows]
            constraints.append(
                left == right if label == "equations" else left >= right if side is low else left <= right
            )
            constraints[-1].set_label(label)
    value = cp.Constant(np.array(lp.col_cost_), name="c") @ x + lp.offset_
    return cp.Problem(
        cp.Minimize(value) if lp.sense_ == highspy.ObjSense.kMinimize else cp.Maximize(value), constraints
    )
