"""
Many samples: Nystroem features
===============================

With ``approximation="nystroem"`` the kernel is replaced by that of a few hundred features, and the
model is a linear one in these. Its time and memory grow in step with the number of samples, where
those of an exact kernel model grow faster. How many features are enough?
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from attop import TauFPL
from attop.metrics import tpr_at_fpr

N_SAMPLES = 120_000
N_COMPONENTS = (50, 100, 200, 400)
TAU = 0.01

# %%
# Data in single precision, which is enough for the features and halves the memory.

X, y = make_classification(
    N_SAMPLES,
    n_features=10,
    n_informative=6,
    n_clusters_per_class=3,
    weights=[0.97],
    class_sep=2.0,
    flip_y=0.002,
    random_state=0,
)
X = StandardScaler().fit_transform(X).astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)


def evaluate(**parameters):
    """Seconds of a fit, and the share of positives it finds on new samples."""
    model = TauFPL(tau=TAU, C=0.1, random_state=0, **parameters)
    started = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - started
    return seconds, tpr_at_fpr(y_test, model.decision_function(X_test), TAU)


# %%
# The approximations, and the exact kernel for comparison. At this size the exact model is still
# quick; but its time, and that of its predictions, grow with the number of support vectors.

results = {}
for n_components in N_COMPONENTS:
    results[f"{n_components} features"] = evaluate(
        approximation="nystroem", n_components=n_components
    )
results["exact kernel"] = evaluate()
for name, (seconds, found) in results.items():
    print(f"{name:15} {seconds:6.2f} s   TPR {found:.3f} at FPR {TAU:.0%}")

# %%

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
found = [results[f"{n} features"][1] for n in N_COMPONENTS]
ax.plot(N_COMPONENTS, found, marker="o", color="#0072B2", label="Nystroem")
ax.axhline(results["exact kernel"][1], color="black", linestyle="--", label="exact kernel")
ax.set(xlabel="features", ylabel=f"TPR at FPR {TAU:.0%}", xscale="log", ylim=(0.0, 1.0))
ax.set_xticks(N_COMPONENTS, [str(n) for n in N_COMPONENTS], minor=False)
ax.xaxis.set_minor_formatter("")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
