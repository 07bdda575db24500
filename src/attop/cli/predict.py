"""``attop predict``: scores of new samples by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from attop._words import suggestion
from attop.cli.fit import KIND

if TYPE_CHECKING:
    from pandas import DataFrame


def predict(
    model: Annotated[Path, typer.Argument(help="File written by attop fit.")],
    data: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file of new samples.")],
    output: Annotated[Path | None, typer.Option(help="CSV file to write; else the screen.")] = None,
) -> None:
    """Score new samples: their score less the threshold, and 1 where that is not negative.

    Columns that the model does not know are left aside.  A model file can run code when it
    is opened: use only those you trust.
    """
    content = _load(model)
    frame = _read(data)
    scores = content["model"].decision_function(_features(frame, content, data))
    import pandas as pd

    table = pd.DataFrame({"score": scores, "prediction": (scores >= 0.0).astype(int)})
    if output is None:
        typer.echo(table.to_csv(index=False), nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(output, index=False)
    message = f"{int(table['prediction'].sum())} of {len(table)} samples are positive: {output}"
    Console().print(message, markup=False, soft_wrap=True)


def _load(path: Path) -> dict[str, Any]:
    import joblib

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        content = joblib.load(path)
    except Exception as error:  # pickles can fail in any way
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="MODEL") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise typer.BadParameter(f"{path} was not written by attop fit.", param_hint="MODEL")
    if content["feature_names"] is None:
        raise typer.BadParameter(
            f"{path} was fitted to a file without named columns; use the model from Python: "
            "joblib.load(...)['model'].",
            param_hint="MODEL",
        )
    return content


def _read(path: Path) -> DataFrame:
    from attop.datasets.files import _read_frame

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        frame = _read_frame(path)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="DATA") from None
    frame.columns = [str(column) for column in frame.columns]
    return frame


def _features(frame: DataFrame, content: dict[str, Any], path: Path):
    """The columns that the model was fitted to, in their order."""
    names = content["feature_names"]
    for name in names:
        if name not in frame.columns:
            raise typer.BadParameter(
                f"{path.name} has no column {name!r}. {suggestion(name, frame.columns)}",
                param_hint="DATA",
            )
    try:
        values = frame[names].to_numpy(dtype=float)
    except ValueError as error:
        raise typer.BadParameter(f"{path.name}: {error}", param_hint="DATA") from None
    if values.size and not (abs(values) < float("inf")).all():
        raise typer.BadParameter(f"{path.name} has missing values.", param_hint="DATA")
    return values
