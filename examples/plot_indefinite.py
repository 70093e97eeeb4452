"""
What becomes of a similarity that is no kernel?
===============================================

The sigmoid similarity of wines has negative eigenvalues, so that no support vector machine can use it. Three
repairs: cut them off, flip their sign, or learn the kernel near the similarity together with the machine.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from formulations import similarity

plt.rcParams.update({"font.size": 18, "lines.linewidth": 4})
data = load_wine()
X = StandardScaler().fit_transform(data.data)[20:100]
y = np.where(data.target[20:100] == 0, 1, -1)
S = np.tanh(X @ X.T / 13 - 1)
learning = similarity.single_kernel(S, y, rho=0.02, trace=None, fidelity="squared_frobenius")
learning.solve()
spectra = {
    "similarity": np.linalg.eigvalsh(S),
    "cut off": np.linalg.eigvalsh(similarity.denoise(S)),
    "flipped": np.linalg.eigvalsh(similarity.flip(S)),
    "learned": np.linalg.eigvalsh(learning.kernel.value),
}

fig, axes = plt.subplots(1, 4, figsize=(11, 4.5), sharey=True, layout="constrained")
for ax, (name, eigenvalues) in zip(axes, spectra.items(), strict=True):
    signs = np.where(eigenvalues < -1e-9, "0.0", "0.65")
    ax.scatter(np.arange(len(S)), np.sort(eigenvalues)[::-1], c=signs[::-1], s=36)
    ax.axhline(0, color="0.5", linewidth=1)
    ax.set(title=name, yscale="symlog", xticks=[])
axes[0].set_ylabel("eigenvalues")
plt.show()
