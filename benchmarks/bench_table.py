"""A large table on this machine: how long the two classifiers that choose for themselves take.

    python benchmarks/bench_table.py [--n 100000] [--features 50] [--share 0.02] [--only auto]

Samples are made: half of the features are of groups of positives and negatives that overlap, half
are noise.  Shown are wall-clock and processor seconds, the latter of the processes that the search
starts, too, what was chosen, and the true positive rate on as many new samples.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from typing import Any

from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

from attop.auto import AutoTopClassifier
from attop.forest import TopForestClassifier
from attop.metrics import tpr_at_fpr

MODELS = {
    "trees": ExtraTreesClassifier(300, n_jobs=2, random_state=0),
    "forest": TopForestClassifier(n_jobs=2),
    "auto": AutoTopClassifier(n_jobs=2, verbose=1),
}


def made(n: int, n_features: int, share: float) -> Any:
    """Training and test samples, n of each."""
    X, y = make_classification(
        2 * n,
        n_features,
        n_informative=n_features // 2,
        n_redundant=0,
        n_clusters_per_class=4,
        weights=[1.0 - share],
        class_sep=0.7,
        random_state=0,
    )
    return train_test_split(X, y, train_size=n, stratify=y, random_state=0)


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--only", default=",".join(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, X_test, y, y_test = made(options.n, options.features, options.share)
    for name in options.only.split(","):
        began, worked = time.perf_counter(), processor_seconds()
        model = MODELS[name].fit(X, y)
        seconds, worked = time.perf_counter() - began, processor_seconds() - worked
        began = time.perf_counter()
        scores = (
            model.decision_function(X_test)
            if hasattr(model, "decision_function")
            else model.predict_proba(X_test)[:, 1]
        )
        predicted = time.perf_counter() - began
        print(
            f"{name}: fit {seconds:.1f} s, processor {worked:.1f} s, scores {predicted:.1f} s, "
            f"TPR at FPR 1 % {tpr_at_fpr(y_test, scores, 0.01):.3f}, "
            f"{getattr(model, 'best_params_', '')} {getattr(model, 'skipped_', '')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
