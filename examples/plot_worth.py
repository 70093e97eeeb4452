"""
Is learning the kernel worth it?
================================

The progression of diabetes from ten measurements. A kernel for each measurement, learned weights, and four
simpler rivals on the same splits. Where two rows overlap, take the simpler one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernelopt.estimators import MKLRegressor, compare

plt.rcParams.update({"font.size": 18})
X, y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
columns = [(f"x{j}", "gaussian(2.0)", [j]) for j in range(10)]
found = compare(MKLRegressor(columns, loss="squared", C=1.0), X[:200], (y[:200] - y.mean()) / y.std(), cv=5)

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
for row, scores in enumerate(found.scores.values()):
    ax.plot(scores, np.full(len(scores), row), "|", color="0.5", markersize=26, markeredgewidth=3)
    ax.plot(scores.mean(), row, "ko", markersize=16)
ax.set(yticks=range(len(found.scores)), yticklabels=found.scores, xlabel="$R^2$ on five splits, and its mean")
ax.set_ylim(len(found.scores) - 0.5, -0.5)
plt.show()
