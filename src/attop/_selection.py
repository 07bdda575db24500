"""The largest of many numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: So many numbers tell about where the largest of many begin.
_SKETCH = 4096


def largest_of(
    candidates: NDArray[np.bool_], merit: NDArray[np.float64], count: int
) -> NDArray[np.bool_]:
    """Marks the `count` candidates of the largest merit; of equal ones the first."""
    if count >= np.count_nonzero(candidates):
        return candidates
    if count <= 0:
        return np.zeros(len(merit), dtype=bool)
    values = merit[_few_of(candidates, merit, count)]
    values.partition(len(values) - count)
    least = values[len(values) - count]
    chosen = candidates & (merit > least)
    equal = np.flatnonzero(candidates & (merit == least))
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return chosen


def _few_of(
    candidates: NDArray[np.bool_], merit: NDArray[np.float64], count: int
) -> NDArray[np.bool_]:
    """Some of the candidates that have the `count` of largest merit among them.

    Every so many of them tell from where on there are about twice as many.
    """
    step = len(merit) // _SKETCH
    if step <= 1:
        return candidates
    sketch = merit[::step][candidates[::step]]
    rank = 2 * count // step + 32
    if rank >= len(sketch):
        return candidates
    few = candidates & (merit > np.partition(sketch, len(sketch) - rank)[len(sketch) - rank])
    return few if np.count_nonzero(few) >= count else candidates
