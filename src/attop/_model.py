"""The model that dual variables stand for: their ``w``, or ``w = 0`` where that is no worse."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.objectives import Certificate, relative_gap, support, threshold, zero_value
from attop.problem import Problem
from attop.solvers.solution import Solution, Status

#: Sums over the samples may differ by so much, relative to them.
_ROUNDING = 2.0**-46


class Model(NamedTuple):
    """A solution whose certificate is that of ``w``, and ``w`` as rows and their coefficients."""

    solution: Solution
    support: NDArray[np.intp]
    coefficients: NDArray[np.float64]


def model_of(problem: Problem, solution: Solution, tol: float) -> Model:
    """The ``w`` of the dual variables, or zero where the certificate shows that it is no worse.

    Where the optimum is ``w = 0``, what a solver leaves of ``w`` depends on its start, and
    would put samples into an order that the optimum leaves tied.
    """
    certificate = solution.certificate
    zero = _certificate_of_zero(problem, certificate)
    proves = solution.status is not Status.NOT_PSD and not certificate.indefinite
    if (
        proves
        and zero.certifies(tol)
        and relative_gap(zero.primal, certificate.primal) <= _ROUNDING
    ):
        nothing = np.empty(0)
        return Model(replace(solution, certificate=zero), nothing.astype(np.intp), nothing)
    return Model(solution, *support(problem, solution.alpha, solution.beta))


def _certificate_of_zero(problem: Problem, certificate: Certificate) -> Certificate:
    """What the dual value of `certificate` says about ``w = 0``."""
    value = zero_value(problem)
    return certificate._replace(
        primal=value,
        gap=relative_gap(value, certificate.dual, certificate.rounding),
        threshold=threshold(problem, np.zeros(1 + int(np.max(problem.rows)))),
        w_norm2=0.0,
        scores=np.zeros_like(certificate.scores),
    )
