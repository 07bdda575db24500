"""The classifiers at the top for arrays and data frames of Dask."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attop import classifiers as local
from attop._replica import all_or_nothing
from attop.base import AtTopClassifier
from attop.dask._fit import fit
from attop.dask._inputs import is_lazy, lazily

#: What a fit on a cluster does not keep: it is as long as the samples.
_NOT_KEPT = frozenset({"support_", "support_vectors_", "dual_coef_", "alpha_", "beta_", "kernel_"})


@dataclass(eq=False, repr=False)
class DaskClassifier(AtTopClassifier):
    """What the classifiers for Dask have in common.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="linear"
        The linear kernel, or any with an `approximation`, whose features are those of a random
        part of the samples and are computed block by block.
    solver : {"auto"}, default="auto"
        There is one solver for samples in chunks.
    solver_options : dict, default=None
        It has none.
    max_iter : int, default=-1
        Most rounds, of two passes over the samples each; -1 for no limit.
    cache_size : float, default=1000
        Without effect.
    warm_start : bool, default=False
        Without effect.
    device : None, default=None
        The workers compute on their processors.
    client : distributed.Client, default=None
        The client of the cluster; the one there is by default.
    most_rows : int, default=None
        Samples gathered at most in a round, in float64; by default 100,000 or a fiftieth of all,
        but no more than 128 MB of them.
    """

    _absent: ClassVar[frozenset[str]] = _NOT_KEPT
    _in_memory: ClassVar[bool] = False

    _: KW_ONLY
    kernel: Any = "linear"
    client: Any = None
    most_rows: int | None = None

    @property
    def client_(self) -> Any:
        """The client of the cluster: the one given, or the one there is."""
        if self.client is not None:
            return self.client
        from distributed import get_client

        try:
            return get_client()
        except ValueError:
            raise ValueError(
                f"{type(self).__name__} needs a cluster: make one with "
                "client = dask.distributed.Client()."
            ) from None

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; samples stay where they are.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Training samples, the blocks of an array dense or CSR.
        y : dask Array or Series of shape (n_samples,)
            Labels, of two values.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            How many copies of each sample there are.

        Returns
        -------
        self
            The fitted classifier.
        """
        fit(self, X, y, sample_weight)
        return self

    def to_local(self) -> AtTopClassifier:
        """The same model as an estimator that needs no Dask."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        for name in ("client", "most_rows"):
            del parameters[name]
        plain: Any = next(c for c in type(self).__mro__ if not issubclass(c, DaskClassifier))
        model: AtTopClassifier = plain(**parameters)
        fitted = {k: v for k, v in vars(self).items() if k.endswith("_")}
        model.__dict__.update(fitted, _fitted_kernel=self._fitted_kernel)
        return model

    def top_score(self, X: Any) -> Any:
        """Score less threshold: high for the positive class; lazy where X is.

        Parameters
        ----------
        X : dask Array or DataFrame, or array-like
            Samples.

        Returns
        -------
        dask Array or ndarray of shape (n_samples,)
            Distances from the threshold.
        """
        model = self.to_local()
        if is_lazy(X):
            return lazily(model.top_score, X, np.dtype(np.float64))
        return model.top_score(X)

    def predict(self, X: Any) -> Any:
        """The positive class where the score reaches the threshold; lazy where X is.

        Parameters
        ----------
        X : dask Array or DataFrame, or array-like
            Samples.

        Returns
        -------
        dask Array or ndarray of shape (n_samples,)
            Labels, of `classes_`.
        """
        model = self.to_local()
        return lazily(model.predict, X, self.classes_.dtype) if is_lazy(X) else model.predict(X)

    def __getstate__(self) -> dict[str, Any]:
        # A client belongs to its process.
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))


@dataclass(eq=False, repr=False)
class DaskTopPush(DaskClassifier, local.TopPush):
    """`attop.TopPush` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskTopPushK(DaskClassifier, local.TopPushK):
    """`attop.TopPushK` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskTauFPL(DaskClassifier, local.TauFPL):
    """`attop.TauFPL` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskTopMeanK(DaskClassifier, local.TopMeanK):
    """`attop.TopMeanK` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskPatMat(DaskClassifier, local.PatMat):
    """`attop.PatMat` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskPatMatNP(DaskClassifier, local.PatMatNP):
    """`attop.PatMatNP` for samples on a cluster."""


@dataclass(eq=False, repr=False)
class DaskSVM(DaskClassifier, local.SVM):
    """`attop.SVM` for samples on a cluster."""
