"""Any pair of labels, either of them positive: scikit-learn's tools and ours see the same."""

import csv
import io
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc, average_precision_score, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import attop
from attop import GrillNP, PatMatNP, TopPush, metrics
from attop.calibration import NeymanPearsonThreshold
from attop.cli import main
from attop.metrics import get_scorer
from attop.model_selection import AtTopCV, fit_path
from attop.plotting import ScoreDistributionDisplay, TopROCDisplay
from conftest import two_clouds

X, POSITIVE = two_clouds(60, 100, distance=2.0)
CV = StratifiedKFold(4, shuffle=True, random_state=0)

PAIRS = {
    "zero and one": [0, 1],
    "minus and plus one": [-1, 1],
    "other numbers": [3, 7],
    "bools": [False, True],
    "words": ["fraud", "ok"],
}


class Case:
    """Labels of the samples, the `pos_label` to pass, and the class that it stands for."""

    def __init__(self, labels, named, positive):
        self.labels = np.array(labels)
        self.pos_label = labels[positive] if named else None
        self.positive = labels[positive]
        self.index = positive
        self.y = self.labels[np.where(POSITIVE, positive, 1 - positive)]

    @property
    def numbered(self):
        """The estimator for tools of scikit-learn that number the labels before they fit."""
        return TopPush(pos_label=None if self.pos_label is None else self.index, random_state=0)

    def __call__(self, kind=TopPush, **parameters):
        return kind(pos_label=self.pos_label, random_state=0, **parameters)


CASES = [
    pytest.param(Case(labels, named, positive), id=f"{name}-{which}")
    for name, labels in PAIRS.items()
    for which, named, positive in (("default", False, 1), ("larger", True, 1), ("smaller", True, 0))
]
every_case = pytest.mark.parametrize("case", CASES)
#: Of those, each kind of labels once; for the tests of many fits.
each_pair = pytest.mark.parametrize("case", [*CASES[2::3], CASES[-3]])


@every_case
@pytest.mark.parametrize("kind", [TopPush, PatMatNP, GrillNP])
def test_signs_of_the_scores_and_classes(case, kind):
    model = case(kind).fit(X, case.y)
    assert_array_equal(model.classes_, np.unique(case.y))
    assert model.pos_label_ == case.positive
    top = model.top_score(X)
    assert roc_auc_score(POSITIVE, top) > 0.8
    assert_array_equal(model.decision_function(X), top if case.index else -top)
    expected = np.where(top >= 0.0, case.labels[case.index], case.labels[1 - case.index])
    predicted = model.predict(X)
    assert_array_equal(predicted, expected)
    assert predicted.dtype == case.y.dtype
    assert_array_equal(model.top_score(X), kind(random_state=0).fit(X, POSITIVE).top_score(X))


@every_case
def test_a_tie_with_the_threshold_is_positive(case):
    """With the linear kernel the top negative of the training samples reaches its threshold."""
    model = case(kernel="linear").fit(X, case.y)
    model.threshold_ = 0.0
    assert_array_equal(model.predict(np.zeros((2, 3))), case.labels[[case.index] * 2])


@every_case
def test_scikit_learn_scores_the_right_way_round(case):
    assert cross_val_score(case(), X, case.y, cv=CV, scoring="roc_auc").mean() > 0.8
    precision = make_scorer(
        average_precision_score, pos_label=case.positive, response_method="decision_function"
    )
    assert cross_val_score(case(), X, case.y, cv=CV, scoring=precision).mean() > 0.8
    model = case().fit(X, case.y)
    found = precision(model, X, case.y)
    assert_allclose(found, average_precision_score(POSITIVE, model.top_score(X)))


@every_case
def test_cross_validated_scores(case):
    decision = cross_val_predict(case.numbered, X, case.y, cv=CV, method="decision_function")
    assert roc_auc_score(case.y == case.labels[1], decision) > 0.8
    predicted = cross_val_predict(case(), X, case.y, cv=CV)
    assert_array_equal(predicted == case.positive, (decision if case.index else -decision) >= 0.0)


def test_a_label_that_was_numbered_away_is_explained():
    y = np.where(POSITIVE, "fraud", "ok")
    with pytest.raises(ValueError, match=r"must be one of 0, 1. Got 'fraud' instead") as error:
        cross_val_predict(TopPush(pos_label="fraud"), X, y, method="decision_function")
    assert "number the labels before they fit" in error.value.__notes__[0]


@every_case
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_probabilities_grow_with_the_score(case, method):
    calibrated = CalibratedClassifierCV(case(), method=method, cv=CV).fit(X, case.y)
    assert_array_equal(calibrated.classes_, np.unique(case.y))
    assert roc_auc_score(POSITIVE, calibrated.predict_proba(X)[:, case.index]) > 0.8
    for part in calibrated.calibrated_classifiers_:
        order = np.argsort(part.estimator.top_score(X))
        probability = part.predict_proba(X)[order, case.index]
        assert np.all(np.diff(probability) >= -1e-12)
        assert probability[0] < 0.5 < probability[-1]
    fitted = FrozenEstimator(case().fit(X, case.y))
    later = CalibratedClassifierCV(fitted, method=method).fit(X, case.y)
    assert roc_auc_score(POSITIVE, later.predict_proba(X)[:, case.index]) > 0.8


@every_case
def test_tuned_thresholds(case):
    accurate = TunedThresholdClassifierCV(case(), scoring="balanced_accuracy", cv=CV)
    assert accurate.fit(X, case.y).score(X, case.y) > 0.8
    assert np.mean((accurate.predict(X) == case.positive) == POSITIVE) > 0.8


@every_case
def test_ensembles(case):
    """Ensembles number the classes before they fit: inside, the positive one is 0 or 1."""
    inner = case.numbered
    ensembles = (
        StackingClassifier([("a", inner), ("b", clone(inner).set_params(C=0.1))], cv=CV),
        VotingClassifier([("a", inner), ("b", LogisticRegression()), ("c", clone(inner))]),
        BaggingClassifier(inner, n_estimators=5, random_state=0),
    )
    for ensemble in ensembles:
        predicted = ensemble.fit(X, case.y).predict(X)
        assert np.mean((predicted == case.positive) == POSITIVE) > 0.75, ensemble
    stacked = ensembles[0].predict_proba(X)[:, case.index]
    assert roc_auc_score(POSITIVE, stacked) > 0.8
    bagged = ensembles[2].decision_function(X)
    assert roc_auc_score(case.y == case.labels[1], bagged) > 0.8


def judged_by_hand(name, model):
    stem, _, number = name.rpartition("_")
    return getattr(metrics, stem)(POSITIVE, model.top_score(X), float(number))


@each_pair
@pytest.mark.parametrize("name", ["tpr_at_fpr_0.05", "precision_at_recall_0.5", "partial_auc_0.1"])
def test_our_scorers_judge_the_positive_class_of_the_estimator(case, name):
    expected = judged_by_hand(name, case().fit(X, case.y))
    assert expected > 0.5
    candidates = (
        case(),
        make_pipeline("passthrough", case()),
        GridSearchCV(case(), {"C": [1.0]}, cv=CV),
        make_pipeline("passthrough", GridSearchCV(case(), {"C": [1.0]}, cv=CV)),
        AtTopCV(case(), {"C": [1.0]}, cv=CV),
    )
    for candidate in candidates:
        model = candidate.fit(X, case.y)
        for scorer in (get_scorer(name), get_scorer(name, pos_label=case.positive)):
            assert_allclose(scorer(model, X, case.y), expected, rtol=1e-3)


@every_case
def test_our_scorers_judge_any_classifier(case):
    scorer = get_scorer("tpr_at_fpr_0.05", pos_label=case.positive)
    model = LogisticRegression().fit(X, case.y)
    sign = 1 if case.index else -1
    expected = metrics.tpr_at_fpr(POSITIVE, sign * model.decision_function(X), 0.05)
    assert scorer(model, X, case.y) == expected > 0.5
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, case.y)
    expected = metrics.tpr_at_fpr(POSITIVE, tree.predict_proba(X)[:, case.index], 0.05)
    assert scorer(tree, X, case.y) == expected


def test_a_scorer_that_names_a_class_has_its_way():
    y = np.where(POSITIVE, "fraud", "ok")
    model = TopPush(pos_label="fraud").fit(X, y)
    other = get_scorer("tpr_at_fpr_0.05", pos_label="ok")(model, X, y)
    assert other == metrics.tpr_at_fpr(y, -model.top_score(X), 0.05, pos_label="ok")


def test_our_scorers_pickle_and_say_what_they_are():
    scorer = get_scorer("tpr_at_fpr_0.05", pos_label="fraud")
    assert "tpr_at_fpr" in repr(scorer)
    assert "pos_label=fraud" in repr(scorer)
    y = np.where(POSITIVE, "fraud", "ok")
    model = TopPush(pos_label="fraud").fit(X, y)
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)


@each_pair
@pytest.mark.parametrize(
    "scoring",
    ["tpr_at_fpr_0.05", "roc_auc", "accuracy", "named", "sklearn"],
)
def test_a_search_of_ours_is_that_of_scikit_learn(case, scoring):
    scorer = {
        "named": get_scorer("tpr_at_fpr_0.05", pos_label=case.positive),
        "sklearn": make_scorer(
            average_precision_score, pos_label=case.positive, response_method="decision_function"
        ),
    }.get(scoring, scoring)
    estimator, grid = case(gamma=0.3, tol=1e-8), {"C": [0.1, 1.0]}
    ours = AtTopCV(estimator, grid, cv=CV, scoring=scorer).fit(X, case.y)
    plain = GridSearchCV(estimator, grid, cv=CV, scoring=get_scorer(scorer)).fit(X, case.y)
    for i in range(4):
        column = f"split{i}_test_score"
        assert_allclose(ours.cv_results_[column], plain.cv_results_[column])
    assert ours.best_score_ > 0.5
    assert ours.pos_label_ == case.positive
    assert_array_equal(ours.classes_, plain.classes_)
    # Top negatives are at the threshold, on one side or the other within the tolerance.
    clear = np.abs(ours.top_score(X)) > 1e-6
    assert_array_equal(ours.predict(X)[clear], plain.predict(X)[clear])
    sign = 1 if case.index else -1
    assert_array_equal(ours.decision_function(X), sign * ours.top_score(X))
    assert_allclose(ours.score(X, case.y), plain.score(X, case.y))


@each_pair
def test_a_search_by_a_function_of_scores(case):
    search = AtTopCV(case(), {"C": [1.0]}, cv=CV, scoring=roc_auc_score).fit(X, case.y)
    assert search.best_score_ > 0.8
    assert search.score(X, case.y) == roc_auc_score(POSITIVE, search.top_score(X))


@every_case
def test_models_of_a_path(case):
    for model in fit_path(case(), X, case.y, "C", [0.1, 1.0]).estimators:
        assert_array_equal(model.classes_, case.labels)
        assert roc_auc_score(POSITIVE, model.top_score(X)) > 0.8


@each_pair
@pytest.mark.parametrize("kind", ["bare", "pipeline", "search", "ours", "prefit", "logistic"])
def test_guaranteed_thresholds_know_who_is_positive(case, kind):
    base = case()
    estimator, own = {
        "bare": (base, None),
        "prefit": (base, None),
        "pipeline": (make_pipeline(StandardScaler(), base), None),
        "search": (GridSearchCV(base, {"C": [1.0]}, cv=CV), None),
        "ours": (AtTopCV([base], {"C": [1.0]}, cv=CV), None),
        "logistic": (LogisticRegression(), case.pos_label),
    }[kind]
    options = {"fpr": 0.1, "confidence": 0.8, "pos_label": own, "random_state": 0}
    if kind == "prefit":
        model = NeymanPearsonThreshold(base.fit(X, case.y), cv="prefit", **options)
    else:
        model = NeymanPearsonThreshold(estimator, **options)
    model.fit(X, case.y)
    assert model.pos_label_ == case.positive
    called = model.predict(X) == case.positive
    assert np.mean(called[POSITIVE]) > 0.5 > 0.2 > np.mean(called[~POSITIVE])
    top = model.top_score(X)
    assert_array_equal(called, top > 0.0)
    assert_array_equal(model.decision_function(X), top if case.index else -top)
    assert get_scorer("tpr_at_fpr_0.1")(model, X, case.y) == metrics.tpr_at_fpr(POSITIVE, top, 0.1)


@every_case
def test_displays_show_the_positive_class(case):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ours = make_pipeline("passthrough", case()).fit(X, case.y)
    logistic = LogisticRegression().fit(X, case.y)
    for model, named in ((ours, None), (ours, case.positive), (logistic, case.positive)):
        axes = Figure().subplots(2)
        roc = TopROCDisplay.from_estimator(model, X, case.y, pos_label=named, ax=axes[0])
        assert auc(roc.fpr, roc.tpr) > 0.8
        fpr, tpr = roc.operating_point
        assert tpr > 0.5 > fpr
        scores = ScoreDistributionDisplay.from_estimator(
            model, X, case.y, pos_label=named, ax=axes[1]
        )
        assert len(scores.positive_scores) == 60
        assert np.mean(scores.positive_scores) > np.mean(scores.negative_scores)


@pytest.mark.parametrize("positive", ["fraud", "ok"])
def test_command_line_round_trip(capsys, tmp_path, positive):
    """Whichever label is positive, predictions are labels, and scores are high for it."""
    y = np.where(POSITIVE, positive, "ok" if positive == "fraud" else "fraud")
    data, model, output = (tmp_path / name for name in ("data.csv", "model", "scores.csv"))
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "kind"], *zip(*X.T.tolist(), y)])
    fit = ["--target", "kind", "--positive", positive, "--method", "top-push"]
    for command in (
        ["fit", data, *fit, "--save", model],
        ["predict", model, data, "--output", output],
    ):
        with pytest.raises(SystemExit) as ending:
            main([str(word) for word in command])
        assert ending.value.code == 0, capsys.readouterr().err
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    score = np.array([float(row["score"]) for row in rows])
    called = np.array([row["prediction"] == positive for row in rows])
    assert roc_auc_score(y == positive, score) > 0.8
    assert_array_equal(called, score >= 0.0)
    assert np.mean(called[y != positive]) < 0.2  # those at the threshold, the top negatives
    *preparation, classifier = (step for _, step in attop.load(model).steps)
    samples = make_pipeline(*preparation).transform(pd.read_csv(data))
    assert_allclose(score, classifier.top_score(samples), rtol=1e-9)
