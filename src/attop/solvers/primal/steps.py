"""The direction of a Newton step of a linear model, and how far to go along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr2
from scipy.linalg.lapack import dpotrf, dpotrs

from attop.solvers.limits import Limits
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Up to so many features the Hessian is formed and factorised.
DIRECT_UP_TO = 1500
#: The line search ends where the slope has fallen to this share, or after so many looks.  (With 0.1
#: TauFPL takes a tenth longer on w8a and a third longer on a9a at lambda 1e-5.)
FLAT, LOOKS = 0.3, 12
#: Conjugate gradients: residual relative to the gradient, and products at most.  (With 0.05 texts
#: take a tenth to a half longer at lambda 1e-2 and 1e-3, and as long at 1e-5.)
RESIDUAL, PRODUCTS = 0.15, 300


class Curved(NamedTuple):
    """A term ``sum_r weights_r (x_r - centre)(x_r - centre)'`` of the Hessian."""

    rows: NDArray[np.intp]
    weights: Vector
    centre: Vector


def newton_direction(
    samples: Samples, terms: list[Curved], gradient: Vector, limits: Limits
) -> Vector | None:
    """Newton's direction, by a factorisation or by conjugate gradients; None out of time."""
    n_features = samples.n_features
    if n_features > DIRECT_UP_TO:
        return _by_conjugate_gradients(samples, terms, gradient, limits)
    if sum(len(rows) for rows, _, _ in terms) < n_features:
        return _by_rows(samples, terms, gradient)
    hessian = hessian_of(samples, terms, limits)
    return None if hessian is None else -factorised(hessian)(gradient)


def hessian_of(samples: Samples, terms: list[Curved], limits: Limits) -> Matrix | None:
    """The sum of the terms, its upper half, which is what is factorised; None out of time."""
    rows = np.concatenate([term.rows for term in terms])
    weights = np.concatenate([term.weights for term in terms])
    hessian = np.asfortranarray(samples.gram(rows, weights, limits.out_of_time))
    for term in terms:
        # From the centre.
        total = samples.combine_rows(term.rows, term.weights)
        total -= 0.5 * float(np.sum(term.weights)) * term.centre
        hessian = dsyr2(-1.0, total, term.centre, a=hessian, lower=0, overwrite_a=1)
    return None if limits.out_of_time() else hessian


def _by_rows(samples: Samples, terms: list[Curved], gradient: Vector) -> Vector:
    """The same where fewer samples bend than there are features.

    With ``A' A`` for the bent part of the Hessian, ``(I + A' A)^-1 = I - A' (I + A A')^-1 A``.
    """
    parts = [
        (samples.dense(rows) - centre) * np.sqrt(weights)[:, np.newaxis]
        for rows, weights, centre in terms
    ]
    A = np.concatenate(parts)
    if len(A) == 0:
        return -gradient
    return A.T @ factorised(A @ A.T)(A @ gradient) - gradient


def _by_conjugate_gradients(
    samples: Samples, terms: list[Curved], gradient: Vector, limits: Limits
) -> Vector | None:
    """The same with products only, preconditioned by the diagonal."""
    diagonal = np.ones(samples.n_features)
    for rows, weights, _ in terms:
        diagonal += samples.squares(rows, weights)
    x, residual = np.zeros_like(gradient), -gradient
    search, before = np.zeros_like(x), 1.0
    enough = RESIDUAL * float(np.linalg.norm(residual))
    for _ in range(PRODUCTS):
        scaled = residual / diagonal
        now = float(residual @ scaled)
        search = scaled + (now / before) * search if before else scaled
        product = search.copy()
        for rows, weights, centre in terms:
            along = weights * (samples.scores_of(rows, search) - float(centre @ search))
            product += samples.combine_rows(rows, along) - float(np.sum(along)) * centre
        length = now / float(search @ product)
        x += length * search
        residual = residual - length * product
        before = now
        if float(np.linalg.norm(residual)) <= enough:
            break
        if limits.out_of_time():
            return None
    return x


def line_search(slope, at_zero: float) -> float:
    """A length at which the slope along a direction is about 0; 0 where it falls nowhere."""
    if not at_zero < 0.0:
        return 0.0
    low, high = (0.0, at_zero), (1.0, slope(1.0))
    enough = FLAT * abs(at_zero)
    looks = 1
    while high[1] < -enough and looks < LOOKS:  # further than Newton's step
        low, high = high, (2.0 * high[0], slope(2.0 * high[0]))
        looks += 1
    if high[1] <= enough:
        return high[0]
    fallen = 0
    while looks < LOOKS:
        # The secant, and the middle where one end has stayed for long.
        share = low[1] / (low[1] - high[1]) if abs(fallen) < 2 else 0.5
        length = low[0] + min(max(share, 0.01), 0.99) * (high[0] - low[0])
        now = slope(length)
        looks += 1
        if abs(now) <= enough:
            return length
        if now < 0.0:
            low, fallen = (length, now), max(fallen, 0) + 1
        else:
            high, fallen = (length, now), min(fallen, 0) - 1
    return low[0] if low[0] > 0.0 else high[0]


def factorised(bends: Matrix) -> Callable[[Vector], Vector]:
    """Solves with ``I + bends``, with a little more on its diagonal where rounding asks for it.

    Only the upper half of the matrix is read, and it is lost.
    """
    diagonal = np.diag_indices_from(bends)
    largest = float(np.max(bends[diagonal]))
    bends[diagonal] += 1.0
    for more in (0.0, 1e-15, 1e-13, 1e-11):
        bends[diagonal] += more * largest
        factor, failed = dpotrf(bends, lower=0, clean=0)
        if not failed and np.all(np.isfinite(factor.diagonal())):
            return lambda right: dpotrs(factor, right, lower=0)[0]
    return lambda right: right
