"""`plot_kernels`: the learned kernel beside the base kernels, as sorted heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from kernelopt.errors import InputError, ShapeError
from kernelopt.figures import STYLE, in_points, new_axes, shortened_name
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned
from kernelopt.plotting.arguments import as_names, drawn
from kernelopt.validation import Array, Index, as_classes, shown, whole

PERCENTILES = (2, 98)  # of the entries of a kernel, between which the colours are
TITLE = 30.0  # points above a heat map, for two lines
GUTTER = 0.1  # of the width of a panel, between panels


def plot_kernels(
    solution: Any,
    sort_by: str | ArrayLike | None = None,
    *,
    most: int = 7,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the learned kernel and its base kernels with their weights, as heat maps of sorted points.

    Every heat map has its own scale of colours, from the 2nd to the 98th percentile of the entries off the
    diagonal: kernels differ in size, and a few outliers would take the colours of all other points. Colours
    are compared within a heat map, and not between two. The base kernels stand in the order of their absolute
    weights.

    Parameters
    ----------
    solution : Solution or fitted estimator
        Of one kernel, which several risks may share. For a solution with several kernels, pass
        `solution.learned[i]`. The kernels of an estimator are drawn as in its problem: normalised, and mostly
        centred. Its points are labelled by `classes_`. What `kernelopt.load` returns has no matrices.
    sort_by : "labels", "clusters", "none" or array of shape (N,), optional
        The order of the points: by the labels or targets y with unlabelled points last, by average linkage
        of the distances K_ii + K_jj - 2 K_ij of the learned kernel, as they are, or by given groups. By
        default by labels where there are some, else by clusters. Of several risks with one kernel
        an estimator has the labels. Up to ten groups are named, and separated by lines.
    most : int >= 1, default 7
        Base kernels that are drawn. The title tells how many there are.
    names : sequence of m str, optional
        Names of the kernels; by default the names of the stack.
    ax : matplotlib axes, optional
        They are the frame of the heat maps, which are their `child_axes`.

    Returns
    -------
    matplotlib axes
        The frame of the heat maps.

    Raises
    ------
    InputError
        If the solution has no kernel or several, no labels to sort by, or if there are fewer names than
        kernels; of class ShapeError if the groups are not one per point.

    Notes
    -----
    Of more than 400 points the matrices are averaged over blocks. A kernel that is no combination is drawn
    alone. Where the percentiles are nearer to each other than a twentieth of the median absolute diagonal
    entry, the upper limit of the colours is moved up to that distance: errors of rounding would fill the
    colours of a kernel close to the identity.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_kernels(solution)
    >>> len(ax.child_axes)  # the learned kernel and two base kernels
    3
    """
    machine = machine_of(solution)
    panels, m = panels_of(machine, whole(most, "most"), names)
    order, groups, by = order_of(labels_of(solution, machine), panels[0][0], sort_by)
    rows, columns = arranged(len(panels), 480.0, 360.0)
    ax = new_axes(ax, (max(1.7 * columns + 1.5, 5.0), (1.7 + TITLE / 72) * rows + 0.8))  # inches
    frames = frames_in(ax, len(panels))
    for frame, (matrix, name, below) in zip(frames, panels, strict=True):
        image = sorted_image(matrix, order)
        lowest, highest = colour_limits(image)
        picture = frame.imshow(image, cmap="viridis", vmin=lowest, vmax=highest, extent=(0, 1, 1, 0))
        longest = max(int(in_points(frame)[0] / (STYLE.character * STYLE.font)), 8)
        frame.set_title(shortened_name(name, longest) + below, fontsize=STYLE.font)
        frame.set(xticks=[], yticks=[])
        mark_groups(frame, groups, named=frame is frames[0])
    ax.set_axis_off()
    bar = ax.figure.colorbar(picture, ax=ax, extend="both", shrink=0.8, ticks=picture.get_clim())
    bar.ax.set_yticklabels([f"{percent}%" for percent in PERCENTILES])
    bar.set_label("percentiles of each kernel")
    some = f"{len(panels) - 1} of {m}" if len(panels) - 1 < m else f"{m}"
    base = f" and {some} base kernel{'s' * (m > 1)}" if len(panels) > 1 else ""
    ax.set_title(f"Learned kernel{base},\npoints {by}")
    return ax


def machine_of(given: Any) -> Learned:
    """Return the learned machine of a solution with one kernel; the first of those that share the kernel."""
    solution = drawn(given, "solution", "plot_kernels", machines=True).solution
    if isinstance(solution, Learned):
        return solution
    if isinstance(solution, SavedSolution):
        raise InputError(
            f"solution must have the kernels on all points, got {shown(given)} in plot_kernels, which was "
            "loaded: files hold no matrices. Draw the solution of solve(), or the fitted estimator, before "
            "it is saved."
        )
    machines: tuple[Learned, ...] = solution.learned
    if machines and all(have_one_kernel(machines[0], other) for other in machines[1:]):
        return machines[0]
    name, alone = "solution", "Learn a kernel with a risk."
    if solution is not given:
        name, alone = "model.solution_", "Draw its kernel, model.transform(X), with imshow of matplotlib."
    raise InputError(
        f"plot_kernels needs a solution with one learned kernel, got {len(machines)}. "
        + (f"Pass {name}.learned[i] for risk i." if machines else alone)
    )


def have_one_kernel(one: Learned, other: Learned) -> bool:
    """Whether two machines have the same kernels with the same weights, without the ridge."""
    left, right = ([part for part in machine.parts if not part.is_ridge] for machine in (one, other))
    return len(left) == len(right) and all(
        p.grams is q.grams and np.array_equal(p.weights, q.weights) for p, q in zip(left, right, strict=True)
    )


def labels_of(given: Any, machine: Learned) -> Any:
    """Return the labels of the first n points: of an estimator its classes, else the labels of the machine.

    They are None where there are none, and where several risks without an estimator have labels of their own.
    """
    solution, classes = getattr(given, "solution_", given), getattr(given, "classes_", None)
    machines = [machine] if isinstance(solution, Learned) else solution.learned
    if classes is not None and machine.y is not None:
        if len(machines) == len(classes):  # one against the rest: each point is positive for its class
            return classes[np.argmax(np.array([each.y for each in machines]), axis=0)]
        if len(machines) == 1 and len(classes) == 2:
            return classes[(machine.y > 0).astype(int)]
    return machine.y if len(machines) == 1 else None


def panels_of(
    machine: Learned, most: int, names: Sequence[str] | None
) -> tuple[list[tuple[Array, str, str]], int]:
    """Return the learned kernel and the base kernels of the largest weights, and the number of all.

    Each has its name, and what stands below the name.
    """
    panels = [(machine.kernel, "learned", "")]
    if machine.weights is None or machine.names is None:
        return panels, 0
    weights = machine.weights
    listed = machine.names if names is None else as_names(names, weights.size, "kernel", "plot_kernels")
    stacks = [(part.grams, i) for part in machine.parts if not part.is_ridge for i in range(len(part.grams))]
    for k in np.argsort(-np.abs(weights), kind="stable")[:most]:
        grams, i = stacks[k]
        panels.append((grams.gram(i), str(listed[k]), f"\nweight {weights[k]:.3g}"))
    return panels, weights.size


def order_of(y: Any, K: Array, sort_by: Any) -> tuple[Index, list[tuple[str, int]], str]:
    """Return the order of the points, the names and sizes of their groups, and the rule in words."""
    if sort_by is None:
        sort_by = "clusters" if y is None else "labels"
    if not isinstance(sort_by, str):
        groups = as_classes(sort_by, "sort_by", "one group per point")
        if groups.size != len(K):
            raise ShapeError(
                f"sort_by must have shape ({len(K)},), one group per point, got {groups.shape}. Pass "
                '"labels", "clusters", "none", or one group for every point of the kernels.'
            )
        return *grouped(groups), "by group"
    if sort_by == "none":
        return np.arange(len(K)), [], "in their order"
    if sort_by == "clusters":
        return clustered(K), [], "by cluster"
    if sort_by != "labels":
        raise InputError(
            f'sort_by must be "labels", "clusters", "none" or an array of groups, got {shown(sort_by)}. '
            'Pass "clusters" where there are no labels.'
        )
    if y is None:
        raise InputError(
            'sort_by="labels" needs a machine that has learned from labels, got one without, or several. '
            'Pass "clusters", or the groups of the points.'
        )
    order, groups_of_y = grouped(y)
    rest = np.arange(y.size, len(K))
    return np.append(order, rest), groups_of_y + [("unlabelled", rest.size)] * bool(rest.size), "by label"


def grouped(groups: Any) -> tuple[Index, list[tuple[str, int]]]:
    """Return the points sorted by group, and each group's name and size."""
    found, sizes = np.unique(groups, return_counts=True)
    texts = [f"{g:g}" if isinstance(g, float | np.floating) else str(g) for g in found]
    return np.argsort(groups, kind="stable"), list(zip(texts, sizes.tolist(), strict=True))


def clustered(K: Array) -> Index:
    """Return the order of the leaves of average linkage, by the distances of the features."""
    if len(K) < 3:
        return np.arange(len(K))
    diagonal = np.diag(K)
    distances = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2 * K, 0.0))
    return np.asarray(leaves_list(linkage(squareform(distances, checks=False), "average")), dtype=np.intp)


def sorted_image(K: Array, order: Index) -> Array:
    """Return K sorted, and averaged to at most 400 x 400 blocks."""
    image, most = K[np.ix_(order, order)], 400
    if len(K) > most:
        starts = np.linspace(0, len(K), most, endpoint=False).astype(int)
        sizes = np.diff([*starts, len(K)])
        image = np.add.reduceat(np.add.reduceat(image, starts, 0), starts, 1) / np.outer(sizes, sizes)
    return np.asarray(image)


def colour_limits(image: Array) -> tuple[float, float]:
    """Return the 2nd and the 98th percentile of the entries off the diagonal, kept apart."""
    shown_entries = image[~np.eye(len(image), dtype=bool)] if len(image) > 1 else image
    lowest, highest = map(float, np.percentile(shown_entries, PERCENTILES))
    closest = 0.05 * float(np.median(np.abs(np.diag(image))))
    return lowest, max(highest, lowest + closest)


def arranged(count: int, width: float, height: float) -> tuple[int, int]:
    """Return rows and columns in which `count` squares with titles are large, in a frame in points."""
    columns = min(count, max(1, round(np.sqrt(count * width / height))))
    return -(-count // columns), columns


def frames_in(ax: Any, count: int) -> list[Any]:
    """Return axes for `count` square heat maps with titles inside `ax`."""
    width, height = in_points(ax)
    rows, columns = arranged(count, width, height)
    tall = max(1 / rows - TITLE / height, 0.5 / rows)  # the share of a heat map
    return [
        ax.inset_axes([k % columns / columns, 1 - (k // columns + 1) / rows, (1 - GUTTER) / columns, tall])
        for k in range(count)
    ]


def mark_groups(ax: Any, groups: list[tuple[str, int]], named: bool) -> None:
    """Draw lines between the groups of the points, if they are few, and write their names at the left."""
    if 1 < len(groups) <= 10:
        names, sizes = zip(*groups, strict=True)
        ends = np.cumsum(sizes) / sum(sizes)
        for end in ends[:-1]:
            ax.axhline(end, color="white", linewidth=0.8)
            ax.axvline(end, color="white", linewidth=0.8)
        if named:
            middles = ends - np.array(sizes) / (2 * sum(sizes))
            ax.set_yticks(middles, [shortened_name(name, 12) for name in names], fontsize=STYLE.font)
            ax.tick_params(axis="y", length=0)
