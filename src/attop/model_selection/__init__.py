"""Paths and cross-validation that share work.

Several fits on the same samples need the same kernel columns: here each column is computed
once, and each fit starts from the solution of the one most like it.

* `fit_path`: one estimator at many values of a parameter;
* `AtTopCV`: a classifier that chooses its parameters, and its formulation, by
  cross-validation.
"""

from attop.model_selection._path import Path, fit_path
from attop.model_selection._search import AtTopCV

__all__ = ["AtTopCV", "Path", "fit_path"]
