"""Kernels as text, such as "gaussian(0.5) + 2 * linear()", and back.

The text is parsed into a syntax tree, and the tree is read. Nothing is evaluated, so that text from a file
can do no harm.
"""

from __future__ import annotations

import ast
import inspect
import math
import warnings
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from kernelopt.entry_points import subclasses
from kernelopt.errors import InputError, ParameterError
from kernelopt.kernels.base import Kernel, _Joined
from kernelopt.kernels.derived import normalized, on_columns
from kernelopt.kernels.elementary import gaussian, identity, laplacian, linear, polynomial
from kernelopt.kernels.strings import spectrum, weighted_degree
from kernelopt.records import register
from kernelopt.validation import is_real, shown
from kernelopt.validation.messages import suggestion

OWN: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        gaussian,
        identity,
        laplacian,
        linear,
        normalized,
        on_columns,
        polynomial,
        spectrum,
        weighted_degree,
    )
}
GROUP = "kernelopt.kernels"  # of the entry points in which other packages name their kernels
REMEDY = "Write it as in Python, with numbers and kernels as arguments: gaussian(width=0.5)."


def kernel_classes() -> dict[str, type[Kernel]]:
    """Return the classes of kernels that text may name: kernelopt's, then the classes of other packages."""
    return OWN | {point.name: found for point, found in subclasses(GROUP, Kernel, OWN)}


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes.

    The text is what one would write in Python: calls of kernels, with numbers or kernels as arguments, joined
    by ``+`` and ``*``. It is read and not evaluated. `kernel_text` is the inverse.

    Parameters
    ----------
    text : str
        For example ``"gaussian(0.5)"``, ``"2 * linear() + normalized(polynomial(degree=3))"`` or
        ``"on_columns(gaussian(1.0), [0, 4])"``. The kernels are `kernelopt.kernels`, and the kernels that
        other packages name in entry points of the group "kernelopt.kernels".

    Raises
    ------
    ParameterError
        If the text is no such expression, names an unknown kernel, or gives it arguments that it does not
        take.
    InputError
        If the arguments are out of range.

    Examples
    --------
    >>> import kernelopt as ko
    >>> ko.parse_kernel("2 * gaussian(0.5) + linear()")
    (2.0 * gaussian(width=0.5) + linear())
    """
    if not isinstance(text, str):
        raise ParameterError(
            f"the text of a kernel must be a string, got {shown(text)} ({type(text).__name__}). "
            'Write "gaussian(0.5)", say.'
        )
    text = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python warns of text that is hardly meant, such as "1in"
            tree = ast.parse(text, mode="eval").body
        kernel = _read(tree, text)
    except InputError:
        raise
    except (
        SyntaxError,
        ValueError,
        MemoryError,
        RecursionError,
    ) as error:  # deep nesting too
        reason = error.msg if isinstance(error, SyntaxError) else error
        wanted = "an expression such as 2 * gaussian(0.5) + linear()"
        raise _refused(text, wanted, text, why=f" ({reason})") from error
    if not isinstance(kernel, Kernel):
        raise _refused(text, "a kernel", text)
    return kernel


def kernel_text(kernel: Kernel) -> str:
    """Return the text of a kernel, from which `parse_kernel` makes an equal one, to the last bit.

    It is `repr` where that is complete: `repr` shortens long lists of columns.

    Raises
    ------
    ParameterError
        If `parse_kernel` could not read it: the class has no name of an entry point, or a field is neither a
        number, text, a kernel, nor a tuple of these.
    """
    if isinstance(kernel, _Joined):
        parts = [kernel_text(part) for part in kernel.parts]
        if kernel.operator == "+":
            return f"({' + '.join(parts)})"
        return " * ".join([repr(kernel.factor), *parts]).removeprefix("1.0 * ")
    kind: type = type(kernel)
    classes = OWN if kind in OWN.values() else kernel_classes()
    name = next((name for name, known in classes.items() if known is kind), None)
    if name is None or not is_dataclass(kind):
        raise ParameterError(
            "a kernel that is written as text must be one of kernelopt.kernels or a dataclass that a package "
            f'names in an entry point of the group "{GROUP}", got {shown(kernel)} ({kind.__name__}). Put its '
            "class into a package, as CONTRIBUTING.md describes, or compute its Gram matrices beforehand."
        )
    values = {field.name: getattr(kernel, field.name) for field in fields(kind) if field.init}
    return f"{name}({', '.join(f'{key}={_value_text(value, kernel)}' for key, value in values.items())})"


def _value_text(value: Any, kernel: Kernel) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Kernel):
        return kernel_text(value)
    if isinstance(value, tuple):
        return f"({', '.join(_value_text(entry, kernel) for entry in value)}{',' * (len(value) == 1)})"
    if (
        value is None
        or isinstance(value, bool | int | str)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return repr(value)
    raise ParameterError(
        "a kernel that is written as text must have fields that are numbers, text, kernels or tuples of "
        f"them, got {shown(value)} ({type(value).__name__}) in {type(kernel).__name__}. Store it in one of "
        "these forms."
    )


def _refused(
    text: str, wanted: str, got: str | ast.AST, why: str = "", remedy: str = REMEDY
) -> ParameterError:
    """Return the error for a part of a text: a piece of it, or a node of its tree."""
    if isinstance(got, ast.AST):
        got = ast.get_source_segment(text, got) or type(got).__name__
    where = "" if got == text else f" in {shown(text)}"
    return ParameterError(f"the text of a kernel must be {wanted}, got {shown(got)}{where}{why}. {remedy}")


def _read(node: ast.expr, text: str) -> Any:
    """Return the kernel, the number, the string or the tuple of a node."""
    match node:
        case ast.BinOp(op=ast.Add() | ast.Mult()):
            return _joined(node, text)
        case ast.Call(func=ast.Name(id=name)):
            return _called(node, _class(name, text), text)
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=entries) | ast.List(elts=entries):
            return tuple(_read(entry, text) for entry in entries)
        case ast.Name(id=name):
            _class(name, text)
            remedy = f"Write {name}(), with its arguments between the parentheses."
            raise _refused(text, "made of calls", name, remedy=remedy)
    raise _refused(text, "made of calls of kernels, sums, products and numbers", node)


def _joined(node: ast.BinOp, text: str) -> Kernel:
    """Return a sum or a product, in a loop over its operands, since there may be thousands."""
    operands: list[tuple[ast.operator, ast.expr]] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add | ast.Mult):
        operands.append((first.op, first.right))
        first = first.left
    total = _read(first, text)
    for operator, right in reversed(operands):
        other, product = _read(right, text), isinstance(operator, ast.Mult)
        kernels = isinstance(total, Kernel) + isinstance(other, Kernel)
        if kernels + (product and (is_real(total) or is_real(other))) < 2:
            wanted = (
                "made of products of kernels, and numbers times kernels" if product else "a sum of kernels"
            )
            raise _refused(text, wanted, f"{shown(total)} {'*' if product else '+'} {shown(other)}")
        total = total * other if product else total + other
    return total  # type: ignore[no-any-return]


def _called(node: ast.Call, kind: type[Kernel], text: str) -> Kernel:
    """Return the kernel that a call makes."""
    names = [keyword.arg for keyword in node.keywords]
    if None in names or len(set(names)) < len(names) or any(isinstance(a, ast.Starred) for a in node.args):
        raise _refused(text, "made of calls with one value for each argument", node)
    values = [_read(argument, text) for argument in node.args]
    named = {str(keyword.arg): _read(keyword.value, text) for keyword in node.keywords}
    signature = inspect.signature(kind)
    try:
        signature.bind(*values, **named)
    except TypeError as error:
        fitting = f"made of calls that fit {kind.__name__}({', '.join(signature.parameters)})"
        raise _refused(text, fitting, node, f" ({error})", "Correct the arguments.") from error
    try:
        return kind(*values, **named)
    except InputError as error:
        raise type(error)(f"{shown(ast.get_source_segment(text, node))}: {error}") from error


def _class(name: str, text: str) -> type[Kernel]:
    classes = OWN if name in OWN else kernel_classes()
    if name not in classes:
        meant = "gaussian" if name.lower() == "rbf" else name  # scikit-learn's name
        remedy = f"{suggestion(meant, classes)} `kernelopt list kernels` describes them.".lstrip()
        raise _refused(text, f"made of the kernels {', '.join(classes)}", name, remedy=remedy)
    return classes[name]


register("kernel", Kernel, kernel_text, parse_kernel)
