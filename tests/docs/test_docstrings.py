"""numpydoc finds public docstrings complete: summary, parameters with their types, results, examples."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Protocol

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import kernelopt as ko
from kernelopt.installed import KINDS, listed

MODULES = (
    "kernelopt",
    "kernelopt.estimators",
    "kernelopt.extend",
    "kernelopt.numerics.norms",  # a name of kernelopt.extend, as is the next one
    "kernelopt.losses.weights",
    "kernelopt.testing",
    "kernelopt.errors",
    "kernelopt.cluster",
    "kernelopt.plotting",
)
REQUIRED = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT03", "YD01"}
REQUIRED |= {"SS01", "SS02", "SS03", "SS04", "SS05", "SS06"}
EXAMPLES = {"EX01"}  # of functions


def public():
    """The classes and functions that users name, once each."""
    papers = sorted({entry.build.__module__.rpartition(".")[0] for entry in ko.catalogue().values()})
    found = {"kernelopt.cluster.rows": ko.cluster.rows}
    for path in (*MODULES, *papers):
        module = import_module(path)
        own = [name for name, item in vars(module).items() if getattr(item, "__module__", "") == path]
        names = getattr(module, "__all__", own)
        found |= {f"{path}.{name}": getattr(module, name) for name in names}
    ours = ("kernelopt.", "formulations.")
    kept = {name: item for name, item in found.items() if inspect.isclass(item) or inspect.isfunction(item)}
    return {item: name for name, item in kept.items() if item.__module__.startswith(ours)}


PUBLIC = public()
CLASSES = [item for item in PUBLIC if inspect.isclass(item)]


def methods():
    """The methods of these classes. One that fills in a hook of a base class has its description there."""
    named = {
        f"{kind.__name__}.{name}": inspect.unwrap(getattr(item, "__func__", item))
        for kind in CLASSES
        for name, item in vars(kind).items()
        if name[0] != "_" and item.__doc__ and not any(hasattr(base, name) for base in kind.__bases__)
    }
    return {name: item for name, item in named.items() if inspect.isfunction(item)}


METHODS = methods()


@pytest.mark.parametrize("item", PUBLIC, ids=PUBLIC.values())
def test_the_docstring_is_complete(item):
    required = REQUIRED if inspect.isclass(item) else REQUIRED | EXAMPLES
    if Protocol in getattr(item, "__bases__", ()):
        required = required - {"PR01"}  # nobody makes an object of it
    found = validate(get_doc_object(item))["errors"]
    assert [text for code, text in found if code in required] == []


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_docstring_of_a_method_is_complete(method):
    found = validate(get_doc_object(method))["errors"]
    assert [text for code, text in found if code in REQUIRED] == []


@pytest.mark.parametrize("kind", KINDS)
def test_summaries_have_no_markup_which_the_command_line_would_print(kind):
    marked = re.compile(r":math:|``|\]_|\\")
    assert [line["name"] for line in listed(kind) if marked.search(line["summary"])] == []
