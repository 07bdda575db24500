"""``attop show``: what a file says about its model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer


def show(
    file: Annotated[Path, typer.Argument(help="Saved model, or ONNX graph, of attop.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show what a model says about itself; nothing of it is loaded or run."""
    import json

    from rich.console import Console
    from rich.table import Table

    from attop import model_card

    try:
        card = model_card(file)
    except (ValueError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    if as_json:
        typer.echo(json.dumps(card, indent=2))
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _lines(card):
        grid.add_row(name, value)
    Console(markup=False, highlight=False).print(grid)


def _lines(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is shown, line by line."""
    yield card["classifier"], card["description"]
    for step in card["steps"]:
        yield "after", step
    yield "parameters", _pairs(card["parameters"])
    certificate = card["certificate"]
    if certificate is not None:
        yield "certificate", f"{certificate['status']}: {certificate['explanation']}"
        numbers = {name: certificate[name] for name in ("objective", "dual_gap", "tol")}
        yield "", _pairs(numbers)
    yield "fit", _pairs(card["fitted"])
    for layer in card["around"]:
        yield f"in {layer['name']}", _pairs(layer["parameters"] | layer["fitted"])
    yield "classes", f"{_listed(card['classes'])}, of which {card['pos_label']!r} is positive"
    names = card["feature_names"]
    yield "features", str(card["n_features"]) + (f": {_listed(names)}" if names else "")
    yield "versions", ", ".join(f"{name} {version}" for name, version in card["versions"].items())
    yield "date", card["date"]
    if card["notes"]:
        yield "notes", _pairs(card["notes"])


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _listed(values: list[Any] | None) -> str:
    from attop._words import listed

    return listed(values or [])
