"""The coordinate descent of the paper, as it is described there.

A step takes a random dual variable, finds for every other one the best step of the two
in closed form, and makes the best of these.  The method is kept for comparison with the
paper.  It has a known shortcoming: where several betas sit at their common cap, no move
of two variables improves the dual although better points exist, so that with ``K >= 2``,
and for Pat&Mat with the hinge, it can stop short of the optimum.  The solver ``"exact"``
does not.
"""

from attop.solvers.pairwise.descent import solve

__all__ = ["solve"]
