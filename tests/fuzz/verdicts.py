"""Fit one case, and say what the fit and its claims were worth."""

from __future__ import annotations

import linecache
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import attop
from attop.families import FixedCap, QuantileHinge, QuantileQuadratic
from attop.families.top_mean import mean_of_largest
from attop.problem import Problem
from oracle import solve_dual

from .problems import Case, make_case
from .referee import Function, Judgement, Task, dense, gram, judge

#: Verdicts that end a run with an error, others worth a look, and those that are in order.
FATAL = ("false certificate", "crash", "hang")
DOUBTFUL = ("slow", "wrong gap", "wrong status", "threshold", "rounding")
FINE = ("ok", "honest", "refused")

#: Gaps are compared up to this: a share of the tolerance, and rounding.
ABOVE_TOL, ROUNDING = 1.05, 1e-9
#: A violated constraint that passes for rounding, relative to its terms.
FEASIBLE = 1e-8
#: The oracle is asked up to so many samples, and believed up to this gap.
ORACLE_SAMPLES, ORACLE_GAP = 60, 1e-6
#: So many samples may have entries of long doubles.
LONG_SAMPLES = 600
#: Samples in single precision may be scored in it by these kernels: so far off at most, and on the
#: side of the threshold that double precision gives them.
IN_SINGLE, OF_SINGLE = ("rbf", "poly", "sigmoid"), 2.0**-5
#: Scores agree up to this share of the sum of the sizes of their terms.
SCORES = 1e-6


@dataclass(frozen=True)
class Result:
    """The verdict on a case."""

    seed: int
    verdict: str
    kind: str = "unknown"
    formulation: str = "unknown"
    text: str = ""
    status: str = ""
    #: Those of the processor that the fit took.
    seconds: float = 0.0
    #: Whether the problem is convex, so that a fit of the exact solver is to converge.
    solvable: bool = False
    #: Warnings that are not the package's own: of numpy, mostly.
    noise: str = ""

    def __str__(self) -> str:
        status = f"{self.status}, " if self.status else ""
        return f"{self.verdict}: {status}{self.text} ({self.seconds:.2f} s)"


def verdict_on(seed: int, slow: float = np.inf) -> Result:
    """The verdict on the case of this seed, whose fit should not take `slow` seconds."""
    case = make_case(seed)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = getattr(attop, case.formulation)(**case.parameters)
            model.fit(case.X, case.y, sample_weight=case.weights)
            decisions = model.decision_function(case.X)
        except Exception as error:
            verdict, text = _of_error(error)
            status, model = "", None
    seconds = time.process_time() - began
    if model is not None:
        with np.errstate(all="ignore"):
            verdict, text = _of_model(case, model, decisions, bool(_own_warnings(caught)))
        status = model.status_.name
    if verdict in FINE and seconds > slow:
        verdict = "slow"
    noise = {f"{w.category.__name__}: {w.message}" for w in caught} - _own_warnings(caught)
    solvable = case.definite and case.parameters["solver"] == "exact" and status != "UNBOUNDED"
    return Result(
        seed, verdict, case.kind, case.formulation, text, status, seconds, solvable,
        "; ".join(sorted(noise)),
    )  # fmt: skip


def _own_warnings(caught) -> set[str]:
    """Those that the package raises itself."""
    own = [w for w in caught if w.category.__name__ in ("ConvergenceWarning", "UserWarning")]
    return {f"{w.category.__name__}: {w.message}" for w in own}


def _of_error(error: Exception) -> tuple[str, str]:
    """Refused where the package or scikit-learn's validation raised it on purpose."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = Path(last.filename)
    ours = "attop" in place.parts or place.name in ("validation.py", "_param_validation.py")
    raised = linecache.getline(last.filename, last.lineno).strip().startswith("raise ")
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    if isinstance(error, ValueError) and ours and raised:
        return "refused", text
    return "crash", f"{text} at {place.name}:{last.lineno}"


def _of_model(case: Case, model, decisions: np.ndarray, warned: bool) -> tuple[str, str]:
    # Where the optimum is zero, so is the model, and the dual variables prove it.
    zero = len(model.support_) == 0
    weights = model.coef_[0] if case.function.name == "linear" else None
    point = _of_copies(case, model)
    true = judge(case.task, case.function, case.repeated, *point, zero, weights)
    few = len(case.copies) <= LONG_SAMPLES
    if few and true.rounding > 0.1 * model.tol:  # then the gap may be that of the referee's entries
        function = replace(case.function, long=True)
        true = judge(case.task, function, case.repeated, *point, zero, weights)
    status, claimed, tol = model.status_.name, model.dual_gap_, model.tol
    text = f"claimed {claimed:.2e}, true {true.gap:.2e}, tol {tol:.0e}"
    if status == "CONVERGED":
        verdict, text = _of_certificate(case, model, true, text)
    else:
        verdict, text = _of_failure(case, model, true, text, warned)
    if verdict in FINE and (differ := _scores_differ(case, model, true, decisions)):
        return "threshold", differ
    return verdict, text


def _of_copies(case: Case, model) -> tuple[np.ndarray, np.ndarray]:
    """The dual variables of all copies, those of a sample being equal."""
    if case.weights is None:
        return model.alpha_, model.beta_
    positive = case.y == 1
    competing = np.ones_like(positive) if case.task.competing.all() else ~positive
    point = []
    for values, rows in ((model.alpha_, positive), (model.beta_, competing)):
        weights = case.weights[rows & (case.weights > 0)]
        point.append(np.repeat(values.astype(np.longdouble) / weights, weights.astype(int)))
    return point[0], point[1]


def _of_certificate(case: Case, model, true: Judgement, text: str) -> tuple[str, str]:
    """Whether the claim to have converged holds."""
    limit = ABOVE_TOL * model.tol + ROUNDING
    if true.infeasibility > FEASIBLE:
        return "false certificate", f"{text}, constraints violated by {true.infeasibility:.1e}"
    if not true.gap <= limit:
        within = true.gap <= limit + true.rounding
        return "rounding" if within else "false certificate", text
    best = _optimum(case)
    if best is not None:
        low, high = best.dual, best.primal
        slack = (limit + true.rounding) * max(abs(high), abs(model.objective_))
        if not low - slack <= model.objective_ <= high + slack:
            return "false certificate", f"{text}, objective {model.objective_:.9g}, not {high:.9g}"
        text += ", as the oracle"
    return "ok", text


def _of_failure(case: Case, model, true: Judgement, text: str, warned: bool) -> tuple[str, str]:
    """Whether a fit that did not converge says so, and how far it came."""
    if not warned:
        return "wrong status", f"{text}, without a warning"
    if model.status_.name == "UNBOUNDED":
        if case.definite and np.isfinite(case.task.C):
            return "wrong status", f"{text}, which no problem with a finite C is"
        best = _optimum(case)
        if best is not None:
            return "wrong status", f"{text}, but separable with objective {best.primal:.4g}"
        return "honest", text
    claimed = model.dual_gap_
    if not true.gap <= 3.0 * claimed + 0.05 * model.tol + ROUNDING + true.rounding:
        return "wrong gap", text
    return "honest", text


def _scores_differ(case: Case, model, true: Judgement, decisions: np.ndarray) -> str:
    """In which way the model's scores or threshold are not those of the dual variables."""
    alpha, beta = _of_copies(case, model)
    of_copies = np.zeros(len(case.copies), dtype=np.longdouble)
    of_copies[case.task.positive] += alpha
    of_copies[case.task.competing] -= beta
    coefficients, stored = np.zeros((2, len(case.y)), dtype=np.longdouble)
    np.add.at(coefficients, case.copies, of_copies)
    stored[model.support_] = np.ravel(model.dual_coef_)
    total = float(np.sum(np.abs(coefficients)))
    sizes = float(np.sum(alpha) + np.sum(beta))  # which may cancel where a sample has one of each
    # Entries of kernels of distances may all be near 0, those of others are as they are.
    most = total if case.function.name in ("rbf", "laplacian") else float(np.max(true.sizes))
    # A quantile is a number of the size of 1 / theta, even of scores that are all 0.
    allowed = SCORES * most + ROUNDING * (abs(true.threshold) + 1.0 / case.task.theta)
    if not np.all(np.isfinite(decisions)):
        return "decision_function is not finite"
    if len(model.support_) and np.max(np.abs(stored - coefficients)) > 1e-12 * sizes:
        return "dual_coef_ is not alpha_ less beta_"
    if model.status_.name == "UNBOUNDED":  # a ray that is all rounding, as the warning says
        return ""
    off = abs(model.threshold_ - true.threshold)
    if case.task.is_machine and np.isfinite(case.task.C):  # whose threshold need not be unique
        losses = [case.task.losses(true.scores, t) for t in (model.threshold_, true.threshold)]
        worse = float(losses[0] - losses[1]) / max(1.0, float(losses[1]))
        off = min(off, worse * allowed / SCORES)
    if not off <= allowed:
        return f"threshold_ off by {off:.1e}, allowed {allowed:.1e}"
    decisions, wanted = decisions[case.copies], true.scores - model.threshold_
    off = float(np.max(np.abs(decisions - wanted)))
    if case.X.dtype == np.float32 and case.function.name in IN_SINGLE:
        sides_differ = ((decisions >= 0.0) != (wanted >= 0.0)) & (np.abs(wanted) > allowed)
        if np.any(sides_differ):
            return "decision_function is on another side of the threshold"
        allowed = max(allowed, OF_SINGLE)
    if not off <= allowed:
        return f"decision_function off by {off:.1e}, allowed {allowed:.1e}"
    return ""


def _optimum(case: Case) -> Judgement | None:
    """What the oracle found, where it may be asked and the referee agrees with it."""
    if len(case.copies) > ORACLE_SAMPLES or not case.definite:
        return None
    K = centred_gram(case.function, case.repeated)
    alpha, beta, _ = solve_dual(oracle_problem(case.task), K)
    alpha, beta = np.maximum(alpha, 0.0), np.maximum(beta, 0.0)
    found = judge(case.task, Function("precomputed"), K, alpha, beta)
    return found if found.gap <= ORACLE_GAP and found.infeasibility <= FEASIBLE else None


def centred_gram(function: Function, X) -> np.ndarray:
    """The kernel matrix less what the equality of the sums makes irrelevant.

    Scores change by a constant that thresholds share, and large offsets disappear.
    """
    if function.name == "linear":
        X = dense(X).astype(np.longdouble)
        X = X - X.mean(axis=0)
        return (X @ X.T).astype(np.float64)
    K = gram(function, X).astype(np.longdouble)
    means = K.mean(axis=0)
    return (K - means - means[:, np.newaxis] + means.mean()).astype(np.float64)


def oracle_problem(task: Task) -> Problem:
    """The task in the form that the oracle takes."""
    rows = np.flatnonzero(task.positive), np.flatnonzero(task.competing)
    if task.is_quantile:
        quantile = QuantileHinge if task.surrogate == "hinge" else QuantileQuadratic
        family = quantile(len(rows[1]) * task.tau, task.theta)
    else:
        family = FixedCap() if task.is_machine else mean_of_largest(task.top)
    return Problem.of(*rows, task.C, task.surrogate, family)
