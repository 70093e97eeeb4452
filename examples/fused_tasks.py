"""A formulation of one's own: one kernel for two diagnoses at once, faithful to expert comparisons.

In no paper: the kernel is shared by a classifier of the tumour's class and a regression of its size,
the worse-off of the two tasks (relative to its plain average) counts, and statements "a is more like b
than like c" are respected exactly. Two risks inside a maximum, an l_p ball, and entries of the kernel:
the modelling takes nine lines, and the answer comes with a certificate.

    python examples/fused_tasks.py
"""

# %% Data: sixty tumours, their class, and their (standardised, log) area, which is left out of X
import cvxpy as cp
import numpy as np
from sklearn.datasets import load_breast_cancer

import kernelopt as ko

data = load_breast_cancer()
size_columns = [
    i
    for i, name in enumerate(data.feature_names)
    if "area" in name or "perimeter" in name or "radius" in name
]
X = np.delete(data.data, size_columns, axis=1)[:60]
X = (X - X.mean(axis=0)) / X.std(axis=0)
diagnosis = np.where(data.target[:60] == 0, 1.0, -1.0)
log_area = np.log(data.data[:60, 3])
log_area = (log_area - log_area.mean()) / log_area.std()
grams = ko.Grams.from_kernels(
    [
        ko.normalized(k)
        for k in (ko.gaussian(2.0), ko.gaussian(6.0), ko.laplacian(20.0), ko.linear(), ko.polynomial(2))
    ],
    X,
)
a, b, c = np.array([[5, 6, 21], [53, 31, 50], [53, 34, 37]]).T  # a is more like b than like c

# %% The formulation
mu = cp.Variable(len(grams), nonneg=True, name="mu")
K = ko.combine(mu, grams)
classify = ko.risk(K, diagnosis, ko.hinge(C=1.0))
regress = ko.risk(K, log_area, ko.epsilon_insensitive(C=1.0, eps=0.1))
plain = ko.combine(np.full(len(grams), 1 / len(grams)), grams)
levels = [ko.risk(plain, r.learner.y, r.learner.loss).value for r in (classify, regress)]
worse = cp.maximum(classify / levels[0], regress / levels[1])
near = (ko.entries(K, a, b) >= ko.entries(K, a, c)).set_label("comparisons")
problem = cp.Problem(cp.Minimize(worse), [*ko.lp_ball(mu, 1.5, radius=1.0), near])

# %% Solve, and look at what is certified
print(ko.explain(problem))
solution = ko.solve(problem)
print()
print(solution.certificate)
for name, weight in zip(grams.names, mu.value, strict=True):
    print(f"  {weight:6.3f}  {name}")
print(
    "risks relative to the plain average:",
    [round(float(r.value / v), 4) for r, v in zip((classify, regress), levels, strict=True)],
)
print("prices of the comparisons:", np.round(near.dual_value, 4))
right = (np.sign(solution.decision_function(risk=0)) == diagnosis).mean()
error = np.abs(solution.decision_function(risk=1) - log_area).mean()
print(f"training accuracy {right:.3f}, mean error of the log area {error:.3f} standard deviations")
