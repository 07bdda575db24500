"""
Comparing methods over several data sets
========================================

Is a method better than another, or was it lucky? With results on several data sets the methods
are ranked on each, and the ranks are tested. The outcome is a critical difference diagram.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from attop import PatMatNP, TauFPL, TopPush
from attop.metrics import tpr_at_fpr
from attop.plotting import CriticalDifferenceDisplay
from attop.statistics import compare

N_DATASETS = 20
TAU = 0.05

# %%
# Results
# -------
# Use your own: a table with a row for each data set and a column for each method, higher is
# better. Here the methods are fitted to small artificial data sets.

METHODS = {
    "TauFPL": TauFPL(tau=TAU),
    "TopPush": TopPush(),
    "PatMatNP": PatMatNP(tau=TAU),
    "SVC": SVC(),
    "logistic regression": LogisticRegression(),
    "naive Bayes": GaussianNB(),
    "15 neighbours": KNeighborsClassifier(15),
}


def score(method, seed):
    """Share of the positives found at FPR 5 % on the held-out half of a data set."""
    X, y = make_classification(
        600, n_features=8, n_informative=5, n_redundant=1, weights=[0.8], random_state=seed
    )
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    model = clone(method).fit(X_train, y_train)
    if hasattr(model, "decision_function"):
        return tpr_at_fpr(y_test, model.decision_function(X_test), TAU)
    return tpr_at_fpr(y_test, model.predict_proba(X_test)[:, 1], TAU)


results = pd.DataFrame(
    {name: [score(method, seed) for seed in range(N_DATASETS)] for name, method in METHODS.items()}
)
print(results.describe().loc[["mean", "min", "max"]].round(3).T)

# %%
# Test and diagram
# ----------------
# Friedman's test asks whether the methods differ at all, Nemenyi's which of them do. A bar joins
# methods between which no difference is shown.

comparison = compare(results)
print(f"Friedman test: p = {comparison.friedman.f_pvalue:.1e}")
print(f"critical difference of the average ranks: {comparison.critical_difference:.2f}")
CriticalDifferenceDisplay.from_comparison(comparison, title=f"TPR at FPR {TAU:.0%}")
plt.show()

# %%
# Wilcoxon's test with Holm's correction compares two methods by their own scores, not by how they
# rank among the others.

CriticalDifferenceDisplay.from_scores(results, test="wilcoxon-holm", title="the same results")
plt.show()
