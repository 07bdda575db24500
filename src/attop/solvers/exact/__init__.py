"""The default solver: blocks of kernel columns, exact subproblems, a certified gap.

* `driver`: the rounds, and the certificate at their end;
* `start`: where to begin, by way of a subsample where the problem is large;
* `working_set`: which variables to solve for next;
* `state`: dual variables, scores, the group of betas at the cap;
* `pairs`, `tied`, `norm`: the compiled subproblems of the three families of duals.
"""

from attop.solvers.exact.driver import open_columns, solve

__all__ = ["open_columns", "solve"]
