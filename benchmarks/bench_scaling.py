"""Cost of a fit against the number of samples: this library, its peers and the floor.

    ATTOP_DATA=folder python benchmarks/bench_scaling.py [--sizes 2000,4000,8000] ...

MNIST at one lambda, so that each size poses the same problem on more samples.  The slope is
the exponent p of the power n^p that fits the times best, over all sizes.  What is measured,
and how, is as in bench_kernel.py.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from suite import program
from suite.cases import INTELEX, METHODS, SKLEARN, SVC_TOL, Case
from suite.measure import measure_fit
from suite.results import Row, number
from suite.tables import Table, count, digits, seconds_or_reason, slope

NAME = "scaling"
PLOT = "scaling.svg"
TITLE = "Cost against the number of samples"
SHOWN = ("TopPush", "TauFPL(0.05)", "PatMatNP(0.05)")
FLOOR = "floor of "
SIZES = (2000, 4000, 8000, 16_000, 32_000, 45_000)
QUICK_SIZES = (2100, 2500, 3000)


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases = []
    for n in options.sizes:
        cases += [Case(options.data, n, method, options.lam) for method in options.methods]
        cases += [Case(options.data, n, peer, options.lam, tol=SVC_TOL) for peer in runner.peers]
    runner.run(cases, measure_fit)
    plot(runner.results.rows, options.output / PLOT)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    program.add_peer_options(parser)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--sizes", type=program.values(int))
    parser.add_argument("--lam", type=float, default=1e-3)
    parser.add_argument("--methods", type=program.values(str))
    options = parser.parse_args()
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.methods = options.methods or (SHOWN[-1:] if options.quick else SHOWN)
    return options


def curves(rows: Sequence[Row]) -> dict[str, tuple[list[float], list[float]]]:
    """Sizes and seconds of each method and peer, and of the floor of each method."""
    result: dict[str, tuple[list[float], list[float]]] = {}
    for row in sorted(rows, key=lambda row: number(row, "n")):
        for prefix, column in (("", "seconds"), (FLOOR, "floor_seconds")):
            if math.isfinite(number(row, column)):
                sizes, costs = result.setdefault(prefix + row["method"], ([], []))
                sizes.append(number(row, "n"))
                costs.append(number(row, column))
    return result


def tables(rows: Sequence[Row]) -> list[Table]:
    """Seconds by size for each of them, and the slope."""
    if not rows:
        return []
    sizes = sorted({int(row["n"]) for row in rows})
    # Those without a time say why, such as a peer that was stopped.
    reasons = {(row["method"], int(row["n"])): seconds_or_reason(row) for row in rows}
    found = curves(rows)
    lines = []
    for name in dict.fromkeys([*found, *(row["method"] for row in rows)]):
        curve = found.get(name, ([], []))
        seconds = {size: digits(cost) for size, cost in zip(*curve)}
        cells = [seconds.get(n) or reasons.get((name, n), "") for n in sizes]
        lines.append([name, *cells, digits(slope(*curve))])
    note = f"Seconds of a fit on {rows[0]['data']} at lambda {number(rows[0], 'lam'):g}, hinge."
    header = ["", *[f"n = {count(n)}" for n in sizes], "slope"]
    return [Table(TITLE, note, header, lines)]


def plot(rows: Sequence[Row], path: Path) -> None:
    """The curves with logarithmic axes; dotted: the floor of the method of the same colour."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "attop"  # the same file from the same figures
    import matplotlib.pyplot as plt

    found = curves(rows)
    colours = {name: f"C{i}" for i, name in enumerate(METHODS)} | {
        INTELEX: "black",
        SKLEARN: "grey",
    }
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for name, (sizes, costs) in found.items():
        floor = name.startswith(FLOOR)
        style = ":" if floor else "-"
        exponent = slope(sizes, costs)
        label = f"{name}: slope {exponent:.2f}" if math.isfinite(exponent) else name
        colour = colours[name.removeprefix(FLOOR)]
        axes.loglog(sizes, costs, style, marker="." if floor else "o", color=colour, label=label)
    ticks = sorted({size for sizes, _ in found.values() for size in sizes})
    axes.set_xticks(ticks, [count(size) for size in ticks])
    axes.minorticks_off()
    axes.set(xlabel="samples", ylabel="seconds of a fit")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
