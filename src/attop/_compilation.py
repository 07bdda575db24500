"""What a user sees of compilation: one line where it takes a while, and a way to do it ahead."""

from __future__ import annotations

import sys
import time
import warnings
from importlib import import_module
from typing import Any

#: Seconds of compilation after which a user is told.
_PATIENCE = 1.0

_NOTICE = (
    "attop: compiling the solver, which takes some seconds and is done once: the result is kept "
    "on disk, where that is possible ('attop warmup' does it ahead)."
)


def announce() -> None:
    """Have a line printed to stderr, once, when compilation takes more than a second.

    To be called when numba has been imported.
    """
    event: Any = import_module("numba.core.event")
    event.register("numba:compile", _make_listener(event.Listener))


def _make_listener(base: Any) -> Any:
    class Announcer(base):
        """Adds up the time from the first compilation on, those of callees included."""

        def __init__(self) -> None:
            self.depth, self.began, self.total, self.told = 0, 0.0, 0.0, False

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.began = time.perf_counter()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            so_far = self.total + time.perf_counter() - self.began
            self.depth -= 1
            if self.depth == 0:
                self.total = so_far
            if so_far > _PATIENCE and not self.told:
                self.told = True
                print(_NOTICE, file=sys.stderr, flush=True)

    return Announcer()


def warmup() -> float:
    """Compile all that fits with the exact solver need, and keep it on disk: the seconds it took.

    The compiled code lies beside the installed package, in its folders ``__pycache__``; where these
    cannot be written, in a folder of the user's, and where the environment variable
    ``NUMBA_CACHE_DIR`` names a folder, there.
    """
    from dataclasses import replace

    import numpy as np
    import scipy.sparse as sp
    from sklearn.exceptions import ConvergenceWarning

    from attop import pipeline
    from attop.classifiers import PatMatNP, TauFPL, TopPush

    began = time.perf_counter()
    random = np.random.default_rng(0)
    X = random.normal(size=(2100, 4))
    positive = X[:, 0] + random.normal(size=len(X)) > 1.0
    models = [TauFPL(), TopPush(), PatMatNP(), PatMatNP(surrogate="quadratic_hinge")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        for model in models:
            model.set_params(C=10.0, tol=1e-3).fit(X[:300], positive[:300])
        for solver in ("exact", "primal"):
            for samples in (X[:300], sp.csr_array(X[:300])):
                linear = TauFPL(kernel="linear", tol=1e-3, solver=solver)
                linear.fit(samples, positive[:300])
        PatMatNP(kernel="linear", tol=1e-3, solver="primal").fit(X[:300], positive[:300])
        # Columns of larger problems, in double and in single precision, and those of parts.
        from attop.solvers.exact import Tuning

        tuning = replace(Tuning(), matrix_up_to=0, parts_from=len(X))
        models[0].set_params(solver="exact")
        for n in (300, len(X)):
            data = pipeline.prepare(models[0], X[:n], positive[:n])
            problem = pipeline.problem_of(models[0], data)
            pipeline.solve(models[0], problem, data.gram, tuning=tuning)
        # What columns of many features know of each other.
        from attop.kernels import compiled

        for dtype in (np.float32, np.float64):
            block, first = np.zeros((1, 1), dtype), np.zeros(1, dtype=np.intp)
            compiled.mirror(0, 1, block, first, first, first, block)
            compiled.spread(block, first, first, block)
            compiled.spread_columns(0, 1, block, first, first, first, block)
        sparse = sp.csr_array(np.where(X > 1.0, X, 0.0))
        pipeline.fit(models[0], sparse, positive)
    return time.perf_counter() - began
