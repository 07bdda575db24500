"""Find good radar returns while at most about 5 % of the bad ones raise a false alarm."""

from sklearn.model_selection import train_test_split

from attop import TauFPL
from attop.datasets import load_ionosphere
from attop.metrics import tpr_at_fpr

X, y = load_ionosphere(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = TauFPL(tau=0.05, kernel="rbf", C=1.0).fit(X_train, y_train)
scores = model.decision_function(X_test)  # at least 0: called positive
print("found at FPR 5 %:", tpr_at_fpr(y_test, scores, 0.05))
print("certified gap:", model.dual_gap_)
