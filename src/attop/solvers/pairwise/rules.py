r"""The closed-form update rules of the paper's coordinate descent.

A rule changes two dual variables so that ``sum(alpha) == sum(beta)`` stays true: two
alphas or two betas against each other, or an alpha and a beta together.  Along such a
move the dual changes by

    slope * step - curvature * step^2 / 2      (less the price of the betas, for Pat&Mat)

and every rule returns the feasible step with the largest gain, and that gain.  The slope
and the curvature hold what the scores, the kernel and the penalty of the alphas say; the
rules add what the betas are bounded by or pay.

Variables are those of one copy of a sample.  A step is shared by all copies: it changes a
variable of the weight ``v`` by ``step / v``.  The paper has unit weights only.
"""

from __future__ import annotations

import math

from numba import njit

__all__ = [
    "alpha_alpha",
    "alpha_beta",
    "alpha_beta_norm",
    "alpha_beta_priced",
    "alpha_beta_tied",
    "beta_beta_norm",
    "beta_beta_priced",
    "beta_beta_tied",
]


@njit(cache=True, nogil=True)
def best_step(slope: float, curvature: float, lower: float, upper: float) -> tuple[float, float]:
    """Maximise ``slope * step - curvature * step^2 / 2`` on ``[lower, upper]``."""
    step = min(max(slope / curvature, lower), upper)
    return step, step * (slope - 0.5 * curvature * step)


@njit(cache=True, nogil=True)
def alpha_alpha(
    slope: float,
    curvature: float,
    alpha_k: float,
    alpha_l: float,
    alpha_max: float,
    weight_k: float = 1.0,
    weight_l: float = 1.0,
) -> tuple[float, float]:
    """``alpha_k + step``, ``alpha_l - step``; the same in all families."""
    lower = max(-weight_k * alpha_k, weight_l * (alpha_l - alpha_max))
    upper = min(weight_k * (alpha_max - alpha_k), weight_l * alpha_l)
    return best_step(slope, curvature, lower, upper)


@njit(cache=True, nogil=True)
def alpha_beta(
    slope: float,
    curvature: float,
    alpha: float,
    beta: float,
    alpha_max: float,
    beta_max: float,
    weight_alpha: float = 1.0,
    weight_beta: float = 1.0,
) -> tuple[float, float]:
    """``alpha + step``, ``beta + step`` where both have a bound of their own, or none."""
    lower = max(-weight_alpha * alpha, -weight_beta * beta)
    upper = min(weight_alpha * (alpha_max - alpha), weight_beta * (beta_max - beta))
    return best_step(slope, curvature, lower, upper)


@njit(cache=True, nogil=True)
def alpha_beta_tied(
    slope: float,
    curvature: float,
    alpha: float,
    beta: float,
    alpha_max: float,
    other_beta_max: float,
    total: float,
    K: int,
    weight_alpha: float = 1.0,
    weight_beta: float = 1.0,
) -> tuple[float, float]:
    """``alpha + step``, ``beta + step`` where the cap is ``total / K``.

    The cap moves with the step by ``step / K``, under the other betas and over this one, which
    moves faster than the cap unless it has more than K copies.
    """
    lower = max(-weight_alpha * alpha, -weight_beta * beta)
    upper = weight_alpha * (alpha_max - alpha)
    if K > 1:
        # Rounding must not turn the present point, step 0, infeasible.
        lower = max(lower, min(K * other_beta_max - total, 0.0))
        room, faster = max(total - K * beta, 0.0), K / weight_beta - 1.0
        if faster > 0.0:
            upper = min(upper, room / faster)
        elif faster < 0.0:
            lower = max(lower, room / faster)
    return best_step(slope, curvature, lower, upper)


@njit(cache=True, nogil=True)
def beta_beta_tied(
    slope: float,
    curvature: float,
    beta_k: float,
    beta_l: float,
    cap: float,
    weight_k: float = 1.0,
    weight_l: float = 1.0,
) -> tuple[float, float]:
    """``beta_k + step``, ``beta_l - step`` under a cap that stays."""
    lower = max(-weight_k * beta_k, weight_l * min(beta_l - cap, 0.0))
    upper = min(weight_l * beta_l, weight_k * max(cap - beta_k, 0.0))
    return best_step(slope, curvature, lower, upper)


@njit(cache=True, nogil=True)
def alpha_beta_priced(
    slope: float,
    curvature: float,
    alpha: float,
    beta: float,
    alpha_max: float,
    other_beta_max: float,
    price: float,
    weight_alpha: float = 1.0,
    weight_beta: float = 1.0,
) -> tuple[float, float]:
    """``alpha + step``, ``beta + step`` where the largest beta costs `price` per unit.

    Two candidates: the best step that leaves `beta` below the others, and the best that
    makes it the largest.  Each is sought on its own side of the border, which belongs to
    both: the maximum may lie on it.
    """
    lower = max(-weight_alpha * alpha, -weight_beta * beta)
    upper = weight_alpha * (alpha_max - alpha)
    border = min(max(weight_beta * (other_beta_max - beta), lower), upper)
    now = max(beta, other_beta_max)
    best, best_gain = 0.0, 0.0
    for piece in range(2):
        if piece == 0:
            step, _ = best_step(slope, curvature, lower, border)
        else:
            step, _ = best_step(slope - price / weight_beta, curvature, border, upper)
        largest = max(beta + step / weight_beta, other_beta_max)
        gain = step * (slope - 0.5 * curvature * step) - price * (largest - now)
        if gain > best_gain:
            best, best_gain = step, gain
    return best, best_gain


@njit(cache=True, nogil=True)
def beta_beta_priced(
    slope: float,
    curvature: float,
    beta_k: float,
    beta_l: float,
    other_beta_max: float,
    price: float,
    weight_k: float = 1.0,
    weight_l: float = 1.0,
) -> tuple[float, float]:
    """``beta_k + step``, ``beta_l - step`` where the largest beta costs `price` per unit.

    Three candidates, by who is the largest afterwards: `beta_l`, one of the others, or
    `beta_k`.  In this order they divide the range of the step into three neighbours.
    """
    lower, upper = -weight_k * beta_k, weight_l * beta_l
    now = max(beta_k, beta_l, other_beta_max)
    middle = (beta_l - beta_k) / (1.0 / weight_k + 1.0 / weight_l)
    first = min(max(min(middle, weight_l * (beta_l - other_beta_max)), lower), upper)
    second = min(max(max(middle, weight_k * (other_beta_max - beta_k)), lower), upper)
    best, best_gain = 0.0, 0.0
    for piece in range(3):
        if piece == 0:
            step, _ = best_step(slope + price / weight_l, curvature, lower, first)
        elif piece == 1:
            step, _ = best_step(slope, curvature, first, second)
        else:
            step, _ = best_step(slope - price / weight_k, curvature, second, upper)
        largest = max(beta_k + step / weight_k, beta_l - step / weight_l, other_beta_max)
        gain = step * (slope - 0.5 * curvature * step) - price * (largest - now)
        if gain > best_gain:
            best, best_gain = step, gain
    return best, best_gain


@njit(cache=True, nogil=True)
def alpha_beta_norm(
    slope: float,
    curvature: float,
    alpha: float,
    beta: float,
    norm2: float,
    price: float,
    weight_alpha: float = 1.0,
    weight_beta: float = 1.0,
) -> tuple[float, float]:
    r"""``alpha + step``, ``beta + step`` where the norm of all betas costs `price` per unit.

    The paper keeps :math:`\delta = |\beta| / (2 \vartheta \sqrt{\tilde n \tau})` while it
    looks for the step and renews it afterwards; the gain is that of both.  With all betas
    at zero the norm is the step itself, and the rule is exact.
    """
    norm = math.sqrt(norm2)
    lower = max(-weight_alpha * alpha, -weight_beta * beta)
    if norm == 0.0:
        return best_step(slope - price / math.sqrt(weight_beta), curvature, lower, math.inf)
    stiffness = price / norm
    step, _ = best_step(
        slope - stiffness * beta, curvature + stiffness / weight_beta, lower, math.inf
    )
    new_norm = math.sqrt(max(norm2 + step * (2.0 * beta + step / weight_beta), 0.0))
    return step, step * (slope - 0.5 * curvature * step) - price * (new_norm - norm)


@njit(cache=True, nogil=True)
def beta_beta_norm(
    slope: float,
    curvature: float,
    beta_k: float,
    beta_l: float,
    norm2: float,
    price: float,
    weight_k: float = 1.0,
    weight_l: float = 1.0,
) -> tuple[float, float]:
    """``beta_k + step``, ``beta_l - step`` where the norm of all betas costs `price`."""
    norm = math.sqrt(norm2)
    if norm == 0.0:
        return 0.0, 0.0
    stiffness, both = price / norm, 1.0 / weight_k + 1.0 / weight_l
    step, _ = best_step(
        slope - stiffness * (beta_k - beta_l),
        curvature + both * stiffness,
        -weight_k * beta_k,
        weight_l * beta_l,
    )
    new_norm = math.sqrt(max(norm2 + step * (2.0 * (beta_k - beta_l) + both * step), 0.0))
    return step, step * (slope - 0.5 * curvature * step) - price * (new_norm - norm)
