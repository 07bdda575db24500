"""Run the fuzzer: ``python -m tests.fuzz --cases 10000``, one case by ``--seed 12345 --one``."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter

from .problems import make_case, size_of
from .runs import verdicts
from .verdicts import DOUBTFUL, FATAL, FINE, Result


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of the processor, small case"
    )
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
    results = _run(seeds, options.jobs, options.limit)
    _summary(results)
    return int(any(result.verdict in FATAL for result in results))


def _run(seeds: list[int], jobs: int, limit: float) -> list[Result]:
    """All verdicts; those that need a look are shown as they come."""
    results: list[Result] = []
    began = shown = time.monotonic()
    try:
        for result in verdicts(seeds, jobs, limit):
            results.append(result)
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
        print("Interrupted.")
    print(f"\n{len(results)} cases in {time.monotonic() - began:.0f} s")
    return results


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
