"""An interior-point solver of the duals: slow, small and independent of the package."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp

from attop.families import Cap
from attop.problem import Problem


def solve_dual(problem: Problem, K: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Optimal alpha, beta (of one copy) and dual value of `problem` with the kernel matrix `K`.

    The variables are (alpha, beta, r), those of all copies of a sample added up: r is the cap u,
    or the norm of beta.
    """
    n_alpha, n_beta = len(problem.positives), len(problem.competitors)
    n, betas = n_alpha + n_beta + 1, problem.betas
    P, q = _objective(problem, K)
    alpha, beta = sp.eye(n_alpha, n), sp.eye(n_beta, n, k=n_alpha)
    r = sp.csr_matrix(([1.0], ([0], [n - 1])), shape=(1, n))
    ones_alpha = sp.csr_matrix(np.ones(n_alpha)) @ alpha
    ones_beta = sp.csr_matrix(np.ones(n_beta)) @ beta

    equalities = [ones_alpha - ones_beta]
    if betas.cap is Cap.TIED:
        equalities.append(ones_alpha - betas.K * r)
    of_alpha, of_beta = np.array(problem.positive_weights), np.array(problem.competitor_weights)
    at_most = [(-alpha, np.zeros(n_alpha)), (-beta, np.zeros(n_beta))]
    if np.isfinite(problem.alpha_max):
        at_most.append((alpha, problem.alpha_max * of_alpha))
    if np.isfinite(betas.bound):
        at_most.append((beta, betas.bound * of_beta))
    if betas.cap is not Cap.NONE:
        at_most.append((beta - sp.csr_matrix(of_beta[:, None]) @ r, np.zeros(n_beta)))

    blocks = [*equalities, *(A for A, _ in at_most)]
    right = [np.zeros(len(equalities)), *(b for _, b in at_most)]
    cones = [
        clarabel.ZeroConeT(len(equalities)),
        clarabel.NonnegativeConeT(sum(A.shape[0] for A, _ in at_most)),
    ]
    if betas.norm_price:  # (r, beta) in the second-order cone
        blocks += [-r, -sp.diags(of_beta**-0.5) @ beta]
        right.append(np.zeros(1 + n_beta))
        cones.append(clarabel.SecondOrderConeT(1 + n_beta))

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.csc_matrix(sp.vstack(blocks))
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(P)), q, A, np.concatenate(right), cones, settings
    ).solve()
    x = np.array(solution.x)
    return x[:n_alpha] / of_alpha, x[n_alpha : n_alpha + n_beta] / of_beta, -solution.obj_val


def _objective(problem: Problem, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P and q of the minimisation of x'Px/2 + q'x, minus the dual value."""
    n_alpha, n_beta = len(problem.positives), len(problem.competitors)
    rows = np.concatenate([problem.positives, problem.competitors])
    signs = np.repeat([1.0, -1.0], [n_alpha, n_beta])
    P = np.zeros((n_alpha + n_beta + 1,) * 2)
    P[:-1, :-1] = K[np.ix_(rows, rows)] * np.outer(signs, signs)
    betas, variables = problem.betas, np.arange(n_alpha + n_beta)
    curvature = np.repeat([problem.quadratic_alpha, betas.curvature], [n_alpha, n_beta])
    P[variables, variables] += curvature / problem.weights
    q = np.concatenate([-np.ones(n_alpha), np.full(n_beta, -betas.linear), [0.0]])
    q[-1] = betas.price + betas.norm_price
    return P, q
