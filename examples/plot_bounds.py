"""
How fast do the bounds meet?
============================

Every method reports certified bounds while it runs. Here is the relative distance of the two bounds on 200
tumours with 24 kernels: where a curve is, the optimum is known to that accuracy, whatever the method has done
wrong.
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
widths = [2.0 ** (k / 4) for k in range(-4, 20)]
grams = ko.Grams.from_kernels([ko.gaussian(w) for w in widths], features[:200]).normalize("multiplicative")
formulation = lp_norm.primal(grams, labels[:200], p=4 / 3, loss=ko.hinge(1.0))

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
for method, style in {"newton": "k-", "interleaved": "k--", "cutting-plane": "k:"}.items():
    formulation.solve(method, tol=1e-2)  # compiles what is compiled
    history = np.array(formulation.solve(method, tol=1e-6).history)
    seconds, lower, upper = history[:, :3].T
    gaps = (upper - lower) / np.abs(upper)
    shown = np.isfinite(gaps) & (gaps < 10)
    ax.semilogy(seconds[shown], gaps[shown], style, label=method)
ax.set(xlabel="seconds", ylabel="certified gap", ylim=(1e-7, 10))
ax.legend(frameon=False)
plt.show()
