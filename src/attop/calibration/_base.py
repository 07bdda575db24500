"""The meta-estimator that all guarantees share: hold out, fit, score, set the threshold."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_random_state,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
)

from attop._labels import TopScoreMixin
from attop._replica import all_or_nothing
from attop.calibration._documentation import Pool, complete
from attop.metrics._inputs import check_share
from attop.metrics._response import RESPONSE_METHODS, positive_class, positive_scores

Rows = NDArray[np.intp]


class NoThresholdError(ValueError):
    """No threshold can be promised: there are too few samples, or the scores are too weak."""


class GuaranteedThreshold(TopScoreMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with a threshold set by samples that its estimator has not seen.

    A guarantee is a subclass: its parameters, which samples it holds out, how many it needs
    at least, and the threshold that their scores make.
    """

    #: Which samples are held out, the others being for the estimator.
    _pool: ClassVar[Pool]
    #: What to ask for when there are too few of them.
    _relief: ClassVar[str]

    estimator: Any
    confidence: float
    cv: Any
    pos_label: Any
    random_state: Any
    threshold_: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = complete(cls.__doc__, cls._pool)

    def _check_promise(self) -> None:
        """Refuse parameters of the guarantee that mean nothing."""
        raise NotImplementedError

    def _promise(self) -> str:
        """The guarantee in an error message, such as ``fpr=0.01 and confidence=0.95``."""
        raise NotImplementedError

    def _n_required(self) -> int:
        """How many held-out samples it takes for a threshold to be possible at all."""
        raise NotImplementedError

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        """Set the threshold from the scores of the samples held out, and which are positive."""
        raise NotImplementedError

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the estimator and set the threshold; an error leaves all as it was before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, as `estimator` takes them.
        y : array-like of shape (n_samples,)
            Labels of two classes; for ``cv="prefit"`` one class may do.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, passed to the ``fit`` of `estimator`.  A sample of weight zero is left
            out, from the threshold too.  Any other counts once there: the proof is about
            samples drawn from the population, and a weight does not make one into several.
        **fit_params : dict
            Passed to the ``fit`` of `estimator`, or routed to it where metadata routing is
            enabled; arrays with one entry per sample are split with the samples.  They have
            no influence on the threshold.

        Returns
        -------
        self

        Raises
        ------
        NoThresholdError
            If no threshold can be promised; a `ValueError` too.
        """
        self._check_parameters()
        X, y = indexable(X, self._check_labels(X, y))
        counted = _of_positive_weight(X, sample_weight)
        if self.cv == "prefit":
            self.estimator_ = self.estimator
            held_out = self._eligible(y, self.estimator.classes_, counted)
            self._check_enough(len(held_out), len(held_out))
        else:
            training, held_out = self._split(y, counted)
            if sample_weight is not None:
                fit_params["sample_weight"] = sample_weight
            self.estimator_ = clone(self.estimator).fit(
                _safe_indexing(X, training),
                y[training],
                **_check_method_params(X, self._routed(fit_params), indices=training),
            )
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        scores = positive_scores(
            self.estimator_, _safe_indexing(X, held_out), self.pos_label_
        ).scores
        self._set_threshold(scores, np.asarray(y[held_out] == self.pos_label_))
        return self

    def top_score(self, X: Any) -> NDArray[np.float64]:
        """Score of each sample less the threshold, larger for the positive class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold, above 0 where the positive class is predicted.
        """
        check_is_fitted(self)
        return positive_scores(self.estimator_, X, self.pos_label_).scores - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each sample, positive where its score is above the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        # Not >=: where scores tie with the threshold, the guarantees need a negative.
        return self._labels(self.top_score(X) > 0.0)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go where: weights to this estimator and, as all others, to the inner one.

        Returns
        -------
        MetadataRouter
            The routing, as scikit-learn defines it.
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.pairwise = inner.pairwise
        return tags

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        self._check_promise()
        check_share(self.confidence, "confidence", owner, "(0, 1)")
        if self.cv != "prefit" and not 0 < _held_out_share(self.cv) < 1:
            raise ValueError(
                f"The 'cv' parameter of {owner} must be a float in (0, 1), an int in [2, inf) "
                f"or 'prefit'. Got {self.cv!r} instead."
            )
        if not any(hasattr(self.estimator, name) for name in RESPONSE_METHODS):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must have decision_function or "
                f"predict_proba. Got {self.estimator!r} instead."
            )
        if self.cv == "prefit":
            check_is_fitted(self.estimator)
        elif get_tags(self.estimator).input_tags.pairwise:
            raise ValueError(
                f"{owner} cannot split a precomputed kernel matrix, since new samples would need "
                "another one. Fit the estimator first and pass cv='prefit'."
            )

    def _check_labels(self, X: Any, y: Any) -> NDArray[Any]:
        """`y` as an array of labels."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if (kind := type_of_target(y)) != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        return np.asarray(y)

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """What the estimator's fit is given."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **fit_params).estimator.fit)
        return fit_params

    def _split(self, y: NDArray[Any], counted: Rows) -> tuple[Rows, Rows]:
        """Indices of the training samples and of those held out."""
        pool = self._eligible(y, np.unique(y[counted]), counted)
        # At least one must be left to learn from.
        n_held_out = max(0, min(round(_held_out_share(self.cv) * len(pool)), len(pool) - 1))
        self._check_enough(n_held_out, len(pool))
        held_out = check_random_state(self.random_state).permutation(pool)[:n_held_out]
        training = np.setdiff1d(counted, held_out)
        if len(np.unique(y[training])) < 2:
            raise ValueError(
                f"{type(self).__name__} is left with one class to train on: provide more samples "
                "or hold out a smaller share."
            )
        return training, np.sort(held_out)

    def _eligible(self, y: NDArray[Any], classes: NDArray[Any], counted: Rows) -> Rows:
        """Indices of the samples of the pool; sets which of the two classes is positive."""
        owner = type(self).__name__
        self.pos_label_ = positive_class(self.estimator, classes, self.pos_label, owner)
        unknown = np.setdiff1d(y[counted], classes)
        if len(unknown):
            raise ValueError(
                f"The labels of {owner} must be classes of its estimator, "
                f"{np.asarray(classes).tolist()}. Got {unknown.tolist()} too."
            )
        if self._pool == "samples":
            return counted
        wanted = (y == self.pos_label_) == (self._pool == "positives")
        return np.intersect1d(counted, np.flatnonzero(wanted))

    def _check_enough(self, n_held_out: int, n_pool: int) -> None:
        """Refuse, before the costly fit, a split without a valid threshold."""
        needed = self._n_required()
        if n_held_out >= needed:
            return
        message = (
            f"{type(self).__name__} with {self._promise()} needs at least {needed} held-out "
            f"{self._pool}. Got {n_held_out} instead"
        )
        if self.cv != "prefit":
            total = math.ceil(needed / _held_out_share(self.cv))
            message += (
                f" (cv={self.cv} of {n_pool} {self._pool}): provide {total} {self._pool}, hold out "
                "a larger share"
            )
        raise NoThresholdError(f"{message}, or ask for {self._relief} or less confidence.")


def _held_out_share(cv: Any) -> float:
    """Share of the samples held out; NaN where `cv` means nothing."""
    if isinstance(cv, float):
        return cv
    is_count = isinstance(cv, Integral) and not isinstance(cv, bool)
    return 1 / int(cv) if is_count and cv >= 2 else math.nan


def _of_positive_weight(X: Any, sample_weight: ArrayLike | None) -> Rows:
    """Indices of the samples that count."""
    if sample_weight is None:
        return np.arange(_num_samples(X))
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.flatnonzero(weight)
