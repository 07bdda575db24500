"""Solvers of the primal problems of linear models."""

from attop.solvers.primal.driver import solve
from attop.solvers.primal.quantile import solve_quantile

__all__ = ["solve", "solve_quantile"]
