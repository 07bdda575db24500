"""Fits that take effect as a whole or not at all."""

from __future__ import annotations

from typing import TypeVar

Estimator = TypeVar("Estimator")


def replica(estimator: Estimator) -> Estimator:
    """An object with the same attributes, for `fit` to work on in place of the estimator.

    At the end ``estimator.__dict__ = fitted.__dict__`` hands them over in one step, so that an
    error or an interrupt, whenever it comes, leaves the estimator as it was.
    """
    twin = object.__new__(type(estimator))
    twin.__dict__.update(vars(estimator))
    return twin
