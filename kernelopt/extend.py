r"""The public names for authors of losses, kernels, fidelities, sets, methods and formulations, in packages.

Everything that such a package needs is here, in `kernelopt.errors`, in `kernelopt.testing` for its tests, or
in `kernelopt` itself; other modules may change. A package names what it adds in its entry points. Then
`kernelopt list` shows it, and "auto" tries its methods. CONTRIBUTING.md has the steps.

======================== =========================== ==============================================
added                    is                          group of entry points
======================== =========================== ==============================================
a loss                   a subclass of `Loss`        "kernelopt.losses"
a kernel                 a subclass of `Kernel`      "kernelopt.kernels"
a fidelity               a subclass of `Fidelity`    "kernelopt.fidelities"
a method                 a subclass of `Method`      "kernelopt.methods", under the method's name
a set of weights         a subclass of `Part`        "kernelopt.parts"
formulations             a module with a list        "kernelopt.formulations"
                         `CATALOGUE` of `Entry`
======================== =========================== ==============================================

**A loss** states `expression` and `curve`, which returns a `Curve`; `weights.checked_weight` checks C, a
`weights.Weight`, and `weights.per_sample` and `weights.weighted_sum` apply it. A loss whose dual is not
piecewise quadratic states more, see `Loss`. `check_loss` tests it.

**A kernel** states `gram`, for checked points, and may state `gram_diagonal` and `gram_rank`, and
`profile`, which returns a `Profile`, where it is a function of one distance. Where points are no rows of
numbers, `domain` names the function that checks them.
`check_kernel` tests it.

**A fidelity** states `expression`, `subgradient` and `conjugate`, and `project` where the conjugate has
infinite values. "first-order-dual" takes one that also has the method of `Radial`, for functions of the
Frobenius norm, or the methods of `Proximal`. `check_fidelity` tests it.

**A method** states `match`, `cost` and `run`: it reads a `Structure`, predicts a `Cost`, reports to a
`Control`, and returns an `Outcome`. Long work calls `check` between its steps, which raises
`kernelopt.errors.Stopped` at the time limit. `read_ball` reads one risk with weights in an l_p ball as a
`BallProblem`, which has the bounds. `on_simplex` is the projection on a
simplex. `norms` has :math:`\|v\|_p`, its q, and the weights of an l_p ball that are optimal for
given lengths. `Ball` is an array with a radius, whose operations bound their rounding errors.
`register_method` adds a method
that is in no package; `check_method` tests it.

**A set** whose support function is known states `recognise`, `support`, `multipliers` and `start`. Then
certificates bound problems over it in closed form, beside the sets and prices of other variables.

**A formulation** is a function that returns a `Formulation`, with its dual and, where the paper prints some,
a `Programme` each; an `Entry` puts it into the catalogue, a `Planted` problem has a known optimum. A problem
whose bounds are known in closed form is a `BoundedProblem`, which returns a `Certificate`; its arithmetic may
stand in a `Statement`. `Learned` is the machine of one risk in a `Solution`. A solution is optimal up to the
gap `DEFAULT_TOL`, relative to at least the share `FLOOR_SHARE` of the value at f = 0. `check_formulation`
tests it, and `assert_certified` a problem.

**An atom** of cvxpy's kind enters the duals of `dualize` by a function that states its `Conjugate`,
registered with the decorator `conjugate`.

Arguments are checked by functions that raise with what is wrong: `positive`, `whole`, `exponent`,
`boolean`, `one_of` and `as_generator` for single values; `as_float_array`, `as_vector`, `as_symmetric`,
`as_indices`, `as_labels`, `as_targets` and `as_classes` for arrays, of type `Array`; `as_list` for sequences,
`as_grams` for stacks of Gram matrices, of type `Grams`, and `as_fidelity` for fidelities and their names.
`shown` returns a value as text for a message. `parameters_of` completes a docstring by
parameters that another one describes.
"""

from kernelopt.catalog import Entry, Planted
from kernelopt.certificates.certificate import BoundedProblem
from kernelopt.certificates.gap import FLOOR_SHARE
from kernelopt.certificates.statements.statement import Statement
from kernelopt.docstrings import parameters_of
from kernelopt.duality.conjugates import Conjugate, conjugate
from kernelopt.fidelities import Proximal, Radial, as_fidelity
from kernelopt.grams import as_grams
from kernelopt.kernels import Profile
from kernelopt.losses import weights
from kernelopt.losses.curve import Curve
from kernelopt.methods import DEFAULT_TOL, Cost, Learned, Method, Outcome, Programme, register_method
from kernelopt.methods.control import Control
from kernelopt.numerics import norms
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.norms import on_simplex
from kernelopt.running import check
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.parts import Part
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

__all__ = [
    "DEFAULT_TOL",
    "FLOOR_SHARE",
    "Array",
    "Ball",
    "BallProblem",
    "BoundedProblem",
    "Conjugate",
    "Control",
    "Cost",
    "Curve",
    "Entry",
    "Learned",
    "Method",
    "Outcome",
    "Part",
    "Planted",
    "Profile",
    "Programme",
    "Proximal",
    "Radial",
    "Statement",
    "as_classes",
    "as_fidelity",
    "as_float_array",
    "as_generator",
    "as_grams",
    "as_indices",
    "as_labels",
    "as_list",
    "as_symmetric",
    "as_targets",
    "as_vector",
    "boolean",
    "check",
    "conjugate",
    "exponent",
    "norms",
    "on_simplex",
    "one_of",
    "parameters_of",
    "positive",
    "read_ball",
    "register_method",
    "shown",
    "weights",
    "whole",
]
