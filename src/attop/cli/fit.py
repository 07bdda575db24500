"""``attop fit``: a model of the user's own data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from attop.cli import _options as options
from attop.cli._files import ForceOption, check_output
from attop.cli._lazy import check_lazy, fit_lazily
from attop.cli._messages import in_options, told
from attop.cli._models import SavedModel, check_format, save_model
from attop.cli._training import Guarantee, Recipe, Trained, certificate, make_classifier

if TYPE_CHECKING:
    from rich.table import Table

    from attop.cli._assessment import Assessment
    from attop.cli._samples import Samples


def fit(
    data: options.Data,
    target: options.Target = None,
    positive: options.Positive = None,
    id: options.Id = None,
    weight: options.Weight = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    missing: options.Missing = None,
    method: options.Method = "patmat-np",
    tau: options.Tau = None,
    K: options.NumberK = None,
    theta: options.Theta = None,
    C: options.WeightC = None,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    surrogate: options.Surrogate = None,
    approximation: options.Approximation = None,
    components: options.Components = None,
    tol: options.Tol = None,
    max_time: options.MaxTime = None,
    device: options.Device = None,
    search: options.Search = False,
    metric: options.Metric = None,
    guarantee: options.Guarantee = None,
    confidence: options.Confidence = 0.95,
    held_out: options.HeldOut = 0.25,
    refit: options.Refit = True,
    save: options.Save = Path("model.attop"),
    pickle: options.Pickle = False,
    page: options.Page = None,
    seed: options.Seed = 0,
    force: ForceOption = False,
    verbose: options.Verbose = False,
    dask: options.Dask = False,
) -> None:
    """Fit a classifier to a file and save it; report how it does on samples held out.

    Numbers are standardised and their gaps filled by the median; words become a feature of 0
    and 1 for each category.  The report is about a model that has not seen the samples held
    out; the model saved is then made of all samples in the same way.
    """
    from attop.cli._samples import Roles

    check_output(save, "--save", force=force)
    check_format(pickled=pickle)
    if page is not None:
        check_page(page, force=force)
    roles = Roles(target, positive, id, weight, ignore or (), categorical or (), missing or ())
    parameters = {"tau": tau, "K": K, "theta": theta, "C": C, "surrogate": surrogate}
    shared = {
        "kernel": "linear" if dask and approximation is None and kernel is None else kernel,
        "gamma": _gamma(gamma),
        "approximation": approximation,
        "n_components": components,
        "tol": tol,
        "max_time": max_time,
        "device": device,
        "verbose": 1 if verbose else None,
    }
    try:
        classifier = make_classifier(method, parameters, shared, seed)
        recipe = Recipe(classifier, guarantee=_guarantee(guarantee, confidence), seed=seed)
        if search:
            given = tuple(k for k, v in {**parameters, **shared}.items() if v is not None)
            recipe = replace(recipe, given=given, metric=_metric(metric, method, tau, K, recipe))
            _check_search(classifier)
        elif metric is not None:
            raise ValueError("--metric chooses the best of a search: add --search.")
        if dask:
            check_lazy(data, classifier, search=search, guarantee=guarantee)
    except ValueError as error:
        raise typer.BadParameter(in_options(error)) from None
    if dask:
        make_lazy_model(data, roles, recipe, save=save, pickled=pickle, page=page)
        return
    make_model(data, roles, recipe, held_out, save=save, pickled=pickle, page=page, refit=refit)


def make_model(
    data: Path,
    roles: Any,
    recipe: Recipe,
    held_out: float,
    *,
    save: Path,
    pickled: bool,
    page: Path | None,
    refit: bool,
) -> None:
    """Read, fit, report, fit again and save."""
    from attop.cli._assessment import assess
    from attop.cli._samples import read_samples

    console = Console()
    with told(console):
        samples = read_samples(data, roles)
        recipe = _named(recipe, samples)
        training, unseen = _hold_out(samples, held_out, recipe.seed)
        recipe.check_guarantee(training)
    for line in (_describe(data, samples), *samples.notes):
        _say(console, line)
    with told(console), _working(console, recipe):
        trained = recipe.fit(training)
        assessment = assess(trained.model, unseen)
    _report(console, recipe, trained, training, assessment)
    final = trained
    if refit and training is not samples:
        with told(console), _working(console, recipe.found(trained)):
            final = recipe.found(trained).fit(samples)
    save_model(SavedModel(final.model, _metadata(data, samples)), save, pickled=pickled)
    which = f"all {len(samples.y)} samples" if final is not trained else "the report"
    _say(console, f"Model of {which}: {save}")
    if page is not None:
        from attop.cli._page import fit_page

        text = fit_page(data.name, _describe(data, samples), samples, trained, assessment)
        page.write_text(text, encoding="utf-8")
        _say(console, f"Page: {page}")


def make_lazy_model(
    data: Path, roles: Any, recipe: Recipe, *, save: Path, pickled: bool, page: Path | None
) -> None:
    """The same block by block, on rows but for some that are held out."""
    from attop.cli._assessment import assess

    console = Console()
    with told(console), _working(console, recipe):
        trained, n_samples, drawn, unseen = fit_lazily(data, roles, recipe.classifier, recipe.seed)
        assessment = assess(trained.model, unseen)
    about = f"{data.name}: {n_samples} samples; columns and scales by {len(drawn.y)} of them."
    _say(console, about)
    _report(console, recipe, trained, unseen, assessment, n_samples - len(unseen.y))
    save_model(SavedModel(trained.model, _metadata(data, drawn)), save, pickled=pickled)
    _say(console, f"Model of the report: {save}")
    if page is not None:
        from attop.cli._page import fit_page

        page.write_text(fit_page(data.name, about, unseen, trained, assessment), encoding="utf-8")
        _say(console, f"Page: {page}")


def check_page(page: Path, *, force: bool) -> None:
    """See that the page can be drawn and written."""
    from attop.plotting._common import import_pyplot

    check_output(page, "--page", force=force)
    import_pyplot()


def _gamma(text: str | None) -> str | float | None:
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def _guarantee(text: str | None, confidence: float) -> Guarantee | None:
    """What ``fpr=0.01`` asks for."""
    from attop.metrics._inputs import check_share

    if text is None:
        return None
    name, _, number = text.partition("=")
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if name.strip() != "fpr" or not 0.0 < rate < 1.0:
        raise ValueError(
            f"--guarantee must be such as fpr=0.01, a rate in (0, 1). Got {text!r} instead."
        )
    check_share(confidence, "confidence", "fit", "(0, 1)")
    return Guarantee(rate, confidence)


def _metric(
    metric: str | None, method: str, tau: float | None, K: int | None, recipe: Recipe
) -> str:
    """The metric of the search: the one named, that of the guarantee, or that of the method."""
    from attop.experiments.methods import own_metric, resolve_method
    from attop.metrics import get_scorer

    if metric is None and recipe.guarantee is not None:
        metric = f"tpr_at_fpr_{recipe.guarantee.fpr:g}"
    if metric is None:
        given = {name: value for name, value in (("tau", tau), ("K", K)) if value is not None}
        metric = own_metric(resolve_method(method), given)
    try:
        get_scorer(metric)
    except ValueError as error:  # it knows the nearest name
        known = in_options(error).replace("valid scorer", "metric").partition(" Call ")[0]
        raise ValueError(
            f"--metric: {known} Such are tpr_at_fpr_0.01, tpr_at_k_10, precision_at_k_100, "
            "positives_at_top, partial_auc_0.05 and roc_auc."
        ) from None
    return metric


def _check_search(classifier: Any) -> None:
    """Raise where the search cannot take the classifier."""
    from attop.base import AtTopClassifier

    name = type(classifier).__name__
    if not isinstance(classifier, AtTopClassifier) or not classifier.formulation.convex:
        raise ValueError(f"--search is for the convex methods of this library. Got {name} instead.")
    if classifier.approximation is not None:
        raise ValueError("--search and --approximation exclude each other.")


def _named(recipe: Recipe, samples: Samples) -> Recipe:
    """The recipe with a classifier that knows the positive label, where it asks for it."""
    if "pos_label" not in recipe.classifier.get_params():
        return recipe
    return replace(recipe, classifier=recipe.classifier.set_params(pos_label=samples.positive))


def _hold_out(samples: Samples, share: float, seed: int) -> tuple[Samples, Samples]:
    """Samples to learn from, and those held out: the official test set where there is one."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    if samples.test is not None:
        X_test, y_test = samples.test
        return samples, replace(samples, X=X_test, y=y_test, weight=None)
    n_positives = samples.n_positives
    if min(n_positives, len(samples.y) - n_positives) < 2:
        raise ValueError(
            "Both classes must have two samples at least, one of them to be held out. "
            f"Got {n_positives} positive of {len(samples.y)}."
        )
    rows = np.arange(len(samples.y))
    train, test = train_test_split(rows, test_size=share, random_state=seed, stratify=samples.y)
    return samples.take(train), samples.take(test)


def _describe(data: Path, samples: Samples) -> str:
    """The file in a line."""
    text = f"{data.name}: {len(samples.y)} samples ({samples.n_positives} {samples.positive!r})"
    if samples.columns is None:
        return f"{text}, {samples.X.shape[1]} features."
    text += f", {len(samples.columns.numbers)} columns of numbers"
    categories = [f"{name} ({samples.X[name].nunique()})" for name in samples.columns.categories]
    shown = ", ".join(categories[:5]) + (", ..." if len(categories) > 5 else "")
    return text + (f", categories: {shown}." if categories else ".")


def _working(console: Console, recipe: Recipe) -> Any:
    """A sign of life while a fit goes on, where nothing else is shown."""
    from contextlib import nullcontext

    name = type(recipe.classifier).__name__
    if recipe.metric is not None:
        _say(console, f"Searching the best {name} by {recipe.metric}:")
        return nullcontext()
    if recipe.classifier.get_params().get("verbose"):
        return nullcontext()
    return console.status(f"Fitting {name} (the first time compiles the solver) ...")


def _report(
    console: Console,
    recipe: Recipe,
    trained: Trained,
    training: Samples,
    assessment: Assessment,
    n_training: int | None = None,
) -> None:
    """Say what was found on the samples held out."""
    from attop.cli._assessment import TELLS_NOTHING

    if trained.search is not None:
        from attop.cli._search import candidates

        rows = candidates(trained.search)
        console.print(_table(list(rows[0]), [list(row.values()) for row in rows]))
    classifier = trained.classifier
    shown = f"{len(training.y)} samples ({training.n_positives} positive)"
    if n_training is not None:
        shown = f"{n_training} samples"
    _say(console, f"{type(classifier).__name__} on {shown}{certificate(classifier)}")
    if recipe.guarantee is not None:
        _say(console, guarantee_line(trained.model))
    console.print(_table(["on samples held out", "value"], [*map(list, assessment.rows().items())]))
    if assessment.tells_nothing:
        console.print(TELLS_NOTHING, markup=False, soft_wrap=True, style="yellow")


def guarantee_line(model: Any) -> str:
    """What a guaranteed threshold keeps, and by which samples."""
    return (
        f"Guaranteed: a false positive rate of at most {model.fpr:g} on new data, with confidence "
        f"{1 - model.violation_bound_:.3f}, by {model.n_negatives_} negatives held out for it."
    )


def _table(heads: list[str], rows: list[list[str]]) -> Table:
    from rich.table import Table

    table = Table(*heads)
    for row in rows:
        table.add_row(*row)
    return table


def _metadata(data: Path, samples: Samples) -> dict[str, Any]:
    from attop import __version__

    return {
        "version": __version__,
        "data": data.name,
        "columns": None if samples.columns is None else samples.columns.as_dict(),
        "n_features": samples.X.shape[1],
        "positive": samples.positive,
    }


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
