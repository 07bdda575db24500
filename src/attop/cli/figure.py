"""``attop figure``: figures of the paper, drawn anew."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from attop.cli._files import ForceOption, check_output

if TYPE_CHECKING:
    from attop.solvers.solution import History

figure = typer.Typer(help="Draw figures of the paper anew.", no_args_is_help=True)

#: The command's own file, which it renews.
_DEFAULT = Path("out/convergence.png")
#: Formulations of the convergence figure: panel, formulation and its parameters.
PANELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("TopPush", "TopPush", {}),
    ("TopPushK, K = 10", "TopPushK", {"K": 10}),
    ("Pat&Mat-NP, τ = 0.05", "PatMatNP", {"tau": 0.05, "theta": 1.0}),
)


class Axis(StrEnum):
    """Horizontal axis of the convergence figure."""

    time = "time"
    step = "step"


# A callback keeps the name of the only command on the command line.
@figure.callback()
def _figures() -> None:
    """Draw figures of the paper anew."""


@figure.command()
def convergence(
    output: Annotated[
        Path, typer.Option(help="File of the figure; its ending decides the format.")
    ] = _DEFAULT,
    x: Annotated[Axis, typer.Option(help="The horizontal axis.")] = Axis.time,
    lam: Annotated[
        float, typer.Option("--lambda", help="Weight of the regularisation.", min=1e-8)
    ] = 0.1,
    seed: Annotated[
        int, typer.Option(help="Seed of the paper's descent.", min=0, max=2**32 - 1)
    ] = 0,
    force: ForceOption = False,
) -> None:
    """Primal and dual objective of three solvers on Ionosphere with the linear kernel.

    The exact solver, the coordinate descent of the paper on the dual, and full gradient
    descent on the primal, for TopPush, TopPushK and Pat&Mat-NP with the hinge.
    """
    console = Console()
    check_output(output, "--output", force=force or output == _DEFAULT)

    from attop.plotting import ConvergenceDisplay
    from attop.plotting._common import import_pyplot

    import_pyplot()  # which may be missing, and is better missed before the work
    histories: dict[str, dict[str, History]] = {}
    for title, formulation, parameters in PANELS:
        with console.status(f"Solving {formulation} ..."):
            histories[title] = solve_all(formulation, parameters, lam, seed)
    display = ConvergenceDisplay.from_histories(histories, x=x.value)
    try:
        display.figure_.savefig(output, dpi=150)
    except ValueError as error:  # an ending that matplotlib does not know
        raise typer.BadParameter(str(error), param_hint="--output") from None
    console.print(f"Convergence of the solvers: {output}", markup=False, soft_wrap=True)


def solve_all(
    formulation: str, parameters: dict[str, Any], lam: float, seed: int
) -> dict[str, History]:
    """History of each solver on one formulation."""
    from attop.datasets import load_ionosphere
    from attop.formulations import FORMULATIONS
    from attop.kernels.functions import Gram, Linear
    from attop.solvers import exact, pairwise, primal

    X, y = load_ionosphere(return_X_y=True)
    positive = y == 1
    C = 1.0 / (lam * positive.sum())
    problem = FORMULATIONS[formulation].problem(positive, C, "hinge", **parameters)
    gram = Gram(Linear(), X)
    options: dict[str, Any] = {"tol": 1e-6, "random_state": seed}
    # The first call of a process loads or compiles the solvers, which is not to be timed.
    exact.solve(problem, gram, max_iter=1, **options)
    pairwise.solve(problem, gram, max_iter=1, **options)
    return {
        "exact": exact.solve(problem, gram, **options).history,
        "paper's coordinate descent": pairwise.solve(problem, gram, **options).history,
        "gradient descent on the primal": primal.solve(
            problem, gram, method="subgradient", max_iter=2000, **options
        ).history,
    }
