"""The support vector machine of this library and scikit-learn's SVC: the same objective?

    ATTOP_DATA=folder python benchmarks/bench_agreement.py [--n 1000]

Both are fitted to at most so many samples of every table, standardised, at several values of C,
with and without weights; the SVC to a tolerance of 1e-6, ours to a certified gap of 1e-6.  The
objective of the SVC is computed in float64 from its dual coefficients, at its best threshold.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from attop import SVM
from attop.formulations import FORMULATIONS
from attop.objectives import primal_value
from suite import program
from suite.data import load_table, table_names
from suite.results import write_rows

VALUES_OF_C = (0.1, 1.0, 10.0)
#: The largest relative difference that passes.
SAME = 1e-5


def main() -> None:
    parser = program.parser(__doc__)
    parser.add_argument("--n", type=int, default=1000, help="most samples of a table")
    options = parser.parse_args()
    n = 300 if options.quick else options.n
    rows = [row for name in table_names() for row in compared(name, n)]
    output = options.output or program.Path("out/bench")
    output.mkdir(parents=True, exist_ok=True)
    write_rows(output / "agreement.csv", rows)
    worst = max(rows, key=lambda row: row["difference"])
    print(f"{len(rows)} pairs of fits; the largest difference: {worst}")
    sys.exit(worst["difference"] > SAME)


def compared(name: str, n: int) -> list[dict]:
    """Objectives of both at all values of C, with and without weights."""
    warnings.filterwarnings("ignore")
    X, positive = load_table(name, n)
    X = X.astype(np.float64)
    gamma = 1.0 / X.shape[1]
    kernel = rbf_kernel(X, gamma=gamma)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
    rows = []
    for C in VALUES_OF_C:
        for given in (None, weights):
            ours = SVM(C=C, gamma=gamma, tol=1e-6).fit(X, positive, sample_weight=given)
            svc = SVC(C=C, kernel="precomputed", tol=1e-6, cache_size=1000)
            svc.fit(kernel, positive, sample_weight=given)
            coefficients = svc.dual_coef_[0]
            scores = kernel[:, svc.support_] @ coefficients
            problem = FORMULATIONS["SVM"].problem(positive, C, "hinge", sample_weight=given)
            theirs = primal_value(problem, coefficients @ scores[svc.support_], scores)
            difference = abs(ours.objective_ - theirs) / theirs
            rows.append(
                {
                    "table": name,
                    "n": len(X),
                    "C": C,
                    "weighted": given is not None,
                    "ours": ours.objective_,
                    "gap": ours.dual_gap_,
                    "SVC": theirs,
                    "difference": difference,
                }
            )
    print(name, f"{max(row['difference'] for row in rows):.1e}", flush=True)
    return rows


if __name__ == "__main__":
    main()
