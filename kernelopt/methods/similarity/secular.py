"""The eigenvalues of diag(poles) + rho z z', one at a time, by the secular equation.

For |z| = 1, all z_k != 0 and poles d_k that all differ, the eigenvalues mu are the roots of

    1 / rho + sum_k z_k^2 / (d_k - mu) = 0

(G. H. Golub, Some modified matrix eigenvalue problems, SIAM Review 15 (1973)). An eigenvector is v with
v_k = z_k / (d_k - mu). The roots are found as by LAPACK's dlaed4.
"""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.compiling import any_order, compiled_as
from kernelopt.validation import Array

EPS = float(np.finfo(float).eps)
MAX_ITERATIONS = 200  # a safeguard: the iteration ends earlier, at a small step or an empty bracket


def separated(spectrum: Array, s: Array) -> tuple[Array, Array]:
    """Return poles and a vector for which diag(poles) + s s' needs no deflation.

    Poles are moved up to a distance of one unit of rounding of the largest, and entries of s are raised so
    far that no entry of the matrix changes by more than that unit. `spectrum` ascends.
    """
    poles, s = spectrum.copy(), s.copy()
    size = max(np.abs(spectrum).max(), 1e-100)  # positive where the spectrum is zero
    least = EPS * size / np.sqrt(max(np.dot(s, s), size))
    for k in range(poles.size):
        if k > 0:
            poles[k] = max(poles[k], poles[k - 1] + EPS * size)
        if abs(s[k]) < least:
            s[k] = least
    return poles, s


@any_order
def secular_loop(gaps: Array, squares: Array, eta: float, split: int) -> tuple[float, float, float, float]:
    """Return the results of `secular_sums`."""
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


@compiled_as(secular_loop)
def secular_sums(gaps: Array, squares: Array, eta: float, split: int) -> tuple[float, float, float, float]:
    """Return psi, psi', phi, phi' at eta, the two parts of sum_k squares_k / (gaps_k - eta).

    psi is the sum over k < split, phi the sum over k >= split.
    """
    t = 1 / (gaps - eta)
    s = squares * t
    psi, phi = s[:split].sum(), s[split:].sum()
    return psi, np.dot(s[:split], t[:split]), phi, np.dot(s[split:], t[split:])


def secular_root(j: int, poles: Array, squares: Array, rho: float, gaps: Array) -> tuple[int, float]:
    """Return the j-th root mu (ascending) of f(mu) = 1/rho + sum_k squares_k / (poles_k - mu).

    The poles ascend, rho > 0 and sum squares = 1. Root j lies between poles j and j + 1, the last one
    between the last pole and that pole plus rho. Returned are the index of the pole nearest to the root and
    the distance eta = mu - that pole; `gaps` becomes poles_k minus that pole. The differences gaps_k - eta
    have full relative accuracy, which poles_k - mu have not.

    The iteration is the middle way of R.-C. Li (LAPACK Working Note 89): each step goes to the root of an
    interpolating rational function (`rational_step`). It is kept inside a bracket, which is bisected where
    a step leaves it, and at every 16th iteration, so that the search ends whatever the rounding. As the
    iteration is quadratic, a step of 1e-8 leaves an error of 1e-16.
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
        if abs(step) <= 1e-8 * min(abs(a), abs(b)) and low <= new <= high:
            return j, new
        if not low < new < high or iteration % 16 == 15:
            new = (low + high) / 2
            if not low < new < high:
                return j, eta
        eta = new
    return j, eta


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


@any_order
def eigenvector_loop(
    gaps: Array, eta: float, z: Array, poles: Array, u: Array, row: Array
) -> tuple[float, float, float]:
    """Return the results of `secular_eigenvector`."""
    square, form, product = 0.0, 0.0, 0.0
    for k in range(gaps.size):
        t = z[k] / (gaps[k] - eta)
        row[k] = t
        square += t * t
        form += poles[k] * t * t
        product += u[k] * t
    return square, form, product


@compiled_as(eigenvector_loop)
def secular_eigenvector(
    gaps: Array, eta: float, z: Array, poles: Array, u: Array, row: Array
) -> tuple[float, float, float]:
    """Set row = v with v_k = z_k / (gaps_k - eta), the eigenvector of a root.

    Returns |v|^2, v' diag(poles) v and u'v.
    """
    row[:] = z / (gaps - eta)
    return np.dot(row, row), np.dot(row, poles * row), np.dot(u, row)
