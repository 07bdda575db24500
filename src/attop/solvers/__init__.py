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

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

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
    *("start", "random_state", "verbose", "columns"),
}
#: The solver that ``"auto"`` stands for.
DEFAULT_SOLVER = "exact"


def get_solver(name: str) -> Callable[..., Solution]:
    """The function of the solver called `name`, a key of `SOLVERS` or ``"auto"``."""
    module, function = SOLVERS[DEFAULT_SOLVER if name == "auto" else name].split(":")
    return getattr(import_module(module), function)


def options_of(solve: Callable[..., Any]) -> list[str]:
    """The names of the options that the function of a solver takes."""
    return [name for name in signature(solve).parameters if name not in _GIVEN]
