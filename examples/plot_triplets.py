"""
How many comparisons make a kernel?
===================================

Nobody labels the flowers. An expert says "i is more like j than like k", and a kernel is learned from that.
The more comparisons it sees, the more of 2000 new ones it gets right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from formulations import triplet_lp

plt.rcParams.update({"font.size": 18, "lines.linewidth": 4})
data = load_iris()
X, y = StandardScaler().fit_transform(data.data), data.target
kernels = [ko.on_columns(ko.gaussian(1.0), [j]) for j in range(4)] + [ko.linear()]
grams = ko.Grams.from_kernels(kernels, X).normalize("multiplicative")
new = ko.sample_triplets(y, 2000, random_state=1)

sizes, scores = [3, 10, 30, 100, 300], []
for size in sizes:
    shown = [ko.sample_triplets(y, size, random_state=k) for k in range(2, 7)]
    learned = [
        triplet_lp.kernel_design(grams, T, gamma1=0.01, gamma2=1e-3, cone="nonnegative") for T in shown
    ]
    scores.append([ko.triplet_score(grams.combine(f.solve().weights), new) for f in learned])
scores = np.array(scores)

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
ax.fill_between(sizes, scores.min(axis=1), scores.max(axis=1), color="0.85")
ax.plot(sizes, scores.mean(axis=1), "k.-", markersize=16, label="learned kernel, five draws")
ax.axhline(ko.triplet_score(grams.combine(np.full(5, 0.2)), new), color="0.4", ls="--", label="equal weights")
ax.set(
    xscale="log", xlabel="comparisons shown", ylabel="new comparisons right", xticks=sizes, xticklabels=sizes
)
ax.legend(frameon=False, loc="lower right")
plt.show()
