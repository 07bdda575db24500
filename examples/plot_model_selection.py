"""
Choosing formulation and parameters
===================================

`~attop.model_selection.AtTopCV` chooses formulation and parameters by cross-validation,
`~attop.model_selection.fit_path` follows one parameter. Both compute each kernel column once for
all their fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from attop import PatMatNP, TauFPL, TopPush, TopPushK
from attop.metrics import tpr_at_fpr
from attop.model_selection import AtTopCV, fit_path

TAU = 0.05
LAMBDAS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]

# %%
# Scikit-learn's breast cancer data; the positives are the malignant tumours, its label 0.

X, y = load_breast_cancer(return_X_y=True)
y = 1 - y
X_train, X_test, y_train, y_test = train_test_split(
    StandardScaler().fit_transform(X), y, test_size=0.5, stratify=y, random_state=0
)

# %%
# Several formulations at once
# ----------------------------
# The grid serves every estimator as far as it takes the parameters: only `~attop.PatMatNP` has a
# ``theta``. ``"lambda"`` stands for ``C = 1 / (lambda n_positives)``, which means the same on
# folds of any size.

search = AtTopCV(
    [TopPush(), TopPushK(K=5), TauFPL(tau=TAU), PatMatNP(tau=TAU)],
    {"lambda": LAMBDAS, "theta": [0.1, 1.0]},
    scoring=f"tpr_at_fpr_{TAU}",
    random_state=0,
).fit(X_train, y_train)

print(f"{len(search.cv_results_['params'])} candidates, 5 folds each")
print(f"largest certified gap: {np.max(search.cv_results_['max_dual_gap']):.0e}")
print(f"best: {type(search.best_estimator_).__name__} with {search.best_params_}")
print(
    f"in cross-validation {search.best_score_:.3f}, on new samples "
    f"{search.score(X_test, y_test):.3f}"
)

# %%
# The mean score of each candidate; of `~attop.PatMatNP` the better theta.

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, marker in zip(("TopPush", "TopPushK", "TauFPL", "PatMatNP"), "osv^"):
    best = [
        max(
            score
            for estimator, params, score in zip(
                search.cv_results_["estimator"],
                search.cv_results_["params"],
                search.cv_results_["mean_test_score"],
            )
            if name == str(estimator).split("(")[0] and params["lambda"] == value
        )
        for value in LAMBDAS
    ]
    ax.plot(LAMBDAS, best, marker=marker, label=name)
ax.set(xscale="log", xlabel="lambda", ylabel=f"TPR at FPR {TAU:.0%}, five folds")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()

# %%
# A path
# ------
# All models along one parameter, each with its certificate.

path = fit_path(TauFPL(tau=TAU), X_train, y_train, "lambda", LAMBDAS)
for value, model, columns in zip(path.values, path.estimators, path.columns):
    found = tpr_at_fpr(y_test, model.decision_function(X_test), TAU)
    print(
        f"lambda {value:.0e}: {len(model.support_):3} support vectors, "
        f"{columns:3} columns computed, TPR {found:.3f}"
    )
