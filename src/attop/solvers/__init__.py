"""Solvers of the problems of the formulations.

Every solver is a function ::

    solve(problem, gram, *, tol, max_iter, max_time, cache_bytes, start, random_state,
          verbose, **options) -> Solution

where ``tol`` bounds the relative duality gap, ``max_iter=-1`` and ``max_time=None`` set no
limit, ``start`` is None or a pair (alpha, beta), and the solution carries the certificate
of `attop.objectives.certify`.  ``**options`` are the solver's own, by name.  A new solver is
one module and one line in `SOLVERS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

from attop._threads import Pool
from attop.solvers.solution import Solution

#: Where each solver is found, as ``module:function``; imported when first asked for.
SOLVERS: dict[str, str] = {
    "exact": "attop.solvers.exact:solve",
    "pairwise": "attop.solvers.pairwise:solve",
    "primal": "attop.solvers.primal:solve",
}
#: Arguments that the library itself gives to solvers: no options for users.
_GIVEN = {
    *("problem", "gram", "tol", "max_iter", "max_time", "cache_bytes"),
    *("start", "random_state", "verbose", "columns", "tuning"),
}
#: The solver that ``"auto"`` stands for.
DEFAULT_SOLVER = "exact"


def get_solver(name: str) -> Callable[..., Solution]:
    """The function of the solver called `name`, a key of `SOLVERS` or ``"auto"``."""
    module, function = SOLVERS[DEFAULT_SOLVER if name == "auto" else name].split(":")
    return getattr(load(module), function)


@lru_cache
def load(module: str) -> ModuleType:
    """Import a module whole, even if an interrupt comes meanwhile.

    It is imported by a thread, which receives none: numba cannot be imported again after an
    interrupt, and every later fit of the process would fail.
    """
    pool = Pool(1)
    try:
        return pool.map(_import, [(module,)])[0]
    finally:
        pool.close()


def _import(module: str) -> ModuleType:
    found = import_module(module)
    if "numba" in sys.modules:
        import_module("attop.kernels.compiled").nothing()
    return found


def options_of(solve: Callable[..., Any]) -> list[str]:
    """The names of the options that the function of a solver takes."""
    return [name for name in signature(solve).parameters if name not in _GIVEN]
