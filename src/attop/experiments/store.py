"""A folder of results that no crash can spoil.

Each result is a JSON file named by the hash of what it depends on.  It is written to a
temporary file first and then moved to its name, which the system does as a whole: a result
is there and complete, or not there.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
#: What every result, and every plan of an experiment, has.
_RESULT_KEYS = ("dataset", "error", "method", "parameters", "seconds", "seed", "status", "test")
_PLAN_KEYS = ("metrics", "name", "results", "text")


class StoreError(OSError):
    """A file of a store that was not written by an experiment."""


class Store:
    """Results and the plans of experiments in a folder.

    Parameters
    ----------
    folder : path-like
        The folder; it is made with the first result.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, key: str) -> Record | None:
        """The result of that key, None where there is none that can be read.

        Raises
        ------
        StoreError
            If its file holds something else.
        """
        return _read(self.result_path(key), _RESULT_KEYS)

    def is_damaged(self, key: str) -> bool:
        """Whether there is a file of that result which cannot be read."""
        return self.result_path(key).exists() and self.read(key) is None

    def write(self, key: str, record: Record) -> None:
        """Write a result, as a whole."""
        self._write(self.result_path(key), record)

    def is_done(self, key: str, metrics: Iterable[str]) -> bool:
        """Whether there is a result with these metrics; a failure is none."""
        record = self.read(key)
        return record is not None and not record["error"] and {*metrics} <= {*record["test"]}

    def write_plan(self, name: str, plan: Record) -> None:
        """Write which results an experiment is made of."""
        self._write(self._plan(name), plan)

    def plan_names(self) -> list[str]:
        """Names of the experiments in this store that can be read, the latest last."""
        plans = [_read(path, _PLAN_KEYS) for path in self._plans()]
        return [plan["name"] for plan in plans if plan is not None]

    def damaged_plans(self) -> list[Path]:
        """Files of experiments that cannot be read."""
        return [path for path in self._plans() if _read(path, _PLAN_KEYS) is None]

    def read_plan(self, name: str) -> Record | None:
        """The plan of an experiment."""
        return _read(self._plan(name), _PLAN_KEYS)

    def clean(self) -> list[Path]:
        """Remove what writers of this machine that have died left behind.

        Returns
        -------
        list of Path
            Files in the way that no experiment can have written; they are left alone.
        """
        foreign = [path for path in self.folder.glob("*/*") if not _is_ours(path)]
        for path in self.folder.glob("*/*.tmp"):
            if path in foreign:
                continue
            host, process = path.name.split(".")[-3:-1]
            if host == _host() and not _is_running(int(process)):
                path.unlink(missing_ok=True)
        return sorted(foreign)

    def result_path(self, key: str) -> Path:
        """The file of a result."""
        return self.folder / "results" / f"{key}.json"

    def _plan(self, name: str) -> Path:
        return self.folder / "experiments" / f"{file_name(name)}.json"

    def _plans(self) -> list[Path]:
        paths = (self.folder / "experiments").glob("*.json")
        return sorted(paths, key=lambda path: path.stat().st_mtime_ns)

    @staticmethod
    def _write(path: Path, content: Record) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{_host()}.{os.getpid()}.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, allow_nan=False, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())  # the move must not reach the disk before the content
        temporary.replace(path)


def _read(path: Path, keys: Iterable[str]) -> Record | None:
    """What a file holds, None where it is missing or torn."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    if not isinstance(content, dict) or not {*keys} <= content.keys():
        raise StoreError(
            f"{path} was not written by attop run: move it out of this folder, or name another "
            "by --store."
        )
    return content


def _is_ours(path: Path) -> bool:
    """Whether a file in a store has a name that an experiment gives."""
    if path.suffix == ".json":
        return True  # what is in it tells when it is read
    parts = path.name.split(".")
    return len(parts) >= 5 and parts[-1] == "tmp" and parts[-2].isdecimal() and parts[-4] == "json"


def file_name(name: str) -> str:
    """The name of an experiment without what file systems do not like."""
    return "".join(c if c.isalnum() or c in "-_ ()" else "_" for c in name)


def _host() -> str:
    return socket.gethostname().replace(".", "-")


def _is_running(process: int) -> bool:
    if os.name == "nt":  # where asking by a signal would be an interrupt
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
