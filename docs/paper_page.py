"""Pieces of reStructuredText for the page ``paper_verdict``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def number(value: float | None, how: str) -> str:
    """A number, or "none" where there is none."""
    return "none" if value is None or not np.isfinite(value) else format(value, how)


def rst_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a row of headings."""
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in (heads, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def bullets(points: Sequence[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"* {point}" for point in points) + "\n"
