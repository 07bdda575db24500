"""
A kernel of your own
====================

A kernel is a function of two arrays of samples that returns the matrix of their similarities.
Here it is that of histograms: what two of them have in common.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from attop import TauFPL
from attop.plotting import TopROCDisplay

# %%
# The kernel
# ----------
# :math:`k(x, y) = \sum_i \min(x_i, y_i)` is positive semi-definite on non-negative features, which
# the certificate needs: with other functions a fit warns.


def histogram_intersection(X, Y):
    """Sum of the smaller of two features, for every row of X and every row of Y."""
    return np.array([np.minimum(x, Y).sum(axis=1) for x in X])


# %%
# Use
# ---
# The rows and columns of a digit's image, summed up, are two histograms of its ink.

digits = load_digits()
ink = digits.images / 16.0
X, y = np.hstack([ink.sum(axis=1), ink.sum(axis=2)]), (digits.target == 3).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

ax = None
for name, kernel in {"intersection": histogram_intersection, "linear": "linear"}.items():
    model = TauFPL(tau=0.02, kernel=kernel, C=1.0).fit(X_train, y_train)
    print(f"{name:12} {len(model.support_)} support vectors, certified gap {model.dual_gap_:.0e}")
    ax = TopROCDisplay.from_estimator(model, X_test, y_test, threshold=None, name=name, ax=ax).ax_
ax.set_title("Threes among the digits, from histograms of their ink")
plt.show()

# %%
# A kernel with parameters is a function with parameters: fix them by `functools.partial`, which
# can be pickled and copied where a lambda cannot; or write a :doc:`class </extending>`, whose
# parameters a grid search can vary.
