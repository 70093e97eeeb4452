"""Every argument of every method of the estimators meets every careless value, as in `test_gate.py`.

What comes back is an error of kernelopt that names the argument, an error of scikit-learn's own checks, or a
right answer: no foreign error, no NaN and no warning of numpy.
"""

from __future__ import annotations

import re
import traceback
import warnings
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

import kernelopt as ko
from tests.validation import estimator_calls
from tests.validation.careless import EXTREME, KINDS, TAKEN, Call

SHARE = (
    6  # the default run tries each sixth value of an argument, beginning with one that its name determines
)
TEXTS = ("as text", "as bytes", "as objects of text")  # numbers, as scikit-learn reads them
OURS = (
    ko.ConvergenceWarning,
    ko.errors.ScaleWarning,
    ko.errors.LabelWarning,
    ko.errors.ConditionWarning,
    DataConversionWarning,
)


@cache
def calls() -> dict[str, Call]:
    return estimator_calls.calls()


def outcome(call: Call, argument: str, value: Any) -> str:
    """Return "" for a finite answer, "refused" for a good error, else what is wrong."""
    names = "|".join(filter(None, [argument, call.arguments[argument].named]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kind in OURS:
                warnings.simplefilter("ignore", kind)
            warnings.filterwarnings("ignore", "X (has|does not have)( valid)? feature names", UserWarning)
            found = call(**{argument: value})
    except ko.KerneloptError as error:
        good = len(str(error).split()) >= 8 and re.search(rf"\b({names})\b", str(error))
        return "refused" if good else f"does not name it: {error}"
    except (TypeError, ValueError) as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        checks = any(re.search(r"sklearn.utils.(validation|multiclass|_array_api)", name) for name in frames)
        return "refused" if checks else f"raises {type(error).__name__}: {error}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return "" if found.dtype.kind not in "fc" or np.isfinite(found).all() else "answers with NaN"


def wrong(name: str, share: int) -> dict[tuple[str, str, str], str]:
    """Return what is wrong with a share of the careless values of all arguments of a call."""
    found: dict[tuple[str, str, str], str] = {}
    made = calls()[name]
    for argument, arg in made.arguments.items():
        extreme = EXTREME if arg.kind in ("array", "vector") else {}
        values = KINDS[arg.kind] | extreme
        chosen = sorted(values.keys() - set(arg.skips.split(", ")))
        for what in chosen[crc32(f"{name} {argument}".encode()) % share :: share]:
            met = outcome(made, argument, values[what](arg.value))
            taken = what in arg.takes.split(", ")
            if met not in (("", "refused") if what in extreme else ("" if taken else "refused",)):
                found[name, argument, what] = met or "has an answer"
    return found


def test_a_careless_value_is_refused_or_has_a_right_answer():
    assert not {where: what for name in calls() for where, what in wrong(name, SHARE).items()}


@pytest.mark.slow
def test_every_careless_value_is_refused_or_has_a_right_answer():
    assert not {where: what for name in calls() for where, what in wrong(name, 1).items()}


@pytest.mark.slow
def test_other_forms_of_a_value_have_the_same_answer():
    for name, made in calls().items():
        expected = made()
        for argument, arg in made.arguments.items():
            texts = {what: KINDS["array"][what] for what in TEXTS if what in arg.takes and argument == "X"}
            for form, make in (TAKEN[arg.kind] | texts).items():
                value = make(arg.value)
                if form in arg.refuses.split(", "):
                    assert outcome(made, argument, value) == "refused", (name, argument, form)
                    continue
                found = made(**{argument: value})
                where = f"{name}, {argument}: {form}"
                if expected.dtype.kind == "f":
                    close = 1e-2 if form == "float32" else 1e-5  # other numbers, and the tolerance of a solve
                    np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=where)
                else:
                    assert np.array_equal(found, expected), where


def test_there_are_calls_enough():
    values = [
        len(KINDS[arg.kind] | (EXTREME if arg.kind in ("array", "vector") else {}))
        for made in calls().values()
        for arg in made.arguments.values()
    ]
    assert sum(values) > 5000 and sum(values) / SHARE > 600
