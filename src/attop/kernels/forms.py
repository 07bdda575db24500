r"""Kernels that are functions of inner products, entry by entry from a product of matrices.

For samples :math:`x` and :math:`v` each form says which products it needs, how they become entries
in place, and how far :math:`\sum_v a_v k(x, v)` may be off by the rounding of the entries: in terms
of the norms of the samples, for any unit roundoff :math:`u`, and on the one assumption that
:doc:`/theory/certificate` states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from attop.kernels.gaussian import ACCURACY, EXPONENTIAL_ROUNDING, distance_rounding

#: Rounding of a hyperbolic tangent, in units of ``u``.
_TANGENT_ROUNDING = 8.0


class Form(Protocol):
    """How products become entries.

    Attributes
    ----------
    centred : bool
        Whether the samples may be taken from any centre.
    accuracy : float
        What the kernel function itself has entries in double precision right to; infinite where it
        does no more than is done here.
    factor : float
        What the products are multiplied by, beforehand.
    """

    centred: ClassVar[bool]
    accuracy: ClassVar[float]

    @property
    def factor(self) -> float:
        """What the products are multiplied by."""
        ...

    def norms(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """What `finish` needs of the squared norms of samples."""
        ...

    def finish(self, products: NDArray[Any], own: NDArray[Any], others: NDArray[Any]) -> None:
        """Turn products into entries, in place; `own` and `others` are `norms`."""
        ...

    def off(
        self,
        squared: NDArray[np.float64],
        of_vectors: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_terms: int,
        dtype: Any,
    ) -> NDArray[np.float64]:
        """How far ``sum_v weights_v k(x, v)`` may be off, for samples with these squared norms."""
        ...


@dataclass(frozen=True)
class GaussianForm:
    """``exp(2 gamma <x, v> - gamma |x|^2 - gamma |v|^2)`` of samples from one centre."""

    gamma: float

    centred: ClassVar[bool] = True
    accuracy: ClassVar[float] = ACCURACY

    @property
    def factor(self) -> float:
        """Of the products."""
        return 2.0 * self.gamma

    def norms(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """``gamma |x|^2``."""
        return self.gamma * squared

    def finish(self, products: NDArray[Any], own: NDArray[Any], others: NDArray[Any]) -> None:
        """Turn products into entries, in place."""
        products -= others
        products -= own[:, np.newaxis]
        np.minimum(products, 0.0, out=products)
        np.exp(products, out=products)

    def off(self, squared, of_vectors, weights, n_terms, dtype) -> NDArray[np.float64]:
        """The bound of the entries, added up."""
        total = float(np.sum(weights))
        slope = self.gamma * distance_rounding(n_terms, dtype)
        constant = EXPONENTIAL_ROUNDING * 0.5 * float(np.finfo(dtype).eps) * total
        return constant + slope * (total * squared + float(weights @ of_vectors))


@dataclass(frozen=True)
class _InnerForm:
    """A function of ``t = gamma <x, v> + coef0``.

    By Cauchy and Schwarz ``|t| <= size(x) size(v)`` with ``size(x)^2 = gamma |x|^2 + |coef0|``, and
    its rounding is relative to that.
    """

    gamma: float
    coef0: float

    centred: ClassVar[bool] = False
    accuracy: ClassVar[float] = np.inf

    @property
    def factor(self) -> float:
        """Of the products."""
        return self.gamma

    def norms(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nothing is needed, but an array for each sample is."""
        return squared

    def _sizes(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(self.gamma * squared + abs(self.coef0))


@dataclass(frozen=True)
class PolynomialForm(_InnerForm):
    """``t^degree``, by multiplications; `degree` is 1 or more."""

    degree: int

    def finish(self, products: NDArray[Any], own: NDArray[Any], others: NDArray[Any]) -> None:
        """Turn products into entries, in place."""
        products += products.dtype.type(self.coef0)
        base = products.copy() if self.degree > 2 else products
        for _ in range(self.degree - 1):
            products *= base

    def off(self, squared, of_vectors, weights, n_terms, dtype) -> NDArray[np.float64]:
        """A power multiplies the relative rounding of its base."""
        with np.errstate(over="ignore"):
            terms = float(weights @ self._sizes(of_vectors) ** self.degree)
            sizes = self._sizes(squared) ** self.degree
            return self.degree * distance_rounding(n_terms, dtype) * terms * sizes


@dataclass(frozen=True)
class SigmoidForm(_InnerForm):
    """``tanh t``, whose slope is at most one."""

    def finish(self, products: NDArray[Any], own: NDArray[Any], others: NDArray[Any]) -> None:
        """Turn products into entries, in place."""
        products += products.dtype.type(self.coef0)
        np.tanh(products, out=products)

    def off(self, squared, of_vectors, weights, n_terms, dtype) -> NDArray[np.float64]:
        """The rounding of the argument, and of the function."""
        roundoff = 0.5 * float(np.finfo(dtype).eps)
        slope = distance_rounding(n_terms, dtype) * float(weights @ self._sizes(of_vectors))
        return slope * self._sizes(squared) + _TANGENT_ROUNDING * roundoff * float(np.sum(weights))
