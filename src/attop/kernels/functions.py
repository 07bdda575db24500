"""The kernels: each a class with its parameters and traits, and all of them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import pairwise

from attop._words import suggestion
from attop.kernels.base import PRODUCTS, Kernel
from attop.kernels.blocks import BLOCK, as_float64
from attop.kernels.errors import EntryRounding
from attop.kernels.extended import Long, exponentials, inner_products
from attop.kernels.forms import Form, GaussianForm, PolynomialForm, SigmoidForm
from attop.kernels.gaussian import (
    Points,
    centre,
    gaussian_accuracy,
    gaussian_entries,
    gaussian_kernel,
    gaussian_onto,
    gaussian_whole,
    some_of,
)
from attop.kernels.given import FunctionKernel, Precomputed
from attop.kernels.gram import Gram
from attop.kernels.learnt import KernelLearner, Learnt, ToLearn
from attop.kernels.matching import Matching

if TYPE_CHECKING:
    from attop.kernels.columns import Workers
    from attop.kernels.sources import ColumnSource

__all__ = [
    "BLOCK",
    "KERNELS",
    "FunctionKernel",
    "Gaussian",
    "Gram",
    "Kernel",
    "KernelLearner",
    "Laplacian",
    "Learnt",
    "Linear",
    "Matching",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "ToLearn",
    "as_float64",
    "kernel_class",
    "make_kernel",
]


#: Powers that are made of products.
_MULTIPLIED = range(1, 9)


class _OfScikitLearn(Kernel):
    """A kernel that scikit-learn has by the same name and with the same parameters."""

    def feature_map(self, approximation: str, n_components: int, random_state: Any) -> Any:
        """Scikit-learn's own features of kernel values with sampled samples."""
        return Nystroem(
            kernel=self.name,
            **self.get_params(),
            n_components=n_components,
            random_state=random_state,
        )


@dataclass(frozen=True)
class Linear(_OfScikitLearn):
    r""":math:`k(x, y) = \langle x, y \rangle`."""

    name = "linear"
    takes_sparse = True
    explicit = True
    definite = True
    batch = PRODUCTS
    roundings = 1.0

    def values(self, X: Any, Y: Any) -> Any:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        return pairwise.linear_kernel(X, Y)

    def on_device(self, xp: Any, X: Any, Y: Any) -> Any:
        """The same for arrays of a device."""
        return X @ Y.T

    def extended(self, X: Any, Y: Any) -> tuple[Long, NDArray[np.float64]]:
        """The same in extended precision, with their sizes."""
        return inner_products(X, Y)


@dataclass(frozen=True)
class Gaussian(_OfScikitLearn):
    r""":math:`k(x, y) = e^{-\gamma \lVert x - y \rVert^2}`.

    Its distances come from products of matrices, whose rounding grows with the norms of the
    samples: see `attop.kernels.gaussian`.

    Parameters
    ----------
    gamma : float, default=1.0
        Inverse of the squared width, positive.
    """

    gamma: float = 1.0

    name = "rbf"
    takes_sparse = True
    definite = True
    approximations = ("nystroem", "rbf_sampler")
    batch = PRODUCTS

    def __post_init__(self) -> None:
        _check(self, "gamma", lambda value: 0.0 < value < np.inf, "in (0, inf)")

    def values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        return gaussian_kernel(X, Y, self.gamma)

    @property
    def form(self) -> Form:
        """How entries come from inner products."""
        return GaussianForm(self.gamma)

    def onto(self, Y: Any) -> Callable[[Any, slice], NDArray[np.float64]]:
        """A function of some `X` and a slice of `Y` that gives their kernel values."""
        return gaussian_onto(Y, self.gamma)

    def within(self, Y: Any) -> Callable[[slice, slice], NDArray[np.float64]]:
        """The same for two slices of `Y`."""
        points = Points.of(Y, None if sp.issparse(Y) else centre(some_of(Y)))
        return lambda one, other: gaussian_entries(points[one], points[other], self.gamma)

    def whole(self, X: Any) -> tuple[NDArray[np.float64], EntryRounding]:
        """All values between the rows of `X`, and how far they may be off."""
        values, accuracy = gaussian_whole(X, self.gamma)
        return values, EntryRounding(0.0, accuracy)

    def diagonal(self, X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """One for every sample."""
        return np.ones(len(rows))

    def rounding(self, X: Any, rows: NDArray[np.intp]) -> EntryRounding:
        """How far entries may be off: as the distances are, whatever the entry."""
        return EntryRounding(0.0, gaussian_accuracy(X, rows, self.gamma))

    def extended(self, X: Any, Y: Any) -> tuple[Long, NDArray[np.float64]]:
        """Kernel values in extended precision, by the differences of the features."""
        return exponentials(X, Y, self.gamma, np.square)

    def source(self, gram: Gram, dtype: np.dtype, workers: Workers) -> ColumnSource:
        """Columns by one matrix product and one compiled pass over its result."""
        from attop.kernels.sources import GaussianSource  # whose compiled functions load slowly

        return GaussianSource.of(gram.X, self.gamma, dtype, workers)

    def feature_map(self, approximation: str, n_components: int, random_state: Any) -> Any:
        """Features of kernel values with sampled samples, or random Fourier features."""
        if approximation == "rbf_sampler":
            return RBFSampler(
                gamma=self.gamma, n_components=n_components, random_state=random_state
            )
        return super().feature_map(approximation, n_components, random_state)


@dataclass(frozen=True)
class Laplacian(_OfScikitLearn):
    r""":math:`k(x, y) = e^{-\gamma \lVert x - y \rVert_1}`.

    Parameters
    ----------
    gamma : float, default=1.0
        Inverse of the width, positive.
    """

    gamma: float = 1.0

    name = "laplacian"
    definite = True

    def __post_init__(self) -> None:
        _check(self, "gamma", lambda value: 0.0 < value < np.inf, "in (0, inf)")

    def values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        return pairwise.laplacian_kernel(X, Y, gamma=self.gamma)

    def on_device(self, xp: Any, X: Any, Y: Any) -> Any:
        """The same for arrays of a device, feature by feature."""
        total = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=X.device)
        for j in range(X.shape[1]):
            total += xp.abs(X[:, j][:, None] - Y[:, j][None, :])
        return xp.exp(-self.gamma * total)

    def diagonal(self, X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """One for every sample."""
        return np.ones(len(rows))

    def extended(self, X: Any, Y: Any) -> tuple[Long, NDArray[np.float64]]:
        """Kernel values in extended precision, and their sizes."""
        return exponentials(X, Y, self.gamma, np.abs)


@dataclass(frozen=True)
class Polynomial(_OfScikitLearn):
    r""":math:`k(x, y) = (\gamma \langle x, y \rangle + c)^p`.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product, positive.
    degree : float, default=3
        The power :math:`p`, not negative.
    coef0 : float, default=0.0
        The constant :math:`c`.
    """

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    name = "poly"
    takes_sparse = True
    batch = PRODUCTS

    def __post_init__(self) -> None:
        _check(self, "gamma", lambda value: 0.0 < value < np.inf, "in (0, inf)")
        _check(self, "degree", lambda value: 0.0 <= value < np.inf, "in [0, inf)")
        _check(self, "coef0", np.isfinite, "a finite number")

    @property
    def definite(self) -> bool:
        """Whether it is a sum of products of inner products, with no negative term."""
        return float(self.degree).is_integer() and self.coef0 >= 0.0

    @property
    def roundings(self) -> float:
        """A power multiplies the relative rounding of its base."""
        return max(1.0, float(self.degree))

    @property
    def form(self) -> Form | None:
        """How entries come from inner products; None where powers are no few products."""
        if self.degree not in _MULTIPLIED:
            return None
        return PolynomialForm(self.gamma, self.coef0, int(self.degree))

    def values(self, X: Any, Y: Any) -> Any:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        return pairwise.polynomial_kernel(
            X, Y, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )

    def on_device(self, xp: Any, X: Any, Y: Any) -> Any:
        """The same for arrays of a device."""
        return (self.gamma * (X @ Y.T) + self.coef0) ** self.degree

    def extended(self, X: Any, Y: Any) -> tuple[Long, NDArray[np.float64]]:
        """The same in extended precision, with their sizes."""
        inner, size = inner_products(X, Y, self.gamma, self.coef0)
        return inner**self.degree, size**self.degree

    def extended_roundings(self, n_features: int) -> float:
        """Roundings that such an entry takes, in any order of summation."""
        return self.roundings * super().extended_roundings(n_features)


@dataclass(frozen=True)
class Sigmoid(_OfScikitLearn):
    r""":math:`k(x, y) = \tanh(\gamma \langle x, y \rangle + c)`, which is not definite.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product, positive.
    coef0 : float, default=0.0
        The constant :math:`c`.
    """

    gamma: float = 1.0
    coef0: float = 0.0

    name = "sigmoid"
    takes_sparse = True
    batch = PRODUCTS

    def __post_init__(self) -> None:
        _check(self, "gamma", lambda value: 0.0 < value < np.inf, "in (0, inf)")
        _check(self, "coef0", np.isfinite, "a finite number")

    @property
    def form(self) -> Form:
        """How entries come from inner products."""
        return SigmoidForm(self.gamma, self.coef0)

    def values(self, X: Any, Y: Any) -> Any:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        return pairwise.sigmoid_kernel(X, Y, gamma=self.gamma, coef0=self.coef0)

    def on_device(self, xp: Any, X: Any, Y: Any) -> Any:
        """The same for arrays of a device."""
        return xp.tanh(self.gamma * (X @ Y.T) + self.coef0)

    def extended(self, X: Any, Y: Any) -> tuple[Long, NDArray[np.float64]]:
        """The same in extended precision, with their sizes."""
        inner, size = inner_products(X, Y, self.gamma, self.coef0)
        return np.tanh(inner), size + 1.0


#: The kernels by name.
KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "rbf": Gaussian,
    "poly": Polynomial,
    "sigmoid": Sigmoid,
    "laplacian": Laplacian,
    "matching": Matching,
    "precomputed": Precomputed,
}


def make_kernel(
    kernel: str | Callable[..., Any] | Kernel | KernelLearner,
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
) -> Kernel:
    """The kernel of a name, of a function, of what learns it, or as it is.

    Parameters
    ----------
    kernel : str, callable, Kernel or KernelLearner
        A key of `KERNELS`, a function of two arrays of samples, a kernel, or what learns one.
    gamma, degree, coef0 : float
        Parameters of a kernel with a name; it takes those that it has.

    Returns
    -------
    Kernel
        The kernel, with its parameters fixed.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, KernelLearner):
        return ToLearn(kernel)
    if not isinstance(kernel, str):
        return FunctionKernel(kernel)
    if kernel not in KERNELS:
        raise ValueError(f"There is no kernel {kernel!r}. {suggestion(kernel, KERNELS)}")
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    own = [field.name for field in fields(KERNELS[kernel])]
    return KERNELS[kernel](**{name: given[name] for name in own if name in given})


def kernel_class(kernel: Any) -> type[Kernel]:
    """The class that has the traits of a kernel as `make_kernel` takes it.

    It is `Kernel` itself, which promises nothing, for what is no kernel at all.
    """
    if isinstance(kernel, Kernel):
        return type(kernel)
    if isinstance(kernel, str):
        return KERNELS.get(kernel, Kernel)
    if isinstance(kernel, KernelLearner):
        return ToLearn
    return FunctionKernel if callable(kernel) else Kernel


def _check(kernel: Kernel, name: str, holds: Callable[[Any], Any], words: str) -> None:
    """Raise a ValueError that says what the parameter called `name` must be, unless it is."""
    value = getattr(kernel, name)
    if not (isinstance(value, Real) and holds(value)):
        raise ValueError(
            f"The {name!r} parameter of {type(kernel).__name__} must be {words}. "
            f"Got {value!r} instead."
        )
