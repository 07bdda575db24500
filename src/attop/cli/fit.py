"""``attop fit``: a model of the user's own data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

#: Content of a saved model that tells it from any other file.
KIND = "attop model"


def fit(
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, libsvm or npz file.")],
    save: Annotated[Path, typer.Option(help="File of the model.", dir_okay=False)] = Path(
        "model.joblib"
    ),
    target: Annotated[str | None, typer.Option(help="Column of the labels.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Label of the positive class; 1 by default.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column that is no feature; may be repeated.")
    ] = None,
    method: Annotated[str, typer.Option(help="Such as patmat-np, tau-fpl or top-push.")] = (
        "patmat-np"
    ),
    tau: Annotated[float | None, typer.Option(help="Share tau of the method.")] = None,
    K: Annotated[int | None, typer.Option("--K", help="Number K of TopPushK.")] = None,
    theta: Annotated[float | None, typer.Option(help="Scale theta of PatMat.")] = None,
    C: Annotated[float, typer.Option("--C", help="Weight of the loss.")] = 1.0,
    kernel: Annotated[str, typer.Option(help="The kernel.")] = "rbf",
    held_out: Annotated[
        float, typer.Option(help="Share held out for the report.", min=0.01, max=0.9)
    ] = 0.25,
    seed: Annotated[int, typer.Option(help="Seed of the draw.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Fit a classifier to a file and save it; report how it does on samples held out.

    Features are standardised.  The saved model is that of the samples which the report was
    not made of, so that the report is honest about it.
    """
    from attop.datasets import load_file

    try:
        dataset = load_file(data, target=target, positive=positive, ignore=ignore or ())
        classifier = make_classifier(
            method, {"tau": tau, "K": K, "theta": theta, "C": C}, kernel, seed
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    X_train, X_test, y_train, y_test = _hold_out(dataset, held_out, seed)
    model = _pipeline(classifier, X_train)
    try:
        model.fit(X_train, y_train)
    except ValueError as error:  # too few negatives for K, missing values and the like
        raise typer.BadParameter(str(error)) from None
    _save(model, dataset, data, target, save)
    console = Console()
    shown = f"{type(classifier).__name__} on {len(y_train)} samples ({int(y_train.sum())} positive)"
    console.print(f"{shown}{_certificate(classifier)}", markup=False, soft_wrap=True)
    console.print(_report(model, X_test, y_test))
    console.print(f"Model: {save}", markup=False, soft_wrap=True)


def make_classifier(method: str, parameters: dict[str, Any], kernel: str, seed: int) -> Any:
    """The classifier of a method; parameters that are None keep their defaults."""
    from attop.experiments.methods import build, parameters_of, resolve_method

    name = resolve_method(method)
    given = {key: value for key, value in parameters.items() if value is not None}
    known = parameters_of(name)
    for key in given:
        if known is not None and key not in known:
            raise ValueError(f"{name} has no parameter {key!r}; it has {', '.join(known)}.")
    return build(name, given, {"name": kernel, "gamma": "scale"}, {}, seed=seed)


def _certificate(classifier) -> str:
    """How far from optimal the fit can be; why nothing is certified where that is so."""
    gap = certified_gap(classifier)
    if gap is not None:
        return f"; certified relative gap {gap:.0e}"
    return f"; {classifier.status_}" if hasattr(classifier, "status_") else ""


def certified_gap(classifier) -> float | None:
    """Certified relative duality gap of a fitted classifier, None where there is none."""
    from attop.solvers.solution import Status

    gap = getattr(classifier, "dual_gap_", math.nan)
    proves_nothing = getattr(classifier, "status_", None) is Status.NOT_PSD
    return gap if math.isfinite(gap) and not proves_nothing else None


def _hold_out(dataset, share: float, seed: int):
    """Training and test samples; the official test set where there is one."""
    from sklearn.model_selection import train_test_split

    if dataset.y_test is not None:
        return dataset.X, dataset.X_test, dataset.y, dataset.y_test
    try:
        return train_test_split(
            dataset.X, dataset.y, test_size=share, random_state=seed, stratify=dataset.y
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="DATA") from None


def _pipeline(classifier, X):
    import scipy.sparse as sp
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), classifier)


def _save(model, dataset, data: Path, target: str | None, save: Path) -> None:
    """Write the model as a whole or not at all."""
    import joblib

    from attop import __version__

    content = {
        "kind": KIND,
        "version": __version__,
        "model": model,
        "feature_names": dataset.feature_names,
        "target": target,
        "data": data.name,
    }
    save.parent.mkdir(parents=True, exist_ok=True)
    temporary = save.with_name(f"{save.name}.tmp")
    try:
        joblib.dump(content, temporary, compress=3)
        temporary.replace(save)
    finally:
        temporary.unlink(missing_ok=True)


def _report(model, X_test, y_test):
    """How the model does on the samples held out."""
    from rich.table import Table
    from sklearn.metrics import roc_auc_score

    from attop.metrics import positives_at_top, tpr_at_fpr

    scores = model.decision_function(X_test)
    called = scores >= 0.0
    positive = y_test == 1
    rows = {
        "samples held out": f"{len(y_test)} ({int(positive.sum())} positive)",
        "TPR at its threshold": f"{called[positive].mean():.3f}",
        "FPR at its threshold": f"{called[~positive].mean():.4f}",
        "TPR above all negatives": f"{positives_at_top(y_test, scores):.3f}",
        "TPR at FPR 0.01": f"{tpr_at_fpr(y_test, scores, 0.01):.3f}",
        "TPR at FPR 0.05": f"{tpr_at_fpr(y_test, scores, 0.05):.3f}",
        "AUC": f"{roc_auc_score(y_test, scores):.4f}",
    }
    table = Table("on samples held out", "value")
    for name, value in rows.items():
        table.add_row(name, value)
    return table
