"""
What does a comparison cost?
============================

"Tumour 4 is more similar to tumour 14 than to tumour 21 by at least t." The optimum is a convex function of
t, and the multiplier of the constraint, which comes with every solution, is its slope: the price of one more
unit.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelopt as ko

plt.rcParams.update({"font.size": 18, "lines.linewidth": 4})
data = load_breast_cancer()
features = StandardScaler().fit(data.data[:60]).transform(data.data)
labels = 2 * data.target - 1
grams = ko.Grams.from_kernels([ko.gaussian(w) for w in (2, 5, 10)] + [ko.linear()], features[:60])
mu, t = cp.Variable(4, nonneg=True), cp.Parameter()
K = ko.combine(mu, grams)
near = ko.entries(K, [4], [14]) - ko.entries(K, [4], [21]) >= t
problem = cp.Problem(
    cp.Minimize(ko.risk(K, labels[:60], ko.hinge(1.0)) + 0.1 * cp.sum_squares(mu)), [*ko.lp_ball(mu, 4), near]
)

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
levels = np.linspace(-0.4, 0, 15)
values = []
for k, level in enumerate(levels):
    t.value = level
    values.append(ko.solve(problem).upper)
    if k in (2, 8, 13):
        price = float(near.dual_value[0])
        ax.plot(
            level + np.array([-0.08, 0.08]), values[-1] + price * np.array([-0.08, 0.08]), "0.6", zorder=0
        )
        ax.annotate(
            f"price {price:.1f}", (level, values[-1]), (-12, 16), textcoords="offset points", ha="right"
        )
ax.plot(levels, values, "k.-", markersize=14)
ax.set(xlabel="t: how much more similar", ylabel="optimum", ylim=(min(values) - 0.5, max(values) + 1))
plt.show()
