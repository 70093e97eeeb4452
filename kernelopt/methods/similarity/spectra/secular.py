"""The eigenvalues of diag(spectrum) + c u u', one at a time, without any for which u is no matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelopt.numerics.compiling import compiled, summed
from kernelopt.validation import Array

EPS = float(np.finfo(float).eps)
CLOSE = 1e-8  # a step this small, in distances to the next pole, leaves an error of its square
ROUNDS = 200


@compiled
def deflate(
    spectrum: Array,
    u: Array,
    c: float,
    poles: Array,
    components: Array,
    order: NDArray[np.intp],
    turns: NDArray[np.intp],
    angles: Array,
) -> tuple[int, int]:
    """Split off the eigenvalues of diag(spectrum) + c u u' that need no equation, as LAPACK's dlaed2 does.

    An entry of u that moves nothing by more than rounding is left out. Of two poles whose coupling is
    rounding, a plane rotation gives all of u to one. Position k then stands for coordinate `order[k]`,
    after the rotations: the first positions hold the poles that remain, ascending, the others the
    eigenvalues that are done, descending; `components` holds u. Returns the numbers of poles and of
    rotations.
    """
    n = spectrum.size
    largest, square = 0.0, 0.0
    for k in range(n):
        largest = max(largest, abs(spectrum[k]))
        square += u[k] * u[k]
    tol = 8 * EPS * largest
    strength = c * np.sqrt(square)
    live, front, turned, held = 0, n, 0, -1
    held_pole, held_component = 0.0, 0.0
    for k in range(n):
        pole, component = spectrum[k], u[k]
        if strength * abs(component) <= tol:
            front = insert_pole(poles, components, order, front, pole, component, k)
            continue
        if held >= 0:
            gap, both = pole - held_pole, component * component + held_component * held_component
            if gap * abs(component * held_component) <= tol * both:
                length = np.sqrt(both)
                cosine, sine = component / length, held_component / length
                turns[turned, 0], turns[turned, 1] = held, k
                angles[turned, 0], angles[turned, 1] = cosine, sine
                turned += 1
                front = insert_pole(poles, components, order, front, held_pole + gap * sine * sine, 0.0, held)
                pole, component = pole - gap * sine * sine, length
            else:
                poles[live], components[live], order[live] = held_pole, held_component, held
                live += 1
        held, held_pole, held_component = k, pole, component
    if held >= 0:
        poles[live], components[live], order[live] = held_pole, held_component, held
        live += 1
    return live, turned


@compiled
def insert_pole(
    poles: Array,
    components: Array,
    order: NDArray[np.intp],
    front: int,
    pole: float,
    component: float,
    k: int,
) -> int:
    """Put an eigenvalue that is done among the others, which start at `front`; return the new start."""
    spot = front
    while spot < poles.size and poles[spot] > pole:  # rarely: they come ascending, but for rotations
        poles[spot - 1], components[spot - 1], order[spot - 1] = poles[spot], components[spot], order[spot]
        spot += 1
    poles[spot - 1], components[spot - 1], order[spot - 1] = pole, component, k
    return front - 1


@compiled
def turn_back(x: Array, turns: NDArray[np.intp], angles: Array, turned: int) -> None:
    """Undo the rotations of `deflate` on a vector, in place."""
    for k in range(turned - 1, -1, -1):
        p, q, cosine, sine = turns[k, 0], turns[k, 1], angles[k, 0], angles[k, 1]
        x[p], x[q] = cosine * x[p] + sine * x[q], cosine * x[q] - sine * x[p]


@summed
def sides(gaps: Array, squares: Array, eta: float, split: int) -> tuple[float, float, float, float]:
    """Return sum squares / (gaps - eta) and its derivative, first up to `split`, then from there on."""
    below, below_slope, above, above_slope = 0.0, 0.0, 0.0, 0.0
    for k in range(split):
        t = 1 / (gaps[k] - eta)
        s = squares[k] * t
        below += s
        below_slope += s * t
    for k in range(split, gaps.size):
        t = 1 / (gaps[k] - eta)
        s = squares[k] * t
        above += s
        above_slope += s * t
    return below, below_slope, above, above_slope


@compiled
def root(j: int, poles: Array, squares: Array, rho: float, gaps: Array) -> tuple[int, float]:
    """Return the j-th root (ascending) of 1/rho + sum_k squares_k / (poles_k - mu), sum squares = 1.

    As the pole nearest to it and the distance eta from there; `gaps` becomes the distances of all poles
    from that one, so that gaps - eta are the distances from the root to full relative accuracy, which
    poles - mu are not. The steps go to the root of an interpolation with the poles to the left and to
    the right of the root, one each for the sums over the two sides (R.-C. Li, LAPACK Working Note 89).
    """
    n = poles.size
    last = j == n - 1
    distances(poles, j, gaps)
    if n == 1:
        return 0, rho
    left = j - 1 if last else j
    low, high = 0.0, rho if last else gaps[j + 1]
    eta = rho * max(squares[j], 0.5) if last else high / 2
    for rounds in range(ROUNDS):
        p, slope_p, q, slope_q = sides(gaps, squares, eta, left + 1)
        f = 1 / rho + p + q
        if rounds == 0 and not last and f < 0:  # the pole to the right is nearer
            width = high
            j, low, high, eta = j + 1, -eta, 0.0, eta - width
            distances(poles, j, gaps)
        if f > 0:
            high = min(high, eta)
        else:
            low = max(low, eta)
        a, b = gaps[left] - eta, gaps[left + 1] - eta
        step = interpolated(f, slope_p, slope_q, a, b, last)
        new = eta + step
        if abs(step) <= CLOSE * min(abs(a), abs(b)) and low <= new <= high:
            return j, new
        if not low < new < high or rounds % 16 == 15:
            new = (low + high) / 2
            if not low < new < high:
                return j, eta
        eta = new
    return j, eta


@compiled
def distances(poles: Array, j: int, gaps: Array) -> None:
    """Fill in the distances of the poles from the j-th."""
    for k in range(poles.size):
        gaps[k] = poles[k] - poles[j]


@compiled
def interpolated(f: float, slope_p: float, slope_q: float, a: float, b: float, last: bool) -> float:
    """Return the step to the root of r + s / (a - x) + t / (b - x) with this value and these slopes."""
    curvature = f - a * slope_p - b * slope_q
    linear = (a + b) * f - a * b * (slope_p + slope_q)
    rest = a * b * f
    wide = np.sqrt(max(linear * linear - 4 * rest * curvature, 0.0))
    if last:
        wide = -wide
    if (linear <= 0) != last:
        return float((linear - wide) / (2 * curvature))
    return float(2 * rest / (linear + wide))


@summed
def image(gaps: Array, eta: float, z: Array, poles: Array, row: Array) -> tuple[float, float]:
    """Fill in the eigenvector z / (gaps - eta) of a root; return its square and its form with `poles`."""
    square, form = 0.0, 0.0
    for k in range(gaps.size):
        t = z[k] / (gaps[k] - eta)
        row[k] = t
        square += t * t
        form += poles[k] * t * t
    return square, form
