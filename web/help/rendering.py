"""Renders documents as HTML: links lead to pages, placeholders become the reader's values.

The documents are the project's own and hold no HTML, and markdown-it-py escapes all text, the
reader's values included: there is nothing to be cleaned.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from flask import get_template_attribute
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from web.help.documents import Document, documents, page_of
from web.help.values import Values

_KEPT = 128
_IMAGES = "images/"
#: What people call the blocks of a language that have no name.
_LANGUAGES = {"console": "Shell", "json": "JSON", "yaml": "YAML", "": "Text"}


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading of the second level."""

    anchor: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A document without its title."""

    html: Markup
    headings: tuple[Heading, ...]


def anchor_of(heading: str) -> str:
    """Return what links have behind the number sign, as GitHub and GitLab write it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@lru_cache(maxsize=_KEPT)
def rendered(document: Document, values: Values) -> Rendered:
    """Render a document for a reader; for requests, because blocks are templates."""
    parser = _parser()
    tokens = _below_title(parser.parse(document.text))
    _mend_empty_headers(tokens)
    root = urlsplit(values.base_url).path.rstrip("/")
    links = _Links(folder=posixpath.dirname(document.name), root=root, values=values)
    headings = tuple(_with_anchors(tokens))
    for token in tokens:
        if token.type == "inline":
            token.children = list(links.followed(token.children or []))
        elif token.type == "fence":
            token.content = values.fill(token.content)
    html = parser.renderer.render(tokens, parser.options, {"labels": Counter()})
    return Rendered(html=Markup(html), headings=headings)  # noqa: S704 - of escaped parts


def _below_title(tokens: list[Token]) -> list[Token]:
    has_title = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return tokens[3:] if has_title else tokens


def _mend_empty_headers(tokens: Sequence[Token]) -> None:
    """Make cells of headers that say nothing into others, since Markdown has no table without."""
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"


def _with_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give headings their anchors; yield those of the second level."""
    seen: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        anchor = anchor_of(inline.content)
        seen[anchor] += 1
        if seen[anchor] > 1:
            anchor = f"{anchor}-{seen[anchor] - 1}"
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            words = "".join(each.content for each in inline.children or ())
            yield Heading(anchor=anchor, title=words)


@dataclass(frozen=True, kw_only=True)
class _Links:
    """Where links and pictures of a document lead."""

    #: Of the document, below `docs/`.
    folder: str
    #: The path of the service's base URL.
    root: str
    values: Values

    def followed(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Yield the parts of a line; a link that leads out of the documents is its text alone."""
        is_dropped = False
        for token in tokens:
            if token.type == "link_open":
                address = self._address(str(token.attrGet("href")))
                is_dropped = address is None
                token.attrSet("href", address or "")
            elif token.type == "image":
                token.attrSet("src", self._address(str(token.attrGet("src"))) or "")
            elif token.type in {"text", "code_inline"}:
                token.content = self.values.fill(token.content)
            if not (is_dropped and token.type in {"link_open", "link_close"}):
                yield token

    def _address(self, written: str) -> str | None:
        """Return where a link leads on this service, or None if nowhere."""
        parts = urlsplit(written)
        if parts.scheme or parts.netloc:
            return self.values.fill(written)
        if not parts.path:
            return written
        path = posixpath.normpath(posixpath.join(self.folder, parts.path))
        if path.startswith(_IMAGES):
            return f"{self.root}/help/{path}"
        name = path.removesuffix(".md")
        if name not in documents():
            return None
        return f"{self.root}{page_of(name)}{f'#{parts.fragment}' if parts.fragment else ''}"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("fence", _block)
    parser.add_render_rule("table_open", _table)
    parser.add_render_rule("table_close", _end_of_table)
    return parser


def _block(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render a block of code; what stands behind its language is the name of its file.

    Commands have no file: their names are for tests.
    """
    del renderer, options
    language, _, name = tokens[index].info.strip().partition(" ")
    known = _LANGUAGES.get(language, language.capitalize())
    title = "Shell" if language == "sh" else name or known
    label = _unique(title, env["labels"])
    code_block = get_template_attribute("help/_parts.html", "code_block")
    return str(code_block(f"block-{index}", title, label, tokens[index].content))


def _table(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Open a table in a box that scrolls sideways, also by the keyboard."""
    del renderer, tokens, index, options
    table_open = get_template_attribute("help/_parts.html", "table_open")
    return str(table_open(_unique("Table", env["labels"])))


def _end_of_table(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    del renderer, tokens, index, options, env
    return "</table></div>\n"


def _unique(label: str, seen: Counter[str]) -> str:
    """Return a label that no other part of the page has."""
    seen[label] += 1
    return label if seen[label] == 1 else f"{label} {seen[label]}"
