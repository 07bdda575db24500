"""The convergence figure shows the histories it is given, and can be read without colours."""

import sys

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from typer.testing import CliRunner

from attop import TopPush
from attop.cli.app import app
from attop.plotting import ConvergenceDisplay
from attop.solvers.solution import History

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def history(n=30, optimum=5.0, remaining=0.0, dual=True, start=1e3):
    """Values that fall towards `optimum` up to a gap that remains."""
    step = 10 * np.arange(n)
    fall = start * 0.3 ** np.arange(n)
    lower = optimum - remaining - fall if dual else np.full(n, np.nan)
    primal = optimum + remaining + fall
    return History(1e-3 * (step + 1.0), step, primal, lower, primal - lower)


@pytest.fixture
def histories():
    return {
        "A": {"one": history(), "two": history(remaining=0.5)},
        "B": {"one": history(optimum=-7.0), "three": history(dual=False)},
    }


@pytest.mark.parametrize("x", ["time", "step"])
def test_draws_every_value_of_every_history(histories, x):
    display = ConvergenceDisplay.from_histories(histories, x=x)
    assert [ax.get_title() for ax in display.axes_] == ["A", "B"]
    for title, panel in histories.items():
        for solver, expected in panel.items():
            for kind, line in display.lines_[title][solver].items():
                np.testing.assert_array_equal(line.get_xdata(), getattr(expected, x))
                np.testing.assert_array_equal(line.get_ydata(), getattr(expected, kind))
    assert "dual" not in display.lines_["B"]["three"]
    assert display.axes_[0].get_xlabel().startswith(x)


def test_the_end_of_every_line_is_in_view(histories):
    display = ConvergenceDisplay.from_histories(histories)
    for ax in display.axes_:
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        for line in ax.get_lines():
            assert left < line.get_xdata()[-1] < right
            assert low < line.get_ydata()[-1] < high


def test_a_far_beginning_does_not_flatten_the_end():
    near, far = history(start=1.0), history(start=1e9)
    display = ConvergenceDisplay.from_histories({"near": {"s": near}, "far": {"s": far}})
    heights = [np.ptp(ax.get_ylim()) for ax in display.axes_]
    assert heights[1] == pytest.approx(heights[0], rel=1e-3)


def test_lines_can_be_told_apart_without_colours(histories):
    display = ConvergenceDisplay.from_histories(histories)
    styles = {
        (solver, kind): (line.get_marker(), line.get_linestyle())
        for panel in display.lines_.values()
        for solver, lines in panel.items()
        for kind, line in lines.items()
    }
    assert len(set(styles.values())) == len(styles) == 5
    # The same solver looks the same in all panels.
    one = [display.lines_[title]["one"]["primal"] for title in histories]
    assert one[0].get_marker() == one[1].get_marker()
    greys = {
        round(float(np.dot(matplotlib.colors.to_rgb(line.get_color()), (0.299, 0.587, 0.114))), 1)
        for line in (one[0], display.lines_["A"]["two"]["primal"])
    }
    assert len(greys) == 2


def test_the_legend_names_solvers_and_kinds_once(histories):
    display = ConvergenceDisplay.from_histories(histories)
    (legend,) = display.figure_.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["one", "two", "three", "primal", "dual"]


def test_draws_into_given_axes(histories):
    figure, axes = plt.subplots(2, 1)
    display = ConvergenceDisplay.from_histories(histories, axes=axes)
    assert display.figure_ is figure
    assert list(display.axes_) == list(axes)
    with pytest.raises(ValueError, match="must hold 2 axes"):
        ConvergenceDisplay.from_histories(histories, axes=axes[0])


def test_draws_the_histories_of_estimators():
    X, y = make_classification(n_samples=80, random_state=0)
    model = TopPush().fit(X, y)
    display = ConvergenceDisplay.from_estimators({"TopPush": {"exact": model}})
    line = display.lines_["TopPush"]["exact"]["dual"]
    np.testing.assert_array_equal(line.get_ydata(), model.history_.dual)


def test_an_unknown_axis_is_an_error(histories):
    with pytest.raises(ValueError, match=r"The 'x' parameter .* Got 'epoch' instead"):
        ConvergenceDisplay.from_histories(histories, x="epoch")


def test_without_matplotlib_the_error_names_the_extra(histories, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "attop\[plot\]"'):
        ConvergenceDisplay.from_histories(histories)


def test_the_command_draws_the_figure(tmp_path):
    path = tmp_path / "new" / "figure.png"
    result = CliRunner().invoke(app, ["figure", "convergence", "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert path.stat().st_size > 10_000
    assert "figure.png" in result.output.replace("\n", "")


@pytest.mark.parametrize("arguments", [["--x", "epoch"], ["--lambda", "0"]])
def test_the_command_explains_a_wrong_option(arguments):
    result = CliRunner().invoke(app, ["figure", "convergence", *arguments])
    assert result.exit_code == 2
    assert arguments[0] in result.output
