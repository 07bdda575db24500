"""``attop demo``: every formulation and an SVC, compared on held-out data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from attop.cli._training import certified_gap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Result(NamedTuple):
    """How one classifier does on the held-out half.

    ``gap`` is the certified relative duality gap, None where there is no certificate.
    """

    name: str
    scores: NDArray[np.float64]
    tpr_at_top: float
    tpr_at_1: float
    tpr_at_5: float
    auc: float
    gap: float | None
    seconds: float


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the plot; made if missing.", file_okay=False)
    ] = Path("out"),
    seed: Annotated[
        int, typer.Option(help="Seed of the split into two halves.", min=0, max=2**32 - 1)
    ] = 0,
) -> None:
    """Fit every formulation and scikit-learn's SVC on half of Ionosphere, test on the rest."""
    # First of all, so that a folder which cannot be written is told before the work.
    output.mkdir(parents=True, exist_ok=True)

    from sklearn.model_selection import train_test_split

    from attop.datasets import load_ionosphere

    X, y = load_ionosphere(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    console = Console()
    console.print(
        f"Ionosphere, standardised: {len(y_train)} samples to fit "
        f"({y_train.sum()} positive), {len(y_test)} to test ({y_test.sum()} positive).",
        soft_wrap=True,
    )
    results = []
    for name, classifier in contenders().items():
        with console.status(f"Fitting {name} (the first run compiles the solver) ..."):
            results.append(compare(name, classifier, X_train, y_train, X_test, y_test))
    console.print(results_table(results))
    n_negatives = (y_test == 0).sum()
    console.print(f"One of the {n_negatives} negatives tested is an FPR of {1 / n_negatives:.1%}.")
    try:
        path = save_roc_plot(results, y_test, output / "demo_roc.png")
    except ImportError as error:
        console.print(f"No plot: {error}", markup=False, soft_wrap=True)
    else:
        console.print(f"ROC curves near the top: {path}", markup=False, soft_wrap=True)


def contenders() -> dict[str, Any]:
    """The classifiers compared, by the name shown.

    TopMeanK and PatMat count all samples as competitors, so that their tau must exceed
    the share of positives (0.64 here): below it the optimum hardly tells samples apart.
    """
    from sklearn.svm import SVC

    from attop import SVM, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK

    return {
        "SVC": SVC(),
        "SVM": SVM(),
        "TopPush": TopPush(),
        "TopPushK(5)": TopPushK(K=5),
        "TauFPL(0.05)": TauFPL(tau=0.05),
        "TopMeanK(0.8)": TopMeanK(tau=0.8),
        "PatMat(0.8)": PatMat(tau=0.8),
        "PatMatNP(0.05)": PatMatNP(tau=0.05),
    }


def compare(
    name: str, classifier: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any
) -> Result:
    """Fit `classifier` on standardised features and measure its scores on the test half."""
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from attop.metrics import positives_at_top, tpr_at_fpr

    model = make_pipeline(StandardScaler(), classifier)
    # The first fit of a process loads or compiles the solver, which is not to be timed.
    clone(model).fit(X_train, y_train)
    started = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - started
    scores = model.decision_function(X_test)
    return Result(
        name=name,
        scores=scores,
        tpr_at_top=positives_at_top(y_test, scores),
        tpr_at_1=tpr_at_fpr(y_test, scores, 0.01),
        tpr_at_5=tpr_at_fpr(y_test, scores, 0.05),
        auc=roc_auc_score(y_test, scores),
        gap=certified_gap(classifier),
        seconds=seconds,
    )


def results_table(results: list[Result]) -> Table:
    """The comparison as a table, one row a classifier."""
    table = Table()
    table.add_column("classifier", no_wrap=True)
    for heading in ("TPR at\nthe top", "TPR at\nFPR 1 %", "TPR at\nFPR 5 %", "AUC"):
        table.add_column(heading, justify="right")
    table.add_column("certified\ngap", justify="right")
    table.add_column("seconds\nto fit", justify="right")
    for result in results:
        table.add_row(
            result.name,
            *(f"{share:.3f}" for share in result[2:6]),
            "none" if result.gap is None else f"{result.gap:.0e}",
            f"{result.seconds:.3f}",
        )
    return table


def save_roc_plot(results: list[Result], y_test: Any, path: Path) -> Path:
    """Draw the ROC curves with a logarithmic axis of FPR, which stretches the top."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('it needs matplotlib: pip install "attop[plot]"') from error
    from attop.plotting import TopROCDisplay

    # Not by pyplot, which would need a display or choose a backend for the process.
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for result in results:
        baseline: dict[str, Any] = {"color": "0.6"} if result.gap is None else {}
        TopROCDisplay.from_predictions(y_test, result.scores, name=result.name, ax=axes, **baseline)
    axes.set_title("Held-out half of Ionosphere: ROC curves near the top")
    figure.savefig(path, dpi=150)
    return path
