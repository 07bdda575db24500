"""Solves the subproblem on a block: pair moves, and an interior-point method where they creep."""

from __future__ import annotations

from attop.families.base import BetaTerms, Cap
from attop.solvers.exact.subproblem.block import Block, Group, Terms
from attop.solvers.exact.subproblem.interior import Kernels, interior_point
from attop.solvers.exact.subproblem.norm import solve_norm
from attop.solvers.exact.subproblem.pairs import solve_pairs
from attop.solvers.exact.subproblem.tied import solve_tied
from attop.solvers.exact.tuning import Tuning

#: Entries that the pair moves of one call may go through, some tens of milliseconds of them, and
#: what the number of these moves is a multiple of: moves by turns go on as if in one call.
CALL, EVEN = 2**23, 256


def solve_subproblem(
    block: Block,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    tolerance: float,
    tuning: Tuning,
) -> tuple[Group, int, int]:
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
        How often pair moves and the interior-point method take turns.

    Returns
    -------
    group : Group
        The group at the solution.
    steps, turns : int
        Pair moves taken, and turns to the interior-point method.
    """
    # As many pair moves (each O(b)) as cost what the interior-point method (O(b^3)) would.
    budget = 200 + 4 * len(block.value) + len(block.value) ** 2 // 60
    total = turns = 0
    kernels = Kernels(block.kernel)
    while turns < tuning.turns:
        group, steps = _pair_moves(block, group, terms, betas, norm2_outside, tolerance, budget)
        total += steps
        if steps < budget:
            break
        turns += 1
        found = interior_point(block, kernels, group, terms, betas, norm2_outside, tuning)
        if found is None:  # nor would more pair moves get far
            break
        group = found
    return group, total, turns


def _pair_moves(
    block: Block,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    tolerance: float,
    budget: int,
) -> tuple[Group, int]:
    """At most `budget` pair moves: the group, and how many there were, fewer if it is solved.

    They come in calls that are short enough for an interrupt to be seen in between.
    """
    total, most = 0, max(1, CALL // (EVEN * len(block.value))) * EVEN
    while total < budget:
        limit = min(most, budget - total)
        if betas.norm_price:
            steps, _ = solve_norm(block, norm2_outside, terms, tolerance, limit)
        elif betas.cap is Cap.TIED:
            at_cap, steps, _ = solve_tied(block, group, terms, tolerance, limit)
            group = Group(*at_cap)
        else:
            at_cap, steps, _ = solve_pairs(block, group, terms, tolerance, limit)
            group = Group(*at_cap)
        total += steps
        if steps < limit:
            break
    return group, total
