"""Solves the subproblem on a block: pair moves, and an interior-point method where they creep."""

from __future__ import annotations

import numpy as np

from attop.problem import Family
from attop.solvers.exact.block import Block, Group, Terms
from attop.solvers.exact.interior import Kernels, interior_point
from attop.solvers.exact.norm import solve_norm
from attop.solvers.exact.pairs import solve_pairs
from attop.solvers.exact.tied import solve_tied

#: Pair moves and the interior-point method take turns at most so often.
TURNS = 4


def solve_subproblem(
    block: Block,
    group: Group,
    terms: Terms,
    family: Family,
    norm2_outside: float,
    tolerance: float,
) -> tuple[Group, int]:
    """Maximise the dual over the block, in place.

    Parameters
    ----------
    block, group, terms : Block, Group, Terms
        The subproblem.
    family : Family
        The family of the dual.
    norm2_outside : float
        ``|beta|^2`` of the betas outside the block (`Family.NORM`).
    tolerance : float
        Largest violation of optimality that may remain.

    Returns
    -------
    group : Group
        The group at the solution.
    steps : int
        Pair moves taken.
    """
    # As many pair moves (each O(b)) as cost what the interior-point method (O(b^3)) would.
    budget = 200 + 4 * len(block.value) + len(block.value) ** 2 // 60
    total = 0
    kernels = Kernels(block.kernel)
    for _ in range(TURNS):
        if family == Family.NORM:
            steps, violation = solve_norm(block, norm2_outside, terms, tolerance, budget)
        elif family == Family.TIED_CAP and np.isfinite(group.cap):
            group, steps, violation = solve_tied(block, group, terms, tolerance, budget)
        else:
            group, steps, violation = solve_pairs(block, group, terms, tolerance, budget)
        total += steps
        if violation <= tolerance or steps < budget:
            break
        group = interior_point(block, kernels, group, terms, family, norm2_outside)
    return group, total
