"""What every program does: read its options, run its cases one by one, write its tables."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from suite import data, machine
from suite.cases import LINEAR_SVC, LOGISTIC, SKLEARN, kernel_peers
from suite.child import Failed, OutOfTime, in_child
from suite.results import Results, Row, number, write_rows
from suite.tables import Table, to_markdown

#: Measures a case: its figures from the case, the number of runs, the most seconds for a run
#: and what to call once the preparations are done.
Measure = Callable[[Any, int, float, Callable[[], None]], dict]


def parser(text: str) -> argparse.ArgumentParser:
    """The options that all programs have; `text` is the documentation of the program."""
    result = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--output", type=Path, help="folder of the results, out/bench if not given")
    result.add_argument("--resume", action="store_true", help="keep the cases measured already")
    result.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    result.add_argument("--repeats", type=int, default=3, help="runs of which to take the median")
    result.add_argument("--limit", type=float, default=900.0, help="most seconds for a fit")
    return result


def add_peer_options(options: argparse.ArgumentParser) -> None:
    """The options of programs that run scikit-learn's SVC, which has no limit of its own."""
    options.add_argument("--sklearn-limit", type=float, default=120.0, help="most seconds for it")
    options.add_argument("--skip-sklearn", action="store_true", help="leave scikit-learn's out")


def values(kind: Callable[[str], Any]) -> Callable[[str], list]:
    """The type of an option that is a list with commas."""
    return lambda text: [kind(part) for part in text.split(",")]


class Program:
    """Runs cases and keeps their results.

    Parameters
    ----------
    name : str
        Of the CSV and Markdown files.
    options : argparse.Namespace
        Read by `parser`.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        data.folder()  # ends here where it is missing
        self.name, self.options = name, options
        # Quick results are none: they stay away from those of full runs.
        options.output = options.output or Path("out/bench_quick" if options.quick else "out/bench")
        self.peers = kernel_peers(options.skip_sklearn) if "skip_sklearn" in options else []
        self.results = Results(options.output / f"{name}.csv", machine.identity())
        about = [{"": key, "value": value} for key, value in machine.description().items()]
        write_rows(options.output / "machine.csv", about)
        self.failures = 0
        self._began = time.perf_counter()

    def run(self, cases: Sequence[Any], measure: Measure) -> None:
        """Measure every case in a process of its own; `cases` are frozen dataclasses."""
        try:
            self._run(cases, measure)
        except KeyboardInterrupt:
            self._say("\nInterrupted; --resume goes on from here.")
            raise SystemExit(130) from None  # as shells say it

    def _run(self, cases: Sequence[Any], measure: Measure) -> None:
        for position, case in enumerate(cases, start=1):
            self._say(f"[{position}/{len(cases)}] {case}: ", end="")
            key = dataclasses.asdict(case)
            known = self.results.find(key) if self.options.resume else None
            if known is None or known["status"].startswith("failed"):
                known = self.results.add(key, self._figures(case, measure))
                self._say(summary(known))
            else:
                self._say(f"{summary(known)} (kept)")

    def _figures(self, case: Any, measure: Measure) -> dict:
        """The figures of a case; what went wrong is one of them."""
        method = getattr(case, "method", "")
        repeats, limit, last = self.options.repeats, self.options.limit, self.options.limit
        if method in (SKLEARN, LINEAR_SVC, LOGISTIC):
            repeats = 1
        if method == SKLEARN:
            limit = last = self.options.sklearn_limit
        elif not method.startswith("SVC"):
            last = 3 * limit  # fits of this library stop by themselves
        try:
            figures = in_child(measure, case, repeats, limit, limit=last)
        except OutOfTime as error:
            return {"status": str(error)}
        except Failed as error:
            self.failures += 1
            return {"status": f"failed: {error}"}
        return {"status": "", **figures}

    def finish(self, tables: Callable[[Sequence[Row]], list[Table]]) -> None:
        """Write the tables; the exit status tells whether all went well."""
        text = "\n".join(to_markdown(table) for table in tables(self.results.rows))
        path = self.options.output / f"{self.name}.md"
        path.write_text(text, encoding="utf-8")
        spent = (time.perf_counter() - self._began) / 60
        self._say(f"\n{text}\n{path} and {self.results.path.name} written, {spent:.1f} minutes")
        if self.failures:
            raise SystemExit(f"{self.failures} cases failed.")

    @staticmethod
    def _say(text: str, end: str = "\n") -> None:
        print(text, end=end, flush=True)  # a line of progress is of use only at once


def summary(row: Row) -> str:
    """The figures of a row that are worth a line of progress."""
    units = {
        "seconds": ".3f s",
        "floor_seconds": ".3f s floor",
        "gap": ".1e gap",
        "support": ".0f support vectors",
        "peak_gb": ".2f GB",
        "ratio": ".2f times",
    }
    parts = []
    for name, unit in units.items():
        form, _, words = unit.partition(" ")
        value = number(row, name)
        if value == value:
            parts.append(f"{value:{form}} {words}")
    return ", ".join([*parts, *([row["status"]] if row.get("status") else [])])
