"""Renders Markdown from users without content that could harm readers."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from domain.core import thread_pools

#: Parser without headings, since pages have their own headings, and without images from other
#: sites.
_TEXT_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable(
    ["heading", "lheading", "image"]
)
_ALLOWED_TAGS = {
    *("a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "strong", "ul")
}
_ALLOWED_SCHEMES = {"http", "https", "mailto"}
_TEXT_CLEANER = nh3.Cleaner(
    tags=_ALLOWED_TAGS,
    attributes={"a": {"href", "title"}},
    url_schemes=_ALLOWED_SCHEMES,
    url_relative="deny",
)
_DOCUMENT_CLEANER = nh3.Cleaner(
    tags={*_ALLOWED_TAGS, *("h3", "h4", "h5", "h6", "s")}
    | {"table", "tbody", "td", "th", "thead", "tr"},
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    url_schemes=_ALLOWED_SCHEMES,
    url_relative="deny",
    link_rel="nofollow noopener noreferrer",
)
#: Number of levels by which document headings are lowered, so that they are below the page's own
#: headings.
_HEADING_OFFSET = 2
_MAX_HEADING_LEVEL = 6
#: Length in characters above which texts are rendered in a thread. A hostile text takes over a
#: second.
_MIN_THREAD_LENGTH = 2_000
_DIRECTION_OVERRIDES = {0x202D: "\ufffd", 0x202E: "\ufffd"}


@lru_cache(maxsize=32)
def render_markdown(text: str) -> Markup:
    """Return Markdown as HTML with paragraphs, lists, code, emphasis and links to the web."""
    return Markup(_TEXT_CLEANER.clean(_TEXT_PARSER.render(text)))  # noqa: S704 - cleaned


def render_markdown_document(text: str) -> Markup:
    """Return Markdown as `render_markdown` does, with tables and lowered headings.

    Images become links, since a request for an image would reveal the reader of the page to the
    image's host.
    """
    if len(text) <= _MIN_THREAD_LENGTH:
        return _render_cached_document(text)
    return thread_pools.rendering_pool.run_task(_render_cached_document, text)


@lru_cache(maxsize=128)
def _render_cached_document(text: str) -> Markup:
    rendered = _create_document_parser().render(text.translate(_DIRECTION_OVERRIDES))
    return Markup(_DOCUMENT_CLEANER.clean(rendered))  # noqa: S704 - cleaned


def _create_document_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image_link)
    parser.add_render_rule("heading_open", _render_heading)
    parser.add_render_rule("heading_close", _render_heading)
    return parser


def _render_image_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    del renderer, options, env
    source = str(tokens[index].attrs.get("src", ""))
    words = "".join(child.content for child in tokens[index].children or ())
    return f'<a href="{escape(source)}">{escape(words or source)}</a>'


def _render_heading(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    token = tokens[index]
    token.tag = f"h{min(_MAX_HEADING_LEVEL, int(token.tag[1:]) + _HEADING_OFFSET)}"
    rendered: str = renderer.renderToken(tokens, index, options, env)
    return rendered
