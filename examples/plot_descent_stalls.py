"""
Why the paper's descent stalls, and the move that is missing
============================================================

The coordinate descent of the paper changes two dual variables at a time. For `~attop.TopPush` that
leads to the optimum. For the other formulations it can stop far from it, at points that no change
of two variables improves. This program finds such a point and the move that leads on from it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from attop import PatMatNP, TopPush, TopPushK
from attop.datasets import load_ionosphere
from attop.plotting import ConvergenceDisplay

LAMBDA = 1e-3
N_EPOCHS = 200
K = 10

X, y = load_ionosphere(return_X_y=True)
X = StandardScaler().fit_transform(X)
C = 1.0 / (LAMBDA * y.sum())

# %%
# Three formulations, two solvers
# -------------------------------
# Left the pairs suffice. In the middle and on the right they do not: the dashed line, the dual
# value of the paper's descent, stays below the optimum, however long it runs.

formulations = {
    "TopPush": TopPush(C=C, gamma="auto"),
    f"TopPushK, K = {K}": TopPushK(K=K, C=C, gamma="auto"),
    "Pat&Mat-NP, τ = 0.05": PatMatNP(tau=0.05, C=C, gamma="auto"),
}


def paper_descent(classifier):
    """The classifier, fitted by the paper's descent with many times its usual steps."""
    options = {"n_epochs": N_EPOCHS}
    descent = classifier.__sklearn_clone__().set_params(
        solver="pairwise", solver_options=options, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is what we want to see
        return descent.fit(X, y)


fits = {}
for title, classifier in formulations.items():
    fits[title] = {"exact": classifier.fit(X, y), "pairs of variables": paper_descent(classifier)}
    for solver, model in fits[title].items():
        print(
            f"{title:21} {solver:19} dual value {model.history_.dual[-1]:9.3f}, "
            f"certified gap {model.dual_gap_:7.1e}"
        )
ConvergenceDisplay.from_estimators(fits, x="step")
plt.show()

# %%
# The point where it stops
# ------------------------
# In the dual of `~attop.TopPushK` every beta is at most the cap :math:`u = \frac1K \sum \alpha_i`,
# the same for all of them. Where several betas sit at the cap, one alpha cannot fall alone with one
# beta, since the cap would fall below the other betas.

stalled = fits[f"TopPushK, K = {K}"]["pairs of variables"]
optimal = fits[f"TopPushK, K = {K}"]["exact"]
alpha, beta = stalled.alpha_, stalled.beta_
cap = alpha.sum() / K
at_cap = np.flatnonzero(beta >= cap * (1 - 1e-9))
print(f"{len(at_cap)} of {len(beta)} betas are at the cap {cap:.3g}; {stalled.status_}")

# %%
# The missing move
# ----------------
# Let one alpha change by :math:`d`, every beta at the cap by :math:`d / K`, so that all of them
# stay at it, and one free beta by what is left. Then all constraints hold. The dual value along
# the best such move is a parabola that rises:

coefficients = np.zeros(len(y))
coefficients[y == 1], coefficients[y == 0] = alpha, -beta
kernel = rbf_kernel(X, gamma=1.0 / X.shape[1])
scores = kernel @ coefficients
positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
free = np.flatnonzero(beta < cap * (1 - 1e-9))
rest = (K - len(at_cap)) / K  # what the free beta has to take for each unit of d


def direction(i, j):
    """Change of the coefficients for d = 1, with alpha i and free beta j."""
    change = np.zeros(len(y))
    change[positives[i]] = 1.0
    change[negatives[at_cap]] = -1.0 / K
    change[negatives[free[j]]] -= rest
    return change


def dual_value(coefficients):
    """The dual of the hinge: sum of the alphas less half the squared norm of w."""
    return coefficients[positives].sum() - 0.5 * coefficients @ kernel @ coefficients


def largest_step(i, j, sign):
    """How far the move can go: the alpha stays in [0, C], the free beta between 0 and the cap."""
    falling = beta[free[j]] / rest
    rising = (cap - beta[free[j]]) / (rest - 1.0 / K)
    if sign > 0:
        return min(C - alpha[i], rising)
    others = cap - np.delete(beta[free], j).max()
    return -min(alpha[i], falling, K * others)


best_gain, best_move, best_step = 0.0, None, 0.0
for i in range(len(alpha)):
    for j in range(len(free)):
        move = direction(i, j)
        rate = move[positives].sum() - move @ scores
        curvature = move @ kernel @ move
        step = rate / curvature
        limit = largest_step(i, j, np.sign(rate))
        step = min(step, limit) if rate > 0 else max(step, limit)
        gain = step * (rate - 0.5 * step * curvature)
        if gain > best_gain:
            best_gain, best_move, best_step = gain, move, step
print(f"the best of these moves gains {best_gain:.4f}")

# %%
# The dual value along that move, computed from the dual variables themselves. Step 0 is the point
# that no change of two variables improves.

steps = best_step * np.linspace(-0.3, 1.3, 33)
values = [dual_value(coefficients + step * best_move) for step in steps]
figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(steps, values, color="black", linewidth=2, label="along the missing move")
ax.plot(0.0, dual_value(coefficients), "o", color="#D55E00", label="where pairs of variables stop")
ax.set(xlabel="change d of the alpha", ylabel="dual value")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
