"""scikit-learn's own checks of every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from attop import SVM, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK

# Where all samples compete the optimum is w = 0 unless tau exceeds the share of positives,
# which is a half or more in the data of the checks.  Scores of a model with weights and of one
# with repeated rows are compared to seven digits, hence the tolerance.
ESTIMATORS = [
    TopPush(tol=1e-8),
    TopPushK(K=2, tol=1e-8),
    TauFPL(tol=1e-8),
    TopMeanK(tau=0.8, tol=1e-8),
    PatMat(tau=0.8, tol=1e-8),
    PatMatNP(tol=1e-8),
    SVM(tol=1e-8),
]


# Some checks fit pure noise, or a handful of samples, whose optimum is w = 0.
@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
