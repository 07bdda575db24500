"""Docstrings of classes that share most of their parameters, put together as a class is made.

A parent documents what it has, a subclass only what it adds or changes.  ``help(PatMatNP)`` and
the documentation then show all of it, in the order of the signature.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar

#: A title and the line of dashes below it.
_TITLE = re.compile(r"^(\S.*)\n-{3,}\n", re.MULTILINE)
#: The names at the beginning of an entry, before its type.
_NAMES = re.compile(r"^\S.*?(?= : |$)")
#: The sections that subclasses inherit, in the order of numpydoc; those made of entries come first.
_ENTRIES = ("Parameters", "Attributes")
_SECTIONS = (*_ENTRIES, "See Also", "Notes", "References", "Examples")
#: An example shows the class itself.
_OWN = ("", "Examples")

Sections = dict[str, str]


class Documented:
    """Completes the docstring of every subclass by what its parents document.

    Parameters of its own come first, as in the signature of a dataclass whose inherited fields
    are keyword-only, unless they are keyword-only too; attributes of its own come last.  An entry
    for an inherited name takes the place of the parent's.  See Also, Notes and References are the
    parent's where there are none.  Of several parents the first one has the last word.
    """

    #: Names of inherited entries that the class does not have.
    _absent: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        parents = [c for c in cls.__bases__ if issubclass(c, Documented) and c is not Documented]
        docs = [c.__doc__ for c in parents if c.__doc__]
        if cls.__doc__ and docs:
            inherited = docs[-1]
            for parent in reversed(parents[:-1]):
                inherited = _completed_for(parent, inherited)
            cls.__doc__ = _completed_for(cls, inherited)


def _completed_for(cls: type[Documented], inherited: str) -> str:
    """The docstring of a class with what it inherits."""
    names = list(get_annotations(cls))
    keyword_only = names[names.index("_") :] if "_" in names else []
    return completed(cls.__doc__ or "", inherited, cls._absent, keyword_only)


def completed(
    doc: str,
    parent_doc: str,
    absent: Collection[str] = (),
    keyword_only: Collection[str] = (),
) -> str:
    """The docstring of a class with what that of its parent has besides.

    Parameters
    ----------
    doc, parent_doc : str
        The docstrings.
    absent : collection of str, default=()
        Entries of the parent that the class does not have.
    keyword_only : collection of str, default=()
        Parameters of the class that come after those of the parent.

    Returns
    -------
    str
        The docstring, without indentation.
    """
    own, inherited = sections_of(doc), sections_of(parent_doc)
    whole = {title: own[title] for title in _OWN if title in own}
    for title in _SECTIONS:
        if title in _ENTRIES:
            last = keyword_only if title == "Parameters" else None
            entries = _merge(own.get(title, ""), inherited.get(title, ""), last)
            text = "\n".join(entry for name, entry in entries.items() if name not in absent)
        else:
            text = own.get(title, "" if title in _OWN else inherited.get(title, ""))
        if text:
            whole[title] = text
    order = ("", *_SECTIONS)
    return "\n\n".join(_render(title, whole[title]) for title in order if title in whole) + "\n"


@lru_cache  # that of a parent serves all its children
def sections_of(doc: str) -> Sections:
    """The text below each title of a numpydoc docstring; that before the first one has none."""
    start, *rest = _TITLE.split(cleandoc(doc))
    return {"": start.strip()} | {
        title: text.strip("\n") for title, text in zip(rest[::2], rest[1::2], strict=True)
    }


@lru_cache
def entries_of(text: str) -> dict[str, str]:
    """The entries of a section by their names; each has its indented lines."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", text) if text else []:
        names = _NAMES.match(entry.split("\n", 1)[0])
        found[names[0] if names else entry] = entry.rstrip()
    return found


def _merge(own_text: str, inherited_text: str, last: Collection[str] | None) -> dict[str, str]:
    """Entries of a class and of its parent, where the class has the last word.

    New ones come first, but for those named in `last`, which is None where all of them do.
    """
    own, inherited = entries_of(own_text), entries_of(inherited_text)
    kept = {name: own.get(name, entry) for name, entry in inherited.items()}
    first = {
        name: entry
        for name, entry in own.items()
        if last is not None and name not in (*inherited, *last)
    }
    return first | kept | own


def _render(title: str, text: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{text}" if title else text
