"""What `help` says is complete and true, and what editors and type checkers see is the same."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpydoc.validate import validate

import attop
from attop import AtTopClassifier, Grill, PatMatNP
from attop._attributes import FittedAttributes
from attop._docstrings import completed, entries_of, sections_of
from conftest import PARAMETERS, two_clouds

ESTIMATORS = [
    value
    for name in attop.__all__
    if isinstance(value := getattr(attop, name), type) and issubclass(value, AtTopClassifier)
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)

MODULES = [
    "attop",
    "attop.calibration",
    "attop.datasets",
    "attop.kernels",
    "attop.metrics",
    "attop.model_selection",
    "attop.plotting",
    "attop.statistics",
]
PUBLIC = [
    f"{module}.{name}"
    for module in MODULES
    for name in import_module(module).__all__
    if callable(getattr(import_module(module), name))
]
METHODS = [
    f"{path}.{name}"
    for path in PUBLIC
    if not path.startswith("attop.kernels.")  # which have theirs once, in the base class
    for name, method in inspect.getmembers(pydoc.locate(path), inspect.isroutine)
    if not name.startswith("_")
    and str(getattr(inspect.unwrap(method), "__module__", "")).startswith("attop")
    and inspect.isclass(pydoc.locate(path))
]
#: Sections that not everything needs, a rule that takes plurals for verbs, and the places of the
#: quotes, which ruff decides.
NOT_ASKED = {"ES01", "EX01", "GL01", "GL02", "SA01", "SS05"}


def errors_of(path):
    """What numpydoc finds wrong, less what is right here."""
    public = pydoc.locate(path)
    sections, allowed = sections_of(public.__doc__), set(NOT_ASKED)
    if sections.get("Returns") == "self":
        allowed.add("RT03")  # there is nothing to say about it
    if inspect.isclass(public) and not issubclass(public, Exception):
        fields = documented(public, "Attributes")
        if issubclass(public, tuple) or {*fields} >= {*inspect.signature(public).parameters}:
            allowed.add("PR01")  # a result has fields, which its functions fill
    return [error for error in validate(path)["errors"] if error[0] not in allowed]


@pytest.mark.parametrize("path", PUBLIC)
def test_public_names_pass_numpydoc(path):
    assert errors_of(path) == []


@pytest.mark.parametrize("path", METHODS)
def test_methods_pass_numpydoc(path):
    assert errors_of(path) == []


def documented(public, section):
    """The names that a section explains, in order."""
    entries = entries_of(sections_of(public.__doc__).get(section, ""))
    return [name for names in entries for name in names.split(", ")]


@every_estimator
def test_parameters_are_those_of_the_signature(estimator):
    parameters = inspect.signature(estimator).parameters
    assert documented(estimator, "Parameters") == list(parameters)
    assert estimator().get_params(deep=False).keys() == parameters.keys()
    text = entries_of(sections_of(estimator.__doc__)["Parameters"])
    for name, parameter in parameters.items():
        shown = re.search(r"default=(.*)", text[name].splitlines()[0])[1]
        assert eval(shown) == parameter.default, name


@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}, {"approximation": "nystroem"}])
@pytest.mark.parametrize("name", [*PARAMETERS, "Grill", "GrillNP"])
@pytest.mark.filterwarnings("ignore:The optimum of this")
def test_attributes_are_those_of_a_fit(name, options):
    estimator = getattr(attop, name)
    X, positive = two_clouds(20, 40, distance=1.5)
    parameters = PARAMETERS.get(name, {"tau": 0.4})
    fitted = estimator(**parameters, **options, max_iter=20).fit(X, positive)
    found = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    told = set(documented(estimator, "Attributes"))
    assert found <= told
    assert told - found <= {"coef_", "feature_map_", "feature_names_in_", "kernel_"}
    types = {name for kind in estimator.__mro__ for name in inspect.get_annotations(kind)}
    assert told <= types


def test_every_attribute_with_a_type_is_documented():
    told = set(documented(AtTopClassifier, "Attributes"))
    types = inspect.get_annotations(FittedAttributes)
    assert {name for name in types if not name.startswith("_")} == told


@every_estimator
def test_help_tells_everything(estimator):
    text = pydoc.render_doc(estimator, renderer=pydoc.plaintext)
    for name in [*inspect.signature(estimator).parameters, "status_", "threshold_", "objective_"]:
        assert re.search(rf"^ \|  {name} : ", text, re.M), name
    for method in ("fit", "predict", "decision_function", "top_score", "score", "set_params"):
        assert f"{method}(" in text
    assert "**others" not in text
    if estimator is not AtTopClassifier:
        assert f">>> from attop import {estimator.__name__}" in text


def test_a_subclass_of_a_user_is_documented_in_full():
    @dataclass(eq=False, repr=False)
    class Mine(PatMatNP):
        """Mine.

        Parameters
        ----------
        width : float, default=1.0
            Of its own.
        theta : float, default=3.0
            Another scale.
        """

        width: float = 1.0
        theta: float = 3.0

    inherited = documented(PatMatNP, "Parameters")
    assert set(documented(Mine, "Parameters")) == {"width", *inherited}
    assert Mine.__doc__.startswith("Mine.\n\nParameters\n----------\nwidth")
    assert "Another scale." in Mine.__doc__
    assert "Scale inside the surrogate" not in Mine.__doc__
    assert "Examples" not in sections_of(Mine.__doc__)
    assert sections_of(Mine.__doc__)["Notes"] == sections_of(PatMatNP.__doc__)["Notes"]


def test_docstrings_are_put_together_without_their_indentation():
    parent = """Parent.

        Parameters
        ----------
        a, b : int
            Two.

            In two paragraphs.
        c : int
            One.
        """
    child = """Child.

    More of it.

    Parameters
    ----------
    d : int
        New.
    e : int
        Only by name.
    """
    assert completed(child, parent, absent=["c"], keyword_only=["e"]) == (
        "Child.\n\nMore of it.\n\nParameters\n----------\nd : int\n    New.\n"
        "a, b : int\n    Two.\n\n    In two paragraphs.\ne : int\n    Only by name.\n"
    )


def test_a_subclass_without_a_docstring():
    """As all of them are by `python -OO`."""

    class Bare(PatMatNP):
        pass

    assert Bare.__doc__ is None
    assert Bare(tau=0.1).tau == 0.1


def test_absent_attributes_are_absent():
    assert "alpha_" not in documented(Grill, "Attributes")
    assert "alpha_" in documented(PatMatNP, "Attributes")


def test_tab_shows_the_public_names_only():
    shown = dir(attop)
    assert set(attop.__all__) <= set(shown)
    assert [name for name in shown if name.startswith("_")] == ["__version__"]
    modules = set(shown) - set(attop.__all__)
    assert {f"attop.{name}" for name in modules} >= set(MODULES) - {"attop"}
    for name in shown:
        assert getattr(attop, name) is not None
    with pytest.raises(AttributeError, match="module 'attop' has no attribute 'TopPsh'"):
        attop.TopPsh  # noqa: B018


RIGHT = """
import numpy as np
from attop import Grill, PatMatNP, SVM, TopPush, TopPushK
from attop.kernels import Gaussian

TopPush(C=2.0, kernel=Gaussian(0.3))
PatMatNP(0.1, 1.0, kernel="rbf", gamma="scale")
TopPushK(5, surrogate="quadratic_hinge")
SVM(class_weight={"a": 2.0})
gap: float = TopPush().fit(np.eye(2), [0, 1]).dual_gap_
starts: int = len(Grill(0.1).set_params(tau=0.2).start_objectives_)
"""
WRONG = {
    "TopPush(foo=3)": 'Unexpected keyword argument "foo" for "TopPush"',
    "TopPush(1.0)": 'Too many positional arguments for "TopPush"',
    "PatMatNP(tau='x')": 'Argument "tau" to "PatMatNP" has incompatible type "str"',
    "TopPushK(K=2.5)": 'Argument "K" to "TopPushK" has incompatible type "float"',
    "Grill(theta=1.0)": 'Unexpected keyword argument "theta" for "Grill"',
    "TopPush().dual_gab_": '"TopPush" has no attribute "dual_gab_"',
}


def test_type_checkers_know_the_parameters(tmp_path, request):
    program = tmp_path / "program.py"
    program.write_text(RIGHT + "\n".join(WRONG))
    folder = str(Path(attop.__file__).parents[1])
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports"),
            *("--cache-dir", str(request.config.cache.mkdir("mypy")), str(program)),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"MYPYPATH": folder},
        cwd=tmp_path,
    )
    found = dict(re.findall(r"program\.py:(\d+): error: (.*)", finished.stdout))
    first = RIGHT.count("\n") + 1
    assert list(map(int, found)) == list(np.arange(len(WRONG)) + first), finished.stdout
    for told, message in zip(found.values(), WRONG.values(), strict=True):
        assert told.startswith(message)
