"""Statistics: the published example, agreement with others, and properties of ranks."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import friedmanchisquare, rankdata

from attop.statistics import (
    average_ranks,
    compare,
    friedman_test,
    holm_correction,
    indistinct_groups,
    nemenyi_critical_difference,
    nemenyi_test,
    wilcoxon_holm_test,
)

#: Ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf by AUC on 14 data sets, with the average ranks
#: that Demsar (2006) publishes: 3.143, 2.000, 2.893 and 1.964.
PUBLISHED_RANKS = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
PUBLISHED = 10 - PUBLISHED_RANKS  # scores that are ranked so
METHODS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def random_scores(n_datasets=12, n_methods=5, decimals=None, seed=0):
    """Scores of methods that differ, with ties when rounded."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_datasets, n_methods)) + 0.8 * np.arange(n_methods)
    return scores if decimals is None else scores.round(decimals)


def test_published_example_of_demsar():
    assert average_ranks(PUBLISHED) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    friedman = friedman_test(PUBLISHED, tie_correction=False)
    assert friedman.chi2 == pytest.approx(9.28, abs=5e-3)
    assert friedman.f == pytest.approx(3.69, abs=5e-3)
    # "the critical value of F(3, 39) for alpha = 0.05 is 2.85, so we reject"
    assert friedman.f_pvalue < 0.05
    assert nemenyi_critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert nemenyi_critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=5e-3)


@pytest.mark.parametrize(
    ("n_methods", "q05", "q10"),
    [
        (2, 1.960, 1.645),
        (3, 2.343, 2.052),
        (4, 2.569, 2.291),
        (5, 2.728, 2.459),
        (10, 3.164, 2.920),
    ],
)
def test_critical_values_are_those_of_the_published_table(n_methods, q05, q10):
    unit = np.sqrt(n_methods * (n_methods + 1) / 6)  # one data set
    for alpha, q in ((0.05, q05), (0.10, q10)):
        difference = nemenyi_critical_difference(n_methods, 1, alpha=alpha)
        assert difference / unit == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize("decimals", [None, 0])
def test_friedman_agrees_with_scipy(decimals):
    scores = random_scores(decimals=decimals)
    expected = friedmanchisquare(*scores.T)
    ours = friedman_test(scores)
    assert (ours.chi2, ours.chi2_pvalue) == pytest.approx(tuple(expected))


def scikit_posthocs():
    """The package, whose import may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("scikit_posthocs")


@pytest.mark.parametrize("scores", [PUBLISHED, random_scores(), random_scores(decimals=0)])
def test_nemenyi_agrees_with_scikit_posthocs(scores):
    expected = scikit_posthocs().posthoc_nemenyi_friedman(scores).to_numpy()
    assert nemenyi_test(scores) == pytest.approx(expected, abs=1e-7)


def test_wilcoxon_holm_agrees_with_scikit_posthocs():
    scores = random_scores()
    n_datasets, n_methods = scores.shape
    values = scores.T.ravel()
    groups = np.repeat(np.arange(n_methods), n_datasets)
    frame = pd.DataFrame({"value": values, "method": groups})
    expected = scikit_posthocs().posthoc_wilcoxon(
        frame, val_col="value", group_col="method", p_adjust="holm"
    )
    assert wilcoxon_holm_test(scores) == pytest.approx(expected.to_numpy())


def test_nemenyi_p_value_is_alpha_at_the_critical_difference():
    scores = random_scores(n_datasets=9, n_methods=6)
    ranks, pvalues = average_ranks(scores), nemenyi_test(scores)
    for alpha in (0.01, 0.05, 0.1, 0.5):
        far = np.abs(ranks[:, None] - ranks) >= nemenyi_critical_difference(6, 9, alpha=alpha)
        assert np.array_equal(far, pvalues <= alpha)


TABLES = arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(2, 6)),
    elements=st.integers(0, 4).map(float),
)


@settings(max_examples=50, deadline=None)
@given(TABLES)
def test_ranks_ignore_the_scale_and_follow_the_order(scores):
    n_methods = scores.shape[1]
    ranks = average_ranks(scores)
    assert ranks.sum() == pytest.approx(n_methods * (n_methods + 1) / 2)
    # Only the order on each data set counts, ...
    assert average_ranks(np.exp(scores)) == pytest.approx(ranks)
    # ... turning it round turns the ranks round, ...
    assert average_ranks(-scores) == pytest.approx(n_methods + 1 - ranks)
    # ... and a method that is better everywhere is ranked first.
    best = np.c_[scores, scores.max(axis=1) + 1]
    assert average_ranks(best)[-1] == 1


@settings(max_examples=50, deadline=None)
@given(TABLES)
def test_friedman_is_symmetric_and_the_correction_only_sharpens(scores):
    corrected, plain = friedman_test(scores), friedman_test(scores, tie_correction=False)
    assert corrected.chi2 >= plain.chi2 - 1e-12
    assert 0 <= corrected.f_pvalue <= 1
    shuffled = scores[::-1, ::-1]
    assert friedman_test(shuffled).chi2 == pytest.approx(corrected.chi2)
    if (np.sort(scores, axis=1)[:, 1:] > np.sort(scores, axis=1)[:, :-1]).all():
        assert corrected.chi2 == pytest.approx(plain.chi2)


def test_methods_that_are_the_same_everywhere_do_not_differ():
    scores = np.repeat(np.arange(6.0)[:, None], 3, axis=1)
    assert friedman_test(scores).f_pvalue == 1
    assert (wilcoxon_holm_test(scores) == 1).all()
    assert compare(scores).groups == [(0, 1, 2)]


def test_methods_in_the_same_order_everywhere_differ():
    scores = np.arange(4.0) + np.arange(10.0)[:, None]
    friedman = friedman_test(scores)
    assert friedman.chi2 == pytest.approx(30)  # N (k - 1), the largest possible
    assert friedman.f == np.inf and friedman.f_pvalue == 0
    assert average_ranks(scores).tolist() == [4, 3, 2, 1]


def test_holm_by_hand():
    # 0.01 x 4; 0.02 x 3; 0.03 x 2 is raised to the one before; 0.5 x 1
    assert holm_correction([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm_correction([0.7, 0.9]) == pytest.approx([1.0, 1.0])


def test_groups_by_hand():
    ranks = np.array([1.0, 4.0, 2.0, 3.0, 6.0])
    different = np.abs(ranks[:, None] - ranks) >= 1.5
    assert indistinct_groups(ranks, different) == [(0, 2), (2, 3), (3, 1)]
    different = np.abs(ranks[:, None] - ranks) >= 2.5
    assert indistinct_groups(ranks, different) == [(0, 2, 3), (2, 3, 1), (1, 4)]
    assert indistinct_groups(ranks, ranks[:, None] != ranks) == []


def test_a_group_may_leave_out_a_method_between():
    different = np.zeros((3, 3), dtype=bool)
    different[0, 1] = different[1, 0] = True
    assert indistinct_groups([1.0, 2.0, 3.0], different) == [(0, 2), (1, 2)]


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_groups_are_exactly_the_maximal_cliques(n_methods, seed):
    rng = np.random.default_rng(seed)
    different = np.triu(rng.random((n_methods, n_methods)) < 0.5, 1)
    different |= different.T
    ranks = rankdata(rng.random(n_methods))
    found = {frozenset(group) for group in indistinct_groups(ranks, different)}
    subsets = [
        frozenset(i for i in range(n_methods) if code >> i & 1) for code in range(2**n_methods)
    ]
    cliques = [s for s in subsets if not different[np.ix_(sorted(s), sorted(s))].any()]
    assert found == {c for c in cliques if len(c) > 1 and not any(c < other for other in cliques)}


def test_compare_gathers_the_published_example():
    comparison = compare(pd.DataFrame(PUBLISHED, columns=METHODS))
    assert comparison.names == tuple(METHODS)
    assert comparison.n_datasets == 14
    assert comparison.critical_difference == pytest.approx(1.25, abs=5e-3)
    # No pair is 1.25 apart: at 0.05 the Nemenyi test cannot tell any from another.
    assert comparison.groups == [(3, 1, 2, 0)]
    assert compare(PUBLISHED, METHODS, alpha=0.1).groups == [(3, 1, 2), (2, 0)]


def test_compare_does_not_look_for_pairs_where_friedman_sees_nothing():
    comparison = compare(np.eye(3, 4))
    assert comparison.friedman.f_pvalue > comparison.alpha
    assert len(comparison.groups) == 1 and len(comparison.groups[0]) == 4


def test_compare_by_wilcoxon():
    comparison = compare(random_scores(n_datasets=40), test="wilcoxon-holm")
    assert comparison.critical_difference is None
    different = comparison.pvalues <= 0.05
    assert different.any()
    assert all(not different[np.ix_(group, group)].any() for group in comparison.groups)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], "a row for each data set"),
        ([[1.0], [2.0]], r"at least two methods \(columns\). Got 1 instead"),
        ([[1.0, 2.0]], r"at least two data sets \(rows\). Got 1 instead"),
        ([[1.0, 2.0], [np.nan, 1.0]], "Got nan for data set 1 and method 0"),
        (
            pd.DataFrame({"A": [1.0, 2.0], "B": [np.nan, np.nan]}, index=["MNIST", "SVHN2"]),
            "Got nan for data set 'MNIST' and method 'B'",
        ),
    ],
)
@pytest.mark.parametrize(
    "function", [average_ranks, friedman_test, nemenyi_test, wilcoxon_holm_test, compare]
)
def test_bad_scores_are_named(function, scores, message):
    with pytest.raises(ValueError, match=f"of {function.__name__} must.*{message}"):
        function(scores)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: compare(PUBLISHED, alpha=1.5),
            r"'alpha' parameter of compare must be in \(0, 1\)",
        ),
        (lambda: compare(PUBLISHED, test="t"), "'test' parameter of compare must be one of"),
        (lambda: compare(PUBLISHED, ["A"]), "must hold 4 names.* Got 1 instead"),
        (lambda: nemenyi_critical_difference(1, 5), "'n_methods' parameter of .* at least 2"),
        (lambda: nemenyi_critical_difference(3, 0), "'n_datasets' parameter of .* at least 1"),
    ],
)
def test_bad_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
