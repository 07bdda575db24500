"""A forest as a transformer: from samples to the leaves that they fall into."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from attop._replica import all_or_nothing
from attop.kernels.learnt import KernelLearner

#: What `transform` can give.
OUTPUTS = ("leaves", "features")


class ForestKernel(KernelLearner, TransformerMixin, BaseEstimator):
    """The leaves of a forest, whose shared ones are a kernel learnt from samples and labels.

    The kernel of two samples is the share of the trees in which they fall into the same leaf.  Any
    estimator of this library with a kernel takes it as its `kernel`, and fits the forest in `fit`.
    As a step before one it gives the leaves, for ``kernel="matching"``, or features with one column
    for each leaf, whose linear kernel is the same.

    Parameters
    ----------
    forest : estimator, default=None
        An ensemble of trees with a method ``apply``, such as those of scikit-learn.  None is an
        ``ExtraTreesClassifier(300)``.
    output : {"leaves", "features"}, default="leaves"
        What `transform` gives: the number of the leaf in each tree, in float32; or a CSR matrix
        in float32 with a column for each leaf, whose linear kernel is the share of common leaves.
    n_jobs : int, default=None
        Processes of a forest that does not say itself.
    random_state : int, RandomState or None, default=None
        Seed of a forest that has none itself; None is the seed 0, so that the same samples
        give the same kernel.

    Attributes
    ----------
    forest_ : estimator
        The fitted forest.
    n_trees_ : int
        Number of its trees.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    See Also
    --------
    TopForestClassifier : Chooses the forest and the classifier on top of it.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from attop import PatMatNP
    >>> from attop.datasets import load_ionosphere
    >>> from attop.forest import ForestKernel
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> kernel = ForestKernel(RandomForestClassifier(50, min_samples_leaf=3))
    >>> model = PatMatNP(tau=0.05, kernel=kernel).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    """

    def __init__(
        self,
        forest: Any = None,
        *,
        output: str = "leaves",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.output = output
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the forest.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, for the forest; samples of weight 0 are left out.

        Returns
        -------
        self
        """
        if self.output not in OUTPUTS:
            raise ValueError(
                f"The 'output' parameter of ForestKernel must be one of {OUTPUTS}. "
                f"Got {self.output!r} instead."
            )
        forest = forest_of(self.forest, self.n_jobs, self.random_state)
        if not hasattr(forest, "apply"):
            raise ValueError(
                "The 'forest' parameter of ForestKernel must be an ensemble of trees with a "
                f"method 'apply', such as ExtraTreesClassifier. Got {self.forest!r} instead."
            )
        X = self._checked(X, reset=True)
        given = {}
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            there = weights > 0.0
            X, y = X[there], None if y is None else np.asarray(y)[there]
            given = {"sample_weight": weights[there]}
        self.forest_ = forest.fit(X, y, **given)
        leaves = self._leaves(X)
        self.n_trees_ = leaves.shape[1]
        if self.output == "features":
            sizes = leaves.max(axis=0) + 1
            self._first = np.concatenate([[0], np.cumsum(sizes)])
        return self

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The number of the leaf of each tree that each sample falls into.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            The leaves.
        """
        check_is_fitted(self)
        return self._leaves(self._checked(X, reset=False))

    def transform(self, X: Any) -> Any:
        """The leaves of samples, as numbers or as features.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_trees) or CSR matrix of shape (n_samples, n_leaves)
            In float32.
        """
        if self.output == "leaves":
            return self.leaves(X)
        leaves = self.apply(X)
        columns = leaves + self._first[:-1]
        values = np.full(columns.size, self.n_trees_**-0.5, dtype=np.float32)
        starts = np.arange(0, columns.size + 1, self.n_trees_)
        shape = len(leaves), int(self._first[-1])
        return sp.csr_matrix((values, columns.ravel(), starts), shape=shape)

    def leaves(self, X: Any) -> NDArray[np.float32]:
        """The same as `apply`, as numbers that the kernel compares, whatever `output` is.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            The leaves, in float32.
        """
        return self.apply(X).astype(np.float32)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns: of trees, or of the leaves of trees.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Without effect: leaves belong to trees, and not to features.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        trees = np.arange(self.n_trees_)
        if self.output == "leaves":
            return np.array([f"tree{i}" for i in trees], dtype=object)
        sizes = np.diff(self._first)
        names = [f"tree{i}_node{j}" for i in trees for j in range(sizes[i])]
        return np.array(names, dtype=object)

    def _checked(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float32, np.float64]
        )

    def _leaves(self, X: Any) -> NDArray[np.int64]:
        """Leaves of samples; boosting has them for each class, too."""
        leaves = np.asarray(self.forest_.apply(X))
        return leaves.reshape(len(leaves), -1).astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def forest_of(forest: Any, n_jobs: int | None, random_state: Any) -> Any:
    """A forest to fit, with what it does not say itself."""
    forest = ExtraTreesClassifier(300) if forest is None else clone(forest)
    defaults = {"n_jobs": n_jobs, "random_state": 0 if random_state is None else random_state}
    known = forest.get_params(deep=False)
    missing = {name: value for name, value in defaults.items() if known.get(name, 0) is None}
    return forest.set_params(**missing)
