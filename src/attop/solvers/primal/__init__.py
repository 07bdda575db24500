"""Solvers of the primal problems of linear models."""

from attop.solvers.primal.driver import solve

__all__ = ["solve"]
