"""
When is a kernel proved useless?
================================

A hundred kernels with weights on a simplex. At the optimum only a few have weight, and a gap of the bounds is
enough to prove which have none: the smaller the gap, the more kernels are removed, safely, before the optimum
is known.
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
rng = np.random.default_rng(0)
kernels = [
    ko.on_columns(ko.gaussian(w), list(rng.choice(30, 5, replace=False)))
    for w in (1, 2, 4, 8)
    for _ in range(25)
]
grams = ko.Grams.from_kernels(kernels, features[:150]).normalize("multiplicative")
formulation = lp_norm.primal(grams, labels[:150], p=1, loss=ko.squared_hinge(1.0))

gaps, proved = [], []
for tol in 10.0 ** -np.arange(1, 8):
    solution = formulation.solve("newton", tol=tol)
    gaps.append(max(solution.gap, 1e-9))
    proved.append(len(ko.screen(solution)))
without = int((solution.weights < 1e-8).sum())

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
ax.semilogx(gaps, proved, "k.-", markersize=18)
ax.axhline(without, color="0.5", linestyle="--")
ax.text(gaps[0], without + 3, f"{without} have no weight", va="bottom", ha="left", color="0.3")
ax.set(xlabel="certified gap", ylabel="kernels proved to be useless", ylim=(-3, 105))
ax.invert_xaxis()
plt.show()
