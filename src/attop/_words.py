"""Help with names that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def suggestion(word: Any, known: Iterable[str]) -> str:
    """``Did you mean ...?`` with the nearest of the known words, else all of them."""
    known = list(known)
    by_lower = {name.lower(): name for name in known}
    nearest = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.5)
    if nearest:
        return f"Did you mean {by_lower[nearest[0]]!r}?"
    return f"There are {', '.join(repr(name) for name in known)}."
