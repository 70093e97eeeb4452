"""The eigenvalues of diag(spectrum) + c u u', one at a time, by the secular equation.

With the poles d_k = spectrum_k, rho = c |u|^2 and z = u / |u|, the eigenvalues mu are the roots of

    1 / rho + sum_k z_k^2 / (d_k - mu) = 0

if all u_k != 0 and all d_k differ (G. H. Golub, Some modified matrix eigenvalue problems, SIAM Review 15
(1973)). An eigenvector is v with v_k = z_k / (d_k - mu). Where u_k is zero to rounding, d_k is an eigenvalue
itself and is deflated. Deflation follows LAPACK's dlaed2, and the roots are found as by LAPACK's dlaed4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array

EPS = float(np.finfo(float).eps)
DEFLATION = 8  # units of rounding of the largest pole: the constant of dlaed2
RELATIVE_STEP = 1e-8  # the iteration is quadratic: a step of this relative size leaves an error of 1e-16
BISECT_EVERY = 16  # iterations: more than a search takes but for rounding
MAX_ITERATIONS = 200  # a safeguard: the iteration ends earlier, at a small step or an empty bracket


@compiled
def deflate(
    spectrum: Array,
    u: Array,
    c: float,
    poles: Array,
    components: Array,
    order: NDArray[np.intp],
    planes: NDArray[np.intp],
    rotations: Array,
) -> tuple[int, int]:
    """Split off the eigenvalues of diag(spectrum) + c u u' that need no equation, as LAPACK's dlaed2 does.

    Both rules neglect entries of the matrix of at most tol = 8 eps max_k |spectrum_k|.

    1. Coordinate k is deflated where c |u| |u_k| <= tol: it is an eigenvector with the eigenvalue spectrum_k.
    2. For two neighbouring poles p <= q with components u_p and u_q, the rotation in their plane with the
       cosine u_q / r and the sine u_p / r, r^2 = u_p^2 + u_q^2, makes the component of p zero. It creates the
       entry (q - p) u_p u_q / r^2 beside the diagonal. Where that is at most tol, the first of the two
       coordinates is deflated, with the eigenvalue p + (q - p) u_p^2 / r^2.

    Position k of `poles` and `components` belongs to coordinate `order[k]` after the rotations. The first
    positions hold the poles that remain, ascending, with their components of u. The others hold the
    deflated eigenvalues, descending. Rotation j is that of the two coordinates `planes[j]`, with the cosine
    and sine `rotations[j]`. Returns the number of poles that remain, and of rotations.
    """
    n = spectrum.size
    tol = DEFLATION * EPS * np.abs(spectrum).max()
    strength = c * np.sqrt(np.dot(u, u))
    n_poles, deflated_start, n_rotations, previous = 0, n, 0, n  # previous = n: none yet
    previous_pole, previous_component = 0.0, 0.0
    for k in range(n):
        pole, component = spectrum[k], u[k]
        if strength * abs(component) <= tol:
            deflated_start = insert_deflated(poles, components, order, deflated_start, pole, component, k)
            continue
        if previous < n:
            gap, length = pole - previous_pole, np.hypot(component, previous_component)
            cosine, sine = component / length, previous_component / length
            if gap * abs(cosine * sine) <= tol:
                planes[n_rotations, 0], planes[n_rotations, 1] = previous, k
                rotations[n_rotations, 0], rotations[n_rotations, 1] = cosine, sine
                n_rotations += 1
                lowered = previous_pole + gap * sine * sine
                deflated_start = insert_deflated(
                    poles, components, order, deflated_start, lowered, 0.0, previous
                )
                pole, component = pole - gap * sine * sine, length
            else:
                poles[n_poles], components[n_poles] = previous_pole, previous_component
                order[n_poles] = previous
                n_poles += 1
        previous, previous_pole, previous_component = k, pole, component
    if previous < n:
        poles[n_poles], components[n_poles], order[n_poles] = previous_pole, previous_component, previous
        n_poles += 1
    return n_poles, n_rotations


@compiled
def insert_deflated(
    poles: Array,
    components: Array,
    order: NDArray[np.intp],
    start: int,
    pole: float,
    component: float,
    k: int,
) -> int:
    """Insert an eigenvalue into the descending positions from `start` on; return their new start.

    The eigenvalues arrive in ascending order except after a rotation, so that the loop is short.
    """
    position = start
    while position < poles.size and poles[position] > pole:
        poles[position - 1], components[position - 1] = poles[position], components[position]
        order[position - 1] = order[position]
        position += 1
    poles[position - 1], components[position - 1], order[position - 1] = pole, component, k
    return start - 1


@compiled
def undo_rotations(x: Array, planes: NDArray[np.intp], rotations: Array, n_rotations: int) -> None:
    """Apply the inverses of the rotations of `deflate` to a vector, in place and in reverse order."""
    for k in range(n_rotations - 1, -1, -1):
        p, q, cosine, sine = planes[k, 0], planes[k, 1], rotations[k, 0], rotations[k, 1]
        x[p], x[q] = cosine * x[p] + sine * x[q], cosine * x[q] - sine * x[p]


@compiled(any_order=True)
def secular_sums(gaps: Array, squares: Array, eta: float, split: int) -> tuple[float, float, float, float]:
    """Return psi, psi', phi, phi' at eta, the two parts of sum_k squares_k / (gaps_k - eta).

    psi is the sum over k < split, phi the sum over k >= split.
    """
    psi, psi_slope, phi, phi_slope = 0.0, 0.0, 0.0, 0.0
    for k in range(split):
        t = 1 / (gaps[k] - eta)
        s = squares[k] * t
        psi += s
        psi_slope += s * t
    for k in range(split, gaps.size):
        t = 1 / (gaps[k] - eta)
        s = squares[k] * t
        phi += s
        phi_slope += s * t
    return psi, psi_slope, phi, phi_slope


@compiled
def secular_root(j: int, poles: Array, squares: Array, rho: float, gaps: Array) -> tuple[int, float]:
    """Return the j-th root mu (ascending) of f(mu) = 1/rho + sum_k squares_k / (poles_k - mu).

    The poles ascend, rho > 0 and sum squares = 1. Root j lies between poles j and j + 1, the last one
    between the last pole and that pole plus rho. Returned are the index of the pole nearest to the root and
    the distance eta = mu - that pole; `gaps` becomes poles_k minus that pole. The differences gaps_k - eta
    have full relative accuracy, which poles_k - mu have not.

    The iteration is the middle way of R.-C. Li (LAPACK Working Note 89): each step goes to the root of an
    interpolating rational function (`rational_step`). It is kept inside a bracket, which is bisected where
    a step leaves it, and at every BISECT_EVERY-th iteration, so that the search ends whatever the rounding.
    """
    n = poles.size
    last = j == n - 1
    gaps[:] = poles - poles[j]
    if n == 1:
        return 0, rho
    left = j - 1 if last else j
    low, high = 0.0, rho if last else gaps[j + 1]
    eta = rho * max(squares[j], 0.5) if last else high / 2
    for iteration in range(MAX_ITERATIONS):
        psi, psi_slope, phi, phi_slope = secular_sums(gaps, squares, eta, left + 1)
        f = 1 / rho + psi + phi
        if iteration == 0 and not last and f < 0:  # at the midpoint: the root is nearer to the right pole
            width = high
            j, low, high, eta = j + 1, -eta, 0.0, eta - width
            gaps[:] = poles - poles[j]
        if f > 0:  # f increases between two poles
            high = min(high, eta)
        else:
            low = max(low, eta)
        a, b = gaps[left] - eta, gaps[left + 1] - eta
        step = rational_step(f, psi_slope, phi_slope, a, b, last)
        new = eta + step
        if abs(step) <= RELATIVE_STEP * min(abs(a), abs(b)) and low <= new <= high:
            return j, new
        if not low < new < high or iteration % BISECT_EVERY == BISECT_EVERY - 1:
            new = (low + high) / 2
            if not low < new < high:
                return j, eta
        eta = new
    return j, eta


@compiled
def rational_step(f: float, psi_slope: float, phi_slope: float, a: float, b: float, last: bool) -> float:
    """Return the root x of r + s / (a - x) + t / (b - x) that lies between the poles a and b.

    s and t are such that the two fractions have the slopes psi' and phi' at x = 0, and r such that the
    function has the value f there. Multiplied by (a - x)(b - x) it is the quadratic equation
    `square` x^2 - `linear` x + `constant` = 0. For the last root, x is the one beyond b.
    """
    square = f - a * psi_slope - b * phi_slope
    linear = (a + b) * f - a * b * (psi_slope + phi_slope)
    constant = a * b * f
    discriminant_root = np.sqrt(max(linear * linear - 4 * constant * square, 0.0))
    if last:
        discriminant_root = -discriminant_root
    if (linear <= 0) != last:  # of the two equal formulas, the one without cancellation
        return float((linear - discriminant_root) / (2 * square))
    return float(2 * constant / (linear + discriminant_root))


@compiled(any_order=True)
def secular_eigenvector(gaps: Array, eta: float, z: Array, poles: Array, row: Array) -> tuple[float, float]:
    """Set row = v with v_k = z_k / (gaps_k - eta), the eigenvector of a root.

    Returns |v|^2 and v' diag(poles) v.
    """
    square, form = 0.0, 0.0
    for k in range(gaps.size):
        t = z[k] / (gaps[k] - eta)
        row[k] = t
        square += t * t
        form += poles[k] * t * t
    return square, form
