"""HTML pages that are complete in themselves: nothing in them refers to anything outside."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from attop.experiments.figures import to_svg

_FILES = resources.files("attop.experiments")


def html_page(title: str, note: str, sections: Mapping[str, str]) -> str:
    """A page.

    Parameters
    ----------
    title : str
        Its title, as plain text.
    note : str
        What stands below the title, as HTML.
    sections : mapping of str to str
        For each heading the HTML below it.
    """
    css = (_FILES / "page.css").read_text(encoding="utf-8")
    script = (_FILES / "page.js").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name in sections)
    body = "".join(
        f'<section id="{_anchor(name)}"><h2>{name}</h2>{content}</section>\n'
        for name, content in sections.items()
    )
    title = html.escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        f'<h1>{title}</h1>\n<p class="note">{note}</p>\n<nav>{links}</nav>\n'
        f"{body}<script>\n{script}</script>\n</body>\n</html>\n"
    )


def html_figure(figure: Any, prefix: str, title: str, kind: str = "") -> str:
    """A figure of matplotlib; `kind` is a class of the style sheet."""
    svg = to_svg(figure, prefix)
    opening = f'<svg role="img" aria-label="{html.escape(title, quote=True)}"'
    named = f' class="{kind}"' if kind else ""
    return f"<figure{named}>{svg.replace('<svg', opening, 1)}</figure>\n"


def html_table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], caption: str, kind: str, name: str = ""
) -> str:
    """A table of texts that scrolls where the page is narrow."""
    head = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    )
    named = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll"><table class="{kind}"{named}><caption>{html.escape(caption)}'
        f"</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
