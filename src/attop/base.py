"""The base class of the estimators, which fits any formulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from attop import _validation as checks
from attop import pipeline
from attop._attributes import FittedAttributes
from attop._docstrings import Documented
from attop._kernel_parameters import KernelParametersMixin
from attop._labels import TopScoreMixin
from attop._replica import all_or_nothing
from attop._scikit_learn import BaseEstimator, ClassifierMixin
from attop._scoring import sums
from attop.approximation import FEATURE_ROWS
from attop.formulations import Formulation
from attop.kernels.blocks import as_float64, rows_at_once
from attop.kernels.device.arrays import as_numpy, find_device
from attop.kernels.device.gram import expansion
from attop.kernels.functions import kernel_class
from attop.surrogates import Surrogate


# A dataclass only for its __init__: the common parameters are written once, and each
# subclass adds its own in front.  Equality and repr are scikit-learn's.
@dataclass(eq=False, repr=False)
class AtTopClassifier(
    Documented,
    FittedAttributes,
    TopScoreMixin,
    KernelParametersMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base of the classifiers at the top; use one of its subclasses.

    They share parameters, attributes and methods, and differ in the threshold.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, positive; ``C = 1 / (lambda n_positives)`` in terms of a
        regularisation ``lambda``, and ``np.inf`` for a hard margin.  Where samples have weights,
        their number is that of the copies.
    surrogate : {"hinge", "quadratic_hinge"} or Surrogate, default="hinge"
        Surrogate ``l`` of the 0/1 loss.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"}, callable, Kernel \
or ForestKernel, default="rbf"
        Kernel, as in `sklearn.svm.SVC`, or an object of `attop.kernels` with its own parameters; a
        `~attop.forest.ForestKernel` is fitted to the training samples first.
    gamma : {"scale", "auto"} or float, default="scale"
        Parameter of the kernel; "scale" is ``1 / (n_features X.var())``, "auto" is
        ``1 / n_features``.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    approximation : {None, "nystroem", "rbf_sampler"}, default=None
        Replace the kernel by that of a few explicit features, for many samples: those of
        scikit-learn's `Nystroem`, or its `RBFSampler` for the "rbf" kernel.  The model, its
        objective and its certificate are then those of the linear problem on these features.
    n_components : int, default=100
        Number of these features, at most the number of samples for "nystroem".
    solver : {"auto", "exact", "pairwise", "primal"}, default="auto"
        "auto" is "exact", and for linear models of some thousand samples "primal" first.
        "pairwise" is the coordinate descent of the paper on the dual; "primal" works on ``w``
        itself, for the linear kernel or an approximation, with a finite C.
    solver_options : dict, default=None
        Further options of the solver, by name: those of `attop.solvers.pairwise.solve` or
        `attop.solvers.primal.solve`; "exact" has none.
    tol : float, default=1e-4
        Relative duality gap at which the solver stops.
    max_iter : int, default=-1
        Most iterations of the solver, -1 for no limit.
    max_time : float, default=None
        Most seconds from the beginning of `fit`, its checks, the features of the approximation
        and the certificate included; None for no limit.
    cache_size : float, default=1000
        Megabytes for kernel columns; 32 at least, as with fewer a fit would take ages.
    device : {None, "cpu", "cuda", "cuda:0", ...}, default=None
        Where kernel entries, scores and large subproblems are computed: a GPU by its name, with
        PyTorch or CuPy, or the CPU.  Linear models take the CPU anyway.  See :doc:`/guide/gpu`.
    warm_start : bool, default=False
        Whether to start from the dual variables of the previous fit, where it had as many
        positives and competitors.
    pos_label : label, default=None
        The positive class; the larger of the two labels if None.
    random_state : int, RandomState or None, default=None
        Seed of what the solver, or the approximation, draws at random.  None is the seed 0:
        the same samples give the same model, as with `sklearn.svm.SVC`.
    verbose : int, default=0
        Whether the solver reports its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The positive one.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors, increasing.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficient of each support vector in ``w``: its alpha less its beta.  Where the
        optimum is ``w = 0`` there are no support vectors.
    alpha_ : ndarray of shape (n_positives,)
        Dual variables of the positives, those of all copies of a sample added up; positives of
        weight 0 have none.
    beta_ : ndarray of shape (n_competitors,)
        Dual variables of the competitors, the negatives or all samples, in the same way.
    coef_ : ndarray of shape (1, n_features)
        ``w`` itself, of `top_score`; only with the linear kernel, or with an approximation,
        where it has a weight for each of the `n_components` features.
    kernel_ : ForestKernel
        The fitted one, where the kernel is such; `support_vectors_` are then its leaves.
    feature_map_ : Nystroem or RBFSampler
        The features of the approximation; `support_vectors_` are then those of the samples.
    threshold_ : float
        The threshold ``t`` of the training scores, less their rounding error.
    objective_ : float
        Primal value.
    dual_gap_ : float
        Certified relative duality gap, ``(primal - dual) / max(|primal|, |dual|)``, with what
        the rounding of double precision may hide added to it.
    status_ : Status
        How the fit ended; ``str(status_)`` explains it.
    n_iter_ : int
        Iterations of the solver.
    history_ : History
        Time, primal value, dual value and gap along the way.
    stats_ : dict
        What the fit took: kernel columns (``"columns"``), moves (``"steps"``), dual variables
        that are not zero (``"support"``) and the seconds of the stages; 0 where the solver has
        none.  `attop.solvers.solution.STATS` explains each.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    See Also
    --------
    attop.model_selection.AtTopCV : Choice of parameters and formulation by cross-validation.
    attop.calibration.NeymanPearsonThreshold : Threshold with a guaranteed false positive rate.
    attop.save : Save a fitted model.

    Notes
    -----
    `fit` finds the ``w`` that minimises ::

        |w|^2 / 2  +  C sum over positives l(t - s_i),      s = <w, phi(x)>

    where the threshold ``t`` is a function of the scores, given by the formulation.  The problem is
    convex, and ``dual_gap_`` certifies how far from its optimum the model can be.
    """

    formulation: ClassVar[Formulation]
    #: Whether `fit` takes samples in memory.
    _in_memory: ClassVar[bool] = True

    _: KW_ONLY
    C: float = 1.0
    surrogate: str | Surrogate = "hinge"
    kernel: str | Callable[..., Any] = "rbf"
    gamma: str | float = "scale"
    degree: float = 3
    coef0: float = 0.0
    approximation: str | None = None
    n_components: int = 100
    solver: str = "auto"
    solver_options: dict[str, Any] | None = None
    tol: float = 1e-4
    max_iter: int = -1
    max_time: float | None = None
    cache_size: float = 1000
    device: str | None = None
    warm_start: bool = False
    pos_label: Any = None
    random_state: Any = None
    verbose: int = 0

    @all_or_nothing
    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit the model.

        An error or an interrupt (KeyboardInterrupt) leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples, kept in float32 if they are; the kernel matrix of shape
            (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of two values.
        sample_weight : array-like of shape (n_samples,), default=None
            How many copies of each sample there are; fractions count as such, and a sample of
            weight 0 is left out.  None stands for one of each.

        Returns
        -------
        self
            The fitted classifier.
        """
        pipeline.fit(self, X, y, sample_weight)
        return self

    def top_score(self, X) -> NDArray[np.float64]:
        """Score less threshold, ``<w, phi(x)> - threshold_``: high for the positive class.

        Unlike `decision_function` it has the same sign whichever class is the positive one.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples; for a precomputed kernel the matrix of shape (n_samples,
            n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold, 0 or more where the positive class is predicted.
        """
        check_is_fitted(self)
        X = checks.check_samples(self, as_numpy(X), reset=False)
        if hasattr(self, "feature_map_"):
            parts = gen_batches(X.shape[0], FEATURE_ROWS)
            features = (as_float64(self.feature_map_.transform(X[part])) for part in parts)
            return np.concatenate([part @ self.coef_[0] for part in features]) - self.threshold_
        X = self._fitted_kernel.samples(X)
        if self._fitted_kernel.explicit:
            parts = gen_batches(X.shape[0], rows_at_once(X))
            products = [as_float64(X[part]) @ self.coef_[0] for part in parts]
            return np.concatenate(products) - self.threshold_
        if self._fitted_kernel.precomputed:
            return as_float64(X[:, self.support_]) @ self.dual_coef_[0] - self.threshold_
        device = find_device(self.device)
        if device is not None:
            with device.guarded():
                scores = expansion(
                    self._fitted_kernel, device, X, self.support_vectors_, self.dual_coef_[0]
                )
            return scores - self.threshold_
        scores = sums(
            self._fitted_kernel,
            self.support_vectors_,
            self.dual_coef_[0],
            X,
            self.threshold_,
        )
        return scores - self.threshold_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = kernel_class(self.kernel).takes_sparse
        tags.input_tags.pairwise = kernel_class(self.kernel).precomputed
        return tags
