"""
How far from the optimum is a guess?
====================================

A certificate takes any weights, ours or a stranger's, and brackets the optimum. Learned weights have both
bounds at the same place. Equal weights, or the best single kernel, leave a gap that they cannot close.
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
grams = ko.Grams.from_kernels([ko.gaussian(w) for w in (1, 3, 9)] + [ko.linear()], features[:100])
grams = grams.normalize("multiplicative")
problem = lp_norm.primal(grams, labels[:100], p=1, loss=ko.hinge(1.0)).problem
learned = ko.solve(problem)
guesses = {"learned": learned.weights, "equal": np.full(4, 0.25)}
guesses |= {
    f"only {name}": np.eye(4)[k] for k, name in enumerate(["width 1", "width 3", "width 9", "linear"])
}

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
for row, weights in enumerate(guesses.values()):
    found = ko.certify(problem, weights=weights)
    ax.plot([found.lower, found.upper], [row, row], "k", marker="|", markersize=22, markeredgewidth=4)
ax.axvline(learned.upper, color="0.6", linestyle="--", zorder=0)
ax.set(yticks=range(6), yticklabels=guesses, xlabel="certified lower and upper bound", ylim=(5.6, -0.6))
plt.show()
