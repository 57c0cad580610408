"""The documents in `docs/`: their index, and each document as HTML.

Links to other documents are replaced with links to their pages. Placeholders are replaced with the
reader's values. The output needs no sanitizing: the documents belong to the project and contain no
HTML, and markdown-it-py escapes all text.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from flask import get_template_attribute
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from domain.core.markdown import align_cells_by_class

_CACHED_DOCUMENTS = 128
_IMAGES_FOLDER = "images/"
#: Minimum number of columns that do not fit side by side on a phone.
_MIN_WIDE_COLUMNS = 3
#: Roles of table elements, by the token that opens the element.
_TABLE_ROLES = {
    **dict.fromkeys(("thead_open", "tbody_open"), "rowgroup"),
    "tr_open": "row",
    "th_open": "columnheader",
    "td_open": "cell",
}
#: Pattern for the characters in a name after which a line break is allowed.
_BREAK_PATTERN = re.compile(r"(?<=\w)[._](?=\w)")
#: Titles of code blocks without a file name, by language.
_LANGUAGE_TITLES = {"console": "Shell", "json": "JSON", "yaml": "YAML", "": "Text"}
DOCS_FOLDER = Path(__file__).parents[2] / "docs"
#: New names of renamed documents, by their previous names.
RENAMED_DOCUMENTS = {
    **{
        name: f"evidence/{name}"
        for name in (
            *("advisories", "conformance", "coverage", "on-call-compared", "performance"),
            *("reliability", "scale", "soak", "statements"),
        )
    },
    "neighbours": "evidence/noisy-neighbors",
    "devices-and-passwords": "device-and-password-grants",
    "guides/bridges": "guides/ldap-and-saml",
    "guides/first-page": "guides/set-up-paging",
    "operations": "administration",
    "pushed-requests-and-bound-tokens": "par-and-dpop",
    "words": "glossary",
}
#: Name of the index, which is shown at /help.
_INDEX_NAME = "README"
_TITLE_PATTERN = re.compile(r"\A# (.+)\n")
_SECTION_PATTERN = re.compile(r"^## (.+)$")
_TOPIC_PATTERN = re.compile(r"^- \[(.+?)\]\((.+?)\.md\): (.+)$")

#: Pattern for the base URLs that documents use in examples.
_BASE_URL_PATTERN = (
    r"https://gate\.example(?![\w-]|\.\w)|https://gatebell\.example\.com(?![\w-]|\.\w)"
    # Proxies and checks on a single host use the loopback address itself.
    r"|(?<!proxy_pass )http://127\.0\.0\.1:8000(?!\d|/readyz)"
)
_EXAMPLE_CALLBACK = "https://app.example/callback"
#: Redirect URI of the quickstart, and a pattern for its code blocks. Other documents mention this
#: URI as an alternative, so it is not replaced there.
_LOOPBACK_CALLBACK = "http://127.0.0.1/callback"
_LOOPBACK_PATTERN = (
    rf"(?<=REDIRECT_URI=){re.escape(_LOOPBACK_CALLBACK)}"
    rf"|{re.escape(_LOOPBACK_CALLBACK)}(?=\?code=)"
)
_EXAMPLE_PROJECT = "acme/shop"
#: Pattern for values that are safe to insert into commands. Other users choose these values, so
#: values with characters that are special in a shell or program are omitted.
_SAFE_VALUE_PATTERN = re.compile(r"[\w:/.\-~%\[\]]+", re.ASCII)
CLIENT_ID_PLACEHOLDER = "CLIENT_ID"
INTEGRATION_URL_PLACEHOLDER = "INTEGRATION_URL"


@dataclass(frozen=True, kw_only=True)
class Document:
    """A Markdown document from `docs/`."""

    #: Path of the document relative to `docs/`, without the extension, such as `guides/curl`.
    name: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class IndexedDocument:
    """A document in the index, with its title and description."""

    name: str
    title: str
    about: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the documentation index, with its topics."""

    title: str
    topics: tuple[IndexedDocument, ...]


@dataclass(frozen=True, kw_only=True)
class GuideValues:
    """Values that replace placeholders in a document.

    Placeholders without a value are left unchanged.
    """

    base_url: str
    client_id: str | None = None
    redirect_uri: str | None = None
    integration_url: str | None = None
    project_path: str | None = None

    def replace_placeholders(self, text: str) -> str:
        """Replace the placeholders in a string."""
        known = self._map_values_by_placeholder()
        names = "|".join(
            _LOOPBACK_PATTERN if name == _LOOPBACK_CALLBACK else re.escape(name)
            for name in sorted(known, key=len, reverse=True)
        )
        pattern = f"{_BASE_URL_PATTERN}|{names}" if names else _BASE_URL_PATTERN
        return re.sub(pattern, lambda found: known.get(found[0], self.base_url), text)

    def _map_values_by_placeholder(self) -> Mapping[str, str]:
        project = self.project_path
        given = {
            CLIENT_ID_PLACEHOLDER: self.client_id,
            _EXAMPLE_CALLBACK: self.redirect_uri,
            _LOOPBACK_CALLBACK: self.redirect_uri,
            INTEGRATION_URL_PLACEHOLDER: self.integration_url,
            _EXAMPLE_PROJECT: project,
            quote(_EXAMPLE_PROJECT, safe=""): quote(project, safe="") if project else None,
        }
        return {
            name: value
            for name, value in given.items()
            if value and _SAFE_VALUE_PATTERN.fullmatch(value)
        }


@cache
def load_documents() -> Mapping[str, Document]:
    """Return the documents by name. Each process reads the files once.

    The result is empty if the service was installed without documents.
    """
    return {each.name: each for each in map(_read_document, sorted(DOCS_FOLDER.rglob("*.md")))}


@cache
def load_sections() -> tuple[Section, ...]:
    """Return the sections of the documentation index."""
    found: dict[str, list[IndexedDocument]] = {}
    title = ""
    index = load_documents().get(_INDEX_NAME)
    for line in index.text.splitlines() if index else ():
        if heading := _SECTION_PATTERN.match(line):
            title = heading[1]
        elif topic := _TOPIC_PATTERN.match(line):
            made = IndexedDocument(name=topic[2], title=topic[1], about=topic[3])
            found.setdefault(title, []).append(made)
    return tuple(Section(title=title, topics=tuple(topics)) for title, topics in found.items())


def find_document(name: str) -> Document | None:
    """Return the document with the given name, or None if it does not exist."""
    return None if name == _INDEX_NAME else load_documents().get(name)


def get_page_path(name: str) -> str:
    """Return the path of a document's page, relative to the root of the service."""
    return (
        "/help" if name == _INDEX_NAME else f"/help/{name if _is_guide(name) else f'docs/{name}'}"
    )


def _is_guide(name: str) -> bool:
    return name.startswith("guides/")


def _read_document(file: Path) -> Document:
    text = file.read_text(encoding="utf-8")
    title = _TITLE_PATTERN.search(text)
    name = file.relative_to(DOCS_FOLDER).with_suffix("").as_posix()
    return Document(name=name, title=title[1] if title else name, text=text)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A second-level heading, with its anchor."""

    anchor: str
    title: str


@dataclass(frozen=True, kw_only=True)
class RenderedDocument:
    """The HTML of a document without its title, and a list of its second-level headings."""

    html: Markup
    headings: tuple[Heading, ...]


def build_anchor(heading: str) -> str:
    """Return the anchor of a heading, in the format of GitHub and GitLab."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def render_document(document: Document, values: GuideValues) -> RenderedDocument:
    """Render a document for a reader. Code blocks are templates, so a request context is needed."""
    parser = _build_parser()
    tokens = _skip_document_title(parser.parse(document.text))
    _replace_empty_header_cells(tokens)
    for table in _split_tables(tokens):
        _label_cells_of_wide_table(table)
    root = urlsplit(values.base_url).path.rstrip("/")
    links = _LinkResolver(folder=posixpath.dirname(document.name), root=root, values=values)
    headings = tuple(_set_heading_anchors(tokens))
    for token in tokens:
        if token.type == "inline":
            token.children = list(links.resolve_links(token.children or []))
        elif token.type == "fence":
            token.content = values.replace_placeholders(token.content)
    html = parser.renderer.render(tokens, parser.options, {"labels": Counter(), "is_table": False})
    return RenderedDocument(html=Markup(html), headings=headings)  # noqa: S704 - of escaped parts


def render_guide_steps(name: str, values: GuideValues, *, has_mapping: bool) -> Markup | None:
    """Render the steps of a guide after its first step, or return None if there is no such guide.

    If `has_mapping` is false and the guide has a section "Without a mapping", only that section is
    rendered.
    """
    guide = find_document(f"guides/{name}")
    if guide is None:
        return None
    steps, heading, other = guide.text.partition("\n## Without a mapping")
    text = steps[max(steps.find("\n## 2. "), 0) :]
    if heading and not has_mapping:
        text = f"{heading}{other}"
    return render_document(replace(guide, text=text), values).html


def _skip_document_title(tokens: list[Token]) -> list[Token]:
    has_title = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return tokens[3:] if has_title else tokens


def _replace_empty_header_cells(tokens: Sequence[Token]) -> None:
    """Turn empty header cells into data cells, since Markdown requires a header row."""
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"


def _split_tables(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    starts = [index for index, each in enumerate(tokens) if each.type == "table_open"]
    ends = [index for index, each in enumerate(tokens) if each.type == "table_close"]
    return (tokens[start : end + 1] for start, end in zip(starts, ends, strict=True))


def _label_cells_of_wide_table(table: Sequence[Token]) -> None:
    """Prepare a wide text table for narrow screens, where rows become cards.

    A wide table has three or more columns. Each cell gets its column heading as a label. All
    elements get ARIA roles, because the card layout hides the table structure from screen readers.
    Tables of numbers stay tables, so that numbers can be compared.
    """
    headings = [
        "".join(each.content for each in inline.children or ())
        for opening, inline in pairwise(table)
        if opening.type == "th_open"
    ]
    if len(headings) < _MIN_WIDE_COLUMNS or any(each.attrGet("class") for each in table):
        return
    table[0].attrSet("class", "cards")
    column = 0
    for token in table:
        if role := _TABLE_ROLES.get(token.type):
            # An empty header cell is a data cell.
            token.attrSet("role", "cell" if token.tag == "td" else role)
        if token.type == "tr_open":
            column = 0
        elif token.type == "td_open":
            token.attrSet("data-label", headings[column])
            column += 1


def _set_heading_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Set the anchors of headings, and yield the second-level headings."""
    seen: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        anchor = build_anchor(inline.content)
        seen[anchor] += 1
        if seen[anchor] > 1:
            anchor = f"{anchor}-{seen[anchor] - 1}"
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            words = "".join(each.content for each in inline.children or ())
            yield Heading(anchor=anchor, title=words)


@dataclass(frozen=True, kw_only=True)
class _LinkResolver:
    """Resolves the targets of a document's links and images."""

    #: Folder of the document, relative to `docs/`.
    folder: str
    #: Path of the service's base URL.
    root: str
    values: GuideValues

    def resolve_links(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Yield the tokens of a line with resolved links and images.

        A link to a file outside `docs/` becomes plain text.
        """
        is_dropped = False
        for token in tokens:
            if token.type == "link_open":
                address = self._resolve_link(str(token.attrGet("href")))
                is_dropped = address is None
                token.attrSet("href", address or "")
            elif token.type == "image":
                token.attrSet("src", self._resolve_link(str(token.attrGet("src"))) or "")
            elif token.type in {"text", "code_inline"}:
                token.content = self.values.replace_placeholders(token.content)
            if not (is_dropped and token.type in {"link_open", "link_close"}):
                yield token

    def _resolve_link(self, written: str) -> str | None:
        """Return the URL of a link target, or None if the service has no such page."""
        parts = urlsplit(written)
        if parts.scheme or parts.netloc:
            return self.values.replace_placeholders(written)
        if not parts.path:
            return written
        path = posixpath.normpath(posixpath.join(self.folder, parts.path))
        if path.startswith(_IMAGES_FOLDER):
            return f"{self.root}/help/{path}"
        name = path.removesuffix(".md")
        if name not in load_documents():
            return None
        return f"{self.root}{get_page_path(name)}{f'#{parts.fragment}' if parts.fragment else ''}"


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.use(align_cells_by_class)
    parser.add_render_rule("fence", _render_code_block)
    parser.add_render_rule("code_inline", _render_inline_code)
    parser.add_render_rule("table_open", _render_table_start)
    parser.add_render_rule("table_close", _render_table_end)
    return parser


def _render_code_block(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render a code block with its file name.

    The file name follows the language. In shell blocks, the text after the language is a name for
    tests and is not shown.
    """
    del renderer, options
    language, _, name = tokens[index].info.strip().partition(" ")
    known = _LANGUAGE_TITLES.get(language, language.capitalize())
    title = "Shell" if language == "sh" else name or known
    label = _make_anchor_unique(title, env["labels"])
    code_block = get_template_attribute("help/_parts.html", "code_block")
    return str(code_block(f"block-{index}", title, label, tokens[index].content))


def _render_inline_code(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render inline code. In a table, lines break only after a dot or an underscore."""
    del renderer, options
    code = str(escape(tokens[index].content))
    if env["is_table"]:
        code = _BREAK_PATTERN.sub(r"\g<0><wbr>", code)
    return f"<code>{code}</code>"


def _render_table_start(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Open a table in a container that scrolls horizontally and is focusable by keyboard."""
    del renderer, options
    env["is_table"] = True
    table_open = get_template_attribute("help/_parts.html", "table_open")
    label = _make_anchor_unique("Table", env["labels"])
    return str(table_open(label, is_wide=tokens[index].attrGet("class") == "cards"))


def _render_table_end(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    del renderer, tokens, index, options
    env["is_table"] = False
    return "</table></div>\n"


def _make_anchor_unique(label: str, seen: Counter[str]) -> str:
    """Return the label, followed by a number if the page already contains the label."""
    seen[label] += 1
    return label if seen[label] == 1 else f"{label} {seen[label]}"
