r"""
Which p spreads the weights?
============================

Ten Gaussian kernels of growing width compare 150 tumours. Their weights lie in the ball :math:`\|\theta\|_p
\le 1`. For p = 1 a few kernels have weight, for larger p all of them, and for p = inf all have the same.
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
widths = [2.0**k for k in range(-1, 9)]
grams = ko.Grams.from_kernels([ko.gaussian(w) for w in widths], features[:150]).normalize("multiplicative")

fig, axes = plt.subplots(1, 3, figsize=(10, 4.5), sharex=True, layout="constrained")
for ax, p in zip(axes, [1, 4 / 3, np.inf], strict=True):
    solution = lp_norm.primal(grams, labels[:150], p=p, loss=ko.hinge(1.0)).solve()
    ax.bar(range(10), solution.weights / solution.weights.sum(), color="0.35")
    ax.set(title=f"p = {p:.3g}", ylim=(0, 1), xticks=[0, 4, 9], xticklabels=["½", "8", "256"], xlabel="width")
    ax.label_outer()
axes[0].set_ylabel("share of the weights")
plt.show()
