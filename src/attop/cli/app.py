"""The commands of ``attop``, gathered.

A command is a function in a module of its own here, plus one line at the end of the
list below.  Such a module imports what costs time (numba, matplotlib, scikit-learn)
inside its functions, so that ``attop --help`` stays quick.  It reports a user's error
as `typer.BadParameter` or as the `OSError` that the system raised, and a package that is
not installed as an `ImportError` that says how to install it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from attop import __version__
from attop.cli.compare import compare
from attop.cli.datasets import datasets
from attop.cli.demo import demo
from attop.cli.diagram import diagram
from attop.cli.export import export
from attop.cli.figure import figure
from attop.cli.fit import fit
from attop.cli.predict import predict
from attop.cli.report import report
from attop.cli.run import run as run_command
from attop.cli.show import show
from attop.cli.table import table
from attop.cli.warmup import warmup

app = typer.Typer(
    name="attop",
    help="Classification at the top: classifiers for the samples with the highest scores.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(demo)
app.add_typer(figure, name="figure")
app.command()(datasets)
app.command("run")(run_command)
app.command()(table)
app.command()(diagram)
app.command()(compare)
app.command()(report)
app.command()(fit)
app.command()(predict)
app.command()(export)
app.command()(show)
app.command()(warmup)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attop {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> None:
    """Run `app` on `arguments` and exit, without a traceback where the user can help."""
    try:
        app(args=arguments, prog_name="attop")
    except (OSError, ImportError) as error:
        if isinstance(error, ImportError) and "pip install" not in str(error):
            raise  # not a package left out by choice, but something broken
        message = Text.assemble(("Error: ", "red"), _explain(error))
        Console(stderr=True).print(message, soft_wrap=True)
        sys.exit(2)


def _explain(error: OSError | ImportError) -> str:
    """What went wrong and with which file."""
    if isinstance(error, ImportError) or error.strerror is None or error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"
