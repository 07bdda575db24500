"""The numbers of the exact solver that were found by measuring, all in one place.

Whatever they are, the optimum and its certificate are the same: they decide how long it takes.
Constants that are matters of precision or memory stand beside the code that needs them.
``benchmarks/ablation.py`` runs fits with each number halved and doubled; the comment behind a
number is what that did to the time of its cases, in the same order, when it last ran.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Settings of the exact solver.

    Attributes
    ----------
    matrix_up_to : int
        Up to so many samples the whole kernel matrix is computed at once.
    whole_up_to : int
        Up to so many dual variables all of them make the block.
    violators : int
        Variables of a block that are chosen for their violation.
    new_columns, least_new, most_new : int
        Of these, at first at most so many whose columns must be computed; bounds of that number.
    free : int
        Free variables with a column at hand that join.
    creeping : float
        A round that leaves more than this share of the gap asks for a larger block.
    before_face, face_from, face_up_to : int
        After so many pair moves all free variables are moved at once, if the block has at least so
        many variables, and so many of them at most are free.
    turns : int
        Pair moves and the interior-point method take turns at most so often.
    one_thread_below : int
        Blocks that are factorised by one thread: threads of a busy machine wait for each other.
    large, per_feature : int
        Blocks of low rank have so many variables; fewer with few features.
    large_numbers, large_operations : float
        Their features take no more numbers and their products no more operations than this.
    accurately, hardly : float
        Relative gap of such a block, relative to what is wanted of all; pair moves follow where
        it leaves more than this share of the gap.
    nearly, patience : float
        After so many rounds (costly ones count more) within so many times the gap that is asked
        for, the referee is asked: the scores may be worse than the point.
    parts_from, smaller : int
        From so many samples on, a subsample is solved first, and then the active part, which
        must be so many times smaller than the whole: its columns are computed twice.
    share : int
        One in so many samples is in the subsample.
    roughly, first, further : float
        Relative gaps to which the subsample is solved, the first active part, and further ones,
        relative to that of the whole.
    company, least_company : float
        The active part has so many samples that matter less, relative to those that do.
    growth : int
        It is expected to have so many times the support vectors of the subsample.
    few : int
        Variables of each class in a small start.
    reference_step, reference_most : int
        Sizes of the reference of an interpolation: multiples of the first up to the second.
    at_hand, near_enough : float
        Columns that may do to begin with, and the largest error that they may leave.
    tried : int
        Samples on which a reference is tried before it is used for all.
    pass_cost, scattered_cost : float
        A pass over a kernel entry takes as long as the product of so many features, and entries
        of single samples so many times as long as those of columns.
    worthwhile : float
        All columns are computed unless something else costs less than this share of it.
    fewer : int
        A reference must have so many times fewer samples than there are columns to compute.
    many : float
        With a larger share of all samples in doubt another reference is looked for.
    """

    matrix_up_to: int = 3000
    whole_up_to: int = 1024
    violators: int = 512
    new_columns: int = 256
    least_new: int = 96
    most_new: int = 512
    free: int = 2048
    creeping: float = 0.9
    before_face: int = 100
    face_from: int = 96
    face_up_to: int = 1024
    turns: int = 4
    one_thread_below: int = 4000
    large: int = 16384
    per_feature: int = 800
    large_numbers: float = 2**23
    large_operations: float = 2e9
    accurately: float = 1e-3
    hardly: float = 0.5
    nearly: float = 8.0
    patience: int = 5
    parts_from: int = 4096
    smaller: int = 4
    share: int = 8
    roughly: float = 1e-2
    first: float = 1e-3
    further: float = 0.03
    company: float = 1 / 3
    least_company: int = 256
    growth: int = 5
    few: int = 16
    reference_step: int = 64
    reference_most: int = 1024
    at_hand: int = 256
    near_enough: float = 0.2
    tried: int = 384
    pass_cost: float = 80.0
    scattered_cost: float = 1.2
    worthwhile: float = 0.8
    fewer: int = 4
    many: float = 0.25


#: The settings of every fit.
DEFAULT = Tuning()
