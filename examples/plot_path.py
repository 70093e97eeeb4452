"""
How do the weights change with C?
=================================

C is the price of an error. A path solves the problem for growing C, each time from the last solution. Smooth
kernels carry the machine at first; narrow ones take over where every error counts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from formulations import lp_norm

plt.rcParams.update({"font.size": 18, "lines.linewidth": 4})
data = load_breast_cancer()
features, labels = StandardScaler().fit_transform(data.data), 2 * data.target - 1
widths = [0.5, 2.0, 8.0, 32.0]
grams = ko.Grams.from_kernels([ko.gaussian(w) for w in widths], features[:150]).normalize("multiplicative")
values = np.geomspace(0.01, 100, 13)
path = ko.path(lambda C: lp_norm.primal(grams, labels[:150], p=1, loss=ko.hinge(C)), values, name="C")
shares = path.weights / path.weights.sum(axis=1, keepdims=True)

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
ax.stackplot(
    values, shares.T, colors=["0.15", "0.4", "0.65", "0.88"], labels=[f"width {w:g}" for w in widths]
)
ax.set(xscale="log", xlabel="C", ylabel="share of the weights", xlim=(0.01, 100), ylim=(0, 1))
ax.legend(
    loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, frameon=False, handlelength=1, columnspacing=1
)
plt.show()
