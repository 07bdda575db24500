"""Models in files that are safe to open.

A file is a zip archive as skops writes it, a description of every object with its type in
``schema.json`` and arrays beside it, with the model card as one more member.  Nothing in it is
run: types are compared with a list before the first object is made.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile, is_zipfile

from attop.persistence.card import CARD_MEMBER, make_card, read_card
from attop.persistence.trusted import (
    refuse_functions,
    refuse_requests,
    refuse_types,
    trusted_names,
)

#: Zip archives compress support vectors with many zeros well, others little; 1 is the fastest.
_LEVEL = 1


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
    trusted: Iterable[type] = (),
) -> None:
    """Save a model in a file that is safe to open.

    The file is written as a whole or not at all: an error leaves an earlier file as it was.

    Parameters
    ----------
    model : estimator
        A classifier of this library, or a pipeline, search or threshold with one inside.
    path : path-like
        The file, such as ``"model.attop"``; an earlier one is replaced.
    notes : mapping, default=None
        Further entries of the model card, such as where the data came from: what JSON can hold.
    trusted : iterable of type, default=()
        Classes of yours that the model has parts of; `load` asks for them again.

    Raises
    ------
    ValueError
        If `load` would refuse the file; the message names the parameter that is why.
    ImportError
        If skops is not installed.

    See Also
    --------
    load : Load such a file.
    to_onnx : Export a model to programs without Python.

    Examples
    --------
    >>> import attop
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = attop.TopPush().fit(X, y)
    >>> attop.save(model, "model.attop")  # doctest: +SKIP
    >>> attop.load("model.attop").predict(X)  # doctest: +SKIP
    """
    skops = _skops("attop.save")
    if not _is_estimator(model):
        raise TypeError(f"attop.save takes an estimator. Got {model!r} instead.")
    names = trusted_names(trusted)
    refuse_functions(model, names)
    refuse_requests(model)
    buffer = io.BytesIO()
    skops.dump(model, buffer, compression=ZIP_DEFLATED, compresslevel=_LEVEL)
    refuse_types(model, set(skops.get_untrusted_types(data=buffer.getvalue())) - {*names})
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        archive.writestr(CARD_MEMBER, json.dumps(make_card(model, notes), allow_nan=False))
    write_whole(Path(path), buffer.getbuffer())


def load(path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> Any:
    """Load a model that `save` has written.

    Only known types are loaded, those of this library, of scikit-learn and of numpy; a file with
    others is refused before anything in it has run.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : iterable of type, default=()
        Classes of yours that may be loaded too.

    Returns
    -------
    estimator
        The model, as it was saved.

    Raises
    ------
    ValueError
        If the file is not one of `save`, is damaged, or has other types.
    ImportError
        If skops is not installed.

    See Also
    --------
    save : Save a model.
    model_card : What a file says about its model, without loading it.

    Notes
    -----
    As with pickle, a model is best loaded by the versions that saved it, which its card has;
    scikit-learn warns where its own differs.

    Examples
    --------
    >>> import attop
    >>> attop.load("model.attop")  # doctest: +SKIP
    """
    skops = _skops("attop.load")
    path = Path(path)
    read_card(path)  # an error that says what is wrong with a file of another kind
    names = trusted_names(trusted)
    with path.open("rb") as file:
        if not is_zipfile(file):
            raise ValueError(f"{path} is an ONNX graph: onnxruntime can load it, attop cannot.")
        try:
            model = skops.load(file, trusted=names)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file can fail in any way
            if isinstance(error, skops.exceptions.UntrustedTypesFoundException):
                raise ValueError(_refusal(path, skops, names)) from error
            raise ValueError(f"{path} is damaged and cannot be loaded: {error}") from error
    if not _is_estimator(model):
        raise ValueError(f"{path} is damaged: it has no model.")
    return model


def _is_estimator(model: Any) -> bool:
    return hasattr(model, "get_params") and not isinstance(model, type)


def _refusal(path: Path, skops: Any, names: list[str]) -> str:
    """Which types of the file are not known."""
    strangers = sorted(set(skops.get_untrusted_types(file=path)) - {*names})
    return (
        f"{path} was not loaded, as it has types that attop.load does not know: "
        f"{', '.join(strangers)}. Where they are classes of yours that you trust, pass them as "
        "'trusted'."
    )


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file by way of a temporary one beside it, which then takes its name."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # the move must not reach the disk before the content
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _skops(asked_for: str) -> Any:
    try:
        import skops.io
        import skops.io.exceptions
    except ImportError as error:
        raise ImportError(
            f'{asked_for} needs skops: install it with pip install "attop[save]".'
        ) from error
    return skops.io
