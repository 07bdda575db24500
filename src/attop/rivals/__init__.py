"""Rankers that the paper names as related work, to be compared with.

They are simple and checked against the definitions of their own papers; none has a certificate.  An
experiment knows them by name: ``method = "PNormPush"``.
"""

from attop.rivals._boosting import RankBoost
from attop.rivals._pushes import InfinitePush, PNormPush
from attop.rivals._quantile import AccuracyAtTop

__all__ = ["AccuracyAtTop", "InfinitePush", "PNormPush", "RankBoost"]
