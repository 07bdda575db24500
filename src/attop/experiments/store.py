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
        """The result of that key, None where there is none that can be read."""
        return _read(self._result(key))

    def write(self, key: str, record: Record) -> None:
        """Write a result, as a whole."""
        self._write(self._result(key), record)

    def is_done(self, key: str, metrics: Iterable[str]) -> bool:
        """Whether there is a result with these metrics; a failure is none."""
        record = self.read(key)
        return record is not None and not record["error"] and {*metrics} <= {*record["test"]}

    def write_plan(self, name: str, plan: Record) -> None:
        """Write which results an experiment is made of."""
        self._write(self.folder / "experiments" / f"{_file_name(name)}.json", plan)

    def plan_names(self) -> list[str]:
        """Names of the experiments in this store, the latest last."""
        paths = (self.folder / "experiments").glob("*.json")
        plans = [_read(path) for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns)]
        return [plan["name"] for plan in plans if plan is not None]

    def read_plan(self, name: str) -> Record | None:
        """The plan of an experiment."""
        return _read(self.folder / "experiments" / f"{_file_name(name)}.json")

    def clean(self) -> None:
        """Remove what writers of this machine that have died left behind."""
        for path in self.folder.glob("*/*.tmp"):
            host, process = path.name.split(".")[-3:-1]
            if host == _host() and not _is_running(int(process)):
                path.unlink(missing_ok=True)

    def _result(self, key: str) -> Path:
        return self.folder / "results" / f"{key}.json"

    @staticmethod
    def _write(path: Path, content: Record) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{_host()}.{os.getpid()}.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, allow_nan=False, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())  # the move must not reach the disk before the content
        temporary.replace(path)


def _read(path: Path) -> Record | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None


def _file_name(name: str) -> str:
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
