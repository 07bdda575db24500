"""Solvers of the dual problems."""
