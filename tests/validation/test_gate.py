"""Every public argument meets every careless value: a kernelopt error that names it, or the right answer.

The table of `public_calls.py` has one valid call of every public function. Each argument is replaced in
turn by every careless value of its kind. What comes back must be an error of kernelopt, never one of Python,
numpy or cvxpy, and its message must name the argument; or the value is listed as one that is taken, and then
the answer is that of the valid call.
"""

from __future__ import annotations

import re
import warnings
from inspect import isfunction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt import extend
from kernelopt.extend import as_grams, norms
from kernelopt.validation import memory_size
from tests.every import every
from tests.validation.careless import (
    CALLS,
    EXTREME,
    FEW_FORMS,
    KINDS,
    LIKE_OTHERS,
    TAKEN,
    Call,
    M,
    N,
    Series,
    records,
    value_of,
)
from tests.validation.public_calls import GRAMS, HINGE, K0, KERNELS, KS, E, V, W, X, Y, learning, transduced

# These solve a problem at each call: an argument meets one of the forms, whose turn it is.
SOLVING = (
    *("solve", "path", "price", "derive", "plot_duality", "lp_norm.path", "lp_norm.continuous_width"),
    *("triplet_lp.regularization_path", "similarity.restricted_spectral", "similarity.kernel_per_similarity"),
)
FORMULATIONS = ("lanckriet.", "lp_norm.", "similarity.", "triplet_lp.", "functional_strategy")


def outcome(call: Call, argument: str, value: Any) -> str:
    """Return "" where a careless value has an answer, "refused" for a good error, else what is wrong."""
    name = "|".join(filter(None, [argument, call.arguments[argument].named]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of sums with infinite numbers
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            call(**{argument: value})
    except ko.KerneloptError as error:
        message = str(error)
        good = len(message.split()) >= 8 and re.search(rf"\b({name})\b", message)
        return "refused" if good else f"does not name it: {message}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return ""


def answers(made: Call, argument: str, left_out: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what every careless value of an argument meets, and what it should meet."""
    arg = made.arguments[argument]
    names = KINDS[arg.kind].keys() - left_out - set(arg.skips.split(", "))
    found = {name: outcome(made, argument, KINDS[arg.kind][name](arg.value)) for name in sorted(names)}
    return found, {name: "" if name in arg.takes.split(", ") else "refused" for name in found}


@pytest.mark.parametrize("call", CALLS)
def test_a_careless_value_is_refused_by_name_or_is_known_to_be_right(call):
    left_out = LIKE_OTHERS if call.startswith(FORMULATIONS) else set()
    for argument in CALLS[call].arguments:
        found, wanted = answers(CALLS[call], argument, left_out)
        assert found == wanted, argument


@pytest.mark.slow
@pytest.mark.parametrize("call", [call for call in CALLS if call.startswith(FORMULATIONS)])
def test_every_careless_value_is_refused_by_a_formulation(call):
    for argument in CALLS[call].arguments:
        found, wanted = answers(CALLS[call], argument, set())
        assert found == wanted, argument


@pytest.mark.slow
@every("call", CALLS)
def test_other_forms_of_a_value_have_the_same_answer(call):
    expected = CALLS[call]()
    for argument in CALLS[call].arguments:
        check_forms(call, argument, expected)


def check_forms(call, argument, expected):
    """A value in another form, such as a list for an array, has the same answer or is refused."""
    made, arg = CALLS[call], CALLS[call].arguments[argument]
    forms = TAKEN[arg.kind]
    names = list(forms)
    if call.startswith((*FORMULATIONS, "certify")) and arg.kind in ("array", "vector"):
        names = sorted(FEW_FORMS.intersection(forms))
    if call.startswith(SOLVING):
        names = names[len(argument) % max(len(names), 1) :][:1]
    for name in names:
        make = forms[name]
        if name in arg.refuses.split(", "):
            assert outcome(made, argument, make(arg.value)) == "refused", (argument, name)
            continue
        found = made(**{argument: make(arg.value)})
        if isinstance(expected, float | np.ndarray) and np.asarray(expected).dtype.kind in "fiu":
            assert np.asarray(found, dtype=float) == pytest.approx(expected, rel=1e-5, abs=1e-6), (
                argument,
                name,
            )


def test_an_extreme_value_is_refused_or_has_an_answer_in_numbers():
    """No foreign error and no warning of numpy; kernels that centring makes zero have no alignment, NaN."""
    wrong = {}
    for name, made in CALLS.items():
        if name.startswith(SOLVING) or name in ("kernel_report", "lp_norm.elastic_net"):
            continue
        for argument, arg in made.arguments.items():
            for what in EXTREME if arg.kind in ("array", "vector") else ():
                try:
                    value = EXTREME[what](arg.value)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ko.errors.ConditionWarning)
                        found = made(**{argument: value})
                except ko.KerneloptError:
                    continue
                except Exception as error:
                    wrong[name, argument, what] = repr(error)
                    continue
                if isinstance(found, float | np.ndarray) and np.isnan(np.asarray(found, dtype=float)).any():
                    wrong[name, argument, what] = "NaN"
    assert not wrong


def test_the_table_has_every_public_function():
    """Those without arguments, records, and classes that only functions of ours make are not in it."""
    listed = {getattr(made.function, "__name__", "") for made in CALLS.values()} | set(CALLS)
    functions = {
        f"{module.__name__.rpartition('.')[2]}.{name}": name
        for module in (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
        for name in module.__all__
        if isfunction(getattr(module, name))
    }
    for module in (ko, extend):
        functions |= {name: name for name in module.__all__ if isfunction(getattr(module, name))}
    whole_names = " ".join(CALLS)
    missing = {
        full
        for full, name in functions.items()
        if name not in listed and not re.search(rf"\b{name}\b", whole_names)
    }
    of_authors = {
        "as_labels", "as_targets", "check", "conjugate", "on_simplex", "parameters_of", "read_ball"
    }  # fmt: skip
    assert missing == {"catalogue", "shown"} | of_authors  # they take what a package has checked


# ------------------------------------------------------------------- what the caller does later


@pytest.mark.parametrize("loss", [ko.hinge, ko.squared, ko.logistic, ko.one_class])
def test_labels_and_weights_are_copied(loss):
    y, C = np.ones(N) if loss is ko.one_class else Y.copy(), np.arange(1.0, N + 1)
    risk = ko.risk(K0, y, loss(C))
    before = float(risk.value)
    y[:], C[:] = y[::-1].copy(), 7.0
    risk.forget()
    assert float(risk.value) == before
    assert not risk.learner.loss.C.flags.writeable


def test_a_kernel_and_a_stack_are_copied():
    K, grams = K0.copy(), KS.copy()
    risk, stack_of_them = ko.risk(K, Y, HINGE), as_grams(grams)
    before = float(risk.value)
    K[:], grams[:] = 0.0, 0.0
    risk.forget()
    assert float(risk.value) == before and np.array_equal(stack_of_them, KS)


def test_the_machine_that_a_risk_keeps_is_not_changed_from_outside():
    risk = ko.risk(K0, Y, HINGE)
    before = risk.oracle().alpha.copy()
    with pytest.raises(ValueError, match="read-only"):
        risk.oracle().alpha[:] = 0.0
    assert np.array_equal(risk.oracle().alpha, before)


BUILDERS = {
    "lp_norm.primal": lambda grams, y: lp_norm.primal(grams, y, p=2),
    "lp_norm.block_norm": lambda grams, y: lp_norm.block_norm(grams, y, r=1.5),
    "lp_norm.elastic_net": lambda grams, y: lp_norm.elastic_net(grams, y, l1=1.0, l2=1.0),
    "lp_norm.tikhonov": lambda grams, y: lp_norm.tikhonov(grams, y, p=2, penalty=1.0),
    "lp_norm.one_class": lambda grams, y: lp_norm.one_class(grams, p=2, nu=0.5),
    "lanckriet.qcqp": lambda grams, y: lanckriet.qcqp(grams, y, C=1.0),
    "lanckriet.rank_one": lambda grams, y: lanckriet.rank_one(grams[0], y, C=1.0),
    "similarity.single_kernel": lambda grams, y: similarity.single_kernel(grams, y, rho=1.0, trace=3.0),
    "functional_strategy": lambda grams, y: linear_functional.functional_strategy(
        grams, y, regularization=np.ones(M)
    ),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_formulation_copies_what_it_is_given(name):
    grams, y = GRAMS.copy(), Y.copy()
    made, before = BUILDERS[name](grams, y), BUILDERS[name](GRAMS, Y)
    y[:], grams[:] = y[::-1].copy(), np.eye(N)
    for mine, reference in ((made.problem, before.problem), (made.dual(), before.dual())):
        assert value_of(mine) == pytest.approx(value_of(reference), rel=1e-12, abs=1e-12)


def test_the_ellipsoid_is_copied():
    mine = E.copy()
    made = lp_norm.non_isotropic(GRAMS, Y, E=mine)
    mine[:] = 5 * np.eye(M)
    expected = lp_norm.non_isotropic(GRAMS, Y, E=E)
    assert value_of(made.dual()) == pytest.approx(value_of(expected.dual()), rel=1e-12)


# ------------------------------------------------------------------------------ what was silent


SILENT = {
    "complex kernel": (
        lambda: ko.risk(K0 + 1e-3j, Y, HINGE),
        "K must be .* real numbers, got .*complex.*Take .real",
    ),
    "a word for a flag": (
        lambda: ko.risk(K0, Y, HINGE, bias="no"),
        "bias must be True or False, got 'no'",
    ),
    "dates for targets": (
        lambda: ko.risk(K0, np.full(N, np.datetime64("2020-01-01")), ko.squared()),
        "y .*datetime64.*first date",
    ),
    "masked grams": (
        lambda: as_grams(np.ma.masked_less(KS, 0.1)),
        "grams must have no masked entries, got [0-9]+",
    ),
    "no X": (lambda: ko.Grams.from_kernels([ko.linear()], []), "X must hold at least one point"),
    "p a parameter": (
        lambda: ko.lp_ball(W, cp.Parameter(value=2)),
        "p must be a positive number, got Parameter",
    ),
    "p a Series": (lambda: ko.lp_ball(W, Series([2.0])), "p must be a positive number, got .*Series"),
    "p an array": (
        lambda: ko.lp_ball(W, np.array([1.5, 2.0])),
        "p must be a positive number, got .*ndarray",
    ),
    "norm a word": (
        lambda: ko.risk(K0, Y, HINGE, norm="2"),
        r"norm must be a positive number, got '2' \(str\)",
    ),
    "records": (
        lambda: ko.Grams.from_kernels([ko.linear()], records(X)),
        "X must be .*real numbers.*structured",
    ),
    "sparse X": (lambda: ko.Grams.from_kernels([ko.linear()], sp.csr_array(X)), r"X .*sparse.*X.toarray\(\)"),
    "one weight of two": (
        lambda: ko.Grams.from_kernels(KERNELS, X).combine([1.0]),
        r"weights must have shape \(2,\)",
    ),
    "p below 1": (lambda: norms.lp_length(V, 0.5), "p must be at least 1, got 0.5"),
    "no samples": (
        lambda: lanckriet.transduction_bound(transduced(), samples=0),
        "samples must be a positive whole",
    ),
    "unset radius": (
        lambda: ko.solve(learning(cp.Parameter(pos=True, name="radius"))),
        "None for radius. Set the .value",
    ),
    "unset radius, certified": (
        lambda: ko.certify(learning(cp.Parameter(pos=True, name="radius"))),
        "None for radius. Set the .value",
    ),
    "negative spectrum": (
        lambda: linear_functional.landweber([1.0, -0.5], 0.5),
        "eigenvalues must be non-negative, got -0.5",
    ),
    "filter of one number": (
        lambda: filtered(lambda eigenvalues, level: 1.0),
        "filter must return one number per eigenvalue",
    ),
    "filter of NaN": (
        lambda: filtered(lambda eigenvalues, level: level * np.nan / eigenvalues),
        "filter, at the eigenvalues, must be finite",
    ),
}


def filtered(filter):
    return linear_functional.functional_strategy(GRAMS, V, regularization=1.0, filter=filter)


@every("call, message", SILENT.values(), ids=SILENT)
def test_what_was_wrong_in_silence_or_foreign_is_refused(call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ko.InputError, match=message):
            call()


@every(
    "text, size",
    [
        ("4GB", 4e9),
        ("500 MB", 5e8),
        ("2GiB", 2.0**31),
        ("64kb", 64e3),
        ("1.5 tb", 1.5e12),
        ("100", 100.0),
        (7e9, 7e9),
    ],
)
def test_sizes_of_memory_are_numbers_or_text(text, size):
    assert memory_size(text, "memory") == size


@every("text", ["4 gigabytes", "GB", "-1GB", "4 GBit", "0MB", "1e9", ""])
def test_other_text_is_no_size_of_memory(text):
    with pytest.raises(ko.errors.ParameterError, match="memory must be"):
        memory_size(text, "memory")
