"""Markdown and source code as safe HTML. What the course's authors write is rendered with anchors, tables,
folded hints and coloured code, then cleaned by an allow-list; what learners write is shown as text or as
coloured code, never as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.container import container_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, get_lexer_by_name
from pygments.util import ClassNotFound

# `::: hint A title` … `:::` is folded; `::: note` stands out.
FOLDED = ("hint", "details", "answer")
FRAMED = ("note", "warning")
EXPLICIT_ANCHOR = re.compile(r"\s*\{#([\w-]+)\}\s*$")
WORDS = ("text", "code_inline")
CODE = HtmlFormatter(nowrap=True, classprefix="c-")

TAGS = {
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "br",
        "hr",
        "a",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "span",
        "div",
    ),
    *(
        "ul",
        "ol",
        "li",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "aside",
    ),
    *("sub", "sup"),
}
ATTRIBUTES = {
    "a": {"href", "title", "class", "aria-label"},
    "ol": {"start"},
    "code": {"class"},
    "span": {"class"},
    "div": {"class", "tabindex"},
    "aside": {"class"},
    "details": {"class"},
    "pre": {"class", "tabindex"},
    "th": {"class"},
    "td": {"class"},
    **{f"h{n}": {"id"} for n in range(1, 7)},
}


@lru_cache(maxsize=256)
def render(source: str) -> Markup:
    """A text of the course as HTML. Headings have ids: those given as `## Title {#id}`, else made of their
    words."""
    html = _markdown().render(source)
    return Markup(
        nh3.clean(
            html, tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https", "mailto"}, link_rel=None
        )
    )


def render_inline(source: str) -> Markup:
    """One line of a course text (a diagnosis, a note): emphasis, code and links only."""
    html = _markdown().renderInline(source)
    allowed = {"em", "strong", "code", "a"}
    return Markup(nh3.clean(html, tags=allowed, attributes={"a": {"href"}}, link_rel=None))


def headings(source: str) -> list[tuple[str, str]]:
    """The sections of a text, headings of the second level: (id, words), in order."""
    tokens = _markdown().parse(source)
    return [
        (str(token.attrs["id"]), "".join(c.content for c in inline.children or [] if c.type in WORDS))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.tag == "h2" and "id" in token.attrs
    ]


def code(source: str, lexer: str = "python") -> Markup:
    """Source code with classes for colours (`c-k` ...), without a frame."""
    try:
        found = PythonLexer(stripnl=False) if lexer == "python" else get_lexer_by_name(lexer, stripnl=False)
    except ClassNotFound:
        return escape(source)
    return Markup(highlight(source, found, CODE))


def code_lines(source: str, lexer: str = "python") -> list[Markup]:
    """The same line by line: what opens on a line is closed on it."""
    return [Markup(line) for line in code(source, lexer).rstrip("\n").split("\n")]


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable(["table", "strikethrough"])
    md.core.ruler.push("explicit_anchors", _explicit_anchors)
    anchors_plugin(md, max_level=4, slug_func=_slug)
    for name in FOLDED:
        container_plugin(md, name, render=_folded)
    for name in FRAMED:
        container_plugin(md, name, render=_framed)
    md.add_render_rule("fence", _fence)
    md.add_render_rule("table_open", _around_table('<div class="wide" tabindex="0"><table>'))
    md.add_render_rule("table_close", _around_table("</table></div>"))
    return md


def _explicit_anchors(state: StateCore) -> None:
    for token, inline in pairwise(state.tokens):
        found = EXPLICIT_ANCHOR.search(inline.content) if token.type == "heading_open" else None
        if found and inline.children:
            token.attrs["id"] = found[1]
            inline.content = inline.content[: found.start()]
            inline.children[-1].content = EXPLICIT_ANCHOR.sub("", inline.children[-1].content)


def _slug(title: str) -> str:
    return re.sub(r"[^\w-]+", "-", title.strip().lower()).strip("-")


def _folded(renderer: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    if tokens[index].nesting < 0:
        return "</div></details>\n"
    kind, _, title = tokens[index].info.strip().partition(" ")
    return f'<details class="{kind}"><summary>{escape(title or kind)}</summary><div>\n'


def _framed(renderer: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    if tokens[index].nesting < 0:
        return "</aside>\n"
    return f'<aside class="{tokens[index].info.split()[0]}">\n'


def _fence(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    lexer = token.info.split()[0] if token.info.strip() else "text"
    return f'<pre class="code" tabindex="0"><code>{code(token.content, lexer)}</code></pre>\n'


def _around_table(html: str) -> Callable[..., str]:
    def rule(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        return html

    return rule
