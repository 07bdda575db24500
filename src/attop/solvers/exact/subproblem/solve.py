"""Solves the subproblem on a block.

By pair moves, by Newton's method on faces in between, and where these fail by an interior-point
method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attop._threads import with_one_blas_thread
from attop.families.base import BetaTerms
from attop.solvers.exact.subproblem.block import Block, Group, Terms
from attop.solvers.exact.subproblem.face import LEAST_RIDGE, newton_on_face
from attop.solvers.exact.subproblem.guesses import guess_all
from attop.solvers.exact.subproblem.interior import Kernels, interior_point
from attop.solvers.exact.subproblem.moves import move_pairs
from attop.solvers.exact.tuning import Tuning
from attop.solvers.limits import UNLIMITED, Limits

#: Entries that the pair moves of one call may go through, some tens of milliseconds of them, and
#: what the number of these moves is a multiple of: moves by turns go on as if in one call.
CALL, EVEN = 2**23, 256
#: Pair moves of a batch where batches are counted.
_COUNTED = 16
#: By this factor the ridge of Newton's method grows where its moves go too far.
_STIFFER = 100.0
#: Where faces need a larger ridge, guesses of what is free would run in circles.
_SOFT = 1e-8


def solve_subproblem(
    block: Block,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    tolerance: float,
    tuning: Tuning,
    lift: float = 0.0,
    most: int | None = None,
    limits: Limits = UNLIMITED,
    enough: Callable[[Block, Group], bool] | None = None,
    whole: bool = False,
) -> tuple[Group, int, int, int]:
    """Maximise the dual over the block, in place.

    Parameters
    ----------
    block, group, terms : Block, Group, Terms
        The subproblem.
    betas : BetaTerms
        What the betas may be and cost.
    norm2_outside : float
        ``|beta|^2`` of the betas outside the block, where the norm has a price.
    tolerance : float
        Largest violation of optimality that may remain.
    tuning : Tuning
        How often the methods take turns.
    lift : float
        The constant that the kernel of the block lacks.
    most : int, optional
        Batches of pair moves, and other turns, that may be taken.
    limits : Limits
        How much time there is.
    enough : callable, optional
        Says whether a point does, whatever violation remains; asked where more would be costly.
    whole : bool
        Whether the block has all variables there are, and may be solved by guesses.

    Returns
    -------
    group : Group
        The group at the solution.
    steps, turns, batches : int
        Pair moves taken, turns to the interior-point method, and what `most` bounds.
    """
    # As many pair moves (each O(b)) as cost what the interior-point method (O(b^3)) would.
    budget = 200 + 4 * len(block.value) + len(block.value) ** 2 // 60
    total = turns = since = batches = 0
    # With the price of the norm a guess solves for no more than one step to the optimum.
    n_faces, guessing = 0, whole and not betas.norm_price
    ridge, faces = LEAST_RIDGE, len(block.value) >= tuning.face_from
    while turns < tuning.turns and batches != most:
        n_free = int(np.count_nonzero((block.rise > 0.0) & (block.fall > 0.0))) if faces else 0
        faces = faces and n_free <= tuning.face_up_to
        least = max(tuning.before_face, n_free // 2, _as_costly(block, n_free, tuning))
        batch = min(budget, least) if faces else budget
        if most is not None:  # who counts them wants to stop in time
            batch = min(batch, _COUNTED)
        group, steps = _pair_moves(
            block, group, terms, betas, norm2_outside, tolerance, batch, limits
        )
        total += steps
        since += steps
        batches += 1
        if steps < batch or batches == most:
            break
        batches += 1
        look = enough if n_free >= tuning.look_from else None
        if look is not None and look(block, group):
            break
        if faces and since < budget:
            n_faces += 1
            guessed = None
            if guessing and n_faces > tuning.faces and ridge <= _SOFT:
                guessed = with_one_blas_thread(
                    guess_all, block, group, terms, betas, lift, tolerance, limits
                )
                guessing = guessed is not None  # as they may fail again
            if guessed is not None:
                group = guessed
            else:
                numbers = lift, betas.norm_price, norm2_outside
                group, ridge = _to_face(block, group, terms, numbers, ridge)
            if look is not None and look(block, group):
                break
            continue
        turns, since = turns + 1, 0
        kernels = Kernels(block.kernel)
        found = interior_point(
            block, kernels, group, terms, betas, norm2_outside, tuning, limits=limits
        )
        if found is None:  # nor would more pair moves get far
            break
        group = found
    return group, total, turns, batches


def _as_costly(block: Block, n_free: int, tuning: Tuning) -> int:
    """How many pair moves cost what one step to a face does, which has a row for each sample."""
    order = n_free
    if n_free > tuning.before_face:  # otherwise it does not matter
        order = len(np.unique(block.sample[(block.rise > 0.0) & (block.fall > 0.0)]))
    return int(order**3 / tuning.face_products / max(len(block.value), 1))


def _to_face(
    block: Block, group: Group, terms: Terms, numbers: tuple[float, float, float], ridge: float
) -> tuple[Group, float]:
    """All free variables moved to the optimum of their face: the group, and the next ridge.

    (Up to three ridges in a row: 400 to 1,000 samples 1.02 to 1.1 times as long.)
    """
    group, gained = with_one_blas_thread(  # several would wait for each other
        newton_on_face, block, group, terms, *numbers, ridge
    )
    if gained:
        return group, max(ridge / _STIFFER, LEAST_RIDGE)
    return group, min(ridge * _STIFFER, 1.0)  # after more pair moves, which change the face


def _pair_moves(
    block: Block,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    tolerance: float,
    budget: int,
    limits: Limits,
) -> tuple[Group, int]:
    """At most `budget` pair moves: the group, and how many there were, fewer if that is the end.

    They come in calls that are short enough for an interrupt to be seen in between.
    """
    total, most = 0, max(1, CALL // (EVEN * len(block.value))) * EVEN
    while total < budget:
        limit = min(most, budget - total)
        group, steps, _ = move_pairs(
            block, group, terms, tolerance, limit, betas.norm_price, norm2_outside
        )
        total += steps
        if steps < limit or limits.out_of_time():
            break
    return group, total
