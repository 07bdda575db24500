"""Solvers of the problems of the formulations.

Every solver is a function, a `Solver`: it takes a problem, its kernel matrix, what `Settings`
hold, where to start, and options of its own by name.  It answers with a `Solution`, which carries
the certificate of `attop.objectives.certify`; where there is no dual, with a `QuantileSolution`.
A new solver is one module and one line in `SOLVERS`.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from inspect import signature
from types import ModuleType

from attop._threads import Pool
from attop.solvers.protocol import Solver

#: Where each solver is found, as ``module:function``; imported when first asked for.
SOLVERS: dict[str, str] = {
    "exact": "attop.solvers.exact:solve",
    "pairwise": "attop.solvers.pairwise:solve",
    "primal": "attop.solvers.primal:solve",
}
#: The solver that takes every problem.
DEFAULT_SOLVER = "exact"
#: What ``"auto"`` stands for: a choice among them.
AUTO_SOLVER = "attop.solvers.auto:solve"
#: That of problems without a dual, under any name.
NONCONVEX_SOLVER = "attop.solvers.primal:solve_quantile"
#: Arguments that the library itself gives to solvers: no options for users.
_GIVEN = {*signature(Solver.__call__).parameters, "columns", "tuning"}


def get_solver(name: str, convex: bool = True) -> Solver:
    """The function of the solver called `name`, a key of `SOLVERS` or ``"auto"``."""
    where = SOLVERS.get(name, AUTO_SOLVER) if convex else NONCONVEX_SOLVER
    module, function = where.split(":")
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
        _announce()
        import_module("attop.kernels.compiled").nothing()
    return found


@lru_cache
def _announce() -> None:
    """Tell the user, once, where compilation takes a while."""
    import_module("attop._compilation").announce()


def options_of(solve: Solver) -> list[str]:
    """The names of the options that the function of a solver takes."""
    return [name for name in signature(solve).parameters if name not in _GIVEN]
