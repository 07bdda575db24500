"""Real data: mammograms at a guaranteed false alarm rate
======================================================

Finding calcifications in mammograms at a false alarm rate of 1 %, with a guarantee.  This program
reads a file of your own and is not run here.

The data set has 11,183 spots described by 6 features, and 260 of them are malignant
(2.3 %).  A radiologist can look at few false alarms, so what counts is the share of
malignant spots found (TPR) while at most 1 % of the harmless ones raise an alarm (FPR).

Each method is tuned for just that, by cross-validation, and then gets a threshold that
keeps the false alarm rate of *new* patients below 1 % with a probability of 95 %.

Run it with the path of an ``npz`` file that holds the arrays ``X`` and ``y`` (1 for
malignant); the data set is "mammography" on OpenML::

    python examples/mammography.py mammography.npz --figure roc.png
"""

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from attop import PatMatNP, TauFPL, TopPush, TopPushK
from attop.calibration import NeymanPearsonThreshold
from attop.metrics import get_scorer, tpr_at_fpr
from attop.plotting import TopROCDisplay

MAX_FPR = 0.01
CONFIDENCE = 0.95

METHODS = {
    "TopPush": TopPush(),
    "TopPushK(5)": TopPushK(K=5),
    "TauFPL(0.01)": TauFPL(tau=MAX_FPR),
    "PatMatNP(0.01)": PatMatNP(tau=MAX_FPR),
    "SVC": SVC(),
    "LogisticRegression": LogisticRegression(),
}


def tuned_with_guarantee(classifier, seed):
    """The classifier with C chosen for TPR at FPR 1 %, and a guaranteed threshold.

    The search runs inside: it never sees the negatives that set the threshold, nor may it,
    since then they would no longer tell how the scores of new patients look.
    """
    search = GridSearchCV(
        make_pipeline(StandardScaler(), classifier),
        {f"{type(classifier).__name__.lower()}__C": [0.1, 1.0, 10.0, 100.0]},
        scoring=get_scorer(f"tpr_at_fpr_{MAX_FPR}"),
        cv=3,
    )
    return NeymanPearsonThreshold(search, fpr=MAX_FPR, confidence=CONFIDENCE, random_state=seed)


def rates(y, called_positive):
    """False and true positive rate."""
    return called_positive[y == 0].mean(), called_positive[y == 1].mean()


def evaluate(model, X, y):
    """The numbers of one row of the table, on samples that the model has not seen."""
    return (
        tpr_at_fpr(y, model.decision_function(X), MAX_FPR),
        *rates(y, model.predict(X)),
        *rates(y, model.estimator_.predict(X)),
    )


def print_table(results):
    """Means over the splits."""
    print(f"{'':18} {'ranking':>12}   {'with the guarantee':^25}   {'own threshold':^15}")
    heads = f"{'FPR':>7} {'largest':>9} {'TPR':>7}   {'FPR':>7} {'TPR':>7}"
    print(f"{'':18} {'TPR@FPR 1 %':>12}   {heads}")
    for name, rows in results.items():
        ranking, fpr, tpr, own_fpr, own_tpr = np.mean(rows, axis=0)
        largest = np.max(rows, axis=0)[1]
        print(
            f"{name:18} {ranking:12.3f}   {fpr:7.2%} {largest:9.2%} {tpr:7.3f}"
            f"   {own_fpr:7.2%} {own_tpr:7.3f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="npz file with the arrays X and y")
    parser.add_argument("--splits", type=int, default=5, help="random halves to test on")
    parser.add_argument("--figure", help="file for the ROC curves of the last split")
    arguments = parser.parse_args()

    with np.load(arguments.path) as data:
        X, y = data["X"], data["y"].astype(int)
    print(f"{len(y):,} samples, {y.sum()} positive; half to train, half to test")

    results = {name: [] for name in METHODS}
    for seed in range(arguments.splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=seed
        )
        models = {
            name: tuned_with_guarantee(classifier, seed).fit(X_train, y_train)
            for name, classifier in METHODS.items()
        }
        for name, model in models.items():
            results[name].append(evaluate(model, X_test, y_test))
        print(f"split {seed + 1} of {arguments.splits} done", flush=True)

    model = models["TauFPL(0.01)"]
    print(
        f"\nThreshold: rank {model.order_} of {model.n_negatives_} held-out negatives; "
        f"FPR above {MAX_FPR:.0%} with probability at most {model.violation_bound_:.3f}\n"
    )
    print_table(results)
    if arguments.figure:
        ax = None
        for name, model in models.items():
            ax = TopROCDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax).ax_
        ax.figure.savefig(arguments.figure, dpi=150)


if __name__ == "__main__":
    main()
