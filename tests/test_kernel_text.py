"""Kernels as text: what is written is read again to the last bit, and nothing is evaluated."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelopt as ko
from kernelopt.installed import installed
from kernelopt.kernels import kernel_text
from kernelopt.kernels import text as module
from tests.every import every

X, Z = np.random.default_rng(0).normal(size=(7, 12)), np.random.default_rng(1).normal(size=(3, 12))

widths = st.floats(1e-3, 1e3)
elementary = st.one_of(
    st.builds(ko.gaussian, widths),
    st.builds(ko.laplacian, widths),
    st.builds(ko.polynomial, st.integers(1, 3), st.floats(0.1, 10)),
    st.builds(ko.linear),
    st.builds(ko.identity),
)
columns = st.lists(st.integers(0, 11), min_size=1, max_size=12)  # up to 12: `repr` shortens lists above ten
kernels = st.recursive(
    elementary,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, k: c * k, st.floats(0.1, 10), inner),
        st.builds(ko.normalized, inner),
    ),
    max_leaves=5,
).flatmap(lambda k: st.one_of(st.just(k), st.builds(ko.on_columns, st.just(k), columns)))


@settings(max_examples=150, deadline=None)
@given(kernels)
def test_a_kernel_read_from_its_text_has_the_same_matrices_to_the_last_bit(kernel):
    read = ko.parse_kernel(kernel_text(kernel))
    assert read == kernel
    assert (read(X) == kernel(X)).all()
    assert (read(X, Z) == kernel(X, Z)).all()
    assert kernel_text(read) == kernel_text(kernel)


@settings(max_examples=50, deadline=None)
@given(elementary, widths)
def test_repr_is_read_too_where_it_is_complete(kernel, factor):
    assert ko.parse_kernel(repr(factor * kernel + kernel)) == factor * kernel + kernel


def test_every_installed_kernel_can_be_named():
    assert module.kernel_classes() == installed("kernels")


@every(
    ("text", "kernel"),
    [
        ("gaussian(0.5)", ko.gaussian(0.5)),
        (" gaussian( width = 5e-1 ) ", ko.gaussian(0.5)),
        ("polynomial(3, offset=0)", ko.polynomial(3, 0.0)),
        ("linear() * 2 + 3 * identity()", 2 * ko.linear() + 3 * ko.identity()),
        ("2 * (linear() + gaussian(1)) * linear()", 2 * (ko.linear() + ko.gaussian(1)) * ko.linear()),
        ("on_columns(linear(), 3)", ko.on_columns(ko.linear(), 3)),
        ("on_columns(linear(), [0, 4])", ko.on_columns(ko.linear(), [0, 4])),
        ("normalized(kernel=linear() + identity())", ko.normalized(ko.linear() + ko.identity())),
        (" + ".join(["linear()"] * 500), ko.parse_kernel("+".join(["linear()"] * 499)) + ko.linear()),
    ],
)
def test_text_is_read_as_python_would_read_it(text, kernel):
    assert ko.parse_kernel(text) == kernel


@every(
    ("text", "pieces"),
    [
        (3, ["must be a string, got 3 (int)", 'Write "gaussian(0.5)"']),
        ("gausian(0.5)", ["got 'gausian' in 'gausian(0.5)'", "Did you mean gaussian?", "laplacian"]),
        ("linear() + rbf(1)", ["got 'rbf'", "kernelopt list kernels"]),
        ("gaussian", ["made of calls, got 'gaussian'", "Write gaussian(), with"]),
        ("gaussian()", ["gaussian(width)", "missing a required argument: 'width'"]),
        ("gaussian(1, w=2)", ["gaussian(width)", "unexpected keyword argument 'w'"]),
        ("gaussian(width=1, width=2)", ["one value for each argument"]),
        ("gaussian(*[1])", ["one value for each argument"]),
        ("gaussian(**{})", ["one value for each argument"]),
        ("gaussian(-1)", ["'gaussian(-1)': width must be a positive finite number, got -1"]),
        ("gaussian(1e999)", ["got inf"]),
        ("gaussian('1')", ["width must be", "got '1' (str)"]),
        ("linear() + on_columns(linear(), [])", ["'on_columns(linear(), [])'", "must see columns of X"]),
        ("normalized(2)", ["kernel must be a Kernel", "got 2"]),
        ("2", ["must be a kernel, got '2'"]),
        ("linear() + 2", ["a sum of kernels", "got 'linear() + 2'"]),
        ("2 * 3 * linear()", ["numbers times kernels", "got '2 * 3'"]),
        ("0 * linear()", ["the factor of a kernel must be a positive"]),
        ("linear() ** 2", ["sums, products and numbers", "got 'linear() ** 2'"]),
        ("gaussian(10 ** 10 ** 10)", ["got '10 ** 10 ** 10'"]),
        ("gaussian((1)", ["an expression such as", "never closed"]),
        ("gaussian(1in)", ["an expression such as"]),
        ("", ["got ''"]),
        ("linear()\0", ["null bytes"]),
        ("-" * 20_000 + "1", ["an expression such as"]),
        ("1" * 5000, ["an expression such as"]),
    ],
)
def test_errors_name_the_part_that_is_wrong(text, pieces):
    with pytest.raises(ko.InputError) as caught:
        ko.parse_kernel(text)
    for piece in pieces:
        assert piece in str(caught.value), str(caught.value)


@every(
    "text",
    [
        "__import__('os').system('echo executed')",
        "print('executed')",
        "gaussian(print('executed'))",
        "(lambda: print('executed'))()",
        "[print('executed') for _ in (1,)][0]",
        "gaussian.__init__.__globals__['ast']",
        "f\"{print('executed')}\"",
        "(k := linear())",
    ],
)
def test_nothing_is_evaluated(capsys, text):
    with pytest.raises(ko.errors.ParameterError):
        ko.parse_kernel(text)
    assert capsys.readouterr().out == ""


def test_kernels_that_no_text_can_describe_are_refused():
    class Mine(ko.Kernel):
        def gram(self, X, Z):
            return np.ones((len(X), len(X if Z is None else Z)))

    with pytest.raises(
        ko.errors.ParameterError, match=r"kernels\" *, got .*Mine.*Put its class into a package"
    ):
        kernel_text(ko.normalized(Mine()))
    odd = copy.copy(ko.gaussian(1.0))
    object.__setattr__(odd, "width", np.ones(2))
    with pytest.raises(ko.errors.ParameterError, match=r"fields that are numbers.*\(ndarray\) in gaussian"):
        kernel_text(odd)
