"""The page of results: complete in itself, and alive in a browser."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pytest

from attop.cli import main
from attop.experiments.figures import draw_convergence
from attop.experiments.report import report_page
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store

SPECIFICATION = """\
name = "page <b>"
seeds = [1, 2, 3]
metrics = ["tpr_at_fpr_0.05", "roc_auc"]
datasets = ["Ionosphere"]

[[methods]]
method = "sklearn.svm:SVC"
C = 1.0

[[methods]]
method = "TopPush"
grid = {lambda = [1e-3, 1e-2]}

[[methods]]
method = "TauFPL"
tau = 0.05
label = "Tau & <FPL>"
lambda = 1e-2

[[methods]]
method = "TopPushK"
K = 100000
select_by = "roc_auc"
"""


class Page(HTMLParser):
    """Elements of a page, and whether they are closed."""

    VOID = ("meta", "input", "br", "img", "link", "hr")

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.ids = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("page"))
    outcome = run_experiment(parse_experiment(SPECIFICATION), store)
    assert len(outcome.failures) == 3
    return store


@pytest.fixture(scope="module")
def text(store):
    return report_page(Results(store))


def test_page_has_everything_and_every_element_is_closed(text):
    page = Page(text)
    assert page.open == []
    assert page.count("table") == 2 + 2  # a table a metric, the failures, the fits
    assert page.count("svg") == 2 + 1 + 1  # a diagram a metric, ROC, convergence
    assert len(page.ids) == len(set(page.ids))
    assert "<td>no certificate</td>" in text  # that of the SVC, in words
    for heading in ("Tables", "Critical differences", "ROC near the top", "Convergence"):
        assert f"<h2>{heading}</h2>" in text


def test_every_method_with_a_history_is_in_the_convergence_section(store, text):
    part = text[text.index('id="convergence"') : text.index('id="failures"')]
    with_history = {r["label"] for r in Results(store).best() if r.get("history") is not None}
    assert len(with_history) == 2
    for label in with_history:
        assert html.escape(label, quote=False) in part


def test_more_than_four_methods_are_all_drawn(store):
    """A panel for each, in rows of two."""
    (record, *_) = (r for r in Results(store).best() if r.get("history") is not None)
    figure = draw_convergence([{**record, "label": f"m{i}"} for i in range(7)], "Ionosphere")
    assert [ax.get_title() for ax in figure.axes] == [f"m{i}" for i in range(7)]
    plt.close(figure)


def test_data_sets_and_seeds_are_counted_apart(text):
    assert "1 data set x 3 seeds, 15 fits" in text
    assert "1 data set x 3 seeds, Friedman test" in text
    assert "3 data sets" not in text


def test_colours_follow_the_theme_of_the_reader(text):
    assert "color-scheme: light dark" in text
    assert "@media (prefers-color-scheme: dark)" in text
    drawings = re.findall(r'<g id="\w+-figure_1">(.*?)</g>', text, re.DOTALL)
    assert drawings
    for drawing in drawings:  # the first thing drawn is the background, which lets the page through
        assert "fill: #ffffff; opacity: 0" in drawing or "fill: none" in drawing


def test_page_refers_to_nothing_outside(text):
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "img")
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name, "#")
            assert target.startswith("#"), (tag, target)
            assert target == "#" or target[1:] in page.ids, target
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "fetch(" not in text


def test_names_are_shown_as_they_are(text):
    assert "<b>" not in text
    assert "Tau &amp; &lt;FPL&gt;" in text


def test_failures_are_told(text):
    failures = text[text.index('id="failures"') : text.index('id="all-fits"')]
    assert failures.count("must be at most the number of negative samples") == 3


def test_a_browser_shows_sorts_and_filters_the_page(text, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    acts = """<script>
    const best = document.querySelector("table.medians");
    best.tHead.rows[0].cells[1].click();
    const values = Array.from(best.tBodies[0].rows, (row) => Number(row.cells[1].dataset.value));
    document.documentElement.dataset.sorted = String(
      values.every((value, i) => i === 0 || values[i - 1] <= value));
    const field = document.querySelector("input[type=search]");
    field.value = "toppush lambda=0.001";
    field.dispatchEvent(new Event("input"));
    </script></body>"""
    path = tmp_path / "page.html"
    path.write_text(text.replace("</body>", acts))
    arguments = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    arguments += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
    arguments += ["--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*arguments, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert 'data-ready="yes"' in shown
    assert 'data-sorted="true"' in shown
    # TopPush has two grid points and TopPushK none of them, on three seeds.
    assert "3 of 15 shown" in shown


@pytest.fixture
def folder(store):
    return str(store.folder)


def run(*arguments):
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    return ending.value.code


def test_commands_write_tables_diagrams_and_the_page(folder, tmp_path, capsys):
    assert run("table", "--store", folder, "--metric", "roc_auc") == 0
    out = capsys.readouterr().out
    assert "roc_auc [%], medians of 3 seeds" in out
    assert "TopPush" in out
    assert run("table", "--store", folder, "--format", "latex") == 0
    assert capsys.readouterr().out.count(r"\begin{table}") == 2
    drawn = tmp_path / "new"
    assert run("diagram", "--store", folder, "--format", "png", "--output", str(drawn)) == 0
    assert len(list(drawn.glob("*.png"))) == 2
    page = tmp_path / "deep" / "page.html"
    assert run("report", "--store", folder, "--output", str(page)) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    for command in ("table", "report"):
        assert run(command, "--store", folder, "--output", str(page)) == 2
        assert "--force" in capsys.readouterr().err
        assert run(command, "--store", folder, "--output", str(page), "--force") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "--store", "{folder}", "--metric", "roc_auk"], "Did you mean 'roc_auc'?"),
        (["diagram", "--store", "{folder}", "--metric", "roc_auk"], "Did you mean 'roc_auc'?"),
        (["report", "--store", "{folder}", "--experiment", "pag"], "no experiment 'pag'"),
        (["table", "--store", "nowhere"], "attop run quick"),
        (["run", "quik"], "Did you mean 'quick'?"),
    ],
)
def test_mistakes_end_with_a_message(folder, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    assert run(*(argument.format(folder=folder) for argument in arguments)) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
