"""Renders a README from Markdown to safe HTML.

Markdown may contain HTML, so the output of markdown-it-py is sanitized by nh3 with a short list of
allowed elements. Images are replaced by their descriptions. The content security policy of pages
blocks images of other hosts, and loading one would reveal the reader to its owner.
"""

import posixpath
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from domain.core.markdown import CELL_CLASSES, aligned_by_class

#: Maximum size in bytes of a README that is rendered. Larger ones are shown as text.
LARGEST_RENDERED = 64 * 1024
_MARKDOWN = (b".md", b".markdown")
_NAMES = (b"readme.md", b"readme.markdown", b"readme", b"readme.txt", b"readme.rst")
#: Number of levels by which headings are lowered below the headings of the page.
_HEADINGS_BELOW = 2
_LOWEST_HEADING = 6
_KEPT = 16
_TEXT = {"b", "br", "code", "del", "em", "i", "kbd", "s", "strong", "sub", "sup"}
_BLOCKS = {"blockquote", "details", "hr", "li", "ol", "p", "pre", "summary", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
_ELEMENTS = {"a", *_TEXT, *_BLOCKS, *_TABLES, "h3", "h4", "h5", "h6"}
#: Elements that are removed with their contents.
_HIDDEN = {"script", "style", "title", "template", "noscript", "iframe", "object", "svg", "math"}
_SCHEMES = {"http", "https", "mailto"}

#: Function that returns the URL of a file in the repository from its path.
UrlOf = Callable[[bytes], str]


def readme_among(names: Sequence[bytes]) -> bytes | None:
    """Return the name of the README among the files of a folder, or None."""
    by_folded = {name.lower(): name for name in reversed(names)}
    return next((by_folded[each] for each in _NAMES if each in by_folded), None)


def is_markdown(name: bytes) -> bool:
    """Return whether a file is Markdown, according to its name."""
    return name.lower().endswith(_MARKDOWN)


def render_readme(source: str, *, folder: bytes, url_of: UrlOf) -> str:
    """Return safe HTML; relative links lead to files below `folder`, with URLs from `url_of`.

    A malicious README can take up to two seconds, so call this in a thread.
    """

    def attribute(element: str, name: str, value: str) -> str | None:
        if element == "a" and name == "href":
            return _target(value, folder, url_of)
        return value

    return nh3.clean(
        _markup(source),
        tags=_ELEMENTS,
        clean_content_tags=_HIDDEN,
        attributes={"a": {"href"}, "ol": {"start"}},
        allowed_classes={cell: set(CELL_CLASSES.values()) for cell in ("td", "th")},
        attribute_filter=attribute,
        link_rel="nofollow noopener noreferrer",
        url_schemes=_SCHEMES,
    )


@lru_cache(maxsize=_KEPT)
def _markup(source: str) -> str:
    return str(_parser().render(source))


def _target(address: str, folder: bytes, url_of: UrlOf) -> str | None:
    """Return the target of a link, or None if the target is not allowed."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return None
    if parts.scheme or parts.netloc:
        is_known = parts.scheme in _SCHEMES and (parts.netloc or parts.scheme == "mailto")
        return address if is_known else None
    path = unquote_to_bytes(parts.path)
    if not path or b"\\" in path or b"\0" in path:
        return None
    joined = path.lstrip(b"/") if path.startswith(b"/") else posixpath.join(folder, path)
    normal = posixpath.normpath(joined)
    if normal in {b"", b"."} or normal.startswith(b"../") or normal == b"..":
        return None
    return url_of(normal)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 20})
    parser.enable(["table", "strikethrough"]).use(aligned_by_class)
    parser.add_render_rule("image", _description)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def _description(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render an image as its description."""
    words = "".join(child.content for child in tokens[index].children or ())
    escaped: str = renderer.text([Token("text", "", 0, content=words)], 0, options, env)
    return escaped


def _heading(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render a heading at a level below the headings of the page."""
    token = tokens[index]
    level = min(_LOWEST_HEADING, int(token.tag[1:]) + _HEADINGS_BELOW)
    token.tag = f"h{level}"
    del env
    rendered: str = renderer.renderToken(tokens, index, options, {})
    return rendered
