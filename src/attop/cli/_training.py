"""The model that ``attop fit`` makes: preparation, classifier, and what the options add to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from attop.cli._messages import option_of
from attop.cli._preparation import CLASSIFY, PREPARE, preparation

if TYPE_CHECKING:
    from attop.cli._samples import Samples

#: Share of the negatives that sets a guaranteed threshold.
_HELD_OUT = 0.5


class Guarantee(NamedTuple):
    """A bound on the false positive rate, and the confidence with which it holds."""

    fpr: float
    confidence: float


class Trained(NamedTuple):
    """A fitted model: a pipeline, or a guaranteed threshold around one; and its search."""

    model: Any
    search: Any

    @property
    def classifier(self) -> Any:
        """The classifier within."""
        return getattr(self.model, "estimator_", self.model).named_steps[CLASSIFY]


@dataclass(frozen=True)
class Recipe:
    """How to make a model of samples.

    Attributes
    ----------
    classifier : classifier
        The classifier, not fitted.
    metric : str or None
        Metric of the search; None for no search.
    given : tuple of str
        Parameters that are not searched.
    guarantee : Guarantee or None
        What the threshold is to keep.
    seed : int
        Seed of the folds and of the negatives held out for the threshold.
    """

    classifier: Any
    metric: str | None = None
    given: tuple[str, ...] = ()
    guarantee: Guarantee | None = None
    seed: int = 0

    def fit(self, samples: Samples) -> Trained:
        """Make the model.

        What sets a guaranteed threshold is held out before anything is learned, the search
        and the scales of the features included: otherwise nothing would be guaranteed.
        """
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        from attop.calibration import NeymanPearsonThreshold
        from attop.cli._search import SearchedClassifier

        last = clone(self.classifier)
        if self.metric is not None:
            last = SearchedClassifier(
                last, self.metric, self.given, random_state=self.seed, verbose=1
            )
        model = Pipeline([(PREPARE, preparation(samples)), (CLASSIFY, last)])
        if self.guarantee is not None:
            self.check_guarantee(samples)
            wrapper: Any = NeymanPearsonThreshold  # its class has no types yet
            model = wrapper(
                model,
                fpr=self.guarantee.fpr,
                confidence=self.guarantee.confidence,
                cv=_HELD_OUT,
                pos_label=samples.positive,
                random_state=self.seed,
            )
        weights = {} if samples.weight is None else {f"{CLASSIFY}__sample_weight": samples.weight}
        model.fit(samples.X, samples.y, **weights)
        return Trained(model, None) if self.metric is None else _without_search(model)

    def check_guarantee(self, samples: Samples) -> None:
        """Raise if there are too few negatives for the guarantee."""
        from attop.calibration import required_negatives

        if self.guarantee is None:
            return
        needed = required_negatives(*self.guarantee)
        n_negatives = len(samples.y) - samples.n_positives
        if round(_HELD_OUT * n_negatives) < needed:
            raise ValueError(
                f"--guarantee fpr={self.guarantee.fpr:g} with --confidence "
                f"{self.guarantee.confidence:g} needs {math.ceil(needed / _HELD_OUT):,} negatives "
                f"beside those of --held-out. Got {n_negatives:,}: ask for a larger rate or less "
                "confidence, or give more samples."
            )

    def found(self, trained: Trained) -> Recipe:
        """The recipe with what its search has found.

        With a guarantee it stays as it is, since the search has seen negatives which are yet
        to set the threshold.
        """
        if trained.search is None or self.guarantee is not None:
            return self
        return replace(self, classifier=trained.search.best_estimator_, metric=None)


def _without_search(model: Any) -> Trained:
    """The model with the classifier that was found in place of the search."""
    from sklearn.base import clone

    inner = getattr(model, "estimator_", model)
    search = inner.named_steps[CLASSIFY].search_
    inner.steps[-1] = (CLASSIFY, search.best_estimator_)
    if inner is not model:
        model.estimator = clone(inner)
    return Trained(model, search)


def make_classifier(
    method: str, parameters: dict[str, Any], shared: dict[str, Any], seed: int = 0
) -> Any:
    """The classifier of a method; parameters that are None keep their defaults.

    Parameters
    ----------
    method : str
        Its name.
    parameters : dict
        C and the parameters of the formulation.
    shared : dict
        Parameters of the kernel and the solver.
    seed : int, default=0
        Seed of what it draws at random.
    """
    from attop._validation import check_parameters
    from attop.experiments.methods import build, parameters_of, resolve_method

    name = resolve_method(method)
    given = {key: value for key, value in parameters.items() if value is not None}
    known = parameters_of(name)
    for key in given:
        if known is not None and key not in known:
            options = ", ".join(option_of(key) for key in known if key in parameters)
            raise ValueError(f"{option_of(key)} is no option of {name}, which has {options}.")
    others = {key: value for key, value in shared.items() if value is not None}
    kernel = {"name": others.pop("kernel", "rbf"), "gamma": others.pop("gamma", "scale")}
    if ":" in name:
        if others:
            options = ", ".join(option_of(key) for key in others)
            raise ValueError(f"{options}: not for {name}, which is not of this library.")
        return build(name, given, kernel, {}, seed=seed)
    if kernel["name"] == "precomputed":
        raise ValueError("--kernel precomputed is for programs: a file holds samples, no kernel.")
    classifier = build(name, given, kernel, {}, seed=seed).set_params(**others)
    check_parameters(classifier)
    return classifier


def certificate(classifier: Any) -> str:
    """How far from optimal the fit can be; why nothing is certified where that is so."""
    gap = certified_gap(classifier)
    if gap is not None:
        return f"; certified relative gap {gap:.0e}"
    return f"; {classifier.status_}" if hasattr(classifier, "status_") else ""


def certified_gap(classifier: Any) -> float | None:
    """Certified relative duality gap of a fitted classifier, None where there is none."""
    from attop.solvers.solution import Status

    gap = getattr(classifier, "dual_gap_", math.nan)
    proves_nothing = getattr(classifier, "status_", None) is Status.NOT_PSD
    return gap if math.isfinite(gap) and not proves_nothing else None
