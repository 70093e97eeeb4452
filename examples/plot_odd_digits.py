"""
Which digits look odd?
======================

A one-class machine has seen 120 zeros and nothing else. It learns a kernel in which they are close together,
and then scores new digits. Below zero a digit is none of its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelopt.estimators import OneClassMKL

plt.rcParams.update({"font.size": 18})
data = load_digits()
pixels = data.data / 16
zeros, others = pixels[data.target == 0], pixels[data.target != 0]
kernels = [f"gaussian({width})" for width in (0.5, 1.0, 2.0, 4.0)]
model = OneClassMKL(kernels, nu=0.1).fit(zeros[:120])
bins = np.linspace(*np.quantile(model.decision_function(pixels), [0, 1]), 40)

fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
ax.hist(model.decision_function(zeros[120:]), bins, density=True, color="0.2", label="58 new zeros")
ax.hist(
    model.decision_function(others), bins, density=True, color="0.7", alpha=0.8, label="1619 other digits"
)
ax.axvline(0, color="k", linewidth=3, linestyle="--")
ax.set(xlabel="score", yticks=[], ylabel="share")
ax.legend(frameon=False)
plt.show()
