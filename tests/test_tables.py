"""Tables of results: right medians, right marks, and documents that hold together."""

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from attop.experiments.tables import medians_table, score_table
from attop.statistics import compare

METHODS = ["SVM", "TopPushK(5)", "Pat&Mat_NP <0.01>"]
DATASETS = ["SVHN2", "MNIST"]


def long_table(n_seeds=4, seed=0):
    """Results of three methods on two data sets by two metrics."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            (dataset, method, number, metric, rng.random())
            for metric in ("TPR@5", "AUC")
            for dataset in DATASETS
            for method in METHODS
            for number in range(n_seeds)
        ],
        columns=["dataset", "method", "seed", "metric", "value"],
    )


def table_of(columns, **options):
    """A table of one seed with the given numbers: a list of methods for each data set."""
    rows = [
        {"dataset": name, "method": f"m{i}", "seed": 1, "metric": "TPR", "value": value}
        for name, values in columns.items()
        for i, value in enumerate(values)
    ]
    return medians_table(rows, "TPR", **options)


def test_medians_by_hand():
    results = long_table()
    table = medians_table(results, "AUC")
    assert (table.methods, table.datasets) == (METHODS, DATASETS)  # in the order given
    for i, method in enumerate(METHODS):
        for j, dataset in enumerate(DATASETS):
            wanted = (results[["metric", "method", "dataset"]] == ["AUC", method, dataset]).all(
                axis=1
            )
            assert table.medians[i, j] == np.median(results["value"][wanted])
    assert (table.n_seeds == 4).all()
    assert table.caption == "AUC [%], medians of 4 seeds"


def test_order_of_the_rows_of_results_does_not_change_medians():
    results = long_table()
    shuffled = results.sample(frac=1, random_state=0)
    a, b = medians_table(results, "AUC"), medians_table(shuffled, "AUC")
    rows, columns = ([b.methods.index(m) for m in METHODS], [b.datasets.index(d) for d in DATASETS])
    assert np.array_equal(a.medians, b.medians[np.ix_(rows, columns)])


def test_marks():
    table = table_of(
        {
            "plain": [0.9, 0.5, 0.1],
            "ties": [0.7, 0.7, 0.7 - 1e-9],  # alike as shown
            "two best": [0.8, 0.8, 0.1],
            "one left": [0.4, np.nan, np.nan],
        }
    )
    marks = list(zip(*table.marks))
    assert marks == [("best", "", "worst"), ("", "", ""), ("best", "best", "worst"), ("", "", "")]
    assert [row[3] for row in table.cells] == ["40.00", "-", "-"]


def test_lower_may_be_better():
    table = table_of({"seconds": [9.0, 5.0, 1.25]}, higher_is_better=False, percent=False)
    assert [row[0] for row in table.marks] == ["worst", "", "best"]
    assert [row[0] for row in table.cells] == ["9.00", "5.00", "1.25"]
    assert "%" not in table.caption


def test_missing_results_are_seen():
    results = long_table().drop(index=[0, 4, 5, 6, 7])
    table = medians_table(results, "TPR@5")
    gone = table.methods.index(METHODS[1])  # last now, since it appears last
    assert table.n_seeds[0, 0] == 3 and table.n_seeds[gone, 0] == 0
    assert table.caption.endswith("medians of 3 to 4 seeds")
    assert table.cells[gone][0] == "-"
    scores = score_table(results, "TPR@5")
    with pytest.raises(ValueError, match="Got nan for data set"):
        compare(scores)
    assert compare(scores.dropna()).n_datasets == 4


def test_text_is_aligned_and_marked():
    text = medians_table(long_table(), "AUC").to_text()
    _, _, head, *rows, _, _ = text.splitlines()
    assert len(rows) == len(METHODS)
    ends = [match.end() for match in re.finditer(r"SVHN2|MNIST", head)]
    for row in rows:
        for end in ends:  # the numbers end where the names of their data sets do
            assert re.search(r"\d\.\d\d$", row[:end])
    assert text.count("*") == text.count("!") == len(DATASETS) + 1  # and the legend


def test_csv_holds_full_precision():
    table = medians_table(long_table(), "AUC")
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    values = np.array([float(row["median"]) for row in rows]).reshape(table.medians.shape)
    assert np.array_equal(values, table.medians)
    assert [row["mark"] for row in rows] == [mark for row in table.marks for mark in row]
    assert {row["n_seeds"] for row in rows} == {"4"}


def test_latex_escapes_names_and_has_a_cell_for_each_column():
    latex = medians_table(long_table(), "TPR@5").to_latex()
    assert r"Pat\&Mat\_NP <0.01>" in latex
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len(body) == 1 + len(METHODS)
    assert all(len(re.findall(r"(?<!\\)&", line)) == len(DATASETS) for line in body)
    assert latex.count(r"\textbf") == latex.count(r"\underline") == len(DATASETS)
    assert latex.count(r"\cellcolor[RGB]{127,202,127}\textbf") == len(DATASETS)  # green
    assert latex.count(r"\cellcolor[RGB]{202,127,127}\underline") == len(DATASETS)  # red
    assert r"[\%]" in latex
    unescaped = re.sub(r"\\[{}]", "", latex)
    assert unescaped.count("{") == unescaped.count("}")


class Cells(HTMLParser):
    """Collects the text of all cells and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.classes, self.values = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.classes.append(dict(attributes).get("class"))
        if tag == "td":
            self.values.append(float(dict(attributes)["data-value"]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += text


def test_html_is_well_formed_and_escaped():
    table = medians_table(long_table(), "AUC")
    parser = Cells()
    parser.feed(table.to_html())
    parser.close()
    assert parser.open == []
    width = 1 + len(DATASETS)
    rows = [parser.cells[i : i + width] for i in range(0, len(parser.cells), width)]
    assert rows[0] == ["Method", *DATASETS]
    assert rows[1:] == [[name, *cells] for name, cells in zip(METHODS, table.cells)]
    assert parser.values == table.medians.ravel().tolist()
    assert parser.classes.count("best") == parser.classes.count("worst") == len(DATASETS)


def test_score_table_has_a_row_for_each_data_set_and_seed():
    results = long_table()
    scores = score_table(results, "AUC")
    assert list(scores.columns) == METHODS
    assert len(scores) == len(DATASETS) * 4
    row = results.query("metric == 'AUC' and dataset == 'MNIST' and seed == 2 and method == 'SVM'")
    assert scores.loc[("MNIST", 2), "SVM"] == row["value"].item()
    assert compare(scores).names == tuple(METHODS)


@pytest.mark.parametrize("function", [medians_table, score_table])
def test_mistakes_are_named(function):
    results = long_table()
    name = function.__name__
    with pytest.raises(ValueError, match=f"of {name} must be one of .*Did you mean 'TPR@5'"):
        function(results, "TPR5")
    with pytest.raises(ValueError, match=f"of {name} must have the columns .*'value'"):
        function(results.drop(columns="value"), "AUC")
    with pytest.raises(ValueError, match=r"must hold each result once.*'SVHN2'.*'SVM'"):
        function(pd.concat([results, results.head(1)]), "TPR@5")
