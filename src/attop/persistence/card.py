"""What a model says about itself: how it was made, how good it is certified to be, by what."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

#: What tells our files from others, and their version.
KIND, FORMAT = "attop model", 1
#: Where the card is in a zip archive and among the metadata of an ONNX graph.
CARD_MEMBER, CARD_KEY = "model_card.json", "attop.model_card"


def model_card(source: Any) -> dict[str, Any]:
    """What a model, or a file of one, says about itself.

    Parameters
    ----------
    source : estimator or path-like
        A model; or a file that `save` or `to_onnx` has written, of which only the card is read.

    Returns
    -------
    dict
        ``"classifier"``, ``"description"``, ``"parameters"`` and ``"steps"`` before it;
        ``"certificate"`` with status, objective, dual gap and tolerance; ``"fitted"`` with other
        numbers of the fit; ``"around"``, the searches and thresholds that the classifier is in;
        ``"classes"``, ``"pos_label"``, ``"n_features"`` and ``"feature_names"``; ``"versions"``,
        ``"date"`` and ``"notes"``.  All of it is what JSON can hold.

    Raises
    ------
    ValueError
        If the file has no card.

    See Also
    --------
    save : Save a model with its card.
    to_onnx : Export a model with its card.

    Examples
    --------
    >>> import attop
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> card = attop.model_card(attop.TauFPL(tau=0.1).fit(X, y))
    >>> card["classifier"], card["parameters"]["tau"], card["certificate"]["status"]
    ('TauFPL', 0.1, 'CONVERGED')
    """
    if isinstance(source, str | os.PathLike):
        return read_card(Path(source))
    return make_card(source)


def make_card(model: Any, notes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The card of a model, as of now."""
    *around, classifier = _layers(model)
    description = (type(classifier).__doc__ or "").strip().partition("\n")[0]
    return {
        "kind": KIND,
        "format": FORMAT,
        "classifier": type(classifier).__name__,
        "description": description,
        "parameters": _plain(_parameters(classifier)),
        "steps": [" ".join(repr(step).split()) for step in _steps(model)],
        "certificate": _certificate(classifier),
        "fitted": _fitted(classifier),
        "around": [
            {
                "name": type(layer).__name__,
                "parameters": _plain(_parameters(layer)),
                "fitted": _fitted(layer),
            }
            for layer in around
            if not hasattr(layer, "steps")
        ],
        "classes": _plain(getattr(model, "classes_", None)),
        "pos_label": _plain(_first(model, "pos_label_")),
        "n_features": _plain(getattr(model, "n_features_in_", None)),
        "feature_names": _plain(getattr(model, "feature_names_in_", None)),
        "versions": _versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "notes": _plain(dict(notes or {})),
    }


def read_card(path: Path) -> dict[str, Any]:
    """The card in a file; a ValueError where there is none."""
    with path.open("rb") as file:
        first = file.read(4)
    text = _card_in_archive(path) if first.startswith(b"PK") else _card_in_graph(path)
    try:
        card = json.loads(text or "null")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its model card cannot be read.") from error
    if not isinstance(card, dict) or card.get("kind") != KIND:
        raise ValueError(f"{path} is not a model that attop.save or attop.to_onnx has written.")
    if card.get("format") != FORMAT:
        writer = card.get("versions", {}).get("attop", "another version")
        raise ValueError(
            f"{path} was written by attop {writer} in format {card.get('format')}, and this "
            f"version reads format {FORMAT}. Use that version."
        )
    return card


def _card_in_archive(path: Path) -> str | None:
    if not is_zipfile(path):
        raise ValueError(f"{path} is damaged: the end of the file is missing.")
    try:
        with ZipFile(path) as archive:
            return archive.read(CARD_MEMBER).decode()
    except KeyError:
        return None
    except Exception as error:  # a damaged archive can fail in any way
        raise ValueError(f"{path} is damaged: {error}") from error


def _card_in_graph(path: Path) -> str | None:
    """The card among the metadata of an ONNX file, None for any other file."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        if path.suffix != ".onnx":
            return None
        raise ImportError(
            f'To read {path.name}, install onnx: pip install "attop[onnx]".'
        ) from error
    try:
        graph = onnx.load(path, load_external_data=False)
    except (DecodeError, ValueError):
        return None
    return next((entry.value for entry in graph.metadata_props if entry.key == CARD_KEY), None)


def _layers(model: Any) -> Iterator[Any]:
    """The model, what is in it, and so on to the classifier that has the scores."""
    yield model
    inner = None
    if getattr(model, "steps", None):
        inner = model.steps[-1][1]
    else:
        names = ("best_estimator_", "estimator_", "estimator")  # a fitted one first
        inner = next((getattr(model, name) for name in names if hasattr(model, name)), None)
    if hasattr(inner, "get_params"):
        yield from _layers(inner)


def _steps(model: Any) -> Iterator[Any]:
    """The transformers of all pipelines, in the order in which samples pass them."""
    for layer in _layers(model):
        yield from (step for _, step in (getattr(layer, "steps", None) or [])[:-1])


def _first(model: Any, name: str) -> Any:
    """An attribute of the outermost layer that has it."""
    return next((getattr(layer, name) for layer in _layers(model) if hasattr(layer, name)), None)


def _parameters(estimator: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name != "estimator"}


def _certificate(classifier: Any) -> dict[str, Any] | None:
    """How far from the optimum the model can be; None where nothing was certified or fitted."""
    if not hasattr(classifier, "status_"):
        return None
    return {
        "status": classifier.status_.name,
        "explanation": str(classifier.status_),
        "objective": _plain(classifier.objective_),
        "dual_gap": _plain(classifier.dual_gap_),
        "tol": _plain(classifier.tol),
    }


def _fitted(estimator: Any) -> dict[str, Any]:
    """Numbers and words that a fit has left, and the number of support vectors."""
    shown = {"status_", "objective_", "dual_gap_", "pos_label_", "n_features_in_"}
    found = {
        name: _plain(value)
        for name, value in vars(estimator).items()
        if name.endswith("_")
        and not name.startswith("_")
        and name not in shown
        and isinstance(value, bool | int | float | str | np.generic | dict)
        and name not in ("cv_results_", "stats_")
    }
    if hasattr(estimator, "support_"):
        found["n_support_vectors"] = len(estimator.support_)
    return found


def _versions() -> dict[str, str]:
    import scipy
    import sklearn

    from attop import __version__

    return {
        "attop": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: what it has no word for, as Python would write it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return repr(value)
