"""``attop predict``: labels and scores of new samples by a saved model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from attop._words import listed, suggestion
from attop.cli._files import ForceOption, check_output
from attop.cli._messages import told
from attop.cli._models import SavedModel, load_model

#: Columns of the predictions.
PREDICTION, SCORE = "prediction", "score"


class Chunk(NamedTuple):
    """Some rows: their features, and what names them."""

    X: Any
    ids: Any


def predict(
    model: Annotated[Path, typer.Argument(help="File written by attop fit.")],
    data: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet, libsvm or npz file of new samples.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="CSV, TSV, Parquet or npz file; else the screen.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", help="Column to carry through; that of attop fit by default."),
    ] = None,
    chunk_size: Annotated[int, typer.Option(help="Rows in memory at a time.", min=1)] = 20_000,
    pickle: Annotated[
        bool,
        typer.Option(
            "--pickle", help="MODEL is a pickle, which runs code when it is opened: one you trust."
        ),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Predict the labels of new samples, with their scores: 0 at the threshold, positive above.

    Tables are read and written in chunks, so that they may be larger than memory.  Columns that
    the model does not know are left aside.
    """
    from attop.cli._writers import check_ending, predictions_writer

    console = Console(stderr=output is None)  # the screen is for the predictions then
    if output is not None:
        check_ending(output)
        check_output(output, "--output", force=force)
    with told(console):
        saved = load_model(model, pickled=pickle)
        if not data.is_file():
            raise FileNotFoundError(f"There is no file {data}.")
        unknown = UnknownCategories(saved.model)
        n_rows = n_positive = 0
        with predictions_writer(output) as write:
            for chunk in _chunks(data, saved, id, chunk_size):
                columns, n_called = _predictions(saved, chunk)
                write(columns)
                unknown.look_at(chunk.X)
                n_rows, n_positive = n_rows + len(columns[SCORE]), n_positive + n_called
    for line in unknown.notes():
        console.print(line, markup=False, highlight=False, soft_wrap=True, style="yellow")
    if output is not None:
        positive = saved.metadata["positive"]
        message = f"{n_positive} of {n_rows} samples are {_called(positive)}: {output}"
        console.print(message, markup=False, highlight=False, soft_wrap=True)


def _called(positive: Any) -> str:
    return "positive" if positive in (1, True) else f"positive ({positive!r})"


def _predictions(saved: SavedModel, chunk: Chunk) -> tuple[dict[str, Any], int]:
    """The columns of the output, and how many samples are called positive."""
    import numpy as np

    from attop.cli._assessment import score

    positive, labels = saved.metadata["positive"], saved.model.classes_
    if chunk.X.shape[0]:
        scores, called = score(saved.model, chunk.X, positive)
    else:
        scores, called = np.empty(0), np.empty(0, dtype=bool)
    other = labels[labels != positive][0]
    columns = {} if chunk.ids is None else {chunk.ids[0]: chunk.ids[1]}
    columns |= {PREDICTION: np.where(called, positive, other), SCORE: scores}
    return columns, int(called.sum())


def _chunks(data: Path, saved: SavedModel, id: str | None, size: int) -> Iterator[Chunk]:
    from attop.datasets.frames import TABLE_ENDINGS, ending

    is_table = ending(data) in TABLE_ENDINGS
    if saved.metadata["columns"] is None:
        if is_table:
            raise ValueError(
                f"The model was fitted to {saved.metadata['data']}, whose features have no names; "
                f"it cannot tell the columns of {data.name}."
            )
        return _matrix_chunks(data, saved.metadata["n_features"], id, size)
    if not is_table:
        raise ValueError(
            f"The model was fitted to named columns ({saved.metadata['data']}), and those of "
            f"{data.name} have no names: give it a {', '.join(TABLE_ENDINGS)} file."
        )
    return _table_chunks(data, saved, id, size)


def _table_chunks(data: Path, saved: SavedModel, id: str | None, size: int) -> Iterator[Chunk]:
    from attop.cli._columns import Columns, check_columns, feature_frame
    from attop.datasets.frames import column_names, frame_chunks

    columns = Columns(**saved.metadata["columns"])
    names = column_names(data)
    lacking = [name for name in columns.features if name not in names]
    if lacking:
        hint = suggestion(lacking[0], [name for name in names if name not in columns.features])
        raise ValueError(f"{data.name} has no column {listed(lacking)}. {hint}")
    carried = id or (columns.id if columns.id in names else None)
    check_columns(names, {"--id": [carried] if carried is not None else []}, data.name)
    if carried in (PREDICTION, SCORE):
        raise ValueError(
            f"The predictions have a column {carried!r} of their own: rename that one."
        )
    aside = [carried] if carried is not None and carried not in columns.features else []
    first_row, words = 1, [*columns.categories, *aside]
    for frame in frame_chunks(
        data, size, columns=[*columns.features, *aside], words=words, missing=columns.missing
    ):
        X = feature_frame(frame, columns, data.name, first_row)
        yield Chunk(X, None if carried is None else (carried, _carried(frame[carried])))
        first_row += len(frame)


def _carried(column: Any) -> Any:
    """A column as it is, with empty texts for gaps in one of texts."""
    values = column.to_numpy()
    return values if values.dtype.kind != "O" else column.fillna("").astype(object).to_numpy()


def _matrix_chunks(data: Path, n_features: int, id: str | None, size: int) -> Iterator[Chunk]:
    X, arrays = _read_matrix(data, n_features)
    if X.shape[1] != n_features:
        raise ValueError(
            f"{data.name} must have the {n_features} features of the fit. Got {X.shape[1]} instead."
        )
    if id is not None and id.lower() not in arrays:
        raise ValueError(
            f"--id must name an array of {data.name}. Got {id!r} instead. {suggestion(id, arrays)}"
        )
    name = "id" if id is None and len(arrays.get("id", ())) == X.shape[0] else id
    for start in range(0, max(X.shape[0], 1), size):
        rows = slice(start, start + size)
        yield Chunk(X[rows], None if name is None else (name, arrays[name.lower()][rows]))


def _read_matrix(data: Path, n_features: int) -> tuple[Any, dict[str, Any]]:
    """The matrix of the samples, and further arrays by their names in lower case."""
    from sklearn.datasets import load_svmlight_file

    from attop.datasets.frames import ending
    from attop.datasets.loading import npz_arrays

    if ending(data) in (".libsvm", ".svm"):
        try:
            return load_svmlight_file(str(data), n_features=n_features)[0], {}
        except ValueError as error:
            raise ValueError(f"{data.name} cannot be read: {error}") from None
    if ending(data) != ".npz":
        raise ValueError(
            f"DATA must be a .csv, .tsv, .parquet, .npz or .libsvm file. Got {data.name!r} instead."
        )
    arrays = npz_arrays(data)
    found = next((key for key in ("x", "x_test") if key in arrays), None)
    if found is None:
        raise ValueError(f"{data.name} must hold an array X. Got {list(arrays)} instead.")
    X = arrays[found]
    return X.reshape(len(X), -1), arrays


class UnknownCategories:
    """Categories of new samples that the model has never seen."""

    def __init__(self, model: Any) -> None:
        from attop.cli._preparation import known_categories

        self.known = known_categories(model)
        self.seen: dict[str, set[str]] = {name: set() for name in self.known}

    def look_at(self, X: Any) -> None:
        """Remember the categories of some samples that are new."""
        for name, known in self.known.items():
            self.seen[name] |= set(X[name].dropna().unique()) - known

    def notes(self) -> list[str]:
        """What to tell the user about them."""
        return [
            f"Column {name!r} has values that the model does not know: {listed(sorted(values))}. "
            "They count as none of those it knows."
            for name, values in self.seen.items()
            if values
        ]
