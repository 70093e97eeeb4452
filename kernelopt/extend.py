"""The public names for authors of losses, kernels, fidelities, methods and formulations, in packages.

Everything that such a package needs is here or in `kernelopt` itself; other modules may change. A package
names what it adds in its entry points. Then `installed(kind)` and `kernelopt list` show it, and "auto" tries
its methods. CONTRIBUTING.md has the steps.

======================== =========================== ==============================================
added                    is                          group of entry points
======================== =========================== ==============================================
a loss                   a subclass of `Loss`        "kernelopt.losses"
a kernel                 a subclass of `Kernel`      "kernelopt.kernels"
a fidelity               a subclass of `Fidelity`    "kernelopt.fidelities"
a method                 a subclass of `Method`      "kernelopt.methods", under the method's name
formulations             a module with a list        "kernelopt.formulations"
                         `CATALOGUE` of `Entry`
======================== =========================== ==============================================

**A loss** states `expression` and `curve`, which returns a `Curve`; `checked_weight` checks C, a
`Weight`, and `per_sample` and `weighted_sum` apply it. A loss whose dual is not piecewise quadratic states
more, see `Loss`. `check_loss` tests it.

**A kernel** states `gram`, for checked points, and may state `gram_diagonal` and `gram_rank`, and
`profile`, which returns a `Profile`, where it is a function of one distance. Where points are no rows of
numbers, `domain` names the function that checks them.
`check_kernel` tests it.

**A fidelity** states `expression`, `subgradient` and `conjugate`, and `project` where the conjugate has
infinite values. "first-order-dual" takes one that also has the method of `Radial`, for functions of the
Frobenius norm, or those of `Proximal`. `check_fidelity` tests it.

**A method** states `match`, `cost` and `run`: it reads a `Structure`, predicts a `Cost`, reports to a
`Control`, and returns an `Outcome`. Long work calls `check` between its steps, which raises `Stopped` at the
time limit. `read_ball` reads one risk with weights in an l_p ball as a `BallProblem`, which has the bounds.
`on_simplex` and `project_zero_sum` are projections, on a simplex and on a box with entries of sum zero;
`lp_length` is |v|_p, and `conjugate_exponent` its q. `minimizing_weights` are the weights of an l_p ball that
are optimal for given lengths. `rounding` bounds the rounding errors of sums and products. `register_method`
adds a method that is in no package; `check_method` tests it.

**A formulation** is a function that returns a `Formulation`, with its dual and, where the paper prints some,
a `Programme` each; an `Entry` puts it into the catalogue, a `Planted` problem has a known optimum. A problem
whose bounds are known in closed form is a `BoundedProblem`, which returns a `Certificate`; its arithmetic may
stand in a `Statement`. `check_formulation` tests it, and `assert_certified` a problem.

**An atom** of cvxpy's kind enters the duals of `dualize` by a function that states its `Conjugate`,
registered with the decorator `conjugate`.

Arguments are checked by functions that raise with what is wrong: `positive`, `whole`, `exponent`,
`boolean`, `one_of` and `as_generator` for single values; `as_float_array`, `as_vector`, `as_symmetric`,
`as_indices`, `as_labels`, `as_targets` and `as_classes` for arrays, of type `Array`; `as_list` for sequences,
and `as_grams` for stacks of Gram matrices, of type `Grams`. `shown` returns a value as text
for a message.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kernelopt.catalog import Entry, Formulation, Planted
from kernelopt.certificates import Certificate
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.statements.statement import Statement
from kernelopt.duality.conjugates import Conjugate, conjugate
from kernelopt.errors import Stopped
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.grams import Grams, as_grams
from kernelopt.installed import installed
from kernelopt.kernels import Kernel, Profile
from kernelopt.losses.base import Loss, project_zero_sum
from kernelopt.losses.curve import Curve
from kernelopt.losses.weights import Weight, checked_weight, per_sample, weighted_sum
from kernelopt.methods import Cost, Method, Outcome, Programme, register_method
from kernelopt.methods.control import Control
from kernelopt.numerics import rounding
from kernelopt.numerics.norms import conjugate_exponent, lp_length, minimizing_weights
from kernelopt.numerics.simplex import on_simplex
from kernelopt.running import check
from kernelopt.structure import Structure
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.validation import (
    Array,
    as_classes,
    as_float_array,
    as_generator,
    as_indices,
    as_labels,
    as_list,
    as_symmetric,
    as_targets,
    as_vector,
    boolean,
    exponent,
    one_of,
    positive,
    shown,
    whole,
)

if TYPE_CHECKING:  # at run time `__getattr__` imports them: a package needs them in its tests alone
    from kernelopt.testing import (
        assert_certified,
        check_fidelity,
        check_formulation,
        check_kernel,
        check_loss,
        check_method,
    )

CHECKS = (
    "assert_certified",
    "check_fidelity",
    "check_formulation",
    "check_kernel",
    "check_loss",
    "check_method",
)


def __getattr__(name: str) -> object:
    if name in CHECKS:
        return getattr(import_module("kernelopt.testing"), name)
    raise AttributeError(f"module 'kernelopt.extend' has no attribute {name!r}")


__all__ = [
    "Array",
    "BallProblem",
    "BoundedProblem",
    "Certificate",
    "Conjugate",
    "Control",
    "Cost",
    "Curve",
    "Entry",
    "Fidelity",
    "Formulation",
    "Grams",
    "Kernel",
    "Loss",
    "Method",
    "Outcome",
    "Planted",
    "Profile",
    "Programme",
    "Proximal",
    "Radial",
    "Statement",
    "Stopped",
    "Structure",
    "Weight",
    "as_classes",
    "as_float_array",
    "as_generator",
    "as_grams",
    "as_indices",
    "as_labels",
    "as_list",
    "as_symmetric",
    "as_targets",
    "as_vector",
    "assert_certified",
    "boolean",
    "check",
    "check_fidelity",
    "check_formulation",
    "check_kernel",
    "check_loss",
    "check_method",
    "checked_weight",
    "conjugate",
    "conjugate_exponent",
    "exponent",
    "installed",
    "lp_length",
    "minimizing_weights",
    "on_simplex",
    "one_of",
    "per_sample",
    "positive",
    "project_zero_sum",
    "read_ball",
    "register_method",
    "rounding",
    "shown",
    "weighted_sum",
    "whole",
]
