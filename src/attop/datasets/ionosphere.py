"""The Ionosphere data of the UCI repository, small enough to be part of the package."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
from sklearn.utils import Bunch

DATA = resources.files("attop.datasets") / "data"


def load_ionosphere(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Load the Ionosphere data: 351 radar returns, 34 features, 225 of them good.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `Bunch`.
    as_frame : bool, default=False
        Give the data as a pandas DataFrame and the target as a Series; needs pandas.

    Returns
    -------
    sklearn.utils.Bunch or tuple of (data, target)
        A dictionary whose entries are attributes too:

        data : ndarray of shape (351, 34), or DataFrame
            The features, between -1 and 1.
        target : ndarray of shape (351,), or Series
            1 for a good return, 0 for a bad one.
        frame : DataFrame or None
            Features and target together, with ``as_frame=True``.
        feature_names : list of str
            Names of the columns of `data`.
        target_names : ndarray of str
            ``target_names[target]`` is "good" or "bad".
        DESCR : str
            Where the data come from.
        filename : str
            Where the data lie on this machine.

    Examples
    --------
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((351, 34), 225)
    """
    path = DATA / "ionosphere.csv"
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    *feature_names, target_name = header.split(",")
    table = np.loadtxt(lines, delimiter=",")
    data: Any = np.ascontiguousarray(table[:, :-1])
    target: Any = table[:, -1].astype(np.int64)
    frame = None
    if as_frame:
        frame = _as_frame(data, target, feature_names, target_name)
        data, target = frame[feature_names], frame[target_name]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=np.array(["bad", "good"]),
        DESCR=(DATA / "ionosphere.rst").read_text(encoding="utf-8"),
        filename=str(path),
    )


def _as_frame(data: Any, target: Any, feature_names: list[str], target_name: str) -> Any:
    """Features and target as one DataFrame."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "load_ionosphere(as_frame=True) needs pandas: "
            'install it with pip install "attop[experiments]".'
        ) from error
    return pd.DataFrame(data, columns=feature_names).assign(**{target_name: target})
