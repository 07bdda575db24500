"""The parts of the benchmark suite that need neither data nor time."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import quick
import report
from suite import data, measure, program
from suite.cases import METHODS, SKLEARN, Case, estimator_of
from suite.results import Results, number, read_rows
from suite.tables import Table, digits, seconds_or_reason, slope, to_markdown, to_rst

IDENTITY = {"machine": "a", "threads": "2", "version": "1"}
CASE = {"data": "mnist", "n": 10, "lam": 1e-3}


def test_slope_is_the_exponent():
    sizes = np.array([2000, 8000, 45_000])
    assert slope(sizes, 3e-9 * sizes**1.7) == pytest.approx(1.7)
    assert math.isnan(slope([10], [1.0]))


@pytest.mark.parametrize(
    "value, text", [(0.01234, "0.0123"), (8.2149, "8.21"), (45_000.0, "45,000"), (math.nan, "")]
)
def test_figures_have_three_digits(value, text):
    assert digits(value) == text


def test_tables():
    table = Table("Fits", "On made data.", ["method", "seconds"], [["TopPush, K", "1.5"]])
    assert "| method | seconds |\n| --- | --- |\n| TopPush, K | 1.5 |" in to_markdown(table)
    assert '   method,seconds\n   "TopPush, K",1.5\n' in to_rst(table)


def test_a_fit_without_an_end_says_so():
    assert seconds_or_reason({"status": "more than 120 s"}) == "more than 120 s"
    assert seconds_or_reason({"status": "failed: MemoryError: much"}) == "failed"
    assert seconds_or_reason({"status": "converged", "seconds": "1.25"}) == "1.25"


def test_results_are_found_again(tmp_path):
    path = tmp_path / "new" / "kernel.csv"
    Results(path, IDENTITY).add(CASE, {"seconds": 1.5, "status": ""})
    again = Results(path, IDENTITY)
    assert number(again.find(CASE), "seconds") == 1.5
    assert again.find({**CASE, "lam": 1e-5}) is None
    again.add(CASE, {"seconds": 2.5, "gap": 1e-5, "status": ""})
    assert [number(row, "seconds") for row in read_rows(path)] == [2.5]


def test_results_of_another_machine_are_set_aside(tmp_path):
    path = tmp_path / "kernel.csv"
    Results(path, IDENTITY).add(CASE, {"seconds": 1.5})
    assert Results(path, {**IDENTITY, "threads": "1"}).rows == []
    assert len(read_rows(tmp_path / "kernel.previous.csv")) == 1


def test_results_are_kept_only_when_resuming(tmp_path, monkeypatch, capsys):
    measured = []

    def in_child(function, case, *arguments, limit):
        measured.append((case.method, limit))
        return {"seconds": 1.0}

    monkeypatch.setattr(program, "in_child", in_child)
    monkeypatch.setenv("ATTOP_DATA", str(tmp_path))
    cases = [Case("mnist", 10, "TopPush", 1e-3), Case("mnist", 10, SKLEARN, 1e-3)]
    for extra, times in (([], 1), (["--resume"], 1), ([], 2)):
        parser = program.parser("")
        program.add_peer_options(parser)
        options = parser.parse_args(["--output", str(tmp_path / "out"), *extra])
        runner = program.Program("kernel", options)
        runner.run(cases, None)
        assert measured == [("TopPush", 2700.0), (SKLEARN, 120.0)] * times
    assert "(kept)" in capsys.readouterr().out


def test_lambda_means_the_same_for_all():
    positive = np.arange(100) < 20
    assert estimator_of(Case("mnist", 100, "TauFPL(0.05)", 1e-2), positive).C == pytest.approx(5)
    assert estimator_of(Case("mnist", 100, SKLEARN, 1e-2), positive).C == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
def test_methods_keep_their_parameters(method):
    estimator = estimator_of(Case("mnist", 4, method, 1e-2), np.array([True, False]))
    shown = type(estimator).__name__
    parameters = [
        str(getattr(estimator, name)) for name in ("K", "tau") if hasattr(estimator, name)
    ]
    assert method == (f"{shown}({parameters[0]})" if parameters else shown)


def test_floor_and_memory():
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    assert measure.floor_seconds(X, 0.1, np.arange(50), 2) > 0
    peak = measure.PeakMemory()
    peak.start()
    np.ones(10**7)
    assert math.isnan(peak.gigabytes()) or peak.gigabytes() > 0.07


def test_data_folder_is_asked_for(monkeypatch):
    monkeypatch.delenv("ATTOP_DATA", raising=False)
    with pytest.raises(SystemExit, match="ATTOP_DATA"):
        data.load("mnist", 10)


def test_a_ratio_that_was_lost_is_told():
    """Peer over ours: above 1 we are faster, and a fifth less than before is a loss."""
    ratio = quick.Ratio("small", 2.0, 4.0)
    assert ratio.value == 0.5
    assert quick.line(ratio, None).split()[:2] == ["small", "0.50"]
    assert quick.line(ratio, 0.7).endswith("was 0.70  !")
    assert not quick.line(ratio, 0.6).endswith("!")


def test_calls_take_turns():
    called = []
    seconds = quick.least(lambda: called.append("theirs"), lambda: called.append("ours"))
    assert called[:4] == ["theirs", "ours"] * 2
    assert len(seconds) == 2 and min(seconds) >= 0.0


def test_the_worst_ratio_comes_first():
    tables = [
        Table("Fits", "", ["method", "times as fast"], [["TopPush", "2.5"], ["SVM", ""]]),
        Table("Linear", "", ["LinearSVC / it"], [["0.50"], ["1,000"]]),
        Table("Memory", "", ["GB"], [["1.0"]]),
    ]
    (table,) = report.ratios_of(tables)
    assert [row[0] for row in table.rows] == ["Linear", "Fits"]
    assert table.rows[0][2:] == ["500", "0.500"]
