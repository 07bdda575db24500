"""The base classes of scikit-learn, with types.

They have none of their own.  With a parent that may be anything, type checkers would accept any
argument of an estimator and any attribute, ``TopPush(foo=3)`` among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self

    class BaseEstimator:
        """Parameters, as they are declared by the signature of ``__init__``."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        def get_metadata_routing(self) -> Any:
            """What is asked for besides samples and labels."""

        def set_fit_request(self, **requests: bool | str | None) -> Self:
            """What `fit` asks for."""

        def set_score_request(self, **requests: bool | str | None) -> Self:
            """What `score` asks for."""

        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """What all classifiers have."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Accuracy."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["BaseEstimator", "ClassifierMixin"]
