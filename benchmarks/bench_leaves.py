"""What weighing its leaves adds to a forest: the same trees, with and without a classifier on top.

    python benchmarks/bench_leaves.py FOLDER [--n 500] [--seeds 2] [--rst FILE]

FOLDER has .npz files with X and y.  Nothing is tuned: three forests of 100 trees, and on the kernel
of each PatMatNP(0.01), TauFPL(0.05) and an SVM with C = 1.  Ties are put into a random order.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from attop import SVM, PatMatNP, TauFPL
from attop.forest import ForestKernel
from attop.metrics import tpr_at_fpr

RATES = (0.001, 0.01, 0.05)
N_TEST = 3000
FORESTS = {
    "ExtraTrees": ExtraTreesClassifier(100, random_state=0),
    "ExtraTrees, leaves of 3": ExtraTreesClassifier(100, min_samples_leaf=3, random_state=0),
    "RandomForest, leaves of 3": RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
}
MODELS = {
    "PatMatNP(0.01)": PatMatNP(0.01, kernel="matching"),
    "TauFPL(0.05)": TauFPL(0.05, kernel="matching"),
    "SVM": SVM(kernel="matching"),
}


def rates_of(y: Any, scores: Any) -> list[float]:
    """True positive rates at `RATES`."""
    order = np.lexsort((np.random.default_rng(0).random(len(y)), scores))
    ranks = np.empty(len(y))
    ranks[order] = np.arange(len(y))
    return [tpr_at_fpr(y, ranks, rate) for rate in RATES]


def split_of(path: Path, n: int, seed: int) -> Any:
    """Training and test samples of a table, at most half of it to train on."""
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    n = min(n, len(y) // 2)
    return train_test_split(
        X, y, train_size=n, test_size=min(N_TEST, len(y) - n), stratify=y, random_state=seed
    )


def gains(paths: list[Path], n: int, seeds: int) -> dict[tuple[str, str], Any]:
    """Rates of each forest, and by how much each model on its leaves is ahead, for each table."""
    found: dict[tuple[str, str], Any] = {}
    for path in paths:
        rows: dict[tuple[str, str], list[Any]] = {}
        for seed in range(1, seeds + 1):
            X, X_test, y, y_test = split_of(path, n, seed)
            for name, forest in FORESTS.items():
                kernel = ForestKernel(forest).fit(X, y)
                leaves, others = kernel.transform(X), kernel.transform(X_test)
                alone = rates_of(y_test, kernel.forest_.predict_proba(X_test)[:, 1])
                rows.setdefault((name, "alone"), []).append(alone)
                for label, model in MODELS.items():
                    there = rates_of(y_test, model.fit(leaves, y).decision_function(others))
                    rows.setdefault((name, label), []).append(np.subtract(there, alone))
        for key, values in rows.items():
            found.setdefault(key, []).append(np.mean(values, axis=0))
        print(path.stem, flush=True)
    return {key: np.array(values) for key, values in found.items()}


def lines_of(found: dict[tuple[str, str], Any]) -> list[list[str]]:
    """A row for each forest and each model on it."""
    rows = []
    for (forest, model), values in found.items():
        cells = []
        for column in values.T:
            if model == "alone":
                cells.append(f"{column.mean():.3f}")
                continue
            p = wilcoxon(column).pvalue if column.any() else 1.0
            ahead, behind = int((column > 0).sum()), int((column < 0).sum())
            cells.append(f"{column.mean():+.3f} ({ahead}:{behind}, p = {p:.2g})")
        rows.append([forest if model == "alone" else f"with {model}", *cells])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rst", type=Path)
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob("*.npz"))
    rows = lines_of(gains(paths, arguments.n, arguments.seeds))
    heads = ["Forest, and what a model on its leaves adds"]
    heads += [f"FPR {100 * rate:g} %" for rate in RATES]
    for row in [heads, *rows]:
        print(f"{row[0]:46s}" + "".join(f"{cell:>28s}" for cell in row[1:]))
    if arguments.rst is not None:
        title = f"{len(paths)} tables, {arguments.n} training samples, {arguments.seeds} seeds"
        text = [f".. list-table:: {title}", "   :header-rows: 1", ""]
        for row in [heads, *rows]:
            text += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        arguments.rst.write_text("\n".join([*text, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
