"""The default solver: blocks of kernel columns, exact subproblems, a certified gap.

It has three rooms, and a fit walks through them like this (:doc:`/theory/solver`, and
:doc:`/architecture` for the picture):

* `outer`: the loop.  `outer.solve` opens the columns, runs the loop and asks the referee, in single
  and then in double precision; `outer.loop` makes the rounds; `outer.working_set` says which
  variables come next; `outer.state` is the dual point, with its scores and what went into them;
  `outer.whole` solves small problems, with their whole kernel matrix, in one go.
* `subproblem`: one block, exactly.  `subproblem.solve` lets pair moves, Newton's method on faces
  and an interior-point method take turns; `pairs`, `tied` and `norm` are the compiled moves for
  betas without a cap or with a priced one, under a tied cap, and with a price on their norm;
  `face`; `interior` and `hessians`.
* `scaling`: what large problems need.  `scaling.start` and `scaling.parts`: a subsample to begin
  with, and the samples that matter so far; `scaling.keepers`: who keeps the scores of all
  samples, either all of them or, in `scaling.bounded_scores` with `column_sums` and `reference`,
  bounds of those that cannot matter; `scaling.forecast`: how long the rest will take.

`tuning` has the numbers that were found by measuring.
"""

from attop.kernels.stores import open_columns
from attop.solvers.exact.outer.solve import solve
from attop.solvers.exact.tuning import Tuning

__all__ = ["Tuning", "open_columns", "solve"]
