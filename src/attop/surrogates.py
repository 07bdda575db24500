r"""Surrogates of the 0/1 loss: convex, non-negative, non-decreasing.

A surrogate says everything that the rest of the package asks of it: value, slope and conjugate,
how large its slope gets, whether its conjugate is quadratic, and which dual the quantile made of
it leads to.  A new one is one class and one line in `SURROGATES`; estimators take an instance, too.

The duals of the exact and of the pairwise solver are quadratic programs, and so need a conjugate
of the form :math:`l^*(y) = -y + c y^2 / 2` on :math:`[0, b]`, with the `curvature` c and the
`steepest` slope b.  They refuse any other by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from attop._weights import unit_weights, weighted, weighted_sum


class Surrogate(ABC):
    """A surrogate ``l``.

    Attributes
    ----------
    name : str
        What users call it.
    steepest : float
        Largest slope: dual variables are at most C times as large.
    curvature : float or None
        Second derivative of a conjugate of the form above; None for any other.
    quantile : {"cap", "norm"} or None
        How the dual of a quantile made of this surrogate prices the betas; None where no
        solver knows that dual.
    """

    name: ClassVar[str]
    steepest: ClassVar[float] = np.inf
    curvature: ClassVar[float | None] = None
    quantile: ClassVar[str | None] = None

    @abstractmethod
    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``l(x)``."""

    @abstractmethod
    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """``l'(x)``, the right one at a kink."""

    @abstractmethod
    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``l*(y) = sup_x x y - l(x)``, infinite outside its domain."""

    def level(
        self, x: NDArray[np.float64], total: float, weights: NDArray[np.float64] | None = None
    ) -> float:
        """The root ``q`` of ``sum v_i l(q - 1 - x_i) = total`` where every term is active."""
        weights = unit_weights(len(x)) if weights is None else weights

        def excess(q: float) -> float:
            return float(np.dot(weights, self.value(q - 1.0 - x))) - total

        low, high = float(np.max(x)), float(np.max(x)) + 1.0
        while excess(high) < 0.0:
            low, high = high, 2.0 * high + 1.0
        return float(brentq(excess, low, high)) if excess(low) < 0.0 else low

    def sums_at(
        self, x: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """``sum_i v_i l(x_k - 1 - x_i)`` for each of rising numbers ``x_k >= 0``, but for rounding.

        None where they take more than a few sums.
        """
        return None

    def dual_value(
        self, alpha: NDArray[np.floating], C: float, weights: NDArray[np.float64]
    ) -> float:
        """``- C sum v l*(alpha / C)``; with ``C = inf`` its limit."""
        if self.curvature is None:
            return float(-C * np.dot(weights, self.conjugate(alpha / C)))
        copies = weighted(alpha, weights)
        # In this order, as squares of tiny numbers are zero.
        return float(np.sum(copies) - 0.5 * np.dot(copies, (self.curvature / C) * alpha))


def refuse_unless_quadratic(surrogate: Surrogate, solver: str) -> None:
    """Raise a ValueError where the conjugate is not one that `solver` can work with."""
    if surrogate.curvature is None:
        raise ValueError(
            f"The {solver} solver needs a surrogate whose conjugate is quadratic, such as "
            f"'hinge' or 'quadratic_hinge'. Got {surrogate.name!r} instead."
        )


def as_floating(x: ArrayLike) -> NDArray[Any]:
    """Numbers as doubles, or as the long doubles that they are."""
    x = np.asarray(x)
    return x if x.dtype == np.longdouble else x.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Hinge(Surrogate):
    """Hinge, ``l(x) = max(0, 1 + x)``, with ``l*(y) = -y`` on [0, 1]."""

    name: ClassVar[str] = "hinge"
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float | None] = 0.0
    quantile: ClassVar[str | None] = "cap"

    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``max(0, 1 + x)``, of long doubles in their precision."""
        return np.maximum(0.0, 1.0 + as_floating(x))

    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """1 from -1 on, 0 before."""
        return (np.asarray(x) >= -1.0).astype(np.float64)

    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``-y`` on [0, 1]."""
        y = np.asarray(y, dtype=np.float64)
        return np.where((y >= 0.0) & (y <= 1.0), -y, np.inf)

    def level(
        self, x: NDArray[np.float64], total: float, weights: NDArray[np.float64] | None = None
    ) -> float:
        """The root ``q`` of ``sum v_i (q - x_i) = total``."""
        weights = unit_weights(len(x)) if weights is None else weights
        copies = float(np.sum(weights))
        return (weighted_sum(x, weights) + total) / copies

    def sums_at(self, x: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_i v_i max(0, x_k - x_i)``."""
        return np.cumsum(weights) * x - np.cumsum(weights * x)


@dataclass(frozen=True)
class QuadraticHinge(Surrogate):
    """Quadratic hinge, ``l(x) = max(0, 1 + x)^2``, with ``l*(y) = y^2/4 - y`` on [0, inf)."""

    name: ClassVar[str] = "quadratic_hinge"
    curvature: ClassVar[float | None] = 0.5
    quantile: ClassVar[str | None] = "norm"

    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``max(0, 1 + x)^2``, of long doubles in their precision."""
        return np.maximum(0.0, 1.0 + as_floating(x)) ** 2

    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """``2 max(0, 1 + x)``."""
        return 2.0 * np.maximum(0.0, 1.0 + np.asarray(x, dtype=np.float64))

    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``y^2/4 - y`` from 0 on."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(y >= 0.0, (0.25 * y - 1.0) * y, np.inf)

    def level(
        self, x: NDArray[np.float64], total: float, weights: NDArray[np.float64] | None = None
    ) -> float:
        """The larger root ``q`` of ``sum v_i (q - x_i)^2 = total``."""
        weights = unit_weights(len(x)) if weights is None else weights
        copies = float(np.sum(weights))
        mean = weighted_sum(x, weights) / copies
        # Centred, so that large x do not cancel; below zero only by rounding.
        rest = max(0.0, total - weighted_sum((x - mean) ** 2, weights))
        return float(mean + np.sqrt(rest / copies))

    def sums_at(self, x: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_i v_i max(0, x_k - x_i)^2``."""
        first, second = np.cumsum(weights * x), np.cumsum(weights * x * x)
        return (np.cumsum(weights) * x - 2.0 * first) * x + second


#: Surrogates by name.
SURROGATES: dict[str, Surrogate] = {"hinge": Hinge(), "quadratic_hinge": QuadraticHinge()}


def as_surrogate(surrogate: str | Surrogate) -> Surrogate:
    """The surrogate of this name, or itself."""
    return SURROGATES[surrogate] if isinstance(surrogate, str) else surrogate
