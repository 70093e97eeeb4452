"""
What does a learned kernel look like?
=====================================

Fifty wines of three sorts, in the order of the sorts. Alignment learns weights with which the kernel is as
close as it can be to the kernel of the labels of the first sort: a dark block, and little beside it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from formulations import lanckriet

plt.rcParams.update({"font.size": 18})
data = load_wine()
X, y = StandardScaler().fit_transform(data.data)[::3], np.where(data.target[::3] == 0, 1, -1)
kernels = [ko.on_columns(ko.gaussian(1.0), [j]) for j in range(13)]
grams = ko.Grams.from_kernels(kernels, X).center().normalize("multiplicative")
learned = lanckriet.alignment(grams, y).solve().weights
shown = {"one kernel": grams[0], "the average": grams.combine(np.ones(13)), "learned": grams.combine(learned)}

fig, axes = plt.subplots(1, 3, figsize=(11, 5), layout="constrained")
for ax, (name, K) in zip(axes, shown.items(), strict=True):
    alignment = y @ K @ y / (len(y) * np.linalg.norm(K))
    ax.imshow(K / np.abs(K).max(), cmap="gray_r", vmin=-0.5, vmax=0.7)
    ax.set(title=f"{name}\n{alignment:.2f}", xticks=[], yticks=[])
plt.show()
