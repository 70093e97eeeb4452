"""What `help` shows of the two ways to solve, and how wrong options are answered."""

from __future__ import annotations

import importlib
import pydoc
from inspect import Parameter, signature
from typing import get_type_hints

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from kernelopt.methods.selection import METHODS
from kernelopt.methods.solve import SolveOptions
from tests.every import every

OPTIONS = SolveOptions.__annotations__
OWN = ("exact", "newton", "interleaved", "block-descent", "cutting-plane", "smooth-dual", "first-order-dual")


def learning():
    return lanckriet.soft_margin(np.eye(4)[None], [1, -1, 1, -1])


def through_solve(*arguments, **options):
    return ko.solve(learning().problem, *arguments, **options)


def through_formulation(*arguments, **options):
    return learning().solve(*arguments, **options)


ways = pytest.mark.parametrize("solve", [through_solve, through_formulation])


@pytest.mark.parametrize(
    ("function", "first"),
    [(ko.solve, ["problem", "method"]), (ko.Formulation.solve, ["self", "method", "programme"])],
    ids=["solve", "Formulation.solve"],
)
def test_the_signature_lists_every_option_with_its_type(function, first):
    parameters = signature(function).parameters
    assert list(parameters) == [*first, *OPTIONS]
    for name, annotation in OPTIONS.items():
        assert parameters[name].kind == Parameter.KEYWORD_ONLY
        assert parameters[name].annotation == annotation.__forward_arg__
        assert parameters[name].default is signature(ko.solve).parameters[name].default
    assert set(get_type_hints(SolveOptions)) == set(OPTIONS)
    assert signature(function).return_annotation == "Solution"
    shown = pydoc.plain(pydoc.render_doc(function))
    assert all(f"{name}: " in shown for name in OPTIONS) and "**options:" not in shown


@pytest.mark.parametrize("name", OWN)
def test_every_option_of_a_method_is_an_option_of_solve_and_documented(name):
    own = set(METHODS[name].options()) - {"programme"}  # of Formulation.solve
    assert own <= set(OPTIONS)
    assert all(option in (type(METHODS[name]).__doc__ or "") for option in own)
    assert all(option in (ko.solve.__doc__ or "") for option in own)


@ways
@every(
    ("given", "meant"),
    [("tolerance", "tol"), ("time", "time_limit"), ("iterations", "max_iterations"), ("verbos", "verbose"),
     ("Tol", "tol"), ("zzz", None)],
)  # fmt: skip
def test_a_wrong_option_is_a_type_error_that_names_the_nearest_and_all(solve, given, meant):
    near = rf"Did you mean {meant}\? " if meant else ""
    said = f"unexpected keyword argument '{given}'. {near}The options are .*, tol, time_limit, .*update"
    with pytest.raises(TypeError, match=said):
        solve(**{given: 1})


@ways
@every(
    ("options", "message"),
    [
        ({"max_iterations": 2.5}, r"max_iterations must be a positive whole number, got 2.5 \(float\)"),
        ({"max_iterations": True}, r"max_iterations must be a positive whole number, got True \(bool\)"),
        ({"callback": 3}, r"callback must be a function of a dict, got 3 \(int\).*callback=print"),
        ({"chunk": 0}, "chunk must be a positive whole number, got 0"),
        ({"max_chunks": "2"}, r"max_chunks must be a positive whole number, got '2' \(str\)"),
        ({"update": "x"}, "update must be 'descent' or 'best-response', got 'x'"),
        ({"master": 3}, "master must be 'exact' or 'taylor', got 3"),
        ({"step": "x"}, "step must be 'adaptive' or 'theorem', got 'x'"),
        ({"tol": 0}, "tol must be a positive finite number, got 0"),
        ({"tol": "a"}, r"tol must be a positive finite number, got 'a' \(str\)"),
        ({"time_limit": -1}, "time_limit must be a positive finite number, got -1"),
        ({"memory": "x"}, "memory must be a number of bytes or text such as \"4GB\", got 'x'"),
        ({"solver": 3}, r"solver must be the name of a solver or a cvxpy solver object, got 3 \(int\)"),
        ({"method": "exact", "chunk": 3}, "options of method 'exact' are solver, .*, got chunk"),
        ({"chunk": 3, "master": "taylor"}, "must be those of one method that applies, got a mixture"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_before_anything_is_solved(solve, options, message):
    seen = []
    with pytest.raises(ko.errors.ParameterError, match=message):
        solve(**{"callback": seen.append, **options})
    assert not seen


@pytest.mark.parametrize(
    ("solve", "function", "taken"),
    [
        (through_solve, ko.solve, "solver, solver_options, force"),
        (through_formulation, ko.Formulation.solve, "solver, solver_options, force, programme"),
        (lambda **options: learning().problem.solve(**options), ko.solve, "solver, solver_options, force"),
    ],
    ids=["solve", "Formulation.solve", "Problem.solve"],
)
def test_the_message_lists_the_options_that_the_called_function_takes(solve, function, taken):
    with pytest.raises(ko.errors.ParameterError, match=f"options of method 'exact' are {taken}, got chunk. "):
        solve(method="exact", chunk=3)
    assert set(taken.split(", ")) <= set(signature(function).parameters)


@ways
@every("method, said", [("simplex", "'simplex'"), (3, "3"), ("cutting_plane", ".*mean 'cutting-plane'?")])
def test_a_wrong_method_is_answered_with_the_nearest_and_all(solve, method, said):
    with pytest.raises(ko.errors.MethodError, match=f"must be 'auto' or one of 'exact', .*, got {said}"):
        solve(method)


def test_a_programme_is_one_of_the_formulation_and_solved_by_exact():
    for name in ("no", 3):
        with pytest.raises(
            ko.errors.ParameterError, match=f"programme must be one of 'qcqp', 'words', got {name!r}"
        ):
            learning().solve(programme=name)
    for name in ("qcqp", "words"):
        assert learning().solve(programme=name).method == "exact"
        with pytest.raises(
            ko.errors.ParameterError, match="must be solved by the method 'exact', got .*interleaved"
        ):
            learning().solve("interleaved", programme=name)
    with pytest.raises(TypeError, match="programme"):
        ko.solve(learning().problem, programme="words")


def test_modules_that_take_long_to_import_are_there_when_asked_for():
    assert ko.plotting.plot_weights is importlib.import_module("kernelopt.plotting").plot_weights
    assert ko.testing.assert_certified is importlib.import_module("kernelopt.testing").assert_certified
    with pytest.raises(AttributeError, match="'kernelopt' has no attribute 'plotted'"):
        _ = ko.plotted
