"""Comparing several methods over several data sets: ranks, tests, groups.

The protocol is that of Demsar, "Statistical comparisons of classifiers over multiple data
sets" (2006): rank the methods on every data set, ask by the Friedman test whether they
differ at all, and if so, which pairs differ, by the Nemenyi test on the average ranks or
by the Wilcoxon signed-rank test with Holm's correction.

Two methods are also compared by the Bayesian signed-rank test, which says how probable it is that
one of them is better in practice, or that they are equivalent.

Scores are a table with a row for each data set (or data set and seed) and a column for
each method; higher is better, and rank 1 is the best.
"""

from attop.statistics._bayesian import SignedRankPosterior, bayesian_signed_rank_test
from attop.statistics._ranks import (
    Comparison,
    FriedmanResult,
    average_ranks,
    compare,
    friedman_test,
    holm_correction,
    indistinct_groups,
    nemenyi_critical_difference,
    nemenyi_test,
    wilcoxon_holm_test,
)

__all__ = [
    "Comparison",
    "FriedmanResult",
    "SignedRankPosterior",
    "average_ranks",
    "bayesian_signed_rank_test",
    "compare",
    "friedman_test",
    "holm_correction",
    "indistinct_groups",
    "nemenyi_critical_difference",
    "nemenyi_test",
    "wilcoxon_holm_test",
]
