"""The command line: what it prints, where it writes, how it ends."""

import sys

import numpy as np
import pytest
from sklearn.svm import SVC

import attop
import attop.cli.demo
from attop.cli import main
from attop.cli.demo import contenders
from attop.datasets import load_ionosphere
from attop.formulations import FORMULATIONS


def run(capsys, *arguments):
    """Exit status, standard output and error output of one command."""
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    captured = capsys.readouterr()
    return ending.value.code, captured.out, captured.err


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Keep messages on one line, whatever the terminal of the tests."""
    monkeypatch.setenv("COLUMNS", "200")


def test_version(capsys):
    status, out, _ = run(capsys, "--version")
    assert (status, out) == (0, f"attop {attop.__version__}\n")


def test_help_lists_the_commands(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert "demo" in out


def test_demo_prints_the_table_and_saves_the_plot(capsys, tmp_path):
    folder = tmp_path / "new" / "folder"
    status, out, err = run(capsys, "demo", "--output", str(folder), "--seed", "3")
    assert status == 0, err
    for name in contenders():
        assert name in out
    (plot,) = folder.iterdir()
    assert str(plot) in out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_how_to_get_the_plot(capsys, tmp_path, monkeypatch):
    few = {name: contenders()[name] for name in ("SVC", "TopPush")}
    monkeypatch.setattr(attop.cli.demo, "contenders", lambda: few)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, out, _ = run(capsys, "demo", "--output", str(tmp_path))
    assert status == 0
    assert "TopPush" in out
    assert 'pip install "attop[plot]"' in out
    assert not list(tmp_path.iterdir())


def test_demo_shows_every_formulation():
    shown = {type(contender).__name__ for contender in contenders().values()}
    assert shown == {"SVC", *FORMULATIONS}


def test_demo_optima_tell_the_samples_apart():
    """A trivial optimum (w = 0) would warn, and warnings are errors here."""
    X, y = load_ionosphere(return_X_y=True)
    for name, contender in contenders().items():
        scores = contender.fit(X, y).decision_function(X)
        assert np.ptp(scores) > 0.1, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "nonsense"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--output", "{file}"], "is a file"),
        (["demo", "--output", "{file}/below"], "Not a directory"),
    ],
)
def test_user_errors_end_with_a_message_and_status_2(capsys, tmp_path, arguments, message):
    file = tmp_path / "file[red]"
    file.touch()
    arguments = [argument.format(file=file) for argument in arguments]
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in out + err


@pytest.mark.parametrize("missing", ["pandas", "matplotlib"])
def test_what_is_not_installed_is_told_in_a_line(capsys, tmp_path, monkeypatch, missing):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "a.csv"
    data.write_text("x,y\n1,0\n2,1\n")
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setitem(sys.modules, f"{missing}.pyplot", None)
    commands = {
        "pandas": [("fit", data, "--target", "y")],
        "matplotlib": [
            ("fit", data, "--target", "y", "--page", "p.html"),
            ("figure", "convergence"),
        ],
    }
    for command in commands[missing]:
        status, out, err = run(capsys, *map(str, command))
        assert status == 2
        assert missing in err and 'pip install "attop[' in err
        assert len(err.splitlines()) == 1
        assert "Traceback" not in out + err


class Interrupted(SVC):
    """Receives Ctrl-C."""

    def fit(self, X, y):
        raise KeyboardInterrupt


def test_interrupt_ends_with_status_130(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(attop.cli.demo, "contenders", lambda: {"interrupted": Interrupted()})
    status, out, err = run(capsys, "demo", "--output", str(tmp_path))
    assert status == 130
    assert err == "Interrupted.\n"
    assert "Traceback" not in out
    assert not list(tmp_path.iterdir())
