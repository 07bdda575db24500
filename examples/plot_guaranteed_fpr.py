"""
A false positive rate that holds on new data
============================================

A threshold with 5 % false alarms on the samples at hand has more than that on new ones about every
second time, and far more often where the samples also trained the model.
`~attop.calibration.NeymanPearsonThreshold` exceeds the rate with a probability that you choose. To
see it, the whole procedure is repeated with fresh samples many times.
"""

import matplotlib.pyplot as plt
import numpy as np

from attop import TauFPL
from attop.calibration import NeymanPearsonThreshold, required_negatives

N_REPETITIONS = 60
MAX_FPR = 0.05
CONFIDENCE = 0.9

print(f"held-out negatives needed: at least {required_negatives(MAX_FPR, CONFIDENCE)}")

# %%
# Two normal clouds, so that any number of new samples can be drawn.


def draw_samples(rng, n_negatives, n_positives):
    """Two clouds in ten dimensions, a distance of three apart."""
    X = rng.normal(size=(n_negatives + n_positives, 10))
    X[n_negatives:, 0] += 3.0
    return X, np.repeat([0, 1], [n_negatives, n_positives])


rng = np.random.default_rng(0)
new_X, new_y = draw_samples(rng, 5000, 5000)


def rates(model):
    """False and true positive rate on new samples."""
    called_positive = model.predict(new_X) == 1
    return called_positive[new_y == 0].mean(), called_positive[new_y == 1].mean()


# %%
# The threshold of the training scores against the guaranteed one. For that, half of the negatives
# train the classifier, and the other half set the threshold.

classifier = TauFPL(tau=MAX_FPR, C=1.0)
own, guaranteed = [], []
for repetition in range(N_REPETITIONS):
    X, y = draw_samples(rng, 600, 100)
    own.append(rates(classifier.fit(X, y)))
    model = NeymanPearsonThreshold(
        classifier, fpr=MAX_FPR, confidence=CONFIDENCE, random_state=repetition
    )
    guaranteed.append(rates(model.fit(X, y)))
print(
    f"rank {model.order_} of {model.n_negatives_} held-out negatives is the threshold; "
    f"violated with probability at most {model.violation_bound_:.3f}"
)

# %%
# How often the rate was exceeded, and what the guarantee costs.

results = {"threshold of the training scores": np.array(own), "guaranteed": np.array(guaranteed)}
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, found), color in zip(results.items(), ("0.6", "#0072B2")):
    exceeded = np.mean(found[:, 0] > MAX_FPR)
    print(
        f"{name:33} exceeds {MAX_FPR:.0%} in {exceeded:4.0%} of the repetitions; "
        f"mean TPR {found[:, 1].mean():.3f}"
    )
    ax.hist(found[:, 0], bins=20, alpha=0.7, color=color, label=name)
ax.axvline(MAX_FPR, color="black", linestyle="--", label=f"FPR {MAX_FPR:.0%}")
ax.set(xlabel="false positive rate on new samples", ylabel="repetitions")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()

# %%
# The scores of training samples look better than those of new ones, the more so the more flexible
# the kernel. The threshold of the training scores is therefore no promise; the guaranteed one is,
# for any classifier.
