"""Files of experiments: what they mean, and how mistakes are told."""

import pytest

from attop.experiments.expansion import expand
from attop.experiments.reading import SpecificationError
from attop.experiments.specification import load_experiment, parse_experiment, preset_names

GOOD = """\
name = "good"
seeds = [1, 2]
metrics = ["roc_auc"]
datasets = [
    "ionosphere",
    {name = "digits", n_train = 100},
]

[kernel]
name = "rbf"
gamma = "auto"

[solver]
name = "exact"
tol = 1e-4

[[methods]]
method = "svm"
grid = {lambda = [1e-3, 1e-2]}

[[methods]]
method = "tau-fpl"
tau = 0.05
grid = {lambda = [1e-3, 1e-2]}
"""


def test_a_file_is_every_method_at_every_grid_point_on_every_split():
    experiment = parse_experiment(GOOD)
    groups = expand(experiment)
    assert [(group.dataset.label, group.seed) for group in groups] == [
        ("Ionosphere", 1),
        ("Ionosphere", 2),
        ("digits (100)", 1),
        ("digits (100)", 2),
    ]
    assert all(len(group.fits) == 4 for group in groups)
    keys = [fit.key for group in groups for fit in group.fits]
    assert len(set(keys)) == len(keys)
    assert [method.label for method in experiment.methods] == ["SVM", "TauFPL(0.05)"]


def test_methods_are_chosen_by_the_metric_they_are_made_for():
    chosen = {m.label: m.select_by for m in load_experiment("paper").methods}
    assert chosen == {
        "SVM": "roc_auc",
        "TopPush": "tpr_at_k_1",
        "TopPushK(5)": "tpr_at_k_5",
        "TopPushK(10)": "tpr_at_k_10",
        "TauFPL(0.01)": "tpr_at_fpr_0.01",
        "TauFPL(0.05)": "tpr_at_fpr_0.05",
        "PatMatNP(0.01)": "tpr_at_fpr_0.01",
        "PatMatNP(0.05)": "tpr_at_fpr_0.05",
    }


def test_the_presets_of_the_paper_differ_in_the_solver_only():
    assert preset_names() == ["paper", "paper-exact", "quick", "tables"]
    paper, exact = load_experiment("paper"), load_experiment("paper-exact")
    assert paper.seeds == exact.seeds == list(range(1, 11))
    assert paper.methods == exact.methods
    assert paper.datasets == exact.datasets
    assert len(paper.datasets) == 6
    assert all(len(list(method.points())) == 6 for method in paper.methods)
    assert (paper.solver["name"], exact.solver["name"]) == ("pairwise", "exact")
    assert paper.solver["options"]["gap_reduction"] == 1e-4


def test_labels_and_metrics_do_not_change_what_a_fit_is():
    renamed = GOOD.replace('method = "svm"', 'method = "svm"\nlabel = "baseline"')
    renamed = renamed.replace('["roc_auc"]', '["roc_auc", "tpr_at_k_5"]')
    one, other = (expand(parse_experiment(text)) for text in (GOOD, renamed))
    assert [f.key for g in one for f in g.fits] == [f.key for g in other for f in g.fits]


@pytest.mark.parametrize(
    ("old", "new", "line", "hint"),
    [
        ("seeds = [1, 2]", "seeds = [1, 2", 3, ""),
        ('"svm"', '"swm"', 18, "'SVM'"),
        ('"tau-fpl"', '"TauFPK"', 22, "'TauFPL'"),
        ('"ionosphere"', '"Ionosfere"', 5, "'Ionosphere'"),
        ('"digits"', '"digit"', 6, "'digits'"),
        ("n_train = 100", "ntrain = 100", 6, "'n_train'"),
        ("n_train = 100", 'n_train = "100"', 6, "an integer"),
        ("seeds", "sedes", 2, "'seeds'"),
        ("tau = 0.05", "taau = 0.05", 23, "'tau'"),
        ("tau = 0.05", "tau = 1.5", 23, "in (0, 1)"),
        ('["roc_auc"]', '["roc_auk"]', 3, "'roc_auc'"),
        ('name = "rbf"', 'name = "rfb"', 10, "'rbf'"),
        ("tol = 1e-4", "toll = 1e-4", 15, "'tol'"),
        ('name = "exact"', 'name = "exakt"', 14, "'exact'"),
        ('method = "svm"\ngrid = {lambda', 'method = "svm"\ngrid = {lamda', 19, "'lambda'"),
        ("seeds = [1, 2]", "seeds = [1, 1]", 2, "twice"),
    ],
)
def test_mistakes_are_told_with_their_line_and_the_nearest_valid_word(old, new, line, hint):
    assert old in GOOD
    with pytest.raises(SpecificationError) as caught:
        parse_experiment(GOOD.replace(old, new, 1))
    assert f"line {line}" in str(caught.value)
    assert hint in str(caught.value)


def test_a_wrong_column_is_told_with_the_nearest_one(tmp_path):
    (tmp_path / "loans.csv").write_text("income,default\n1.0,0\n2.0,1\n")
    text = GOOD.replace('"ionosphere"', '{file = "loans.csv", target = "defualt"}')
    with pytest.raises(SpecificationError, match=r"line 5.*Did you mean 'default'"):
        parse_experiment(text, tmp_path / "experiment.toml")


def test_two_methods_of_the_same_name_are_refused():
    twice = GOOD + '\n[[methods]]\nmethod = "SVM"\nlambda = 1.0\n'
    with pytest.raises(SpecificationError, match=r"'methods'.*'SVM' twice"):
        parse_experiment(twice)


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(FileNotFoundError, match="'quick'"):
        load_experiment("quik")
