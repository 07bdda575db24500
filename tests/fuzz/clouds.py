"""Samples of every kind that has gone wrong somewhere, or might."""

from __future__ import annotations

import numpy as np

#: More samples than this are handled in single precision, at first.
LARGE = 2048
#: Codes of missing values, and values out of any scale.
SENTINELS = (-999.0, -9999.0, -99999.0, 1e6)


def normal(rng, positive, d, distance=None):
    """Two normal clouds; large ones overlap little, since fits take minutes otherwise."""
    if distance is None:
        few = len(positive) <= LARGE
        distance = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0] if few else [1.5, 2.0, 3.0, 5.0])
    X = rng.normal(size=(len(positive), d))
    X[positive, : 1 + d // 2] += distance / np.sqrt(1 + d // 2)
    return X, f"normal, distance {distance:g}"


def sentinels(rng, positive, d):
    X, _ = normal(rng, positive, d)
    n_rows = max(1, int(len(X) * rng.choice([0.0, 0.002, 0.02, 0.05])))
    rows = rng.choice(len(X), n_rows, replace=False)
    value = rng.choice(SENTINELS)
    features = rng.choice(d, rng.integers(1, min(3, d) + 1), replace=False)
    X[np.ix_(rows, features)] = value
    return X, f"{value:g} in {n_rows} rows, {len(features)} features"


def far_pair(rng, positive, d):
    """A point of both classes, far away."""
    X, _ = normal(rng, positive, d)
    far = 10.0 ** rng.uniform(2, 6)
    point = far * rng.normal(size=d)
    X[[rng.choice(np.flatnonzero(side)) for side in (positive, ~positive)]] = point
    return X, f"one point of both classes at {far:.1e}"


def far_clusters(rng, positive, d):
    X, _ = normal(rng, positive, d)
    k, far = int(rng.integers(2, 6)), rng.choice([100.0, 1000.0, 1e4])
    centres = far * rng.choice([-1.0, 1.0], size=(k, d))
    return X + centres[rng.integers(0, k, len(X))], f"{k} clusters at +-{far:g}"


def offset(rng, positive, d):
    X, _ = normal(rng, positive, d)
    size = 10.0 ** rng.uniform(3, 6)
    return X + size * rng.choice([-1.0, 1.0], size=d), f"mean {size:.1e}"


def scaled(rng, positive, d):
    X, _ = normal(rng, positive, d)
    if rng.random() < 0.5:
        size = 10.0 ** rng.uniform(-6, 6)
        return X * size, f"all times {size:.1e}"
    return X * 10.0 ** rng.uniform(-6, 6, size=d), "features of scales 1e-6 to 1e6"


def duplicates(rng, positive, d):
    X, _ = normal(rng, positive, d)
    distinct = max(1, len(X) // int(rng.choice([2, 5, 20])))
    return X[rng.integers(0, distinct, len(X))], f"{distinct} points, some in both classes"


def contradictions(rng, positive, d):
    X, _ = normal(rng, positive, d)
    rows, negatives = np.flatnonzero(positive), np.flatnonzero(~positive)
    rows = rng.choice(rows, max(1, int(len(rows) * rng.uniform(0, 1))), replace=False)
    X[rows] = X[rng.choice(negatives, len(rows))]
    return X, f"{len(rows)} positives that are negatives as well"


def cauchy(rng, positive, d):
    X = rng.standard_cauchy((len(positive), d))
    X[positive, 0] += 3.0
    return X, "Cauchy"


def lognormal(rng, positive, d):
    sigma = rng.choice([1.0, 2.0, 4.0])
    X = rng.lognormal(sigma=sigma, size=(len(positive), d))
    X[positive] *= rng.choice([1.0, 3.0])
    return X, f"lognormal, sigma {sigma:g}"


def binary(rng, positive, d):
    share = rng.uniform(0.02, 0.5)
    X = (rng.random((len(positive), d)) < share).astype(float)
    X[:, 0] = np.where(rng.random(len(X)) < 0.8, positive, X[:, 0])
    return X, f"binary, {share:.0%} ones"


def one_hot(rng, positive, d):
    levels = rng.integers(0, d, len(positive))
    levels[positive] = np.minimum(levels[positive], rng.integers(0, d, positive.sum()))
    return np.eye(d)[levels], f"one feature of {d} levels"


def grid(rng, positive, d):
    X, _ = normal(rng, positive, d)
    return np.round(X * rng.choice([0.5, 1.0, 3.0])), "whole numbers"


def constant(rng, positive, d):
    X, _ = normal(rng, positive, d)
    kept = int(rng.integers(0, d)) if rng.random() < 0.8 else 0
    X[:, kept:] = rng.choice([0.0, 1.0, 0.1, 12345.678, 1e6])
    return X, f"{d - kept} of {d} features constant"


#: Where single precision fails.
UNEVEN = ("sentinels", "far_pair", "far_clusters", "offset", "cauchy")
CLOUDS = {
    function.__name__: function
    for function in (
        normal, sentinels, far_pair, far_clusters, offset, scaled, duplicates, contradictions,
        cauchy, lognormal, binary, one_hot, grid, constant,
    )
}  # fmt: skip


def a_cloud(rng, positive, d):
    """A cloud of any kind, now and then moved or scaled besides: kind, samples, words."""
    uneven = len(positive) > LARGE and rng.random() < 0.5
    kind = rng.choice(UNEVEN if uneven else list(CLOUDS))
    X, words = CLOUDS[kind](rng, positive, d)
    more = rng.random()
    if more < 0.06:
        size = 10.0 ** rng.uniform(-4, 4)
        X, words = X * size, f"{words}, times {size:.1e}"
    elif more < 0.12:
        size = 10.0 ** rng.uniform(1, 5)
        X, words = X + size, f"{words}, plus {size:.1e}"
    return str(kind), X, words
