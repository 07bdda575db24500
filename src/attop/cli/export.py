"""``attop export``: a saved model for programs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console


def export(
    model: Annotated[Path, typer.Argument(help="File of a model, written by attop.save.")],
    output: Annotated[
        Path | None, typer.Argument(help="ONNX file to write; by default the model's name.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there already.")
    ] = False,
) -> None:
    """Export a model, with all of its pipeline, as an ONNX graph in double precision.

    Its inputs are the columns of the samples, its outputs the label and the score.
    """
    output = model.with_suffix(".onnx") if output is None else output
    if output.exists() and not force:
        raise typer.BadParameter(
            f"{output} exists already. Name another file, or replace it with --force.",
            param_hint="OUTPUT",
        )
    import attop

    try:
        loaded = attop.load(model)
        notes = attop.model_card(model)["notes"]
        output.parent.mkdir(parents=True, exist_ok=True)
        graph = attop.to_onnx(loaded, output, notes=notes)
    except (ValueError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="MODEL") from None
    console = Console()
    for entry in graph.graph.input:
        console.print(f"Input {entry.name}: {_shape(entry)}", markup=False, soft_wrap=True)
    console.print(f"Outputs label and score: {output}", markup=False, soft_wrap=True)


def _shape(entry: Any) -> str:
    """What an input takes, in words."""
    from onnx import TensorProto

    tensor = entry.type.tensor_type
    width = tensor.shape.dim[1].dim_value
    kind = "text" if tensor.elem_type == TensorProto.STRING else "double precision"
    return f"{width} column{'s' if width > 1 else ''}, {kind}"
