"""Help with names that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

#: Names in a message, at most.
_MOST = 10


def suggestion(word: Any, known: Iterable[str]) -> str:
    """``Did you mean ...?`` with the nearest of the known words, else the words there are."""
    known = list(known)
    return did_you_mean(word, known) or (f"There are {listed(known)}." if known else "")


def did_you_mean(word: Any, known: Iterable[str] | Mapping[str, str], cutoff: float = 0.5) -> str:
    """``Did you mean ...?`` with the nearest of the known words, if one is near enough.

    Parameters
    ----------
    word : object
        What was given.
    known : iterable of str, or dict
        What would have been right; a dict says by which name each spelling is shown.
    cutoff : float, default=0.5
        Similarity in [0, 1] that is near enough.
    """
    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    by_lower = {spelling.lower(): name for spelling, name in shown.items()}
    nearest = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=cutoff)
    return f"Did you mean {by_lower[nearest[0]]!r}?" if nearest else ""


def listed(items: Sequence[Any]) -> str:
    """The first of some items, which may be many."""
    shown = ", ".join(repr(item) for item in items[:_MOST])
    return shown if len(items) <= _MOST else f"{shown}, ... ({len(items)} in all)"
