"""Draw the picture of the README: ROC curves near the top of PatMatNP, an SVC and a forest.

The samples are those of the first example of the gallery: four positives in ten look just like a
group of negatives, and two linear models differ in whom they give up.  It illustrates the idea and
is no benchmark: the methods were chosen on other draws of these samples, and further models are
printed but not drawn.  The curves are means over some draws.

``python docs/readme_picture.py`` writes ``docs/_static/roc_top.svg`` and prints the rates that the
README states.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_curve
from sklearn.svm import SVC

from attop import PatMatNP
from attop.plotting import TopROCDisplay

N_DRAWS = 10
N_NEGATIVES = 2000
N_NEGATIVES_TEST = 20_000
OUTPUT = Path(__file__).parent / "_static" / "roc_top.svg"
DRAWN = ("PatMatNP, linear", "SVC, linear", "random forest")
MODELS = {
    "PatMatNP, linear": PatMatNP(tau=0.01, kernel="linear"),
    "SVC, linear": SVC(kernel="linear"),
    "random forest": RandomForestClassifier(300, min_samples_leaf=5, random_state=0),
    "PatMatNP, Gaussian": PatMatNP(tau=0.01),
    "SVC, Gaussian": SVC(),
}


def draw_samples(rng, n_negatives):
    """Samples and labels: two groups of negatives, two of positives."""
    groups = [
        ((0.0, 0.0), n_negatives * 9 // 10),
        ((0.0, 3.0), n_negatives // 10),
        ((0.0, 3.0), n_negatives // 25),
        ((3.0, 0.0), n_negatives * 3 // 50),
    ]
    samples = [rng.normal(centre, 0.7, size=(size, 2)) for centre, size in groups]
    labels = [np.full(size, number >= 2) for number, (_, size) in enumerate(groups)]
    return np.vstack(samples), np.concatenate(labels).astype(int)


def scores_of(model, X):
    """Scores of a fitted classifier, larger for the positive class."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def mean_curves():
    """False positive rates, and the mean true positive rate of each model at each of them."""
    fpr = np.r_[0.0, np.geomspace(1.0 / N_NEGATIVES_TEST, 1.0, 150)]
    rates = {name: [] for name in MODELS}
    for seed in range(N_DRAWS):
        X_train, y_train = draw_samples(np.random.default_rng(1000 + seed), N_NEGATIVES)
        X_test, y_test = draw_samples(np.random.default_rng(2000 + seed), N_NEGATIVES_TEST)
        for name, model in MODELS.items():
            scores = scores_of(model.fit(X_train, y_train), X_test)
            corners, heights, _ = roc_curve(y_test, scores, drop_intermediate=False)
            # The curve is a staircase: the last corner at or left of each rate.
            last = np.searchsorted(corners, fpr * (1 + 1e-9), side="right") - 1
            rates[name].append(heights[last])
    return fpr, {name: np.mean(values, axis=0) for name, values in rates.items()}


def main():
    """Draw the curves."""
    fpr, means = mean_curves()
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained", facecolor="white")
    for name, tpr in means.items():
        if name in DRAWN:
            TopROCDisplay(fpr=fpr, tpr=tpr, n_negatives=N_NEGATIVES_TEST, name=name).plot(ax=ax)
        shown = [f"{rate:g}: {np.interp(rate, fpr, tpr):.2f}" for rate in (0.0, 1e-3, 1e-2, 0.1)]
        print(f"{name:18} TPR at FPR", ", ".join(shown))
    ax.legend(loc="upper left", handlelength=4)
    with plt.rc_context({"svg.hashsalt": "attop", "svg.fonttype": "none"}):
        figure.savefig(OUTPUT, metadata={"Date": None, "Creator": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
