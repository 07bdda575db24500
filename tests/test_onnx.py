"""Graphs give the scores and labels of the models that they were made of, in double precision."""

import json

import numpy as np
import onnx
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import attop
from attop import Grill, GrillNP, TauFPL, TopPush
from attop.calibration import CostThreshold, NeymanPearsonThreshold, RecallThreshold
from attop.kernels import Kernel
from attop.model_selection import AtTopCV
from conftest import PARAMETERS, two_clouds

ort = pytest.importorskip("onnxruntime")

X, POSITIVE = two_clouds(20, 40, n_features=5, distance=1.5)
NEW = np.random.default_rng(1).normal(0.5, 2.0, size=(300, 5))
ESTIMATORS = {name: getattr(attop, name)(**values) for name, values in PARAMETERS.items()}
KERNELS = ["linear", "rbf", "poly", "sigmoid", "laplacian"]
KERNEL_VALUES = {"gamma": 0.15, "degree": 3, "coef0": 0.5}


def session_of(graph, level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    """What runs a graph."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    return ort.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(graph, inputs):
    """Labels and scores of a graph."""
    return session_of(graph).run(["label", "score"], inputs)


def assert_same(model, samples, inputs=None):
    """The graph gives what the model gives."""
    label, score = run(attop.to_onnx(model), {"X": samples} if inputs is None else inputs)
    assert score.dtype == np.float64
    assert_allclose(score, model.decision_function(samples), rtol=0.0, atol=1e-10)
    assert_array_equal(label, model.predict(samples))


@pytest.mark.filterwarnings("ignore:.*the kernel is not positive semi-definite")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_every_estimator_with_every_kernel(estimator, kernel):
    model = estimator.set_params(kernel=kernel, **KERNEL_VALUES)
    assert_same(make_pipeline(StandardScaler(), model).fit(X, POSITIVE), NEW)


@pytest.mark.parametrize("kernel", KERNELS)
def test_features_of_every_kernel(kernel):
    model = TopPush(kernel=kernel, approximation="nystroem", n_components=15, **KERNEL_VALUES)
    assert_same(model.fit(X, POSITIVE), NEW)


@pytest.mark.parametrize("approximation", ["nystroem", "rbf_sampler"])
@pytest.mark.parametrize("estimator", [TauFPL(tau=0.2), Grill(tau=0.4), GrillNP(tau=0.2)], ids=str)
def test_approximations(estimator, approximation):
    model = estimator.set_params(kernel="rbf", approximation=approximation, n_components=30)
    assert_same(model.fit(X, POSITIVE), NEW)


def test_models_without_a_kernel_and_without_support():
    assert_same(Grill(tau=0.4).fit(X, POSITIVE), NEW)
    with pytest.warns(UserWarning, match="optimum"):
        nothing = attop.TopMeanK(tau=0.05).fit(X, POSITIVE)
    assert len(nothing.support_) == 0
    assert_same(nothing, NEW)


@pytest.mark.filterwarnings("ignore:The optimum of this|TopPush. the kernel is not positive")
def test_one_feature_and_one_component():
    """Where every factor is a single number, which onnxruntime would keep in single precision."""
    for model in (
        make_pipeline(StandardScaler(), TopPush(kernel="linear")),
        make_pipeline(MinMaxScaler(), PCA(1), StandardScaler(), TopPush(kernel="poly", gamma=0.3)),
        TopPush(approximation="rbf_sampler", n_components=1),
        TopPush(approximation="nystroem", n_components=1, kernel="sigmoid", gamma=0.1),
    ):
        assert_same(model.fit(X[:, :1], POSITIVE), NEW[:, :1])


def test_the_scores_are_the_same_however_the_graph_is_optimised():
    model = make_pipeline(RobustScaler(), TopPush(kernel="poly", gamma=0.1)).fit(X, POSITIVE)
    graph = attop.to_onnx(model)
    levels = ort.GraphOptimizationLevel
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL):
        (score,) = session_of(graph, level).run(["score"], {"X": NEW})
        assert_allclose(score, model.decision_function(NEW), rtol=0.0, atol=1e-10)


def test_no_number_of_a_graph_is_in_single_precision():
    model = make_pipeline(StandardScaler(), TopPush()).fit(X.astype(np.float32), POSITIVE)
    graph = attop.to_onnx(model)
    kinds = {constant.data_type for constant in graph.graph.initializer}
    assert onnx.TensorProto.FLOAT not in kinds
    assert_same(model, NEW)


@pytest.mark.parametrize("offset", [0.0, 1e6], ids=["near", "offset"])
def test_gaussian_kernels_of_samples_far_from_zero_or_from_each_other(offset):
    """Products of such samples would cancel; differences of their features do not."""
    model = TopPush(gamma=0.3).fit(X + offset, POSITIVE)
    assert_same(model, NEW + offset)
    far = np.vstack([NEW, 1e9 + NEW, -1e12 * NEW]) + offset
    assert_same(model, far)
    at_support = model.support_vectors_
    assert_same(model, np.vstack([at_support, far]))


def test_support_vectors_far_out():
    spread = X * 10.0 ** np.arange(60).reshape(-1, 1).clip(0, 8)
    model = TopPush(gamma=1e-3, C=0.1).fit(spread, POSITIVE)
    assert_same(model, np.vstack([spread, NEW]))


def test_sparse_training_samples():
    model = TopPush(gamma=0.2).fit(sp.csr_matrix(np.where(X > 0, X, 0.0)), POSITIVE)
    assert sp.issparse(model.support_vectors_)
    assert_same(model, NEW)


def test_no_samples():
    model = TopPush().fit(X, POSITIVE)
    for model in (TopPush().fit(X, POSITIVE), TopPush(kernel="laplacian").fit(X, POSITIVE)):
        label, score = run(attop.to_onnx(model), {"X": NEW[:0]})
        assert label.shape == score.shape == (0,)


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["no", "yes"], None),
        (["no", "yes"], "no"),
        ([-1, 1], None),
        ([0, 1], 0),
        ([1.0, 2.0], None),
        ([False, True], False),
    ],
)
def test_labels_of_any_kind(labels, pos_label):
    y = np.array(labels)[POSITIVE.astype(int)]
    assert_same(TopPush(pos_label=pos_label).fit(X, y), NEW)
    if isinstance(labels[0], str):
        assert_same(TopPush(pos_label=pos_label).fit(X, y.astype(object)), NEW)


STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 2)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    PCA(3),
    PCA(2, whiten=True),
    Nystroem(n_components=10),
    Nystroem(kernel="polynomial", degree=2, n_components=10),
    Nystroem(kernel="sigmoid", gamma=0.1, n_components=10),
    RBFSampler(n_components=10, random_state=0),
    FunctionTransformer(),
    "passthrough",
]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_of_pipelines(step):
    assert_same(make_pipeline(step, TopPush(gamma=0.2)).fit(X, POSITIVE), NEW)


def table(n=60, seed=0, extra=()):
    """Columns of numbers and of text, with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["length", "width", "height"])
    frame["colour"] = rng.choice(["red", "green", "blue", *extra], n)
    frame["shape"] = rng.choice(["round", "square"], n, p=[0.9, 0.1])
    frame["grade"] = rng.integers(1, 5, n).astype(float)
    frame["note"] = "anything"
    frame.loc[rng.random(n) < 0.2, "width"] = np.nan
    frame.loc[rng.random(n) < 0.2, "colour"] = np.nan
    return frame


def inputs_of(graph, frame):
    """The columns that a graph asks for, text without gaps."""
    asked = {}
    for entry in graph.graph.input:
        column = frame[[entry.name]]
        is_text = entry.type.tensor_type.elem_type == onnx.TensorProto.STRING
        asked[entry.name] = (
            column.astype(object).fillna("").to_numpy(object) if is_text else column.to_numpy(float)
        )
    return asked


NUMBERS, WORDS = ["length", "width", "height"], ["colour", "shape"]
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", drop="if_binary"),
    OneHotEncoder(handle_unknown="ignore", min_frequency=10),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20),
    OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False),
    OneHotEncoder(handle_unknown="ignore", max_categories=2, drop="first"),
]


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("strategy", ["most_frequent", "constant", None])
def test_tables_of_numbers_and_text(encoder, strategy):
    words = [] if strategy is None else [SimpleImputer(strategy=strategy, fill_value="none")]
    numbers = [SimpleImputer(strategy="median", add_indicator=True), StandardScaler()]
    preparation = ColumnTransformer(
        [
            ("numbers", make_pipeline(*numbers), NUMBERS),
            ("words", make_pipeline(*words, encoder), WORDS),
            ("grades", OneHotEncoder(handle_unknown="ignore"), ["grade"]),
        ],
        transformer_weights={"words": 0.5},
    )
    frame, new = table(), table(200, seed=1, extra=["violet"])
    new.loc[0, "grade"] = 17.0
    model = make_pipeline(preparation, TopPush()).fit(frame, POSITIVE)
    graph = attop.to_onnx(model)
    assert {entry.name for entry in graph.graph.input} == {*NUMBERS, *WORDS, "grade"}
    assert_same(model, new, inputs_of(graph, new))


@pytest.mark.filterwarnings(r"ignore:\s*The format of the columns:FutureWarning")
@pytest.mark.parametrize(
    "columns",
    [
        ["length", "height"],
        [0, 2],
        [-1, 0],
        slice(0, 2),
        slice("width", "height"),
        [True, False, True],
        "length",
        make_column_selector("e"),
    ],
    ids=str,
)
@pytest.mark.parametrize("remainder", ["drop", "passthrough", MinMaxScaler()], ids=str)
def test_columns_by_any_name(columns, remainder):
    frame = pd.DataFrame(X[:, :3], columns=NUMBERS)
    new = pd.DataFrame(NEW[:, :3], columns=NUMBERS)
    one = isinstance(columns, str)  # which hands a step one dimension, and few steps take that
    step = "passthrough" if one else StandardScaler()
    columns = [columns] if one else columns
    chosen = ColumnTransformer([("chosen", step, columns)], remainder=remainder)
    model = make_pipeline(chosen, TopPush()).fit(frame, POSITIVE)
    assert_same(model, new, inputs_of(attop.to_onnx(model), new))


def test_columns_of_an_array():
    preparation = make_column_transformer(
        (StandardScaler(), [0, 1]), (OneHotEncoder(handle_unknown="ignore"), [4]), remainder="drop"
    )
    samples, new = X.copy(), NEW.copy()
    samples[:, 4], new[:, 4] = np.arange(60) % 3, np.arange(300) % 4
    assert_same(make_pipeline(preparation, TopPush()).fit(samples, POSITIVE), new)


@pytest.mark.filterwarnings("ignore:Skipping features|Currently, when `keep_empty")
@pytest.mark.parametrize("missing", [np.nan, -1.0])
@pytest.mark.parametrize("strategy", ["mean", "most_frequent", "constant"])
def test_missing_numbers(missing, strategy):
    rng = np.random.default_rng(2)
    samples, new = X.copy(), NEW.copy()
    samples[rng.random(X.shape) < 0.2] = missing
    new[rng.random(NEW.shape) < 0.2] = missing
    samples[:, 3] = missing  # which leaves no column, unless it is filled with a constant
    imputer = SimpleImputer(missing_values=missing, strategy=strategy, add_indicator=True)
    assert_same(make_pipeline(imputer, TopPush(C=10.0)).fit(samples, POSITIVE), new)


def test_text_alone():
    frame, new = table()[WORDS], table(100, seed=3)[WORDS]
    model = make_pipeline(OneHotEncoder(), TauFPL(tau=0.7, gamma=0.5)).fit(frame, POSITIVE)
    assert len(model[-1].support_)
    text = new.astype(object).fillna("").to_numpy(object)
    assert_same(model, new, {"X": text})


def test_numbers_and_truth_values_as_categories():
    frame, new = table(), table(100, seed=3)
    for one in (frame, new):
        one["flag"] = one["length"] > 0
        one["count"] = one["grade"].astype(int).astype(object)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(
        make_column_transformer((encoder, ["flag", "count"]), ("passthrough", ["height"])),
        TauFPL(tau=0.5),
    ).fit(frame, POSITIVE)
    assert_same(model, new, inputs_of(attop.to_onnx(model), new))


def test_columns_that_are_called_like_the_outputs():
    names = ["score", "label", "attop"]
    frame, new = pd.DataFrame(X[:, :3], columns=names), pd.DataFrame(NEW[:, :3], columns=names)
    scaled = make_column_transformer((StandardScaler(), names))
    model = make_pipeline(scaled, TopPush()).fit(frame, POSITIVE)
    inputs = {"score_in": new[["score"]], "label_in": new[["label"]], "attop": new[["attop"]]}
    assert_same(model, new, {name: column.to_numpy() for name, column in inputs.items()})


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (["red", "", None], "cannot tell empty text from missing"),
        ([1, 2, "three"], "columns of numbers or of text"),
        (np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[ns]"), "or of text"),
    ],
    ids=["empty", "mixed", "dates"],
)
def test_categories_that_cannot_be_exported(categories, message):
    letters = pd.Series(np.resize(["u", "v", "w"], 60), dtype=object)
    frame = pd.DataFrame({"x": X[:, 0], "c": letters})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), ("passthrough", ["x"])), TauFPL(tau=0.5)
    ).fit(frame, POSITIVE)
    kind = categories.dtype if isinstance(categories, np.ndarray) else object
    model[0].named_transformers_["onehotencoder"].categories_ = [np.array(categories, dtype=kind)]
    with pytest.raises(ValueError, match=message):
        attop.to_onnx(model)


def test_searches_and_thresholds():
    more, positive = two_clouds(60, 400, n_features=5, distance=2.0)
    search = AtTopCV([TopPush(), TauFPL(tau=0.1)], {"C": [0.1, 1.0]}, cv=3).fit(X, POSITIVE)
    assert_same(search, NEW)
    pipeline = make_pipeline(StandardScaler(), TopPush())
    grid = GridSearchCV(pipeline, {"toppush__C": [0.1, 1.0]}, scoring="roc_auc", cv=3)
    assert_same(grid.fit(X, POSITIVE), NEW)
    for threshold in (
        NeymanPearsonThreshold(pipeline, fpr=0.2, pos_label=False, random_state=0),
        NeymanPearsonThreshold(pipeline, fpr=0.2, pos_label=True, random_state=0),
        RecallThreshold(pipeline, recall=0.8, random_state=0),
        CostThreshold(pipeline, random_state=0),
    ):
        assert_same(threshold.fit(more, positive), NEW)


class Cosine(Kernel):
    def values(self, X, Y):
        return X @ Y.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TopPush(kernel=linear_kernel), "'kernel' parameter of TopPush must be 'linear', 'rbf'"),
        (TopPush(kernel=Cosine()), "'kernel' parameter of TopPush must be .* Got Cosine"),
        (make_pipeline(Normalizer(), TopPush()), "cannot export Normalizer. .* StandardScaler"),
        (make_pipeline(FunctionTransformer(np.tanh), TopPush()), "'func' parameter of Function"),
        (make_pipeline(Nystroem(kernel="cosine", n_components=9), TopPush()), "no kernel 'cosine'"),
        (LogisticRegression(), "cannot export LogisticRegression: it takes the classifiers"),
    ],
    ids=str,
)
def test_what_cannot_be_exported_is_named(model, message):
    samples = X.copy()
    with pytest.raises(ValueError, match=message):
        attop.to_onnx(model.fit(abs(samples), POSITIVE))


def test_a_precomputed_kernel_is_refused():
    model = TopPush(kernel="precomputed").fit(X @ X.T, POSITIVE)
    with pytest.raises(ValueError, match="'kernel' parameter of TopPush must not be 'precomputed'"):
        attop.to_onnx(model)


def test_a_column_of_two_kinds_is_refused():
    both = make_column_transformer(
        (OneHotEncoder(), ["colour"]), ("passthrough", ["length"]), (StandardScaler(), ["length"])
    )
    model = make_pipeline(both, TopPush()).fit(table(), POSITIVE)
    graph = attop.to_onnx(model)  # one column may be used twice
    assert_same(model, table(), inputs_of(graph, table()))
    model[0].transformers_[1] = ("again", OneHotEncoder().fit(table()[["colour"]]), ["length"])
    with pytest.raises(ValueError, match="column 'length' is used both as text and as a number"):
        attop.to_onnx(model)


def test_a_model_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        attop.to_onnx(TopPush())


def test_the_file_has_the_graph_and_its_card(tmp_path):
    path = tmp_path / "model.onnx"
    model = make_pipeline(StandardScaler(), TopPush()).fit(table()[["length", "height"]], POSITIVE)
    graph = attop.to_onnx(model, path, notes={"data": "clouds"})
    assert onnx.load(path) == graph
    assert graph.producer_name == "attop"
    card = attop.model_card(path)
    assert card["classifier"] == "TopPush"
    assert card["certificate"]["status"] == "CONVERGED"
    assert card["feature_names"] == ["length", "height"]
    assert card["notes"] == {"data": "clouds"}
    assert json.loads(graph.metadata_props[0].value) == card
    with pytest.raises(ValueError, match="is an ONNX graph"):
        attop.load(path)
    assert list(tmp_path.iterdir()) == [path]
