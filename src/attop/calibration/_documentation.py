"""Parts of docstrings that all thresholds share, written once."""

from __future__ import annotations

import inspect
from typing import Literal

#: Samples among which some are held out to set the threshold.
Pool = Literal["negatives", "positives", "samples"]

_TRAINED_ON = {
    "negatives": "the other negatives and on all positives",
    "positives": "the other positives and on all negatives",
    "samples": "the others",
}

_PARTS = {
    "{estimator}": """
estimator : classifier
    Binary classifier with ``decision_function`` or ``predict_proba`` (the first is
    used where both exist); a pipeline is one too.""",
    "{split}": """
cv : float, int or "prefit", default=0.5
    Which POOL set the threshold.

    - float in (0, 1): this share of the POOL, drawn at random, is held out; the
      estimator is fitted on TRAINED_ON;
    - int, at least 2: one of `cv` equal parts of the POOL is held out, the same
      as the share ``1 / cv``;
    - ``"prefit"``: `estimator` is already fitted, and all POOL given to `fit`
      set the threshold.  **They must not have been used to train it**, in any way.
pos_label : int, float, bool or str, default=None
    Label of the positive class; by default the ``pos_label`` of `estimator` or of the
    one inside a pipeline or search, else ``classes_[1]``.
random_state : int, RandomState instance or None, default=None
    Seed of the split.""",
    "{fitted}": """
estimator_ : classifier
    The fitted classifier.
threshold_ : float
    Samples with a score above it are called positive.""",
    "{classes}": """
classes_ : ndarray of shape (2,)
    The class labels.
pos_label_ : int, float, bool or str
    The positive one.
n_features_in_, feature_names_in_ : int, ndarray of str
    Those of `estimator_`, where it has them.""",
}


def complete(docstring: str, pool: Pool) -> str:
    """The docstring of a threshold with the shared parts in the places of their names."""
    text = inspect.cleandoc(docstring)
    for name, part in _PARTS.items():
        part = part.replace("POOL", pool).replace("TRAINED_ON", _TRAINED_ON[pool])
        text = text.replace(name, part.strip())
    return text
