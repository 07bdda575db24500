"""Models come back as they were saved, and files that are none of ours do nothing."""

import io
import json
import os
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import attop
from attop import Grill, GrillNP, PatMatNP, TauFPL, TopPush
from attop.calibration import NeymanPearsonThreshold, RecallThreshold
from attop.cli import main
from attop.kernels import KERNELS, FunctionKernel, Gaussian, Kernel, Laplacian, Polynomial
from attop.metrics import get_scorer, tpr_at_fpr
from attop.model_selection import AtTopCV
from attop.persistence.card import CARD_MEMBER, make_card
from attop.persistence.trusted import OTHERS, name_of, own
from conftest import PARAMETERS, two_clouds

skops = pytest.importorskip("skops.io")

X, POSITIVE = two_clouds(20, 40, distance=1.5)
MANY, MANY_POSITIVE = two_clouds(60, 400, distance=2.0)


def my_kernel(A, B):
    return A @ B.T


@dataclass(frozen=True)
class MyKernel(Kernel):
    scale: float = 2.0

    def values(self, A, B):
        return self.scale * A @ B.T


def a_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["red", "green", "blue"], len(frame))
    frame.loc[::7, "b"] = np.nan
    frame.loc[::9, "colour"] = None
    return frame


def of_a_table():
    return make_pipeline(
        ColumnTransformer(
            [
                (
                    "numbers",
                    make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
                    make_column_selector(dtype_include="number"),
                ),
                (
                    "words",
                    make_pipeline(
                        SimpleImputer(strategy="most_frequent"),
                        OneHotEncoder(handle_unknown="ignore"),
                    ),
                    ["colour"],
                ),
            ]
        ),
        PatMatNP(tau=0.2),
    )


MODELS = {
    **{name: getattr(attop, name)(**values) for name, values in PARAMETERS.items()},
    "Grill": Grill(tau=0.4),
    "GrillNP": GrillNP(tau=0.2, random_state=np.random.RandomState(0)),
    "linear": TopPush(kernel="linear", solver="primal", surrogate="quadratic_hinge"),
    "precomputed": TopPush(kernel="precomputed"),
    "Gaussian": TopPush(kernel=Gaussian(0.3)),
    "Laplacian": TopPush(kernel=Laplacian(0.3)),
    "Polynomial": TopPush(kernel=Polynomial(0.3, 2, 1.0), approximation="nystroem"),
    "rbf_sampler": TauFPL(tau=0.1, approximation="rbf_sampler"),
    "options": TopPush(C=np.inf, solver_options={}, max_time=60.0),
    "pipeline": make_pipeline(FunctionTransformer(np.tanh), StandardScaler(), TopPush()),
    "AtTopCV": AtTopCV(
        [TopPush(), TauFPL(tau=0.1)], {"C": [0.1, 1.0]}, cv=StratifiedKFold(3), random_state=0
    ),
    "GridSearchCV": GridSearchCV(
        TopPush(), {"C": [0.1, 1.0]}, cv=3, scoring=get_scorer("tpr_at_fpr_0.05")
    ),
    "SVM weights": attop.SVM(class_weight={"no": 1.0, "yes": 2.0}),
    "RecallThreshold": RecallThreshold(TopPush(), recall=0.7, random_state=0),
    "NeymanPearsonThreshold": NeymanPearsonThreshold(
        make_pipeline(StandardScaler(), TopPush()), fpr=0.2, random_state=0
    ),
}


@pytest.mark.filterwarnings("ignore:The optimum of this|The kernel:UserWarning")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_models_come_back_as_they_were(model, tmp_path):
    samples, positive = (MANY, MANY_POSITIVE) if hasattr(model, "confidence") else (X, POSITIVE)
    if getattr(model, "kernel", None) == "precomputed":
        samples = X @ X.T
    labels = np.where(positive, "yes", "no")
    path = tmp_path / "model.attop"
    assert attop.save(model.fit(samples, labels), path) is None
    loaded = attop.load(path)
    assert type(loaded) is type(model)
    assert_array_equal(loaded.decision_function(samples), model.decision_function(samples))
    assert_array_equal(loaded.predict(samples), model.predict(samples))
    assert re.sub("0x[0-9A-F]+", "", repr(loaded)) == re.sub("0x[0-9A-F]+", "", repr(model))
    assert vars(loaded).keys() == vars(model).keys()
    for name in ("status_", "history_", "stats_", "dual_gap_", "best_params_", "kernel"):
        if hasattr(model, name):
            np.testing.assert_equal(getattr(loaded, name), getattr(model, name))
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipeline_of_a_table(tmp_path):
    model = of_a_table().fit(a_table(), POSITIVE)
    attop.save(model, tmp_path / "model.attop")
    loaded = attop.load(tmp_path / "model.attop")
    assert_array_equal(loaded.decision_function(a_table()), model.decision_function(a_table()))
    assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)


def test_models_that_are_not_fitted_and_kernels(tmp_path):
    path = str(tmp_path / "model.attop")
    attop.save(TopPush(C=3.0), path)
    assert attop.load(path).get_params() == TopPush(C=3.0).get_params()
    for kernel in KERNELS.values():
        attop.save(kernel(), path)
        assert attop.load(path) == kernel()


def test_a_loaded_model_goes_on(tmp_path):
    model = TopPush(warm_start=True).fit(X, POSITIVE)
    attop.save(model, tmp_path / "model.attop")
    again = attop.load(tmp_path / "model.attop").fit(X, POSITIVE)
    assert again.n_iter_ <= model.n_iter_
    assert again.dual_gap_ <= 1e-4


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TopPush(kernel=my_kernel), "'kernel' parameter of TopPush must be no function"),
        (TopPush(kernel=lambda A, B: A @ B.T), "'kernel' parameter of TopPush must be no function"),
        (TopPush(kernel=linear_kernel), "'kernel' parameter of TopPush must be no function"),
        (TopPush(kernel=FunctionKernel(my_kernel)), "'kernel__function' parameter of TopPush"),
        (TopPush(kernel=MyKernel()), "'kernel' parameter .* the class MyKernel as 'trusted'"),
        (
            make_pipeline(StandardScaler(), TopPush(kernel=my_kernel)),
            "'toppush__kernel' parameter of Pipeline must be no function",
        ),
        (AtTopCV(TopPush(), cv=3, scoring=lambda y, s: 0.0), "'scoring' parameter of AtTopCV"),
        (AtTopCV([TopPush(kernel=MyKernel())], cv=3), r"parts that .* not know: .*\.MyKernel"),
        (make_pipeline(FunctionTransformer(os.cpu_count), TopPush()), "transformer__func' param"),
    ],
)
def test_what_would_not_be_loaded_is_not_saved(model, message, tmp_path):
    path = tmp_path / "model.attop"
    with pytest.raises(ValueError, match=message):
        attop.save(model, path)
    assert not path.exists()


def test_requests_of_metadata_are_refused(tmp_path):
    """They refer to their estimator, which skops follows for ever."""
    with config_context(enable_metadata_routing=True):
        classifier = TopPush().set_fit_request(sample_weight=True)
    for model in (classifier, make_pipeline(StandardScaler(), classifier)):
        with pytest.raises(ValueError, match="without set_fit_request"):
            attop.save(model, tmp_path / "model.attop")


def test_functions_that_are_ours_are_saved(tmp_path):
    search = AtTopCV(TopPush(), {"C": [1.0]}, cv=3, scoring=get_scorer("tpr_at_fpr_0.1"))
    attop.save(search.fit(X, POSITIVE), tmp_path / "model.attop")
    assert attop.load(tmp_path / "model.attop").scoring._score_func is tpr_at_fpr


def test_classes_of_a_user_are_loaded_if_the_user_says_so(tmp_path):
    path = tmp_path / "model.attop"
    model = TopPush(kernel=MyKernel(0.5)).fit(X, POSITIVE)
    attop.save(model, path, trusted=[MyKernel])
    with pytest.raises(ValueError, match=r"not know: .*MyKernel.*pass them as 'trusted'"):
        attop.load(path)
    loaded = attop.load(path, trusted=[MyKernel])
    assert loaded.kernel == MyKernel(0.5)
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("model", [TopPush, "TopPush", None, {"model": 1}])
def test_only_estimators_are_saved(model, tmp_path):
    with pytest.raises(TypeError, match="takes an estimator"):
        attop.save(model, tmp_path / "model.attop")


RUNS = []


class Trap:
    """Notes every way in which an object may come to life."""

    def __new__(cls, *arguments):
        RUNS.append(arguments)
        return super().__new__(cls)

    def __reduce__(self):
        return Trap, ("constructed",)

    def __setstate__(self, state):
        RUNS.append(state)


def write_by_hand(path, content, card=None):
    """A file of skops with a card, which `attop.save` would have refused."""
    buffer = io.BytesIO(skops.dumps(content))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(CARD_MEMBER, json.dumps(card or make_card(TopPush())))
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize("where", ["solver_options", "kernel", "C", "classes_", "_fitted_kernel"])
def test_a_file_with_another_type_runs_nothing(where, tmp_path):
    model = TopPush().fit(X, POSITIVE)
    setattr(model, where, {"trap": Trap()})
    path = tmp_path / "model.attop"
    write_by_hand(path, model)
    RUNS.clear()
    with pytest.raises(ValueError, match=r"not loaded, as it has types .*Trap"):
        attop.load(path)
    assert RUNS == []


def test_a_file_with_a_function_runs_nothing(tmp_path):
    path = tmp_path / "model.attop"
    for function in (os.system, eval, my_kernel, np.load, joblib.load):
        write_by_hand(path, TopPush(kernel=function))
        with pytest.raises(ValueError, match="not loaded, as it has types"):
            attop.load(path)


def with_schema(path, change):
    """The file with another description of its objects."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["schema.json"] = change(members["schema.json"].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"attop.classifiers"', '"os"').replace('"TopPush"', '"system"'),
        lambda text: text.replace("ObjectNode", "FunctionNode"),
        lambda text: text.replace("ObjectNode", "NoSuchNode"),
        lambda text: text.replace("attop.classifiers", "attop.no_such_module"),
        lambda text: text.replace("__class__", "klass"),
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "[" * 100_000,
    ],
)
def test_a_file_that_was_tampered_with(change, tmp_path):
    path = tmp_path / "model.attop"
    attop.save(TopPush().fit(X, POSITIVE), path)
    with_schema(path, change)
    with pytest.raises(ValueError, match=f"{path.name} (was not loaded|is damaged)"):
        attop.load(path)


def test_a_truncated_file(tmp_path):
    path = tmp_path / "model.attop"
    attop.save(TopPush().fit(X, POSITIVE), path)
    content = path.read_bytes()
    for share in (0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999):
        path.write_bytes(content[: int(share * len(content))])
        for read in (attop.load, attop.model_card):
            with pytest.raises(ValueError, match=r"model\.attop is (damaged|not a model)"):
                read(path)


def test_a_file_with_flipped_bits_is_refused_or_unharmed(tmp_path):
    """Some bits are the dates of members, which do not matter."""
    path = tmp_path / "model.attop"
    model = TopPush().fit(X, POSITIVE)
    attop.save(model, path)
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    refused = 0
    for place in np.random.default_rng(0).integers(len(content), size=100):
        changed = content.copy()
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed.tobytes())
        try:
            loaded = attop.load(path)
        except ValueError as error:
            assert path.name in str(error)
            refused += 1
        else:
            assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert refused > 50


def write_pickle(path):
    joblib.dump(TopPush(), path)


def write_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("something.txt", "else")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("a,b,c\n1,2,3\n"),
        lambda path: path.write_bytes(bytes(range(256)) * 10),
        lambda path: skops.dump(LogisticRegression(), path),
        write_pickle,
        write_archive,
    ],
    ids=["empty", "csv", "bytes", "skops", "pickle", "zip"],
)
@pytest.mark.parametrize("read", [attop.load, attop.model_card])
def test_files_of_other_programs(write, read, tmp_path):
    path = tmp_path / "file"
    write(path)
    with pytest.raises(ValueError, match=r"file is not a model that attop\.save"):
        read(path)


def test_a_file_of_a_later_format(tmp_path):
    path = tmp_path / "model.attop"
    card = make_card(TopPush()) | {"format": 2, "versions": {"attop": "9.0"}}
    write_by_hand(path, TopPush(), card)
    with pytest.raises(ValueError, match=r"written by attop 9\.0 in format 2"):
        attop.load(path)


@pytest.mark.parametrize("read", [attop.load, attop.model_card])
def test_files_that_are_not_there(read, tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing.attop")
    with pytest.raises(OSError, match=r"[Dd]irectory|denied"):
        read(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="no limits on files")
def test_a_full_disk_leaves_the_earlier_file(tmp_path):
    import resource

    path = tmp_path / "model.attop"
    attop.save(TopPush(), path)
    earlier = path.read_bytes()
    model = TopPush().fit(X, POSITIVE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="large"):
            attop.save(model, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == earlier
    assert list(tmp_path.iterdir()) == [path]
    attop.save(model, path)
    assert attop.load(path).dual_gap_ == model.dual_gap_


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        attop.save(TopPush(), tmp_path / "nowhere" / "model.attop")


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("skops", "save", lambda: attop.save(TopPush(), "x")),
        ("skops", "save", lambda: attop.load("x")),
        ("onnx", "onnx", lambda: attop.to_onnx(TopPush())),
    ],
    ids=["save", "load", "to_onnx"],
)
def test_what_to_install_is_said(package, extra, call, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'pip install "attop\[{extra}\]"'):
        call()


def test_what_is_loaded():
    """All classifiers and kernels but functions; and no name that leads nowhere."""
    names = [name_of(one) for one in own()]
    estimators = [name for name in attop.__all__ if isinstance(getattr(attop, name), type)]
    assert {name_of(getattr(attop, name)) for name in estimators} <= {*names}
    assert name_of(NeymanPearsonThreshold) in names
    assert name_of(FunctionKernel) not in names
    assert all(name.startswith("attop.") for name in names)
    assert all(name.startswith(("sklearn.", "scipy.sparse.", "numpy.")) for name in OTHERS)


def test_the_card_of_a_model(tmp_path):
    model = NeymanPearsonThreshold(
        make_pipeline(StandardScaler(), TauFPL(tau=0.1, C=np.inf, kernel=Gaussian(0.3))),
        fpr=0.2,
        pos_label="spam",
    )
    frame = pd.DataFrame(MANY, columns=["a", "b", "c"])
    model.fit(frame, np.where(MANY_POSITIVE, "spam", "ham"))
    card = attop.model_card(model)
    inner = model.estimator_[-1]
    assert card["classifier"] == "TauFPL"
    assert card["description"] == TauFPL.__doc__.splitlines()[0]
    assert card["parameters"] == {
        **inner.get_params(deep=False),
        "kernel": "Gaussian(gamma=0.3)",
        "C": "inf",
    }
    assert card["steps"] == ["StandardScaler()"]
    assert card["certificate"] == {
        "status": inner.status_.name,
        "explanation": str(inner.status_),
        "objective": inner.objective_,
        "dual_gap": inner.dual_gap_,
        "tol": 1e-4,
    }
    assert card["fitted"]["threshold_"] == inner.threshold_
    assert card["fitted"]["n_support_vectors"] == len(inner.support_)
    (around,) = card["around"]
    assert around["name"] == "NeymanPearsonThreshold"
    assert around["parameters"]["fpr"] == 0.2
    assert around["fitted"]["violation_bound_"] == model.violation_bound_
    assert (card["classes"], card["pos_label"]) == (["ham", "spam"], "spam")
    assert (card["n_features"], card["feature_names"]) == (3, ["a", "b", "c"])
    assert card["versions"]["attop"] == attop.__version__
    assert {"python", "numpy", "scipy", "scikit-learn"} < {*card["versions"]}
    assert json.loads(json.dumps(card, allow_nan=False)) == card

    attop.save(model, tmp_path / "model.attop", notes={"data": "mails.csv", "rows": np.int64(460)})
    saved = attop.model_card(tmp_path / "model.attop")
    assert saved.pop("notes") == {"data": "mails.csv", "rows": 460}
    changed = {"date", "notes"}
    assert {k: v for k, v in saved.items() if k not in changed} == {
        k: v for k, v in card.items() if k not in changed
    }


def test_cards_of_other_models():
    grill = attop.model_card(Grill(tau=0.4).fit(X, POSITIVE))["certificate"]
    assert (grill["status"], grill["dual_gap"]) == ("NO_CERTIFICATE", None)
    assert attop.model_card(TopPush())["certificate"] is None
    assert attop.model_card(LogisticRegression())["classifier"] == "LogisticRegression"
    search = attop.model_card(AtTopCV(TopPush(), {"C": [1.0]}, cv=3).fit(X, POSITIVE))
    assert search["classifier"] == "TopPush"
    assert search["around"][0]["fitted"]["best_params_"] == {"C": 1.0}


def test_reading_a_card_loads_nothing(tmp_path):
    path = tmp_path / "model.attop"
    write_by_hand(path, TopPush(solver_options={"trap": Trap()}))
    RUNS.clear()
    assert attop.model_card(Path(path))["classifier"] == "TopPush"
    assert RUNS == []


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as ending:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ending.value.code, captured.out, " ".join(captured.err.split())


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "model.attop"
    attop.save(of_a_table().fit(a_table(), POSITIVE), path, notes={"data": "table.csv"})
    return path


def test_the_command_that_shows_a_model(capsys, saved):
    status, out, _ = command(capsys, "show", saved)
    assert status == 0
    for words in ("PatMatNP", "CONVERGED: the certified", "tau=0.2", "'colour'", "table.csv"):
        assert words in out
    status, out, _ = command(capsys, "show", saved, "--json")
    assert json.loads(out) == attop.model_card(saved)


def test_the_command_that_exports_a_model(capsys, saved):
    status, out, err = command(capsys, "export", saved)
    assert status == 0, err
    assert "Input colour: 1 column, text" in out
    assert "Input a: 1 column, double precision" in out
    graph = saved.with_suffix(".onnx")
    assert attop.model_card(graph)["notes"] == {"data": "table.csv"}
    status, _, err = command(capsys, "export", saved, graph)
    assert status == 2
    assert "exists already" in err
    assert command(capsys, "export", saved, graph, "--force")[0] == 0
    assert "CONVERGED" in command(capsys, "show", graph)[1]


@pytest.mark.parametrize("name", ["export", "show"])
def test_commands_on_other_files(name, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # or a long path breaks the line within the message
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    status, _, err = command(capsys, name, path)
    assert status == 2
    assert "not a model that attop.save" in err
    status, _, err = command(capsys, name, tmp_path / "nothing")
    assert status == 2
    assert "No such file" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
def test_models_of_sparse_samples_travel(tmp_path, form):
    rng = np.random.default_rng(0)
    X = form(rng.random((60, 8)) * (rng.random((60, 8)) < 0.4))
    model = TauFPL(0.2).fit(X, np.arange(60) % 3 == 0)
    path = tmp_path / "model.skops"
    attop.save(model, path)
    assert_array_equal(attop.load(path).decision_function(X), model.decision_function(X))
