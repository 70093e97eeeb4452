"""Validation of single values: numbers, exponents, sizes, flags, choices, seeds and paths of files."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Iterable
from inspect import get_annotations
from pathlib import Path
from typing import Any

import numpy as np

from kernelopt.errors import InputError, ParameterError
from kernelopt.validation.messages import shown

LARGEST_SIZE = int(np.iinfo(np.intp).max)  # of an array


def bare(value: Any) -> Any:
    """Return the scalar in an array without dimensions, such as the `.value` of a cvxpy scalar."""
    if type(value) is np.ndarray and value.ndim == 0:  # not a masked array, which may hide its entry
        return value[()]
    return value


def is_real(value: Any) -> bool:
    """Whether a value is one real number. Truth values and numpy's time spans do not count."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def positive(
    value: Any, what: str, *, allow_zero: bool = False, allow_inf: bool = False, below: float = np.inf
) -> float:
    """Return a positive real number.

    Parameters
    ----------
    value : real number, or array of shape ()
        What the user has passed.
    what : str
        The name of the argument, for the message.
    allow_zero, allow_inf : bool, default False
        Whether 0 and infinity are allowed.
    below : float, default inf
        The open end of the interval: ``below=1`` takes the numbers in (0, 1).

    Raises
    ------
    ParameterError
        If it is no number, or out of range.

    Examples
    --------
    >>> from kernelopt.extend import positive
    >>> positive(2, "width")
    2.0
    >>> positive(1.5, "delta", below=1)
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: delta must be below 1, got 1.5. Choose a value in that range.
    """
    wanted = "non-negative" if allow_zero else "positive"
    wanted += " number" if allow_inf else " finite number"
    scalar = bare(value)
    if not is_real(scalar):
        raise ParameterError(
            f"{what} must be a {wanted}, got {shown(value)} ({type(value).__name__}). Pass one number."
        )
    try:
        number = float(scalar)
    except OverflowError as error:
        raise ParameterError(
            f"{what} must be a {wanted}, got {shown(value)}, which is too large for a double. "
            "Choose a value below 1e308."
        ) from error
    if np.isinf(number) and what == "C" and not allow_inf:
        raise ParameterError("C must be finite, got inf. The limit is hard_margin().")
    good = number >= 0 if allow_zero else number > 0
    if not good or (np.isinf(number) and not allow_inf):
        raise ParameterError(f"{what} must be a {wanted}, got {number:g}. Choose a value in that range.")
    if below < np.inf and not number < below:
        raise ParameterError(f"{what} must be below {below:g}, got {number:g}. Choose a value in that range.")
    return number


def exponent(value: Any, what: str = "p", minimum: float = 1.0, where: str = "", below: str = "") -> float:
    """Return the exponent of a norm, a number in [1, inf].

    Parameters
    ----------
    value : real number, or array of shape ()
        What the user has passed.
    what : str, default "p"
        The name of the argument, for the message.
    minimum : float, default 1.0
        The smallest allowed value.
    where, below : str
        The condition under which `minimum` applies, and what is wrong below it, for the message.

    Raises
    ------
    ParameterError
        If it is no such number. A cvxpy parameter is not allowed, since the exponent determines the cone.

    Examples
    --------
    >>> from kernelopt.extend import exponent
    >>> exponent(4), exponent(float("inf"))
    (4.0, inf)
    >>> exponent("two")
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: p must be a positive number, got 'two' (str). Pass one number.
    """
    scalar = bare(value)
    if is_real(scalar) and not scalar >= minimum:
        reason = below or f"Below 1 the ball is not convex; {what} = 1 is sparse."
        raise ParameterError(f"{what} must be at least {minimum:g}{where}, got {shown(scalar)}. {reason}")
    return positive(scalar, what, allow_inf=True)


def whole(value: Any, what: str, minimum: int = 1, wanted: str = "a positive whole number") -> int:
    """Return an integer of at least `minimum`, by default a positive one.

    Parameters
    ----------
    value : int
        What the user has passed.
    what : str
        The name of the argument, for the message.
    minimum : int, default 1
        The smallest allowed value.
    wanted : str
        A description of valid values, for the message.

    Raises
    ------
    ParameterError
        If it is no integer, too small, or larger than any size of an array.

    Examples
    --------
    >>> from kernelopt.extend import whole
    >>> whole(3, "degree")
    3
    >>> whole(2.5, "degree")
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: degree must be a positive whole number, got 2.5 (float). Pass an int.
    """
    scalar = bare(value)
    if not is_real(scalar) or not isinstance(scalar, numbers.Integral) or int(scalar) < minimum:
        raise ParameterError(
            f"{what} must be {wanted}, got {shown(value)} ({type(value).__name__}). Pass an int."
        )
    if int(scalar) > LARGEST_SIZE:
        raise ParameterError(
            f"{what} must be {wanted} of at most {LARGEST_SIZE}, got {shown(value)}. Pass a smaller int."
        )
    return int(scalar)


def boolean(value: Any, what: str) -> bool:
    """Return True or False. Other values are errors, since "no" would count as true.

    Parameters
    ----------
    value : bool
        What the user has passed.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ParameterError
        If it is neither.

    Examples
    --------
    >>> from kernelopt.extend import boolean
    >>> boolean(True, "bias")
    True
    >>> boolean("no", "bias")
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: bias must be True or False, got 'no' (str). Pass one of them.
    """
    scalar = bare(value)
    if not isinstance(scalar, bool | np.bool_):
        raise ParameterError(
            f"{what} must be True or False, got {shown(value)} ({type(value).__name__}). Pass one of them."
        )
    return bool(scalar)


def refuse_hidden(cls: type) -> None:
    """Raise an `InputError` if a field of a new class has the name of a method or property of a base class.

    The field would hide it, and a call of the method would fail far from here.
    """
    for name in get_annotations(cls):
        inherited = [getattr(base, name, None) for base in cls.__bases__]
        if name not in cls.__dict__ and any(callable(e) or isinstance(e, property) for e in inherited):
            raise InputError(
                f"a field of {cls.__name__} must have a name of its own, got {name!r}, which is a method or "
                f"property of {cls.__bases__[0].__name__}. Choose another name."
            )


def one_of(value: Any, what: str, choices: Iterable[str], hint: str = "Choose one of these.") -> str:
    """Return a value after checking that it is one of the strings `choices`.

    Parameters
    ----------
    value : str
        What the user has passed.
    what : str
        The name of the argument, for the message.
    choices : strings
        The allowed values.
    hint : str
        What to do, for the message.

    Raises
    ------
    ParameterError
        If it is none of them.

    Examples
    --------
    >>> from kernelopt.extend import one_of
    >>> one_of("full", "norm", ("full", "train"))
    'full'
    >>> one_of("all", "norm", ("full", "train"))
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: norm must be 'full' or 'train', got 'all'. Choose one of these.
    """
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise ParameterError(f"{what} must be {listed}, got {shown(value)}. {hint}")
    return str(value)


def as_generator(random_state: Any, what: str = "random_state") -> np.random.Generator:
    """Return a generator of random numbers, from a seed, from None, or as it is given.

    Parameters
    ----------
    random_state : int >= 0, Generator or None
        A seed, a generator, or None for one that the system seeds.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ParameterError
        If it is something else.

    Examples
    --------
    >>> from kernelopt.extend import as_generator
    >>> float(as_generator(0).uniform()) == float(as_generator(0).uniform())
    True
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    seed = bare(random_state)
    if not is_real(seed) or not isinstance(seed, numbers.Integral) or int(seed) < 0:
        raise ParameterError(
            f"{what} must be None, an integer of at least 0 or a Generator, got {shown(random_state)}. "
            "Pass a seed, or numpy.random.default_rng(seed)."
        )
    return np.random.default_rng(int(seed))


SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(?:([kmgt])(i?))?b?\s*", re.IGNORECASE)


def memory_size(value: Any, what: str) -> float:
    """Return a number of bytes, given as a number or as text such as "4GB", "500 MB" or "2GiB".

    Raises
    ------
    ParameterError
        If it is neither, or not positive.
    """
    if not isinstance(value, str):
        return positive(value, what)
    found = SIZE.fullmatch(value)
    if found is None:
        raise ParameterError(
            f'{what} must be a number of bytes or text such as "4GB", got {value!r}. The units are '
            "B, kB, MB, GB, TB, KiB, MiB, GiB and TiB."
        )
    power = "kmgt".index(found[2].lower()) + 1 if found[2] else 0
    return positive(float(found[1]) * (1024.0 if found[3] else 1000.0) ** power, what)


PICKLES = (".pkl", ".pickle", ".joblib")  # suffixes


def as_path(path: Any, name: str) -> Path:
    """Return the path of a file in an existing folder; messages name the argument `name`."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError(
            f"{name} must be the path of a file, got {shown(path)} ({type(path).__name__}). "
            "Pass text or a pathlib.Path."
        )
    file = Path(path)
    if file.is_dir() or not file.absolute().parent.is_dir():
        found = "a folder" if file.is_dir() else "one in a folder that does not exist"
        raise InputError(
            f"{name} must be the path of a file, got {found}: {file}. Create the folder, name a file."
        )
    return file


def as_model_path(path: Any, name: str) -> Path:
    """Return the path of a file that `save` writes: not one that promises a pickle, which it is not."""
    file = as_path(path, name)
    if file.suffix.lower() in PICKLES:
        raise InputError(
            f"{name} must not end in {file.suffix}, got {file}: the file is an NPZ archive and no pickle. "
            f"Pass {file.with_suffix('.npz')}."
        )
    return file
