"""The default solver: blocks of kernel columns, exact subproblems, a certified gap.

* `driver`: columns, rounds, and the certificate at their end, in single and then in double
  precision; `forecast`: how long the rest will take;
* `rounds`: the rounds on all samples or a part; `start`, `parts`: where to begin, and on which
  samples; `working_set`: which variables to solve for next;
* `state`: dual variables, scores with what went into them, the group of betas at the cap;
* `reach`, `anchor`, `reference`: scores of samples far from the threshold, by interpolation;
* `subproblem`: one block, by `pairs`, `tied`, `norm` (compiled, one for each family of duals) and
  by `interior` with its `hessians`.
"""

from attop.kernels.stores import open_columns
from attop.solvers.exact.driver import solve

__all__ = ["open_columns", "solve"]
