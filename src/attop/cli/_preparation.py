"""From the columns of a table to the features of a kernel machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attop.cli._columns import MOST_CATEGORIES

if TYPE_CHECKING:
    from attop.cli._samples import Samples

#: Names of the two steps of a model.
PREPARE, CLASSIFY = "prepare", "classify"
#: The category of those without one.
MISSING = "(missing)"


def preparation(samples: Samples) -> Any:
    """What turns samples into features, not fitted; made of scikit-learn's own classes alone.

    Numbers: gaps by the median, mean 0 and deviation 1.  Categories: a feature of 0 and 1 for
    each.  A matrix is scaled; if it is sparse it stays so.
    """
    import scipy.sparse as sp
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    # A column may have no value in the rows that are not held out.
    gaps = SimpleImputer(strategy="median", keep_empty_features=True)
    numbers = make_pipeline(gaps, StandardScaler())
    if samples.columns is None:
        if sp.issparse(samples.X):
            return StandardScaler(with_mean=False)
        return numbers
    parts = [
        ("numbers", numbers, samples.columns.numbers),
        (
            "categories",
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value=MISSING),
                OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES),
            ),
            samples.columns.categories,
        ),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


def known_categories(model: Any) -> dict[str, set[str]]:
    """The categories of each column that a fitted model knows; none for a matrix."""
    prepared = getattr(model, "estimator_", model).named_steps[PREPARE]
    if "categories" not in getattr(prepared, "named_transformers_", {}):
        return {}
    names = next(columns for part, _, columns in prepared.transformers_ if part == "categories")
    encoder = prepared.named_transformers_["categories"][-1]
    return {name: set(known) for name, known in zip(names, encoder.categories_)}
