"""Ranks of several methods over several data sets, and the tests of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

POST_HOC_TESTS = ("nemenyi", "wilcoxon-holm")


class FriedmanResult(NamedTuple):
    """Outcome of the Friedman test.

    ``chi2`` and ``chi2_pvalue`` are Friedman's statistic with ``k - 1`` degrees of freedom;
    ``f`` and ``f_pvalue`` the less conservative one of Iman and Davenport, with ``k - 1``
    and ``(k - 1) (N - 1)`` degrees of freedom, for k methods on N data sets.
    """

    chi2: float
    chi2_pvalue: float
    f: float
    f_pvalue: float


class Comparison(NamedTuple):
    """Several methods compared over several data sets; see `compare`."""

    names: tuple[str, ...]
    ranks: NDArray[np.float64]
    n_datasets: int
    alpha: float
    friedman: FriedmanResult
    test: str
    pvalues: NDArray[np.float64]
    critical_difference: float | None
    groups: list[tuple[int, ...]]


def average_ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Average rank of each method over the data sets; tied methods share their ranks.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Scores, higher is better.

    Returns
    -------
    ndarray of shape (n_methods,)
        Average ranks between 1 (best everywhere) and ``n_methods``.

    Examples
    --------
    >>> from attop.statistics import average_ranks
    >>> average_ranks([[0.9, 0.8, 0.7], [0.5, 0.5, 0.4]])
    array([1.25, 1.75, 3.  ])
    """
    return stats.rankdata(-_check_scores(scores, "average_ranks"), axis=1).mean(axis=0)


def friedman_test(scores: ArrayLike, *, tie_correction: bool = True) -> FriedmanResult:
    """Friedman test of the hypothesis that all methods perform alike.

    With average ranks ``R_j`` of k methods on N data sets::

        chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4)
        f = (N - 1) chi2 / (N (k - 1) - chi2)

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Scores, higher is better.
    tie_correction : bool, default=True
        Divide chi2 by ``1 - sum(t^3 - t) / (N (k^3 - k))``, t the sizes of the ties.
        False gives the formula as Demsar (2006) prints and uses it, which is too careful
        where there are many ties.

    Returns
    -------
    FriedmanResult
        Both statistics and their p-values.
    """
    table = _check_scores(scores, "friedman_test")
    n, k = table.shape
    ranks = stats.rankdata(-table, axis=1)
    # The variance of all ranks about their mean carries the correction for ties.
    spread = np.sum((ranks - (k + 1) / 2) ** 2) if tie_correction else n * k * (k**2 - 1) / 12
    if spread == 0.0:  # every method is the same everywhere
        return FriedmanResult(0.0, 1.0, 0.0, 1.0)
    between = n * np.sum((ranks.mean(axis=0) - (k + 1) / 2) ** 2)
    chi2 = float(n * (k - 1) * between / spread)
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-12 * chi2 else np.inf
    return FriedmanResult(
        chi2,
        float(stats.chi2.sf(chi2, k - 1)),
        float(f),
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
    )


def nemenyi_critical_difference(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Least difference of average ranks that the Nemenyi test calls significant.

    ``q sqrt(k (k + 1) / (6 N))`` for k methods on N data sets, q the upper alpha quantile of
    the studentized range of k groups with infinite degrees of freedom, divided by sqrt(2).

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers of methods and of data sets.
    alpha : float, default=0.05
        Level of significance.

    Returns
    -------
    float
        The critical difference.

    Examples
    --------
    >>> from attop.statistics import nemenyi_critical_difference
    >>> round(nemenyi_critical_difference(4, 14), 2)
    1.25
    """
    owner = "nemenyi_critical_difference"
    _check_alpha(alpha, owner)
    for name, value, least in (("n_methods", n_methods, 2), ("n_datasets", n_datasets, 1)):
        if value != int(value) or value < least:
            raise ValueError(
                f"The '{name}' parameter of {owner} must be an integer of at least {least}. "
                f"Got {value!r} instead."
            )
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * _standard_error(n_methods, n_datasets))


def nemenyi_test(scores: ArrayLike) -> NDArray[np.float64]:
    """P-values of the Nemenyi test for every pair of methods.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Scores, higher is better.

    Returns
    -------
    ndarray of shape (n_methods, n_methods)
        Symmetric, with ones on the diagonal; already corrected for the number of methods.
    """
    table = _check_scores(scores, "nemenyi_test")
    n, k = table.shape
    ranks = average_ranks(table)
    i, j = np.triu_indices(k, 1)
    distances = np.abs(ranks[i] - ranks[j]) / _standard_error(k, n)
    pvalues = np.ones((k, k))
    pvalues[i, j] = stats.studentized_range.sf(distances * np.sqrt(2), k, np.inf).clip(0.0, 1.0)
    pvalues[j, i] = pvalues[i, j]
    return pvalues


def wilcoxon_holm_test(scores: ArrayLike) -> NDArray[np.float64]:
    """P-values of the Wilcoxon signed-rank test for every pair, with Holm's correction.

    Unlike Nemenyi's, the verdict on a pair does not depend on how the other methods
    perform, only on how many pairs there are.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Scores, higher is better.

    Returns
    -------
    ndarray of shape (n_methods, n_methods)
        Symmetric, with ones on the diagonal; corrected for the number of pairs.
    """
    table = _check_scores(scores, "wilcoxon_holm_test")
    k = table.shape[1]
    pairs = list(combinations(range(k), 2))
    corrected = holm_correction([_wilcoxon_pvalue(table[:, i], table[:, j]) for i, j in pairs])
    pvalues = np.ones((k, k))
    for (i, j), pvalue in zip(pairs, corrected):
        pvalues[i, j] = pvalues[j, i] = pvalue
    return pvalues


def _wilcoxon_pvalue(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Two-sided p-value; methods that are the same everywhere do not differ."""
    if np.array_equal(a, b):
        return 1.0
    return float(stats.wilcoxon(a, b).pvalue)


def holm_correction(pvalues: ArrayLike) -> NDArray[np.float64]:
    """P-values corrected by Holm's step-down procedure for the number of tests.

    The i-th smallest of m p-values is multiplied by ``m - i + 1``, then each is raised to
    the largest of those before it.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        P-values of the single tests.

    Returns
    -------
    ndarray of shape (n_tests,)
        Corrected p-values, in the given order.
    """
    given = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(given)
    factors = np.arange(len(given), 0, -1)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return corrected


def indistinct_groups(ranks: ArrayLike, different: ArrayLike) -> list[tuple[int, ...]]:
    """Largest groups of methods no two of which differ significantly.

    For the Nemenyi test, where two methods differ if their ranks are far enough apart, each
    group is a run of neighbours in rank.  For other tests it may leave out a method between.

    Parameters
    ----------
    ranks : array-like of shape (n_methods,)
        Average ranks; they only decide the order of the answer.
    different : array-like of bool of shape (n_methods, n_methods)
        Which pairs differ significantly; symmetric.

    Returns
    -------
    list of tuple of int
        Columns of the methods of each group of two or more, best first; the maximal cliques
        of the graph that joins methods which do not differ.
    """
    order = np.argsort(np.asarray(ranks, dtype=np.float64), kind="stable")
    joined = ~np.asarray(different, dtype=bool)[np.ix_(order, order)]
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(joined)]
    cliques = _maximal_cliques(set(), set(range(len(order))), set(), neighbours)
    found = sorted(tuple(sorted(clique)) for clique in cliques if len(clique) > 1)
    return [tuple(int(order[i]) for i in clique) for clique in found]


def _maximal_cliques(
    clique: set[int], candidates: set[int], done: set[int], neighbours: list[set[int]]
) -> list[set[int]]:
    """Maximal cliques that extend `clique` by `candidates`: Bron and Kerbosch with a pivot."""
    if not candidates:
        return [] if done else [clique]
    pivot = max(candidates | done, key=lambda i: len(neighbours[i] & candidates))
    found = []
    for i in sorted(candidates - neighbours[pivot]):
        found += _maximal_cliques(
            clique | {i}, candidates & neighbours[i], done & neighbours[i], neighbours
        )
        candidates = candidates - {i}
        done = done | {i}
    return found


def compare(
    scores: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    alpha: float = 0.05,
    test: str = "nemenyi",
) -> Comparison:
    """Compare methods over data sets: ranks, Friedman test, post-hoc test and groups.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Scores, higher is better.
    names : sequence of str, default=None
        Names of the methods; by default the columns of a DataFrame, else 0, 1, ...
    alpha : float, default=0.05
        Level of significance.
    test : {"nemenyi", "wilcoxon-holm"}, default="nemenyi"
        The post-hoc test.

    Returns
    -------
    Comparison
        With names, ranks, the Friedman test, p-values of all pairs, the critical difference
        (None for Wilcoxon-Holm) and the groups of methods that do not differ.  Where the
        Friedman test (Iman and Davenport) does not reject at `alpha`, all methods are one
        group: the post-hoc test is not asked.

    Examples
    --------
    >>> from attop.statistics import compare
    >>> scores = [[0.9, 0.8, 0.1], [0.8, 0.9, 0.2], [0.9, 0.7, 0.3], [0.6, 0.8, 0.4]]
    >>> compare(scores, ["A", "B", "C"]).ranks
    array([1.5, 1.5, 3. ])
    """
    if test not in POST_HOC_TESTS:
        raise ValueError(
            f"The 'test' parameter of compare must be one of {POST_HOC_TESTS}. "
            f"Got {test!r} instead."
        )
    _check_alpha(alpha, "compare")
    table = _check_scores(scores, "compare")
    n, k = table.shape
    ranks, friedman = average_ranks(table), friedman_test(table)
    if test == "nemenyi":
        cd = nemenyi_critical_difference(k, n, alpha=alpha)
        pvalues, different = nemenyi_test(table), np.abs(ranks[:, None] - ranks) >= cd
    else:
        cd, pvalues = None, wilcoxon_holm_test(table)
        different = pvalues <= alpha
    if friedman.f_pvalue > alpha:
        different = np.zeros((k, k), dtype=bool)
    groups = indistinct_groups(ranks, different)
    return Comparison(
        _names(scores, names, k), ranks, n, alpha, friedman, test, pvalues, cd, groups
    )


def _names(scores: Any, names: Sequence[str] | None, n_methods: int) -> tuple[str, ...]:
    chosen = _labels(scores, "columns", n_methods) if names is None else list(names)
    if len(chosen) != n_methods:
        raise ValueError(
            f"The 'names' parameter of compare must hold {n_methods} names, one for each method. "
            f"Got {len(chosen)} instead."
        )
    return tuple(str(name) for name in chosen)


def _labels(table: Any, axis: str, length: int) -> list[Any]:
    """Labels of the rows ("index") or "columns" of a DataFrame, else 0, 1, ..."""
    return list(getattr(table, axis)) if hasattr(table, "columns") else list(range(length))


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Standard deviation of a difference of two average ranks when all methods are alike."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets)))


def _check_alpha(alpha: float, owner: str) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(
            f"The 'alpha' parameter of {owner} must be in (0, 1). Got {alpha!r} instead."
        )


def _check_scores(scores: Any, owner: str) -> NDArray[np.float64]:
    """`scores` as a table of finite numbers with at least two rows and columns."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(
            f"The 'scores' parameter of {owner} must be a table with a row for each data set and "
            f"a column for each method. Got an array of shape {table.shape} instead."
        )
    for number, what in zip(table.shape, ("data sets (rows)", "methods (columns)")):
        if number < 2:
            raise ValueError(
                f"The 'scores' parameter of {owner} must hold at least two {what}. "
                f"Got {number} instead."
            )
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        dataset = _labels(scores, "index", table.shape[0])[row]
        method = _labels(scores, "columns", table.shape[1])[column]
        raise ValueError(
            f"The 'scores' parameter of {owner} must be finite. Got {table[row, column]} for "
            f"data set {dataset!r} and method {method!r} instead; leave out the data "
            "sets on which a method has no score."
        )
    return table
