"""
Recall, precision, a budget of alerts: what a threshold can promise
===================================================================

A classifier gives scores; where to cut them depends on what has to hold. Here one classifier is
fitted once, and thresholds with different promises are set by the same samples, which it has not
seen. The band shows what could be promised at each false positive rate.
"""

import matplotlib.pyplot as plt
import numpy as np

from attop import TauFPL
from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    NoThresholdError,
    PrecisionThreshold,
    RecallThreshold,
)
from attop.plotting import TopROCDisplay

N_HELD_OUT = 4000


def draw_samples(rng, n, share=0.1):
    """Two clouds in five dimensions; a tenth of the samples is positive."""
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 5))
    X[y == 1, :2] += 1.8
    return X, y


rng = np.random.default_rng(0)
classifier = TauFPL(tau=0.05, kernel="linear").fit(*draw_samples(rng, 1000))
held_out, new = draw_samples(rng, N_HELD_OUT), draw_samples(rng, 100_000)

# %%
# Each threshold keeps its promise on new data with a confidence of 95 %.

thresholds = {
    "FPR at most 1 %": NeymanPearsonThreshold(classifier, fpr=0.01, cv="prefit"),
    "recall at least 90 %": RecallThreshold(classifier, recall=0.9, cv="prefit"),
    "precision at least 80 %": PrecisionThreshold(classifier, precision=0.8, cv="prefit"),
    "at most 20 alerts of 500": AlertBudgetThreshold(
        classifier, max_alerts=20, period=500, cv="prefit"
    ),
    "least cost, a miss costs 5": CostThreshold(
        classifier, cost_matrix=((0, 1), (5, 0)), cv="prefit"
    ),
}
X_new, y_new = new
rates = {}
for promise, model in thresholds.items():
    called_positive = model.fit(*held_out).predict(X_new) == 1
    fpr, tpr = called_positive[y_new == 0].mean(), called_positive[y_new == 1].mean()
    rates[promise] = fpr, tpr
    print(
        f"{promise:26} on new samples: FPR {fpr:.4f}, recall {tpr:.3f}, precision "
        f"{y_new[called_positive].mean():.3f}, {500 * called_positive.mean():5.1f} alerts of 500"
    )
print(f"cost: at most {model.cost_bound_:.3f}, on the held-out samples {model.cost_:.3f}")

# %%
# What cannot be promised is refused, with the reason.

try:
    PrecisionThreshold(classifier, precision=0.995, cv="prefit").fit(*held_out)
except NoThresholdError as reason:
    print(reason)

# %%
# The band is made of the held-out samples, the points of new ones.

display = TopROCDisplay.from_estimator(
    classifier, *held_out, bands=0.95, threshold=None, name="held-out samples"
)
for (promise, point), marker in zip(rates.items(), "os^Dv"):
    display.ax_.plot(*point, marker, color="black", markerfacecolor="white", label=promise)
display.ax_.legend(loc="upper left", fontsize="small")
plt.show()
