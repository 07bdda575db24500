"""Draw the picture of the README: ROC curves near the top of an SVC, a forest and TauFPL.

Each model, with its defaults, is fitted to a random half of Ionosphere and judged on the other; the
curves are means over many halves.  ``python docs/readme_picture.py`` writes
``docs/_static/roc_top.svg`` and prints the rates that the README states.
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from attop import TauFPL
from attop.datasets import load_ionosphere
from attop.metrics import tpr_at_fpr
from attop.plotting import TopROCDisplay

N_SPLITS = 50
OUTPUT = Path(__file__).parent / "_static" / "roc_top.svg"
MODELS = {
    "TauFPL(tau=0.05)": TauFPL(tau=0.05),
    "RandomForestClassifier()": RandomForestClassifier(random_state=0),
    "SVC()": SVC(),
}


def scores_of(model, X):
    """Scores of a fitted classifier, larger for the positive class."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def mean_curves(n_splits):
    """False positive rates, and the mean true positive rate of each model at each of them."""
    X, y = load_ionosphere(return_X_y=True)
    rates = {name: [] for name in MODELS}
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=seed
        )
        fpr = np.arange(np.sum(y_test == 0) + 1) / np.sum(y_test == 0)
        for name, model in MODELS.items():
            scores = scores_of(model.fit(X_train, y_train), X_test)
            # Halfway to the next rate, which rounding may not reach.
            rates[name].append([tpr_at_fpr(y_test, scores, f + 0.5 / len(fpr)) for f in fpr[:-1]])
    means = {name: np.append(np.mean(values, axis=0), 1.0) for name, values in rates.items()}
    return fpr, means


def main():
    """Draw the curves."""
    fpr, means = mean_curves(N_SPLITS)
    figure, ax = plt.subplots(figsize=(6.8, 3.6), layout="constrained", facecolor="white")
    for name, tpr in means.items():
        TopROCDisplay(fpr=fpr, tpr=tpr, n_negatives=len(fpr) - 1, name=name).plot(ax=ax)
        at_5 = tpr[np.searchsorted(fpr, 0.05, side="right") - 1]
        print(f"{name:26} above all negatives {tpr[0]:.3f}, at FPR 5 % {at_5:.3f}")
    ax.set_ylim(0.4, 1.01)
    ax.set_title(f"Ionosphere, mean of {N_SPLITS} random halves")
    ax.legend(loc="lower right", handlelength=4)
    with plt.rc_context({"svg.hashsalt": "attop", "svg.fonttype": "none"}):
        figure.savefig(OUTPUT, metadata={"Date": None, "Creator": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
