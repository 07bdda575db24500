"""
Fraud: the hundred alarms an analyst can look at
================================================

One transaction in a hundred is fraudulent, and the analysts can look at a hundred alarms. What
counts is how many of these are right, not how well the other transactions are sorted. The model
is chosen and judged by that.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from attop import PatMatNP, TauFPL, TopPush
from attop.metrics import get_scorer, precision_at_k, tpr_at_fpr
from attop.model_selection import AtTopCV
from attop.plotting import ScoreDistributionDisplay, TopROCDisplay

N_SAMPLES = 12_000
N_ALARMS = 100
MAX_FPR = 0.01

# %%
# Data
# ----
# Twelve features, of which eight say something; fraud of four kinds, and one label in a
# thousand is wrong.

X, y = make_classification(
    N_SAMPLES,
    n_features=12,
    n_informative=8,
    n_clusters_per_class=4,
    weights=[0.99],
    flip_y=0.002,
    class_sep=1.5,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
print(f"{len(y_train)} transactions to learn from, {y_train.sum()} of them fraud")

# %%
# A model for the top
# -------------------
# `~attop.model_selection.AtTopCV` tries formulations and weights of the regularisation together. It
# computes each kernel column once for all of them.

candidates = [TopPush(), TauFPL(tau=MAX_FPR), PatMatNP(tau=MAX_FPR)]
search = AtTopCV(
    candidates,
    {"lambda": [1e-1, 1e-2, 1e-3, 1e-4]},
    cv=3,
    scoring=f"tpr_at_fpr_{MAX_FPR}",
    random_state=0,
)
at_top = make_pipeline(StandardScaler(), search).fit(X_train, y_train)
print("chosen:", type(search.best_estimator_).__name__, search.best_params_)

# %%
# The usual way
# -------------
# A support vector machine, tuned for the same rate, so that only the loss differs.

usual = GridSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": [0.1, 1.0, 10.0]},
    scoring=get_scorer(f"tpr_at_fpr_{MAX_FPR}"),
    cv=3,
).fit(X_train, y_train)
print("chosen:", usual.best_params_)

# %%
# What the analysts see
# ---------------------
# On transactions that neither model has seen:

models = {"at the top": at_top, "SVC": usual}
for name, model in models.items():
    scores = model.decision_function(X_test)
    right = precision_at_k(y_test, scores, N_ALARMS)
    found = tpr_at_fpr(y_test, scores, MAX_FPR)
    print(
        f"{name:10} {right:.0%} of the {N_ALARMS} highest scores are fraud; "
        f"{found:.0%} of the fraud is found at FPR {MAX_FPR:.0%}"
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for name, model in models.items():
    TopROCDisplay.from_estimator(model, X_test, y_test, threshold=None, name=name, ax=left)
ScoreDistributionDisplay.from_estimator(at_top, X_test, y_test, name="at the top", ax=right)
plt.show()

# %%
# The share of harmless transactions above the model's own threshold, right, is larger than on the
# training samples. The threshold belongs to those; for one that holds on new data see
# :ref:`sphx_glr_auto_examples_plot_guaranteed_fpr.py`.
