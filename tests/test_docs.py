"""What the documentation shows runs: docstrings, pages, gallery, links of the README."""

import ast
import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import matplotlib
import pytest

import attop
from attop.experiments.specification import parse_experiment

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.rst")
    if not {"auto_examples", "generated", "_build"} & set(page.parts)
)
GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(attop.__path__, "attop.")
    if ">>>" in Path(module.module_finder.find_spec(module.name).origin).read_text("utf-8")
)

#: Sizes at which the programs of the gallery say nothing, but run as they do otherwise.
SMALL = {
    "plot_compare_methods.py": {"N_DATASETS": 5},
    "plot_descent_stalls.py": {"N_EPOCHS": 20},
    "plot_fraud.py": {"N_SAMPLES": 2000},
    "plot_guaranteed_fpr.py": {"N_REPETITIONS": 2},
    "plot_nystroem.py": {"N_SAMPLES": 4000, "N_COMPONENTS": (100, 200)},
    "plot_precomputed_kernel.py": {"N_SEQUENCES": 400},
    "plot_why_at_the_top.py": {"N_NEGATIVES": 1000},
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    failed, attempted = doctest.testmod(import_module(name))
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_pages(page):
    """Sessions give what they show; programs without a session are valid Python."""
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    blocks = re.findall(
        r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page.read_text("utf-8"), re.M
    )
    for block in blocks:
        if ">>>" not in block:
            ast.parse("\n".join(line[3:] for line in block.splitlines()))


def test_example_of_the_front_page_runs(capsys):
    source = (ROOT / "docs" / "example.py").read_text("utf-8")
    exec(compile(source, "example.py", "exec"), {})
    printed = capsys.readouterr().out
    assert float(re.search(r"certified gap: (\S+)", printed)[1]) <= 1e-4


def with_sizes(source, sizes):
    """The program with other values of its constants, each of which has to be there."""
    tree = ast.parse(source)
    left = dict(sizes)
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in left:
            node.value = ast.copy_location(
                ast.parse(repr(left.pop(node.targets[0].id)), mode="eval").body, node.value
            )
    assert not left, f"no constants {list(left)}"
    return ast.fix_missing_locations(tree)


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
def test_gallery_runs(path):
    tree = with_sizes(path.read_text("utf-8"), SMALL.get(path.name, {}))
    exec(compile(tree, str(path), "exec"), {"__name__": "__main__"})
    assert plt.get_fignums()


def test_picture_of_the_readme_can_be_drawn(tmp_path, capsys):
    path = ROOT / "docs" / "readme_picture.py"
    sizes = {"N_DRAWS": 1, "N_NEGATIVES": 500, "N_NEGATIVES_TEST": 500}
    program = {"__name__": "readme_picture", "__file__": str(path)}
    exec(compile(with_sizes(path.read_text("utf-8"), sizes), str(path), "exec"), program)
    program["OUTPUT"] = tmp_path / "picture.svg"
    program["main"]()
    assert program["OUTPUT"].read_text("utf-8").startswith("<?xml")
    assert "PatMatNP" in capsys.readouterr().out


def test_experiment_of_the_readme_can_be_read():
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    without_the_file = re.sub(r", \{file = [^}]*\}", "", text)
    experiment = parse_experiment(without_the_file)
    assert [method.label for method in experiment.methods] == [
        "TauFPL(0.05)",
        "RandomForestClassifier",
    ]


def test_figures_of_pages_come_from_the_gallery():
    """A page may show a figure only if there is a program that draws it."""
    stems = {path.stem for path in GALLERY}
    shown = [
        name
        for page in PAGES
        for name in re.findall(r"images/sphx_glr_(\w+)_\d+\.png", page.read_text("utf-8"))
    ]
    assert shown
    assert set(shown) <= stems


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
