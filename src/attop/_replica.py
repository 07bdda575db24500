"""Fits that take effect as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Estimator = TypeVar("Estimator")
Fit = TypeVar("Fit", bound=Callable[..., Any])


def replica(estimator: Estimator) -> Estimator:
    """An object with the same attributes, to be changed in place of the estimator."""
    twin = object.__new__(type(estimator))
    twin.__dict__.update(vars(estimator))
    return twin


def all_or_nothing(fit: Fit) -> Fit:
    """Decorator of `fit`, whose ``self`` is then a replica of the estimator.

    At the end the attributes are handed over in one step, so that an error or an interrupt,
    whenever it comes, leaves the estimator as it was.
    """

    @wraps(fit)
    def fit_as_a_whole(estimator: Any, *arguments: Any, **keywords: Any) -> Any:
        fitted = replica(estimator)
        fit(fitted, *arguments, **keywords)
        estimator.__dict__ = fitted.__dict__
        return estimator

    return cast(Fit, fit_as_a_whole)
