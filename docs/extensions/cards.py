"""A page for each formulation of the catalogue, written at the build from its docstring and its example."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np

import kernelopt as ko

CARD = """\
{title}
{line}

{build}

.. autofunction:: {module}.{name}
   :no-index:

The problem
-----------

The example of the catalogue, on {points} points. The constraints of a set stand in one line.

{problem}

The dual
--------

What ``ko.dualize(formulation.problem)`` writes for it, in symbols and in text:

{dual}

.. code-block:: text

{text}

The optimum of the dual by hand, ``formulation.dual()``, is *{claim}* to that of the problem; a test compares
them.{programmes}

The certificate
---------------

.. code-block:: text

{certificate}

{route}

Methods that apply: {methods}.

Reference: {reference}
"""
ROUTES = {
    "closed": "The lower bound is a formula: for any dual variable, the minimum over the weights is known.",
    "conic": "The lower bound comes from multipliers of a conic solver, corrected until they are feasible.",
    "sign": "The lower bound is zero, since the objective is never negative.",
}


def formulas(written: Any) -> str:
    """Return the LaTeX of a problem as directives, without the list of its data."""
    found = re.findall(r"\$\$\n(.*?)\n\$\$", written._repr_latex_(), re.DOTALL)
    return "\n\n".join(
        ".. math::\n\n" + indent(formula, "   ")
        for formula in found
        if "{lll}" in formula or "array" not in formula
    )


def card(entry: Any) -> str:
    """Return the page of a formulation; its example is solved."""
    formulation = entry.example(np.random.default_rng(0))
    found, dual = formulation.solve(), ko.dualize(formulation.problem)
    applies = re.findall(r"^method '([\w-]+)': applies", str(ko.explain(formulation.problem)), re.MULTILINE)
    module = inspect.getmodule(entry.build).__name__.rpartition(".")[0]
    printed = ", ".join(f"``{name}``" for name in formulation.programmes)
    return CARD.format(
        title=entry.name,
        line="=" * len(entry.name),
        build=f"``from formulations import {module.rpartition('.')[2]}``",
        module=module,
        name=entry.build.__name__,
        points=formulation.kernel.shape[0],
        problem=formulas(formulation),
        dual=formulas(dual),
        text=indent(str(dual), "   "),
        claim=formulation.claim,
        programmes=f" The paper prints the programme {printed}, in ``programmes``." if printed else "",
        certificate=indent(f"{found.lower:.5g} <= optimum <= {found.upper:.5g}", "   "),
        route=ROUTES[found.certificate.route],
        methods=", ".join(f'``"{name}"``' for name in applies),
        reference=formulation.reference,
    )


def write_cards(app: Any) -> None:
    """Write the pages that have changed into the folder `cards`, which git ignores."""
    folder = Path(app.srcdir, "cards")
    folder.mkdir(exist_ok=True)
    pages = {folder / f"{name}.rst": card(entry) for name, entry in ko.catalogue().items()}
    for old in set(folder.glob("*.rst")) - set(pages):
        old.unlink()
    for path, page in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("builder-inited", write_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
