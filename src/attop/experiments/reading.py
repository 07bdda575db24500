"""Tables of a TOML file that say where they are wrong: the line, the key, the nearest valid one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from attop._words import suggestion

_REQUIRED: Any = object()
_WORDS = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    object: "a text or a number",
}


class SpecificationError(ValueError):
    """A mistake in the file of an experiment."""


class Section:
    """One table of the file: hands out its values and knows where they stand.

    Parameters
    ----------
    values : dict
        What the table holds.
    file, text : str
        Name and content of the file, for messages.
    name : str
        Name of the table; empty for the whole file.
    index : int, default=None
        Its number in an array of tables, from 0.
    """

    def __init__(
        self, values: dict[str, Any], file: str, text: str, name: str = "", index: int | None = None
    ) -> None:
        self.values = dict(values)
        self.file, self.text, self.name, self.index = file, text, name, index
        self._taken: set[str] = set()

    def error(self, message: str, word: Any = None, key: str = "") -> SpecificationError:
        """An error about this table, with the line that holds `word`, or else `key`."""
        line = None
        for candidate in (word, key, self.name):
            if line is None and candidate not in (None, ""):
                line = self._line_of(str(candidate))
        where = self.file if line is None else f"{self.file}, line {line}"
        colon = ": " if key and message[0] not in " :" else ""
        return SpecificationError(f"{where}: {self._path(key)}{colon}{message}")

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """The value of `key`, which must be of `kind`."""
        self._taken.add(key)
        if key not in self.values:
            if default is _REQUIRED:
                raise self.error(f"the key {key!r} is missing.")
            return default
        value = self.values[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        # In Python true is an integer, here it is not.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f" must be {_WORDS[kind]}. Got {value!r} instead.", key=key)
        return value

    def take_list(self, key: str, kind: type, default: Any = _REQUIRED) -> list[Any]:
        """A list of at least one value, all of `kind` and all different."""
        values = self.take(key, list, default)
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self.error(
                    f" must hold {_WORDS[kind]} at each place. Got {value!r} instead.",
                    word=value,
                    key=key,
                )
        if not values:
            raise self.error(" must not be empty.", key=key)
        if len(set(map(str, values))) < len(values):
            raise self.error(f" must not hold a value twice. Got {values!r}.", key=key)
        return values

    def rest(self) -> dict[str, Any]:
        """All values that were not taken."""
        left = {key: value for key, value in self.values.items() if key not in self._taken}
        self._taken |= left.keys()
        return left

    def finish(self, also: Iterable[str] = ()) -> None:
        """Raise if there is a key that nobody has taken; `also` are further valid keys."""
        for key in self.values:
            if key not in self._taken:
                known = sorted(self._taken | set(also))
                raise self.error(f" is no key here. {suggestion(key, known)}", word=key, key=key)

    def _path(self, key: str) -> str:
        """Name of the key from the top of the file, as people count."""
        table = self.name if self.index is None else f"{self.name}[{self.index + 1}]"
        path = ".".join(filter(None, (table, key)))
        if not path:
            return ""
        return f"'{path}'" if key else f"in '{path}', "

    def _line_of(self, word: str) -> int | None:
        """The first line of this table with `word` in it.

        A search in the text, since tomllib keeps no positions.
        """
        pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        for number, line in self._lines():
            if pattern.search(line.split("#", 1)[0]):
                return number
        return None

    def _lines(self) -> list[tuple[int, str]]:
        """The lines of this table, with their numbers."""
        lines = list(enumerate(self.text.splitlines(), start=1))
        if not self.name:
            return lines
        header = re.compile(rf"^\s*\[\[?\s*{re.escape(self.name)}\s*\]")
        starts = [i for i, (_, line) in enumerate(lines) if header.match(line)]
        place = self.index or 0
        if len(starts) > place:
            end = starts[place + 1] if len(starts) > place + 1 else len(lines)
            return lines[starts[place] : end]
        # Not as [[name]] but as name = [...].
        inline = re.compile(rf"^\s*{re.escape(self.name)}\s*=")
        start = next((i for i, (_, line) in enumerate(lines) if inline.match(line)), 0)
        return lines[start:]
