"""The frame of a report: a page that holds its styles, its figures and plotly.js, and loads nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from viz.front import PLOTLY_JS
from viz.study.numbers import kept

_HERE = Path(__file__).parent
_TOP = 14  # pixels above a plot whose title stands in the page
_LEGEND = 36  # the same where there is a legend
_SOURCES = (
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    "script-src 'unsafe-inline'",
    "img-src data: blob:",  # a figure that is saved as a picture
    "base-uri 'none'",
    "form-action 'none'",
)


class Drawn:
    """The figures of a page: their places in the text, and their data, which stands once at its end."""

    def __init__(self):
        self.figures: dict[str, dict] = {}

    def add(self, name: str, figure: go.Figure, titled: bool = True) -> str:
        """The place of a figure: title (if `titled`) and caption as text, and the plot to be drawn."""
        drawn = json.loads(figure.to_json())
        layout = drawn["layout"]
        title = layout.pop("title")["text"]  # plotly's own markup: escaped already
        caption = layout["meta"]["caption"]
        named = [trace for trace in figure.data if trace.showlegend is not False]
        top = _LEGEND if len(named) > 1 else _TOP  # plotly lists no single one
        height = layout["height"] - layout["margin"]["t"] + top
        layout |= {"height": height, "margin": {**layout["margin"], "t": top}}
        head = f"<h4>{title}</h4>" if titled else ""
        anchor = f"figure-{len(self.figures) + 1}-{name}"
        self.figures[anchor] = drawn
        return (
            f"<figure><figcaption>{head}<p>{kept(caption)}</p></figcaption>"
            f'<div class="plot" id="{anchor}" style="height: {height}px"></div></figure>'
        )

    @property
    def json(self) -> str:
        """The figures as JSON that no text in them can end the script element of."""
        text = json.dumps(self.figures, separators=(",", ":"), ensure_ascii=False)
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_html(
    title: str,
    top: str,
    contents: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    body: str,
    drawn: Drawn,
) -> str:
    """The whole file. `contents` are groups of (anchor, what stands there); `top` and `body` are HTML."""
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    plotly = PLOTLY_JS.read_text(encoding="utf-8").replace("</script", "<\\/script")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(_SOURCES)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<div class="page">\n<header><p class="kind">RCR Scope, report of a study</p>'
        f"<h1>{escape(title)}</h1>{top}</header>\n{_contents(contents)}\n<main>{body}</main>\n</div>\n"
        "<noscript><p>The figures need JavaScript; the tables do not.</p></noscript>\n"
        f'<script type="application/json" id="figures">{drawn.json}</script>\n'
        f"<script>{plotly}</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _contents(contents: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    groups = []
    for head, links in contents:
        groups.append(f'<li class="group">{escape(head)}</li>')
        groups += [f'<li><a href="#{escape(anchor)}">{escape(text)}</a></li>' for anchor, text in links]
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(groups)}</ol></nav>'
