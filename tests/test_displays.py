"""Displays show what the metrics say, and stay readable."""

import subprocess
import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.tree import DecisionTreeClassifier

from attop.calibration import neyman_pearson_bands
from attop.metrics import positives_at_top
from attop.plotting import ScoreDistributionDisplay, TopROCDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DISPLAYS = [TopROCDisplay, ScoreDistributionDisplay]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=600, weights=[0.9], flip_y=0.03, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def x_on_screen(artist):
    """Horizontal place of a one-point line, in pixels."""
    artist.figure.canvas.draw()
    return artist.get_transform().transform(artist.get_xydata())[0, 0]


def left_edge(ax):
    return ax.transAxes.transform((0, 0))[0]


def test_matplotlib_is_imported_only_to_draw():
    code = "import attop.plotting, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib_the_error_names_the_extra(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "attop\[plot\]"'):
        display.from_predictions([0, 1], [1.0, 2.0])


@pytest.mark.parametrize("display", DISPLAYS)
def test_drawing_on_a_given_axis_and_on_a_new_figure(display, model, data):
    X, y = data
    own = display.from_estimator(model, X, y)
    assert own.figure_ is own.ax_.figure
    figure, ax = plt.subplots()
    again = display.from_predictions(y, model.decision_function(X), ax=ax)
    assert again.ax_ is ax and again.figure_ is figure
    assert again.plot(ax=ax) is again
    figure.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS)
def test_bad_input_is_refused_with_a_reason(display, model, data):
    X, y = data
    with pytest.raises(ValueError, match=r"The 'threshold' parameter of \w+ must be .* Got 'x'"):
        display.from_estimator(model, X, y, threshold="x")
    with pytest.raises(ValueError, match=r"a finite number or None. Got 'auto' instead"):
        display.from_predictions(y, X[:, 0], threshold="auto")
    with pytest.raises(ValueError, match=r"'pos_label' .* must be one of \[0, 1\]. Got 3"):
        display.from_estimator(model, X, y, pos_label=3)
    with pytest.raises(ValueError, match="needs a binary classifier"):
        display.from_estimator(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="no positive samples"):
        display.from_predictions(np.zeros(3), [1, 2, 3])


@pytest.mark.parametrize("seed", range(5))
def test_roc_height_is_the_best_rate_within_the_false_positive_rate(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [50, 20])
    s = np.round(rng.normal(size=70) + y, 1)  # with ties
    line = TopROCDisplay.from_predictions(y, s).line_
    assert line.get_drawstyle() == "steps-post"
    x, height = line.get_data()
    thresholds = [*np.unique(s), np.inf]
    for fpr in (0.0, 0.02, 0.05, 0.3, 1.0):
        allowed = [np.mean(s[y == 1] >= t) for t in thresholds if np.mean(s[y == 0] >= t) <= fpr]
        drawn = height[x <= max(fpr, 1e-100)].max()
        assert drawn == pytest.approx(max(allowed))
    assert height[x < 1 / 50][-1] == pytest.approx(positives_at_top(y, s))


def test_roc_marks_what_the_estimator_predicts(model, data):
    X, y = data
    display = TopROCDisplay.from_estimator(model, X, y)
    predicted = model.predict(X)
    expected = predicted[y == 0].mean(), predicted[y == 1].mean()
    assert display.operating_point == pytest.approx(expected)
    np.testing.assert_allclose(display.point_.get_xydata(), [expected])
    assert f"TPR {expected[1]:.2f} at FPR {expected[0]:.2g}" in display.line_.get_label()


def test_roc_marks_a_given_threshold_or_none(model, data):
    X, y = data
    s = model.decision_function(X)
    given = TopROCDisplay.from_estimator(model, X, y, threshold=0.7)
    assert given.operating_point == (np.mean(s[y == 0] >= 0.7), np.mean(s[y == 1] >= 0.7))
    assert TopROCDisplay.from_predictions(y, s, threshold=0.7).operating_point == (
        given.operating_point
    )
    for without in (
        TopROCDisplay.from_estimator(model, X, y, threshold=None),
        TopROCDisplay.from_predictions(y, s),
    ):
        assert without.operating_point is None and without.point_ is None


def test_roc_bands_are_drawn_in_steps_beside_the_curve(model, data):
    X, y = data
    s = model.decision_function(X)
    expected = neyman_pearson_bands(y, s, confidence=0.9)
    for display in (
        TopROCDisplay.from_estimator(model, X, y, bands=0.9),
        TopROCDisplay.from_predictions(y, s, bands=0.9),
    ):
        np.testing.assert_array_equal(display.bands.tpr_lower, expected.tpr_lower)
        (path,) = display.band_.get_paths()
        for x, lower, upper in zip(*expected[:3]):  # each level begins with its own limits
            drawn = path.vertices[path.vertices[:, 0] == x, 1]
            assert np.isclose(drawn, lower).any() and np.isclose(drawn, upper).any()
        assert path.vertices[:, 0].max() == 1.0
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "NP-ROC band, confidence 0.9" in texts
        display.figure_.canvas.draw()
    weight = np.arange(len(y)) % 4
    weighted = TopROCDisplay.from_predictions(y, s, bands=0.9, sample_weight=weight)
    without = neyman_pearson_bands(y[weight > 0], s[weight > 0], confidence=0.9)
    np.testing.assert_array_equal(weighted.bands.tpr_upper, without.tpr_upper)
    assert TopROCDisplay.from_predictions(y, s).band_ is None
    with pytest.raises(ValueError, match=r"'confidence' parameter .* Got 95 instead"):
        TopROCDisplay.from_predictions(y, s, bands=95)


def test_roc_shows_a_rate_of_zero_at_the_left_edge_even_when_it_moves():
    y, s = np.repeat([0, 1], [50, 10]), np.r_[np.arange(50), np.arange(45, 55)]
    display = TopROCDisplay.from_predictions(y, s, threshold=50)
    assert display.operating_point == (0.0, 0.5)
    assert x_on_screen(display.point_) == pytest.approx(left_edge(display.ax_))
    finer = np.repeat([0, 1], [5000, 10]), np.r_[np.arange(5000) / 100, np.arange(45, 55)]
    TopROCDisplay.from_predictions(*finer, ax=display.ax_)
    assert display.ax_.get_xlim() == (0.5 / 5000, 1.0)
    assert x_on_screen(display.point_) == pytest.approx(left_edge(display.ax_))
    assert display.ax_.get_xticklabels()[0].get_text() == "0"


def test_roc_curves_on_one_axis_differ_in_colour_and_in_dashes(model, data):
    X, y = data
    _, ax = plt.subplots()
    ax.axhline(0.5)  # other things on the axis do not count
    lines = [TopROCDisplay.from_estimator(model, X, y, ax=ax, name=n).line_ for n in "abcd"]
    assert lines[0].get_linestyle() == "-"
    for style in ("color", "linestyle", "marker"):
        assert len({getattr(line, f"get_{style}")() for line in lines}) == 4
    texts = [text.get_text()[0] for text in ax.get_legend().get_texts()]
    assert texts == ["a", "b", "c", "d"]
    own = TopROCDisplay.from_estimator(model, X, y, ax=ax, color="red", linestyle=":")
    assert (own.line_.get_color(), own.line_.get_linestyle()) == ("red", ":")
    assert own.point_.get_color() == "red"


@pytest.mark.parametrize("n_negatives", [2, 7, 50, 51, 300, 501, 5001, 50001])
def test_roc_tick_labels_do_not_overlap(n_negatives):
    y = np.r_[np.zeros(n_negatives), 1, 1]
    display = TopROCDisplay.from_predictions(y, np.arange(n_negatives + 2) % 37)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("display", DISPLAYS)
def test_the_positive_class_may_be_the_first_one(display, data):
    X, y = data
    names = np.where(y == 1, "fraud", "honest")
    first = display.from_estimator(
        LogisticRegression().fit(X, names), X, names, pos_label="fraud", name="m"
    )
    second = display.from_estimator(LogisticRegression().fit(X, y), X, y, name="m")
    labels = [[t.get_text() for t in d.ax_.get_legend().get_texts()] for d in (first, second)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("threshold", [None, 0.3, -100.0])
@pytest.mark.parametrize("log", [True, False])
def test_bars_are_shares_of_each_class_and_none_lies_across_the_threshold(
    threshold, log, model, data
):
    X, y = data
    s = model.decision_function(X)
    display = ScoreDistributionDisplay.from_predictions(y, s, threshold=threshold, log=log, bins=20)
    for patch, scores in ((display.negatives_, s[y == 0]), (display.positives_, s[y == 1])):
        values, edges, _ = patch.get_data()
        assert values.sum() == pytest.approx(1)
        assert len(values) == 20
        if threshold == 0.3:
            above = values[edges[:-1] >= threshold].sum()
            assert above == pytest.approx(np.mean(scores >= threshold))
            assert f"{100 * above:.3g} % called positive" in patch.get_label()
    assert (display.threshold_line_ is None) == (threshold is None)
    assert display.ax_.get_yscale() == ("log" if log else "linear")


def test_every_bar_is_tall_enough_to_be_seen_on_the_logarithmic_axis():
    y = np.r_[np.zeros(20000), 1, 1]
    s = np.r_[np.zeros(19999), 5.0, 4.0, 5.0]  # one negative at the top
    display = ScoreDistributionDisplay.from_predictions(y, s, threshold=3.0)
    bottom = display.ax_.get_ylim()[0]
    values = display.negatives_.get_data().values
    assert values[values > 0].min() >= 2 * bottom


def test_threshold_of_the_estimator_is_zero_or_one_half(model, data):
    X, y = data
    assert ScoreDistributionDisplay.from_estimator(model, X, y).threshold == 0.0
    tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
    assert ScoreDistributionDisplay.from_estimator(tree, X, y).threshold == 0.5
    assert ScoreDistributionDisplay.from_estimator(model, X, y, threshold=None).threshold is None


def picture(display):
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba())


@pytest.mark.parametrize("display", DISPLAYS)
def test_integer_weights_draw_the_picture_of_repeated_rows(display, model, data):
    X, y = data
    w = np.random.default_rng(0).integers(0, 4, size=len(y))
    assert (w == 0).any()
    weighted = display.from_estimator(model, X, y, sample_weight=w)
    repeated = display.from_estimator(model, np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_array_equal(picture(weighted), picture(repeated))
    s = model.decision_function(X)
    for threshold in (None, 0.3):
        weighted = display.from_predictions(y, s, threshold=threshold, sample_weight=w)
        repeated = display.from_predictions(np.repeat(y, w), np.repeat(s, w), threshold=threshold)
        np.testing.assert_array_equal(picture(weighted), picture(repeated))
    unit = display.from_predictions(y, s, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(picture(unit), picture(display.from_predictions(y, s)))


@pytest.mark.parametrize("display", DISPLAYS)
def test_bad_weights_are_refused_with_a_reason(display, model, data):
    X, y = data
    for weight, message in (
        (-1.0, "must not be negative"),
        (np.where(y == 1, 0, 1), "no positive samples"),
        ([1, 2], r"expected \(600,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            display.from_estimator(model, X, y, sample_weight=weight)
        with pytest.raises(ValueError, match=message):
            display.from_predictions(y, X[:, 0], sample_weight=weight)


def test_roc_marks_weighted_rates(model, data):
    X, y = data
    w = np.random.default_rng(1).exponential(size=len(y))
    display = TopROCDisplay.from_estimator(model, X, y, sample_weight=w)
    called = model.predict(X) == 1
    expected = [w[called & (y == c)].sum() / w[y == c].sum() for c in (0, 1)]
    assert display.operating_point == pytest.approx(expected)
    fpr, tpr, _ = roc_curve(y, model.decision_function(X), sample_weight=w)
    assert np.interp(expected[0], fpr, tpr) == pytest.approx(expected[1])
    assert positives_at_top(y, model.decision_function(X), sample_weight=w) == pytest.approx(
        display.tpr[display.fpr == 0].max()
    )


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1.0, 1e6, 1e11, 1e18])
def test_roc_has_room_for_the_smallest_rate_whatever_the_unit_of_weights(unit):
    y, s = np.repeat([0, 1], [50, 10]), np.r_[np.arange(50), np.arange(45, 55)]
    w = unit * np.r_[np.ones(49), 0.01, np.ones(10)]  # the best negative is a hundredth
    display = TopROCDisplay.from_predictions(y, s, sample_weight=w)
    smallest = 0.01 / 49.01
    assert display.fpr[display.fpr > 0].min() == pytest.approx(smallest)
    assert 0 < display.ax_.get_xlim()[0] <= smallest / 2 * (1 + 1e-9)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_bars_are_shares_of_the_weight_and_tall_enough_to_be_seen(model, data):
    X, y = data
    s, w = model.decision_function(X), np.random.default_rng(1).exponential(size=len(y)) / 1000
    w[np.argmax(np.where(y == 0, s, -np.inf))] = 1e-9  # the highest negative
    display = ScoreDistributionDisplay.from_predictions(y, s, threshold=0.3, sample_weight=w)
    for c, patch in enumerate((display.negatives_, display.positives_)):
        values, edges, _ = patch.get_data()
        share = w[(y == c) & (s >= 0.3)].sum() / w[y == c].sum()
        assert values.sum() == pytest.approx(1)
        assert values[edges[:-1] >= 0.3].sum() == pytest.approx(share)
        assert f"{w[y == c].sum():.3g} " in patch.get_label()
        assert f"{100 * share:.3g} % called positive" in patch.get_label()
        assert values[values > 0].min() >= 2 * display.ax_.get_ylim()[0] * (1 - 1e-9)


def test_equal_scores_can_be_drawn():
    for display in DISPLAYS:
        display.from_predictions([0, 1, 0], [2.0, 2.0, 2.0], threshold=2.0).figure_.canvas.draw()


def test_the_number_of_bins_is_checked(data):
    with pytest.raises(ValueError, match="'bins' parameter of ScoreDistributionDisplay must be"):
        ScoreDistributionDisplay.from_predictions(data[1], data[0][:, 0], bins=0)
