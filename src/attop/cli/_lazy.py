"""``attop fit --dask``: a table that is larger than the memory, block by block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from attop.cli._preparation import CLASSIFY, PREPARE, preparation
from attop.cli._training import Trained

if TYPE_CHECKING:
    from attop.cli._samples import Roles, Samples

#: Rows drawn for what a table is like, and for the report.
_DRAWN = 100_000
#: So large are the blocks, and so many features are dense in them.
_BLOCK, _DENSE = "64MiB", 1000


class Lazy(NamedTuple):
    """What came of a fit.

    Attributes
    ----------
    trained : Trained
        The model, which needs no Dask.
    n_samples : int
        Rows of the table.
    drawn, unseen : Samples
        Rows that told what the columns are; and others, held out for the report.
    """

    trained: Trained
    n_samples: int
    drawn: Samples
    unseen: Samples


class _Draw(NamedTuple):
    """Which rows are drawn, by their block."""

    share: float
    seed: int

    def numbers(self, number: int, count: int) -> Any:
        """A random number of each row: held out below half the share."""
        import numpy as np

        return np.random.default_rng([self.seed, number]).random(count)


def check_lazy(data: Path, classifier: Any, *, search: bool, guarantee: str | None) -> None:
    """Raise a ValueError that names the option that does not go with ``--dask``."""
    from attop.base import AtTopClassifier
    from attop.datasets.frames import ending

    if ending(data) != ".parquet":
        raise ValueError(f"--dask takes a Parquet file. Got {data.name!r} instead.")
    if search or guarantee is not None:
        raise ValueError("--dask excludes --search and --guarantee.")
    if not isinstance(classifier, AtTopClassifier) or not classifier.formulation.convex:
        name = type(classifier).__name__
        raise ValueError(f"--dask is for the convex methods of this library. Got {name} instead.")


def fit_lazily(data: Path, roles: Roles, classifier: Any, seed: int) -> Lazy:
    """Fit a classifier to a Parquet file on all cores of this machine.

    Columns, medians and scales are those of rows drawn at random.
    """
    import dask.array as da
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    from dask import delayed
    from distributed import Client
    from pyarrow.parquet import ParquetFile
    from sklearn.pipeline import Pipeline

    import attop.dask

    n_samples = ParquetFile(data).metadata.num_rows
    draw = _Draw(min(0.5, _DRAWN / max(1, n_samples)), seed)
    with Client(dashboard_address=":0") as client:
        table = dd.read_parquet(data, split_row_groups="adaptive", blocksize=_BLOCK)
        blocks = list(enumerate(table.to_delayed()))
        parts = client.gather(
            client.compute([delayed(_drawn)(block, number, draw) for number, block in blocks])
        )
        held_out, rows = (pd.concat(list(side)) for side in zip(*parts, strict=True))
        drawn, unseen = _samples(rows, data, roles), _samples(held_out, data, roles)
        prepare = preparation(drawn).fit(drawn.X)
        width = prepare.transform(drawn.X[:1]).shape[1]
        make = delayed(_training)
        recipe = delayed(_Recipe(draw, drawn.columns, roles, _negative(drawn), drawn.positive))
        made = [
            make(block, number, recipe, delayed(prepare), data.name) for number, block in blocks
        ]
        X = da.concatenate(
            [da.from_delayed(one[0], (np.nan, width), np.float64) for one in made],
            allow_unknown_chunksizes=True,
        )
        kind = drawn.y.dtype
        y, weights = (
            da.concatenate(
                [da.from_delayed(one[k], (np.nan,), dtype) for one in made],
                allow_unknown_chunksizes=True,
            )
            for k, dtype in ((1, kind), (2, np.float64))
        )
        parameters = classifier.get_params(deep=False) | {"pos_label": drawn.positive}
        model = getattr(attop.dask, f"Dask{type(classifier).__name__}")(**parameters)
        model.fit(X, y, sample_weight=None if roles.weight is None else weights)
    whole = Pipeline([(PREPARE, prepare), (CLASSIFY, model.to_local())])
    return Lazy(Trained(whole, None), n_samples, drawn, unseen)


class _Recipe(NamedTuple):
    """What makes features and labels of a block."""

    draw: _Draw
    columns: Any
    roles: Roles
    negative: Any
    positive: Any


def _drawn(block: Any, number: int, draw: _Draw) -> tuple[Any, Any]:
    """The rows of a block that are held out, and others that are drawn."""
    drawn = draw.numbers(number, len(block))
    held_out = drawn < 0.5 * draw.share
    return block[held_out], block[~held_out & (drawn < draw.share)]


def _samples(frame: Any, data: Path, roles: Roles) -> Samples:
    """Some rows of the table, read as a table of these would be."""
    from attop.cli._samples import read_samples

    with TemporaryDirectory() as folder:
        path = Path(folder) / data.name
        frame.to_parquet(path, index=False)
        return replace(read_samples(path, roles), notes=[])


def _negative(samples: Samples) -> Any:
    return next(label for label in samples.y.tolist() if label != samples.positive)


def _training(
    block: Any, number: int, recipe: _Recipe, prepare: Any, file: str
) -> tuple[Any, Any, Any]:
    """Features, labels and weights of the rows of a block that are not held out."""
    import numpy as np
    import scipy.sparse as sp

    from attop.cli._columns import as_words, feature_frame

    drawn = recipe.draw.numbers(number, len(block))
    rows = block[drawn >= 0.5 * recipe.draw.share]
    target = rows[recipe.roles.target]
    if isinstance(recipe.positive, str):
        positive = as_words(target).astype(str) == recipe.positive
    else:
        positive = target.to_numpy() == recipe.positive
    y = np.where(positive, recipe.positive, recipe.negative)
    weight = recipe.roles.weight
    weights = np.ones(len(rows)) if weight is None else rows[weight].to_numpy(dtype=np.float64)
    X = prepare.transform(feature_frame(rows, recipe.columns, file))
    if sp.issparse(X) and X.shape[1] <= _DENSE:
        X = X.toarray()
    elif not sp.issparse(X) and X.shape[1] > _DENSE:
        X = sp.csr_matrix(X)
    return X, y, weights
