"""The families of duals: which threshold the competitors make, and what that does to the betas.

A family is one file.  It says, for the threshold ``t`` of its formulations,

* to the primal: ``t`` itself, from which score on a competitor matters, and its slopes;
* to the dual: what the betas may be and what they cost, as `BetaTerms`, numbers that all
  solvers understand, so that no solver knows a family by name;
* to both: what a smaller problem of the same kind is, and where a fit may begin.

==================  ===========================================  ==================================
file                threshold                                    betas
==================  ===========================================  ==================================
largest             largest score                                free
top_mean            mean of the K largest scores                 at most ``sum(alpha) / K``
quantile_hinge      root of ``sum l(theta (s - t)) = budget``    under a cap that has a price
quantile_quadratic  the same with the quadratic hinge            their norm has a price
fixed_cap           the best there is, all classes having losses as the alphas are
==================  ===========================================  ==================================

A new family is a subclass of `Family` and a formulation that uses it.
"""

from attop.families.base import BetaTerms, Cap, Family
from attop.families.fixed_cap import FixedCap
from attop.families.largest import Largest
from attop.families.quantile_hinge import QuantileHinge
from attop.families.quantile_quadratic import QuantileQuadratic, quantile_of
from attop.families.top_mean import TopMean, mean_of_largest

__all__ = [
    "BetaTerms",
    "Cap",
    "Family",
    "FixedCap",
    "Largest",
    "QuantileHinge",
    "QuantileQuadratic",
    "TopMean",
    "mean_of_largest",
    "quantile_of",
]
