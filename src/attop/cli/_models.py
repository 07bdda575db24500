"""The file of a model: the only functions that know its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import typer

from attop.cli._files import written_whole

#: Content of a pickled model that tells it from any other file.
KIND = "attop model"


class SavedModel(NamedTuple):
    """A fitted classifier of scikit-learn, and what the command line knows about it.

    ``metadata`` holds texts, numbers, lists and dicts of them alone, and so can be kept in any
    format: ``columns`` (see `attop.cli._columns.Columns`; None for a matrix without names),
    ``positive``, ``data``, ``version``.
    """

    model: Any
    metadata: dict[str, Any]


def check_format(*, pickled: bool) -> None:
    """See, before the work, that models can be saved."""
    if not pickled:
        from attop.persistence.files import _skops

        _skops("attop fit")


def save_model(saved: SavedModel, path: Path, *, pickled: bool = False) -> None:
    """Write a model as a whole or not at all; by `attop.save`, or as a pickle."""
    import joblib

    import attop

    if not pickled:
        attop.save(saved.model, path, notes=saved.metadata, trusted=_sparse())
        return
    with written_whole(path) as temporary:
        joblib.dump({"kind": KIND, **saved._asdict()}, temporary, compress=3)


def load_model(path: Path, *, pickled: bool = False) -> SavedModel:
    """Read a model.

    Raises
    ------
    typer.BadParameter
        If the file is damaged, or something else than a model of ``attop fit``.
    """
    import attop

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if pickled:
        return _load_pickle(path)
    try:
        saved = SavedModel(attop.load(path, trusted=_sparse()), attop.model_card(path)["notes"])
    except ValueError as error:
        raise typer.BadParameter(
            f"{path} cannot be read: {error} If it is a pickle that you trust, add --pickle.",
            param_hint="MODEL",
        ) from None
    if not {"columns", "positive"} <= saved.metadata.keys():
        raise typer.BadParameter(
            f"{path} was saved by a program, not by attop fit: use attop.load in a program.",
            param_hint="MODEL",
        )
    return saved


def _sparse() -> tuple[type, ...]:
    """Types of the support vectors of models that were fitted to sparse samples."""
    import scipy.sparse as sp

    return sp.csr_matrix, sp.csr_array


def _load_pickle(path: Path) -> SavedModel:
    import joblib

    try:
        content = joblib.load(path)
    except Exception as error:  # pickles can fail in any way
        reason = f" ({error})" if isinstance(error, ImportError | AttributeError) else ""
        raise typer.BadParameter(
            f"{path} cannot be read: it is damaged, or no pickle of attop fit{reason}.",
            param_hint="MODEL",
        ) from None
    if not isinstance(content, dict) or content.get("kind") != KIND or "metadata" not in content:
        raise typer.BadParameter(
            f"{path} is no model that this version of attop fit has written.", param_hint="MODEL"
        )
    return SavedModel(content["model"], content["metadata"])
