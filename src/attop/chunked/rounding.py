r"""What rounding can change in the values of a model: bounds that hold in any order of summation.

A sum of n products in double precision is off by at most :math:`\gamma_n = n u / (1 - n u)`,
:math:`u = 2^{-53}`, times the sum of their sizes (:doc:`/theory/chunked`).
"""

from __future__ import annotations

from typing import NamedTuple

from attop.chunked.passes import BLOCK

#: Some more roundings than formulas of a few operations have.
FEW = 16
#: What a few roundings in a row change at most, relatively.
SOME = 2.0**-49


def gamma(n: float) -> float:
    """What so many roundings in a row, and a few more, change at most, relatively."""
    product = (n + FEW) * 2.0**-53
    return product / (1.0 - product) if product < 0.5 else float("inf")


class Rounding(NamedTuple):
    """How long the sums over samples are, and how large the samples.

    Attributes
    ----------
    features : int
        Number of features.
    rows : int
        Rows of the largest chunk.
    blocks : int
        Blocks of rows of all chunks, see `attop.chunked.passes.blocks`.
    longest : float
        Bound on the norms of samples from the centre.
    """

    features: int
    rows: int
    blocks: int
    longest: float

    def of_score(self, length: float) -> float:
        """By how much a score may be off, or a few numbers of its size, for weights so long."""
        return (gamma(self.features) + SOME) * self.longest * length

    @property
    def of_losses(self) -> float:
        """By how much a sum over scores of all samples may be off, relatively.

        A chunk adds up its own at once.
        """
        return gamma(self.rows + self.blocks)

    @property
    def of_sums(self) -> float:
        """By how much a sum of samples may be off, relative to that of their norms.

        Blocks add up their own, and there are no more chunks than blocks.
        """
        return gamma(BLOCK + self.blocks)
