"""A block of dual variables, as Python sees it.

Everything is written for moves *up*, ``w += delta * phi``: an alpha grows or a beta
shrinks.  ``rate`` is the gain rate of an up move, so that the pair (up a, down b) gains at
rate ``rate[a] - rate[b]`` with curvature ``|phi_a - phi_b|^2``.

Values are those of one copy of a sample, and so are bounds and the cap.  Moves are changes of
``w``: one by ``delta`` changes the value of a sample with the weight ``v`` by ``delta / v``, and
its rooms are counted in the same way.

All betas at the cap ``u`` form the group, which moves as one.  Most of its members may lie
outside the block: what the moves need of them is the weighted sum of their kernel columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Betas this close to the cap, relative to it, belong to the group.
AT_CAP = 1e-10
#: Sums of weights that differ by less, relative to them, are the same.
SAME = 1e-12

#: The rows of a block's table, in the order of the fields of `Block`; those after are scratch.
DIAGONAL, WEIGHT, VALUE, RATE, RISE, FALL, COLUMN = range(7)
GAIN, ROOMS, FULL_RATE, FULL_DIAGONAL = range(7, 11)
_ROWS = 11

#: The places of the numbers of a subproblem: those of the group, and then those of the terms.
CAP, MEMBERS, SIZE, SQUARE, SCORE, FLOOR = range(6)
ALPHA_MAX, BETA_MAX, PRICE, TOP_K, LEAST_CURVATURE, LEAST_VALUE = range(6, 12)
NORM_PRICE, NORM2 = range(12, 14)


class Block(NamedTuple):
    """A block of dual variables, alphas first, changed in place.

    Attributes
    ----------
    kernel : (b, b) kernel matrix of the variables' samples; on its diagonal also the penalties.
    diagonal : (b,) its diagonal.
    weight : (b,) copies of the variables' samples.
    value : (b,) alphas and betas; for a member of the group the cap counts instead.
    rate : (b,) gain rate of an up move.
    rise, fall : (b,) how far a variable can move up and down on its own.
    group_column : (b,) weighted sum of the kernel columns of all members, inside and outside.
    member : (b,) which betas are in the group.
    sample : (b,) the samples of the variables.
    table : the vectors of numbers above, one in a row, and rows of scratch: what compiled code
        takes, since each array that is passed to it costs a microsecond.
    """

    kernel: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    weight: NDArray[np.float64]
    value: NDArray[np.float64]
    rate: NDArray[np.float64]
    rise: NDArray[np.float64]
    fall: NDArray[np.float64]
    group_column: NDArray[np.float64]
    member: NDArray[np.bool_]
    sample: NDArray[np.intp]
    table: NDArray[np.float64]


def make_block(
    kernel: NDArray[np.float64],
    member: NDArray[np.bool_],
    sample: NDArray[np.intp],
    **vectors: Any,
) -> Block:
    """A block of copies of these vectors, which are those of `Block`."""
    table = np.zeros((_ROWS, len(member)))
    places = range(len(vectors))
    for place, name in zip(places, Block._fields[1:], strict=False):
        table[place] = vectors[name]
    rows = [table[place] for place in places]
    return Block._make([np.ascontiguousarray(kernel), *rows, member, sample, table])


class Group(NamedTuple):
    """The betas at the cap, inside and outside the block.

    Attributes
    ----------
    cap : the cap ``u`` (infinite: there is none).
    members : number of members.
    size : number of their copies.
    square : ``|sum of phi over the members|^2``, all copies counted, here as in what follows.
    score : minus the sum of the members' rates.
    floor : largest beta outside the block and outside the group.
    """

    cap: float
    members: int
    size: float
    square: float
    score: float
    floor: float


class Terms(NamedTuple):
    """Numbers of the dual objective.

    Attributes
    ----------
    n_alphas : number of alphas in the block.
    alpha_max, beta_max : upper bounds.
    price : price of the cap, or of the norm of the betas.
    K : number of top scores (tied cap; 0 otherwise).
    least_curvature : curvatures are raised to this.
    least_value : values this close to a bound are put onto it.
    """

    n_alphas: int
    alpha_max: float
    beta_max: float
    price: float
    K: int
    least_curvature: float
    least_value: float
