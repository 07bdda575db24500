"""The file of a model: the only two functions that know its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import typer

from attop.cli._files import written_whole

#: Content of a saved model that tells it from any other file.
KIND = "attop model"


class SavedModel(NamedTuple):
    """A fitted classifier of scikit-learn, and what the command line knows about it.

    ``metadata`` holds texts, numbers, lists and dicts of them alone, and so can be kept in any
    format: ``columns`` (see `attop.cli._columns.Columns`; None for a matrix without names),
    ``positive``, ``data``, ``version``.
    """

    model: Any
    metadata: dict[str, Any]


def save_model(saved: SavedModel, path: Path) -> None:
    """Write a model as a whole or not at all."""
    import joblib

    with written_whole(path) as temporary:
        joblib.dump({"kind": KIND, **saved._asdict()}, temporary, compress=3)


def load_model(path: Path) -> SavedModel:
    """Read a model.

    Raises
    ------
    typer.BadParameter
        If the file is damaged, or something else than a model.
    """
    import joblib

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        content = joblib.load(path)
    except Exception as error:  # pickles can fail in any way
        reason = f" ({error})" if isinstance(error, ImportError | AttributeError) else ""
        raise typer.BadParameter(
            f"{path} cannot be read: it is damaged, or no model of attop fit{reason}.",
            param_hint="MODEL",
        ) from None
    if not isinstance(content, dict) or content.get("kind") != KIND or "metadata" not in content:
        raise typer.BadParameter(
            f"{path} is no model that this version of attop fit has written.", param_hint="MODEL"
        )
    return SavedModel(content["model"], content["metadata"])
