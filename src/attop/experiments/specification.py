"""An experiment as a TOML file: what it may say, and what is said where it is wrong.

A file names seeds, metrics, a kernel, a solver, data sets and methods::

    name = "example"
    seeds = [1, 2, 3]
    metrics = ["tpr_at_k_10", "tpr_at_fpr_0.05", "roc_auc"]
    datasets = ["Ionosphere", {file = "loans.csv", target = "default", scale = true}]

    [kernel]
    name = "rbf"
    gamma = "auto"          # 1 / number of features

    [solver]
    name = "exact"
    tol = 1e-4

    [[methods]]
    method = "TauFPL"       # or SVM, or "module:Class" of any scikit-learn classifier
    tau = 0.05
    grid = {lambda = [1e-3, 1e-2]}

In place of ``datasets`` there may be a folder of tables, each at several numbers of training
samples, for methods that choose their own parameters, since there is no validation set::

    [tables]
    folder = "tables"
    sizes = [500, 2000]
    n_test = 20000

A file may also have ``positive``, ``ignore`` and ``weight``, as for `attop.datasets.load_file`.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from attop._words import suggestion
from attop.experiments.data import DatasetSpec, resolve_dataset, tables_of
from attop.experiments.methods import build, label_of, own_metric, parameters_of, resolve_method
from attop.experiments.reading import Section, SpecificationError
from attop.metrics import get_scorer
from attop.model_selection._parameters import LAMBDA

#: Those of the paper.
DEFAULT_METRICS = (
    "tpr_at_k_1",
    "tpr_at_k_5",
    "tpr_at_k_10",
    "tpr_at_fpr_0.01",
    "tpr_at_fpr_0.05",
    "roc_auc",
)
_KERNEL_KEYS = {"gamma": object, "degree": float, "coef0": float}
_SOLVER_KEYS = {
    "tol": float,
    "max_iter": int,
    "max_time": float,
    "cache_size": float,
    "device": str,
}
_PRESETS = resources.files("attop.experiments") / "presets"


@dataclass(frozen=True)
class MethodSpec:
    """A method with fixed parameters and a grid.

    Attributes
    ----------
    label : str
        Name in tables.
    method : str
        The method itself.
    parameters : dict
        Fixed parameters.
    grid : dict of str to list
        Values of the parameters that are chosen on the validation set.
    select_by : str
        The metric that chooses.
    """

    label: str
    method: str
    parameters: dict[str, Any]
    grid: dict[str, list[Any]]
    select_by: str

    def points(self) -> Iterator[dict[str, Any]]:
        """All parameters, at each point of the grid."""
        for values in itertools.product(*self.grid.values()):
            yield {**self.parameters, **dict(zip(self.grid, values))}


@dataclass(frozen=True)
class Experiment:
    """What the file of an experiment says.

    Attributes
    ----------
    name : str
        Name of the experiment.
    seeds : list of int
        Seeds of the splits.
    metrics : list of str
        Names of scorers, measured on the test set.
    datasets : list of DatasetSpec
        The data sets.
    methods : list of MethodSpec
        The methods.
    kernel, solver : dict
        Parameters of all fits.
    text : str
        The file itself.
    """

    name: str
    seeds: list[int]
    metrics: list[str]
    datasets: list[DatasetSpec]
    methods: list[MethodSpec]
    kernel: dict[str, Any]
    solver: dict[str, Any]
    text: str


def preset_names() -> list[str]:
    """Names of the experiments that are part of the package."""
    return sorted(Path(entry.name).stem for entry in _PRESETS.iterdir() if ".toml" in entry.name)


def load_experiment(source: str | Path, **instead: Any) -> Experiment:
    """Read an experiment from a file, or a preset by its name.

    Parameters
    ----------
    source : str or path-like
        The file or the preset.
    **instead
        Values in place of those of the file: ``folder`` and ``sizes`` of its tables; None for
        what the file says.

    Raises
    ------
    FileNotFoundError
        If there is neither a file nor a preset of that name.
    SpecificationError
        If the file is wrong.
    """
    path = Path(source)
    if path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SpecificationError(f"{path.name} is not a TOML file: {error}") from error
        return parse_experiment(text, path, **instead)
    if str(source) in preset_names():
        text = (_PRESETS / f"{source}.toml").read_text(encoding="utf-8")
        return parse_experiment(text, Path(f"{source}.toml"), **instead)
    raise FileNotFoundError(
        f"There is no file {path} and no preset of that name. {suggestion(source, preset_names())}"
    )


def parse_experiment(text: str, path: Path = Path("experiment.toml"), **instead: Any) -> Experiment:
    """Read an experiment from the text of its file; `path` is for messages and relative paths."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # it names the line itself
        raise SpecificationError(f"{path.name} is not valid TOML: {error}") from error
    text += _replace(values, instead, path.name)
    top = Section(values, path.name, text)
    kernel = _read_options(top, "kernel", _KERNEL_KEYS, {"name": "rbf", "gamma": "auto"})
    solver = _read_options(top, "solver", _SOLVER_KEYS, {"name": "auto"})
    experiment = Experiment(
        name=top.take("name", str, path.stem),
        seeds=top.take_list("seeds", int, [1]),
        metrics=top.take_list("metrics", str, list(DEFAULT_METRICS)),
        datasets=_read_datasets(top, path.parent),
        methods=[_read_method(one, kernel, solver) for one in _sections(top, "methods", "method")],
        kernel=kernel,
        solver=solver,
        text=text,
    )
    top.finish()
    for metric in experiment.metrics:
        _check_metric(top, metric, "metrics")
    if any(not 0 <= seed < 2**32 for seed in experiment.seeds):
        raise top.error(f" must be in [0, 2**32). Got {experiment.seeds!r}.", key="seeds")
    _check_labels(top, "datasets", [one.label for one in experiment.datasets])
    _check_labels(top, "methods", [one.label for one in experiment.methods])
    return experiment


def _sections(top: Section, name: str, text_key: str) -> list[Section]:
    """The tables of an array; a text in place of a table is its `text_key`."""
    sections = []
    for index, values in enumerate(top.take(name, list)):
        if isinstance(values, str):
            values = {text_key: values}
        if not isinstance(values, dict):
            raise top.error(f" must hold names or tables. Got {values!r} instead.", key=name)
        sections.append(Section(values, top.file, top.text, name, index))
    if not sections:
        raise top.error(" must not be empty.", key=name)
    return sections


def _read_options(
    top: Section, name: str, kinds: dict[str, Any], defaults: dict[str, Any]
) -> dict[str, Any]:
    """The table of the kernel or of the solver, checked by the estimators themselves."""
    section = Section(top.take(name, dict, {}), top.file, top.text, name)
    options = {
        key: section.take(key, str, value) for key, value in defaults.items() if key == "name"
    }
    for key, kind in kinds.items():
        if key in section.values:
            options[key] = section.take(key, kind)
        elif key in defaults:
            options[key] = defaults[key]
    if name == "solver" and "options" in section.values:
        options["options"] = section.take("options", dict)
    section.finish(also=(*kinds, *(["options"] if name == "solver" else [])))
    try:
        build(
            "TopPush", {}, *((options, {}) if name == "kernel" else ({"name": "linear"}, options))
        )
    except ValueError as error:
        raise section.error(str(error), word=options["name"]) from error
    return options


def _replace(values: dict[str, Any], instead: dict[str, Any], file: str) -> str:
    """Put the given values in place of those of a file; returns a comment that says so."""
    given = {key: value for key, value in instead.items() if value is not None}
    if given and not isinstance(values.get("tables"), dict):
        raise SpecificationError(f"{file}: {[*given]} are for experiments with a folder of tables.")
    for key, value in given.items():
        values["tables"][key] = value
    return "".join(f"\n# in place of the above: {key} = {value}" for key, value in given.items())


def _read_datasets(top: Section, folder: Path) -> list[DatasetSpec]:
    """The data sets of a file, or the tables of its folder."""
    if "tables" not in top.values:
        return [_read_dataset(one, folder) for one in _sections(top, "datasets", text_key="name")]
    section = Section(top.take("tables", dict), top.file, top.text, "tables")
    place = folder / section.take("folder", str)
    sizes, n_test = section.take_list("sizes", int), section.take("n_test", int, 20_000)
    section.finish()
    if min(*sizes, n_test) < 2:
        raise section.error(f" must be 2 or more. Got {sizes!r} and {n_test!r}.", key="sizes")
    try:
        return tables_of(place, sizes, n_test)
    except (ValueError, OSError) as error:
        raise section.error(str(error), key="folder") from error


def _read_dataset(section: Section, folder: Path) -> DatasetSpec:
    name = section.take("name", str, "")
    file = section.take("file", str, "")
    if bool(name) == bool(file):
        raise section.error("one of the keys 'name' and 'file' is needed.")
    spec = DatasetSpec(
        label=section.take("label", str, ""),
        name=name,
        file=str(folder / file) if file else "",
        target=section.take("target", str, ""),
        positive=str(section.take("positive", object, "")),
        ignore=tuple(section.take("ignore", list, [])),
        weight=section.take("weight", str, ""),
        n_train=section.take("n_train", int, None),
        scale=section.take("scale", bool, False),
    )
    section.finish()
    try:
        return resolve_dataset(spec)
    except (ValueError, OSError) as error:
        raise section.error(str(error), word=name or file) from error


def _read_method(section: Section, kernel: dict[str, Any], solver: dict[str, Any]) -> MethodSpec:
    name = section.take("method", str)
    try:
        method = resolve_method(name)
    except ValueError as error:
        raise section.error(str(error), word=name, key="method") from error
    label = section.take("label", str, "")
    select_by = section.take("select_by", str, "")
    grid = section.take("grid", dict, {})
    parameters = section.rest()
    known = parameters_of(method)
    for key in (*parameters, *grid):
        if known is not None and key not in known:
            keys = (*known, "label", "select_by", "grid")
            raise section.error(
                f" is no parameter of {method}. {suggestion(key, keys)}", word=key, key=key
            )
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise section.error(f" must be a list of values. Got {values!r}.", word=key, key=key)
    spec = MethodSpec("", method, parameters, grid, "")
    _check_points(section, spec, kernel, solver)
    spec = replace(
        spec,
        label=label or label_of(method, parameters),
        select_by=select_by or own_metric(method, parameters),
    )
    _check_metric(section, spec.select_by, "select_by")
    return spec


def _check_points(
    section: Section, spec: MethodSpec, kernel: dict[str, Any], solver: dict[str, Any]
) -> None:
    """Build the classifier at every point of the grid: it knows what its parameters may be."""
    if {"C", LAMBDA} <= {*spec.parameters, *spec.grid}:
        raise section.error("'C' and 'lambda' determine each other: give one of them.", word="C")
    for point in spec.points():
        try:
            build(spec.method, point, kernel, solver)
        except (ValueError, TypeError) as error:
            wrong = next((key for key in point if f"'{key}'" in str(error)), None)
            raise section.error(str(error), word=wrong) from error


def _check_metric(section: Section, metric: str, key: str) -> None:
    try:
        get_scorer(metric)
    except ValueError as error:
        raise section.error(f": {error}", word=metric, key=key) from error


def _check_labels(top: Section, key: str, labels: list[str]) -> None:
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise top.error(
            f" must have different names; give one of them a 'label'. Got {twice!r} twice.",
            key=key,
        )
