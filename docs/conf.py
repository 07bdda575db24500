"""Configuration of the documentation; build it with ``make docs``."""

import re
import sys
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx_gallery.sorting import ExplicitOrder

import attop

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs" / "_extensions"))

project = "attop"
author = "The attop developers"
copyright = "The attop developers"
version = release = attop.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
# Single backquotes are names of the library; where there is none, they are plain code.
default_role = "py:obj"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    # From the idea to the details; a new example comes last.
    "within_subsection_order": ExplicitOrder(
        [
            "plot_why_at_the_top.py",
            "plot_guaranteed_fpr.py",
            "plot_model_selection.py",
            "plot_fraud.py",
            "plot_digits.py",
            "plot_custom_kernel.py",
            "plot_precomputed_kernel.py",
            "plot_nystroem.py",
            "plot_compare_methods.py",
            "plot_descent_stalls.py",
            "mammography.py",
            "*",
        ]
    ),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "copyfile_regex": r"",
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "attop"
html_static_path = ["_static"]
html_css_files = ["attop.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    # Not beside programs, in the gallery and in "Extending": they need the width.
    "secondary_sidebar_items": {
        **{page: ["page-toc"] for page in ("*", "guide/*", "howto/*", "theory/*", "generated/*")},
        "extending": [],
        "benchmarks": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "getting_started": []}


def escape_markup(app, what, name, obj, options, lines):
    """Escape what reST takes for links: a trailing underscore in shapes, and TPR@K."""
    for number, line in enumerate(lines):
        line = re.sub(r"shape \((\w+)_,\)", r"shape (\1\\_,)", line)
        lines[number] = line.replace("TPR@", r"TPR\@")


def skip_fields(app, what, name, obj, skip, options):
    """Leave out the fields of named tuples, which only say "alias for field number 0"."""
    return True if type(obj).__name__ == "_tuplegetter" else None


#: Names of scikit-learn that docstrings use without their module.
SCIKIT_LEARN = {
    name: f"sklearn.{module}.{name}"
    for module, names in {
        "base": ("clone",),
        "exceptions": ("ConvergenceWarning", "NotFittedError"),
        "ensemble": ("ExtraTreesClassifier", "RandomForestClassifier"),
        "linear_model": ("LogisticRegression",),
        "model_selection": ("GridSearchCV", "cross_val_score"),
        "pipeline": ("Pipeline",),
        "preprocessing": ("OneHotEncoder", "StandardScaler"),
        "svm": ("LinearSVC", "SVC"),
    }.items()
    for name in names
}


def link_to_scikit_learn(app, env, node, contnode):
    """Link names of scikit-learn to its documentation, by the rule of its addresses.

    An inventory of them would have to be fetched, and these pages are built without network.
    """
    target = SCIKIT_LEARN.get(node.get("reftarget"), node.get("reftarget", ""))
    module, _, name = target.rpartition(".")
    if not module.startswith("sklearn."):
        return None
    getattr(import_module(module), name)  # an address of nothing would be an error of ours
    address = f"https://scikit-learn.org/stable/modules/generated/{target}.html"
    return nodes.reference("", "", contnode, internal=False, refuri=address, reftitle=target)


def setup(app):
    """Connect the hooks; after numpydoc, which has the priority 500."""
    app.connect("missing-reference", link_to_scikit_learn)
    app.connect("autodoc-process-docstring", escape_markup, priority=900)
    app.connect("autodoc-skip-member", skip_fields)
