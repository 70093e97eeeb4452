"""
Which measurements tell the wines apart?
========================================

Each of the thirteen measurements has a Gaussian kernel of its own. With p = 1 a kernel can have the weight
zero in all three classifiers, one for each sort of wine: its measurement is not needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from kernelopt.estimators import MKLClassifier

plt.rcParams.update({"font.size": 18})
data = load_wine()
kernels = [(name, "gaussian(1.0)", [j]) for j, name in enumerate(data.feature_names)]
scaled = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
model = MKLClassifier(kernels, p=1, C=1.0).fit(scaled, data.target_names[data.target])
weights = np.atleast_2d(model.weights_).mean(axis=0)

fig, ax = plt.subplots(figsize=(9, 7), layout="constrained")
order = np.argsort(weights)
names = [
    name.replace("od280/od315_of_diluted_wines", "od280/od315").replace("_", " ")
    for name in data.feature_names
]
ax.barh([names[j] for j in order], weights[order] / weights.sum(), color="0.35")
score = model.score(scaled, data.target_names[data.target])
ax.set(xlabel="share of the weights", title=f"accuracy in training {score:.2f}", xticks=[0, 0.1, 0.2])
plt.show()
