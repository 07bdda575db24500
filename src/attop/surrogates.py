"""Surrogates of the 0/1 loss: convex, non-negative, non-decreasing, with ``l(0) = 1``.

A new surrogate is one class here and one line in `SURROGATES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Surrogate(Protocol):
    """What the thresholds, objectives and formulations ask of a surrogate ``l``."""

    name: ClassVar[str]

    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``l(x)``."""

    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """``l'(x)``, the right one at the kink."""

    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``l*(y) = sup_x x y - l(x)``, infinite outside its domain."""

    def level(self, x: NDArray[np.float64], total: float) -> float:
        """The root ``q`` of ``sum l(q - 1 - x_i) = total`` where every term is active."""


@dataclass(frozen=True)
class Hinge:
    """Hinge, ``l(x) = max(0, 1 + x)``, with ``l*(y) = -y`` on [0, 1]."""

    name: ClassVar[str] = "hinge"

    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``max(0, 1 + x)``."""
        return np.maximum(0.0, 1.0 + np.asarray(x, dtype=np.float64))

    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """1 from -1 on, 0 before."""
        return (np.asarray(x) >= -1.0).astype(np.float64)

    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``-y`` on [0, 1]."""
        y = np.asarray(y, dtype=np.float64)
        return np.where((y >= 0.0) & (y <= 1.0), -y, np.inf)

    def level(self, x: NDArray[np.float64], total: float) -> float:
        """The root ``q`` of ``sum (q - x_i) = total``."""
        return float(np.mean(x) + total / len(x))


@dataclass(frozen=True)
class QuadraticHinge:
    """Quadratic hinge, ``l(x) = max(0, 1 + x)^2``, with ``l*(y) = y^2/4 - y`` on [0, inf)."""

    name: ClassVar[str] = "quadratic_hinge"

    def value(self, x: ArrayLike) -> NDArray[np.float64]:
        """``max(0, 1 + x)^2``."""
        return np.maximum(0.0, 1.0 + np.asarray(x, dtype=np.float64)) ** 2

    def slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """``2 max(0, 1 + x)``."""
        return 2.0 * np.maximum(0.0, 1.0 + np.asarray(x, dtype=np.float64))

    def conjugate(self, y: ArrayLike) -> NDArray[np.float64]:
        """``y^2/4 - y`` from 0 on."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(y >= 0.0, (0.25 * y - 1.0) * y, np.inf)

    def level(self, x: NDArray[np.float64], total: float) -> float:
        """The larger root ``q`` of ``sum (q - x_i)^2 = total``."""
        mean = np.mean(x)
        # Centred, so that large x do not cancel; below zero only by rounding.
        rest = max(0.0, total - float(np.sum((x - mean) ** 2)))
        return float(mean + np.sqrt(rest / len(x)))


#: Surrogates by name.
SURROGATES: dict[str, Surrogate] = {"hinge": Hinge(), "quadratic_hinge": QuadraticHinge()}
