"""Critical difference diagrams: nothing overlaps, and the picture says what the test says."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

from attop.plotting import CriticalDifferenceDisplay
from attop.statistics import compare

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def scores_of(n_methods, n_datasets=20, spread=2.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_datasets, n_methods)) + np.linspace(0, spread, n_methods)


def boxes_of(display):
    """Boxes of all texts, in pixels."""
    display.figure_.canvas.draw()
    texts = [text for text in display.ax_.texts if text.get_text()]
    return {(text.get_text(), i): text.get_window_extent() for i, text in enumerate(texts)}


def assert_readable(display):
    """No two texts overlap, and none leaves the figure."""
    boxes = boxes_of(display)
    for (a, box_a), (b, box_b) in combinations(boxes.items(), 2):
        assert not box_a.padded(-0.5).overlaps(box_b.padded(-0.5)), (a, b)
    width, height = display.figure_.canvas.get_width_height()
    for name, box in boxes.items():
        assert box.x0 >= -0.5 and box.x1 <= width + 0.5, name
        assert box.y0 >= -0.5 and box.y1 <= height + 0.5, name


LONG = "a method with a name that is much longer than a name should ever be"


@pytest.mark.parametrize(
    ("scores", "names"),
    [
        (scores_of(2), ["A", "B"]),
        (scores_of(5), [LONG, "B", "C", "D", f"{LONG}, the other one"]),
        (scores_of(30), [f"method number {i}" for i in range(30)]),
        (np.ones((10, 8)), [f"same {i}" for i in range(8)]),
        (scores_of(4, n_datasets=2), ["few", "data", "sets", "here"]),
        (scores_of(3), ["two\nlines", "$100", "costs $5 and $6"]),
    ],
    ids=["two", "long names", "thirty", "equal ranks", "two data sets", "odd names"],
)
@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon-holm"])
def test_texts_never_overlap(scores, names, test):
    display = CriticalDifferenceDisplay.from_scores(scores, names, test=test, title="TPR at 5 %")
    assert_readable(display)


def test_texts_never_overlap_in_given_axes():
    _, axes = plt.subplots(3, 1, figsize=(5, 6), layout="constrained")
    for n_methods, ax in zip((3, 8, 20), axes):
        names = [f"method number {i}" for i in range(n_methods)]
        display = CriticalDifferenceDisplay.from_scores(scores_of(n_methods), names, ax=ax)
        assert display.ax_ is ax
        assert_readable(display)


def test_a_long_title_fits():
    assert_readable(CriticalDifferenceDisplay.from_scores(scores_of(3), title=2 * LONG))


def test_labels_name_each_method_and_its_rank_in_the_given_order():
    scores = scores_of(6)
    names = [f"m{i}" for i in range(6)]
    display = CriticalDifferenceDisplay.from_scores(scores, names)
    ranks = compare(scores).ranks
    assert [label.get_text() for label in display.labels_] == [
        f"{name} ({rank:.2f})" for name, rank in zip(names, ranks)
    ]


def test_the_best_methods_are_labelled_on_the_left_from_the_top():
    display = CriticalDifferenceDisplay.from_ranks(
        [4.0, 1.0, 2.0, 3.0], ["d", "a", "b", "c"], n_datasets=9
    )
    boxes = {text: box for (text, _), box in boxes_of(display).items()}
    a, b, c, d = (boxes[f"{name} ({rank}.00)"] for rank, name in enumerate("abcd", start=1))
    assert max(a.x1, b.x1) < min(c.x0, d.x0)
    assert a.y0 > b.y0 and d.y0 > c.y0


@pytest.mark.parametrize("n_methods", [4, 12, 30])
def test_bars_span_the_ranks_of_their_groups_and_never_cover_each_other(n_methods):
    scores = scores_of(n_methods, n_datasets=60)
    comparison = compare(scores)
    display = CriticalDifferenceDisplay.from_comparison(comparison)
    axis, *_ = display.ax_.lines
    left, right = axis.get_xdata()
    unit = (right - left) / (n_methods - 1)
    assert len(display.bars_) == len(comparison.groups) > 0
    for bar, group in zip(display.bars_, comparison.groups):
        ends = 1 + (np.array(bar.get_xdata()) - left) / unit
        ranks = comparison.ranks[list(group)]
        # a little longer than the group, so that a bar of equal ranks can be seen
        assert ends == pytest.approx([ranks.min(), ranks.max()], abs=0.05 / unit)
    for a, b in combinations(display.bars_, 2):
        if a.get_ydata()[0] == b.get_ydata()[0]:
            assert a.get_xdata()[1] < b.get_xdata()[0] or b.get_xdata()[1] < a.get_xdata()[0]


def test_the_ruler_is_as_long_as_the_critical_difference():
    display = CriticalDifferenceDisplay.from_ranks(
        [3.143, 2.0, 2.893, 1.964], ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"], n_datasets=14
    )
    texts = [text for text, _ in boxes_of(display)]
    assert "CD = 1.25" in texts
    axis = display.ax_.lines[0]
    left, right = axis.get_xdata()
    ends = left, left + display.critical_difference / 3 * (right - left)
    assert any(line.get_xdata() == pytest.approx(ends) for line in display.ax_.lines)


def test_wilcoxon_has_no_ruler_and_the_caption_names_the_test():
    display = CriticalDifferenceDisplay.from_scores(scores_of(4), test="wilcoxon-holm")
    texts = " ".join(text for text, _ in boxes_of(display))
    assert "CD" not in texts
    assert "Wilcoxon-Holm at 0.05" in texts


def test_the_caption_does_not_name_a_test_that_was_not_asked():
    display = CriticalDifferenceDisplay.from_scores(np.ones((5, 3)))
    assert "Friedman test p = 1, no difference at 0.05" in display.caption


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_saved_in_each_format(tmp_path, ending, magic):
    path = tmp_path / f"diagram.{ending}"
    CriticalDifferenceDisplay.from_scores(scores_of(5)).figure_.savefig(path)
    assert path.read_bytes().startswith(magic)


def test_everything_is_black_or_grey():
    display = CriticalDifferenceDisplay.from_scores(scores_of(5))
    colors = [artist.get_color() for artist in (*display.ax_.lines, *display.ax_.texts)]
    for color in colors:
        assert len(set(mpl.colors.to_rgb(color))) == 1


@pytest.mark.parametrize(
    ("ranks", "names"),
    [
        ([1.0, 2.0], ["A"]),
        ([1.0], ["A"]),
        ([[1.0, 2.0]], ["A", "B"]),
        ([0.5, 2.0], ["A", "B"]),
        ([np.nan, 2.0], ["A", "B"]),
    ],
)
def test_bad_ranks_are_named(ranks, names):
    with pytest.raises(ValueError, match=f"'ranks' parameter of .* between 1 .*{len(names)} names"):
        CriticalDifferenceDisplay.from_ranks(ranks, names, n_datasets=5)


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "from attop.plotting import CriticalDifferenceDisplay\n"
        "CriticalDifferenceDisplay.from_ranks([1, 2], ['A', 'B'], n_datasets=3)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'ImportError: Plots need matplotlib. Install it with: pip install "attop[plot]"' in (
        finished.stderr
    )
