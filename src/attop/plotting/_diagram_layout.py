"""Where the parts of a critical difference diagram lie, in inches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Sizes of the diagram at full scale: inches, and points for the font.
FONT_SIZE = 10.0
MARGIN = 0.12
GAP = 0.08
LABEL_HEIGHT = 0.22
GROUP_HEIGHT = 0.13
_RULER_HEIGHT = 0.42
TICK_HEIGHT = 0.28
_LEAST_AXIS_WIDTH = 3.6
_WIDTH_OF_A_RANK = 0.28


class Layout(NamedTuple):
    """Where things are, in inches from the upper left corner."""

    width: float
    height: float
    axis_left: float
    axis_width: float
    axis_y: float
    labels_y: float
    group_rows: list[int]
    labels: list[str]

    def x_of(self, rank: float) -> float:
        """Place of a rank on the axis."""
        return self.axis_left + (rank - 1.0) / (len(self.labels) - 1) * self.axis_width


def plan(
    ranks: NDArray[np.float64],
    names: Sequence[str],
    groups: Sequence[tuple[int, ...]],
    critical_difference: float | None,
    title: str,
    caption: str,
) -> Layout:
    """Places at full scale: as wide as the labels ask for, as high as their number does."""
    n_methods = len(ranks)
    labels = [f"{' '.join(str(name).split())} ({rank:.2f})" for name, rank in zip(names, ranks)]
    axis_width = max(_LEAST_AXIS_WIDTH, _WIDTH_OF_A_RANK * (n_methods - 1))
    left, right = halves(ranks)
    side_left = max(_text_width(labels[i]) for i in left) + MARGIN + GAP
    side_right = max(_text_width(labels[i]) for i in right) + MARGIN + GAP
    ruler = (critical_difference or 0.0) / (n_methods - 1) * axis_width
    width = max(
        side_left + axis_width + side_right,
        side_left + ruler + MARGIN,
        2 * MARGIN + _text_width(title, "bold"),
        2 * MARGIN + _text_width(caption),
    )
    axis_y = MARGIN + TICK_HEIGHT + (LABEL_HEIGHT if title else 0.0)
    axis_y += _RULER_HEIGHT if critical_difference is not None else 0.0
    rows = _pack(ranks, groups, 0.15 * (n_methods - 1) / axis_width)
    labels_y = axis_y + GROUP_HEIGHT * (max(rows, default=-1) + 2) + LABEL_HEIGHT / 2
    height = labels_y + LABEL_HEIGHT * max(len(left), len(right))
    height += LABEL_HEIGHT if caption else 0.0
    return Layout(width, height, side_left, axis_width, axis_y, labels_y, rows, labels)


def fit(layout: Layout, ax: Any) -> tuple[Layout, float]:
    """The layout in the middle of `ax`, with the factor by which it shrinks to fit."""
    box = ax.get_window_extent()
    dpi = ax.figure.dpi
    width, height = box.width / dpi, box.height / dpi
    scale = min(1.0, width / layout.width, height / layout.height)
    indent = (width / scale - layout.width) / 2
    layout = layout._replace(
        width=width / scale, height=height / scale, axis_left=layout.axis_left + indent
    )
    return layout, scale


def halves(ranks: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Methods labelled on the left, best first, and on the right, worst first."""
    order = np.argsort(ranks, kind="stable").tolist()
    middle = (len(order) + 1) // 2
    return order[:middle], order[: middle - 1 : -1]


def _pack(ranks: NDArray[np.float64], groups: Sequence[tuple[int, ...]], space: float) -> list[int]:
    """Row of each bar, so that bars in a row keep `space` ranks apart."""
    ends: list[float] = []
    rows = []
    for group in groups:
        first, last = ranks[list(group)].min(), ranks[list(group)].max()
        row = next((i for i, end in enumerate(ends) if end + space <= first), len(ends))
        ends[row : row + 1] = [last]
        rows.append(row)
    return rows


def _text_width(text: str, weight: str = "normal") -> float:
    """Width in inches, without a figure; a little more, since renderers round."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.0
    font = FontProperties(size=FONT_SIZE, weight=weight)
    path = TextPath((0, 0), text.replace("$", r"\$"), prop=font)
    return 1.05 * path.get_extents().width / 72.0
