"""Run the fuzzer: ``python -m tests.fuzz --cases 10000``, one case by ``--seed 12345 --one``."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from .problems import make_case, size_of
from .runs import Running, verdicts
from .verdicts import DOUBTFUL, FATAL, FINE, Result


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of the processor that a fit may take"
    )
    parser.add_argument(
        "--within", type=float, default=float("inf"), help="begin no case after so many seconds"
    )
    parser.add_argument("--table", help="file to which a line per case is appended")
    parser.add_argument("--least", type=int, default=0, help="only of so many samples and more")
    parser.add_argument("--one", action="store_true", help="this seed only, in words")
    options = parser.parse_args()
    if options.one:
        print(make_case(options.seed), flush=True)
        (result,) = verdicts([options.seed], 1, options.limit)
        print(f"  {result}" + (f"\n  {result.noise}" if result.noise else ""))
        return int(result.verdict in FATAL)
    seeds = range(options.seed, options.seed + options.cases)
    seeds = [seed for seed in seeds if size_of(seed) >= options.least]
    results = _run(seeds, options)
    _summary(results)
    return int(any(result.verdict in FATAL for result in results))


def _run(seeds: list[int], options: argparse.Namespace) -> list[Result]:
    """All verdicts; those that need a look are shown as they come."""
    results: list[Result] = []
    began = shown = time.monotonic()
    until, running = began + options.within, _Running()
    # A run that is ended from outside tells what it has, as one that is interrupted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for result in verdicts(seeds, options.jobs, options.limit, until, running):
            results.append(result)
            if options.table:
                with Path(options.table).open("a", encoding="utf-8") as table:
                    print(_line(result), file=table)
            if result.verdict not in FINE:
                print(
                    f"seed {result.seed:<8d} {result.kind}, {result.formulation}: {result}",
                    flush=True,
                )
            if time.monotonic() - shown > 10.0:
                shown = time.monotonic()
                bad = sum(result.verdict in FATAL for result in results)
                print(
                    f"... {len(results)} of {len(seeds)} in {shown - began:.0f} s, {bad} bad",
                    flush=True,
                )
    except KeyboardInterrupt:
        print(f"Interrupted. Running were {running}.")
    print(f"\n{len(results)} cases in {time.monotonic() - began:.0f} s")
    ended = {result.seed for result in results}
    left = [seed for seed in seeds if seed not in ended]
    if left:
        print(f"Not ended, or not begun: {len(left)}, the first is seed {left[0]}")
    return results


class _Running:
    """Tells of cases that take long, so that nobody who kills a run has to ask which it was."""

    seeds: Running = []  # noqa: RUF012 - replaced, never changed
    _shown = 0.0

    def __call__(self, running: Running) -> None:
        self.seeds, now = running, time.monotonic()
        if any(seconds > 10.0 for _, seconds in running) and now - self._shown > 10.0:
            self._shown = now
            print(f"... still {self}", flush=True)

    def __str__(self) -> str:
        return ", ".join(f"seed {seed} ({seconds:.0f} s)" for seed, seconds in self.seeds)


def _line(result: Result) -> str:
    """A case as a line of a table."""
    solvable = "definite" if result.solvable else "other"
    seconds = f"{result.seconds:.2f}"
    fields = (
        result.seed, result.verdict, result.status or "-", solvable, seconds, result.noise or "-",
    )  # fmt: skip
    return "\t".join(map(str, fields))


def _summary(results: list[Result]) -> None:
    _table("kind", results)
    _table("formulation", results)
    for verdict in (*FATAL, *DOUBTFUL):
        seeds = sorted(result.seed for result in results if result.verdict == verdict)
        if seeds:
            print(f"{verdict}: {' '.join(map(str, seeds))}")
    solvable = [result for result in results if result.solvable and result.verdict != "refused"]
    if solvable:
        share = sum(result.status == "CONVERGED" for result in solvable) / len(solvable)
        print(f"Converged, of {len(solvable)} definite problems of the exact solver: {share:.2%}")
    _counts("Not converged", (r.status or r.verdict for r in solvable if r.status != "CONVERGED"))
    _counts("Refused", (r.text for r in results if r.verdict == "refused"))
    _counts("Warnings of others", (r.noise for r in results if r.noise))
    slowest = sorted(results, key=lambda result: -result.seconds)[:5]
    print("Slowest: " + ", ".join(f"seed {r.seed} {r.seconds:.1f} s" for r in slowest))


def _table(by: str, results: list[Result]) -> None:
    """Verdicts counted for each value of an attribute."""
    verdicts = [v for v in (*FINE, *DOUBTFUL, *FATAL) if any(r.verdict == v for r in results)]
    print("".join(f"{word:>19}" for word in (by, *verdicts)))
    groups = sorted({getattr(result, by) for result in results})
    for group in (*groups, "all"):
        counts = Counter(r.verdict for r in results if group in ("all", getattr(r, by)))
        print(f"{group:>19}" + "".join(f"{counts[verdict] or '.':>19}" for verdict in verdicts))
    print()


def _counts(title: str, texts) -> None:
    """How often each text occurs, numbers aside."""
    counts = Counter(re.sub(r"[-+]?\d[\d.e+-]*", "#", text)[:150] for text in texts)
    for text, count in counts.most_common():
        print(f"{title}: {count} x {text}")


if __name__ == "__main__":
    sys.exit(main())
