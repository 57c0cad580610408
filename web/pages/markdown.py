"""Renders Markdown that people wrote, without anything that could harm its readers."""

from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

#: A page has headings of its own, and loads no images of others.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable(
    ["heading", "lheading", "image"]
)
_TAGS = {*("a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "strong", "ul")}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    attributes={"a": {"href", "title"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


@lru_cache(maxsize=32)
def rendered_markdown(text: str) -> Markup:
    """Return a text in Markdown as HTML: paragraphs, lists, code, emphasis and links to the web."""
    return Markup(_CLEANER.clean(_MARKDOWN.render(text)))  # noqa: S704 - cleaned
