"""Formulas as MathML, made at build time: reading them needs neither a script nor a network.

The converter is that of docutils. It reports a command it does not know, which becomes a warning
of the build. What it gets wrong without a word is put right here.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def plain(tex):
    r"""The formula with ``\frac12`` as ``\frac{1}{2}`` and ``\_`` within text as ``_``."""
    tex = re.sub(r"frac(\d)(\d)", r"frac{\1}{\2}", tex)
    return re.sub(r"\\text\{[^{}]*\}", lambda text: text[0].replace(r"\_", "_"), tex)


def convert(tex, as_block):
    r"""MathML of a formula, whose delimiters grow and are spaced as in LaTeX without ``\left``."""
    formula = tex2mathml(plain(tex), as_block=as_block)
    delimiter = r'<mo( class="mathopen"| stretchy="false")?>([|‖⟨⟩{}])</mo>'
    return re.sub(delimiter, r'<mo stretchy="false" lspace="0" rspace="0">\2</mo>', formula)


def append_formula(translator, node, tag, **attributes):
    """Write a formula into the page, as it stands where it cannot be converted."""
    try:
        formula = convert(node.astext(), as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        formula = translator.encode(node.astext())
    start = translator.starttag(node, tag, "", CLASS="math notranslate", **attributes)
    translator.body.append(f"{start}{formula}</{tag}>")
    raise nodes.SkipNode


def visit_math(translator, node):
    """A formula within a line."""
    append_formula(translator, node, "span")


def visit_math_block(translator, node):
    """A formula on lines of its own; it may have to scroll, also by the keyboard."""
    append_formula(translator, node, "div", tabindex="0")


def setup(app):
    """Register the renderer, which ``html_math_renderer = "mathml"`` chooses."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
