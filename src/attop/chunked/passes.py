"""Passes over chunks: a look at the samples, their scores, and a few rows with sums of the rest.

Scores are in float64 from a centre; chunks are taken in blocks, so that a pass needs little memory
besides its chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.chunked.protocol import Chunk, Vector

#: Entries, and rows, that are converted to float64 at once.
_ENTRIES, BLOCK = 2**20, 4096
#: Groups are divided by the distance from the kinks of the last model, too: where so many scores
#: are at a kink that none of them is gathered, their groups lead on.
_BINS = np.concatenate([-np.geomspace(1.0, 1e-6, 7), np.geomspace(1e-6, 1.0, 7)])


class Rows(NamedTuple):
    """Samples from the centre, dense or CSR in float64, and their weights."""

    X: Any
    weights: Vector


class Group(NamedTuple):
    """Weight and sum of the samples of a group."""

    weight: float
    total: Vector


Groups = dict[int, Group]


class Look(NamedTuple):
    """What a first look at samples tells.

    Attributes
    ----------
    total, square : float
        Sum of all features of all copies, and of their squares.
    largest : float
        The largest absolute value; not finite where there are NaN or infinities.
    longest : float
        The largest norm of a sample.
    rows : int
        Rows of the largest chunk.
    blocks : int
        Blocks of all chunks.
    positives, negatives : Rows
        Samples drawn at random, as they are.
    """

    total: float
    square: float
    largest: float
    longest: float
    rows: int
    blocks: int
    positives: Rows
    negatives: Rows


class Scored(NamedTuple):
    """Scores of the samples of a chunk, for one or several weights of a model."""

    scores: NDArray[np.float64]
    positive: NDArray[np.bool_]
    copies: Vector


class Request(NamedTuple):
    """Which samples are wanted one by one; all others are added up in groups.

    Attributes
    ----------
    W : ndarray of shape (n_features, n_models)
        Weights of models, the best ones last.
    kinks : ndarray of shape (2, n_models)
        At which scores of each a positive's loss, and what a competitor adds, has its kink.
    widths : ndarray of shape (2, n_models)
        How far from a kink a positive, and a competitor, may be to be wanted.
    ties : ndarray of shape (n_models,)
        Scores are at a kink that differ from it by no more.
    all_compete : bool
        Whether the positives are competitors, too.
    centre : ndarray or None
        From where samples are taken.
    """

    W: NDArray[np.float64]
    kinks: NDArray[np.float64]
    widths: NDArray[np.float64]
    ties: Vector
    all_compete: bool
    centre: Vector | None


class Gathered(NamedTuple):
    """The answer to a `Request`: of positives for their losses, and of competitors."""

    positives: Rows
    positive_groups: Groups
    competitors: Rows
    competitor_groups: Groups


def blocks(X: Any, centre: Vector | None = None) -> Iterator[tuple[slice, Any]]:
    """Parts of the rows, in float64 and from the centre."""
    step = max(1, min(BLOCK, _ENTRIES // max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        part = slice(start, min(start + step, X.shape[0]))
        block = X[part].astype(np.float64)
        if centre is not None:
            block = block - centre
        yield part, block


def look(chunk: Chunk, shares: tuple[float, float], seed: int) -> Look:
    """See what values there are, and draw a share of the positives and of the negatives."""
    total = square = largest = longest = 0.0
    n_blocks = 0
    for part, block in blocks(chunk.X):
        n_blocks += 1
        values = block.data if sp.issparse(block) else block
        if not np.isfinite(values).all():
            largest = np.inf
            break
        largest = max(largest, float(np.max(np.abs(values), initial=0.0)))
        with np.errstate(over="ignore"):
            squares = np.asarray(
                block.multiply(block).sum(axis=1) if sp.issparse(block) else (block**2).sum(axis=1)
            ).ravel()
        copies = chunk.copies[part]
        total += float(copies @ np.asarray(block.sum(axis=1)).ravel())
        square += float(copies @ squares)
        longest = max(longest, float(np.sqrt(np.max(squares))))
    drawn = np.random.default_rng([seed, chunk.number]).random(len(chunk.positive))
    of_positives, of_negatives = shares
    positives = _rows(chunk, np.flatnonzero(chunk.positive & (drawn < of_positives)))
    negatives = _rows(chunk, np.flatnonzero(~chunk.positive & (drawn < of_negatives)))
    rows = len(chunk.positive)
    return Look(total, square, largest, longest, rows, n_blocks, positives, negatives)


def merge_looks(looks: list[Look]) -> Look:
    """The look at all."""
    return Look(
        sum(one.total for one in looks),
        sum(one.square for one in looks),
        max(one.largest for one in looks),
        max(one.longest for one in looks),
        max(one.rows for one in looks),
        sum(one.blocks for one in looks),
        merge_rows([one.positives for one in looks]),
        merge_rows([one.negatives for one in looks]),
    )


def score(chunk: Chunk, W: NDArray[np.float64], centre: Vector | None) -> Scored:
    """The scores of all samples."""
    scores = np.empty((len(chunk.positive), *W.shape[1:]))
    for part, block in blocks(chunk.X, centre):
        scores[part] = block @ W
    return Scored(scores, chunk.positive, chunk.copies)


def gather(chunk: Chunk, request: Request) -> Gathered:
    """The samples near the kinks, and the sums of the others by where their scores are.

    A group has the samples whose scores are above, at or below the kinks of every model, and about
    as far from those of the last; the positives apart from the negatives, since they may move
    together.
    """
    digits = 3 ** np.arange(request.W.shape[1], dtype=np.int64)
    found: list[Gathered] = []
    copies = chunk.copies
    for part, block in blocks(chunk.X, request.centre):
        scores, positive, weights = block @ request.W, chunk.positive[part], copies[part]
        answers: list[Any] = []
        for role in (0, 1):
            there = (~positive | request.all_compete) if role else positive
            beyond = scores - request.kinks[role]
            near = np.any(np.abs(beyond) <= request.widths[role], axis=1)
            sides = (beyond > request.ties).astype(np.int64) + (beyond >= -request.ties)
            codes = 2 * (sides @ digits) + positive
            codes = (len(_BINS) + 1) * codes + np.searchsorted(_BINS, beyond[:, -1])
            wanted = np.flatnonzero(there & near)
            answers.append(Rows(block[wanted], weights[wanted]))
            answers.append(_groups(block, weights, codes, np.flatnonzero(there & ~near)))
        found.append(Gathered(*answers))
    return merge_gathered(found) if found else _nothing(chunk.X)


def merge_gathered(parts: list[Gathered]) -> Gathered:
    """The answers of all chunks together."""
    return Gathered(
        merge_rows([part.positives for part in parts]),
        _merge_groups([part.positive_groups for part in parts]),
        merge_rows([part.competitors for part in parts]),
        _merge_groups([part.competitor_groups for part in parts]),
    )


def merge_rows(parts: list[Rows]) -> Rows:
    """The rows of all parts."""
    there = [part for part in parts if len(part.weights)] or parts[:1]
    if len(there) == 1:
        return there[0]
    matrices = [part.X for part in there]
    stacked = sp.vstack(matrices, "csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
    return Rows(stacked, np.concatenate([part.weights for part in there]))


def _rows(chunk: Chunk, rows: NDArray[np.intp]) -> Rows:
    return Rows(chunk.X[rows], chunk.copies[rows])


def _groups(
    block: Any, weights: Vector, codes: NDArray[np.int64], rows: NDArray[np.intp]
) -> Groups:
    """Weights and sums of some rows, by their codes."""
    if len(rows) == 0:
        return {}
    names, place = np.unique(codes[rows], return_inverse=True)
    shape = len(names), block.shape[0]
    members = sp.csr_matrix((weights[rows], (place, rows)), shape=shape)
    sums = members @ block
    if sp.issparse(sums):
        sums = sums.toarray()
    counts = np.bincount(place, weights[rows], len(names))
    return {
        int(name): Group(float(count), total)
        for name, count, total in zip(names, counts, sums, strict=True)
    }


def _merge_groups(parts: list[Groups]) -> Groups:
    merged: Groups = {}
    for part in parts:
        for name, group in part.items():
            other = merged.get(name)
            merged[name] = (
                group
                if other is None
                else Group(group.weight + other.weight, group.total + other.total)
            )
    return merged


def _nothing(X: Any) -> Gathered:
    """The answer of an empty chunk."""
    rows = Rows(X[:0].astype(np.float64), np.zeros(0))
    return Gathered(rows, {}, rows, {})
