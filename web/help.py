"""The documents of `docs/` that /help shows: in the order of its README, as HTML, and searched.

Links lead to pages, and placeholders become the values of the application, integration or project
that the reader has chosen. The documents are the project's own and hold no HTML, and markdown-it-py
escapes all text, the reader's values included: there is nothing to be cleaned.
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

from flask import get_template_attribute, url_for
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from domain.alerts.integrations.integrations import get_receiver
from domain.database.paging import row_id
from domain.errors import ForbiddenError, NotFoundError
from domain.markdown import aligned_by_class
from domain.oauth.clients.applications import get_any, get_own, newest_own
from domain.oauth.clients.types import ApplicationView
from domain.projects.access import get_project
from web.access.marks import viewer
from web.extensions import db
from web.http.work import work
from web.pages.list_query import list_query
from web.services import settings

_KEPT = 128
_IMAGES = "images/"
#: What people call the blocks of a language that have no name.
_LANGUAGES = {"console": "Shell", "json": "JSON", "yaml": "YAML", "": "Text"}
_MOST_FOUND = 30
#: In characters.
LONGEST_SEARCH = 200
_EXCERPT = 160
#: What Markdown writes around words.
_SIGNS = re.compile(r"[`*|]|\]\([^)\s]*\)|\[")
DOCS = Path(__file__).parents[1] / "docs"
#: Shown by /help itself.
_INDEX = "README"
_TITLE = re.compile(r"\A# (.+)\n")
_SECTION = re.compile(r"^## (.+)$")
_TOPIC = re.compile(r"^- \[(.+?)\]\((.+?)\.md\): (.+)$")

#: As documents write the base URL of an installation.
_BASE_URLS = r"https://gate\.example(?![\w-]|\.\w)|https://gatebell\.example\.com(?![\w-]|\.\w)"
_CALLBACK = "https://app.example/callback"
_PROJECT = "acme/shop"
#: Values of others go into commands: those with a character that a shell or a program could
#: understand are left out.
_HARMLESS = re.compile(r"[\w:/.\-~%\[\]]+", re.ASCII)
CLIENT_ID = "CLIENT_ID"
INTEGRATION_URL = "INTEGRATION_URL"


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document in Markdown."""

    #: Its place below `docs/`, without the ending: `guides/curl`.
    name: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A line of the index: a document, and what it is about."""

    name: str
    title: str
    about: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the index."""

    title: str
    topics: tuple[Topic, ...]


@dataclass(frozen=True, kw_only=True)
class Values:
    """What is known of a reader; None leaves the placeholder."""

    base_url: str
    client_id: str | None = None
    redirect_uri: str | None = None
    integration_url: str | None = None
    project_path: str | None = None

    def fill(self, text: str) -> str:
        """Return a text with these values in place of the placeholders."""
        known = self._by_placeholder()
        names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
        pattern = f"{_BASE_URLS}|{names}" if names else _BASE_URLS
        return re.sub(pattern, lambda found: known.get(found[0], self.base_url), text)

    def _by_placeholder(self) -> Mapping[str, str]:
        project = self.project_path
        given = {
            CLIENT_ID: self.client_id,
            _CALLBACK: self.redirect_uri,
            INTEGRATION_URL: self.integration_url,
            _PROJECT: project,
            quote(_PROJECT, safe=""): quote(project, safe="") if project else None,
        }
        return {
            name: value for name, value in given.items() if value and _HARMLESS.fullmatch(value)
        }


@cache
def documents() -> Mapping[str, Document]:
    """Return the documents by their names, read once for each process.

    There are none where the service was installed without them.
    """
    return {each.name: each for each in map(_read, sorted(DOCS.rglob("*.md")))}


@cache
def sections() -> tuple[Section, ...]:
    """Return the index."""
    found: dict[str, list[Topic]] = {}
    title = ""
    index = documents().get(_INDEX)
    for line in index.text.splitlines() if index else ():
        if heading := _SECTION.match(line):
            title = heading[1]
        elif topic := _TOPIC.match(line):
            made = Topic(name=topic[2], title=topic[1], about=topic[3])
            found.setdefault(title, []).append(made)
    return tuple(Section(title=title, topics=tuple(topics)) for title, topics in found.items())


def find_document(name: str) -> Document | None:
    """Return a document by its name, or None."""
    return None if name == _INDEX else documents().get(name)


def page_of(name: str) -> str:
    """Return the path of a document's page, from the service's own root."""
    return "/help" if name == _INDEX else f"/help/{name if _is_guide(name) else f'docs/{name}'}"


def _is_guide(name: str) -> bool:
    return name.startswith("guides/")


def _read(file: Path) -> Document:
    text = file.read_text(encoding="utf-8")
    title = _TITLE.search(text)
    name = file.relative_to(DOCS).with_suffix("").as_posix()
    return Document(name=name, title=title[1] if title else name, text=text)


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
    parser.use(aligned_by_class)
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """What stands below a heading, or before the first one."""

    document: Document
    heading: str
    text: str

    @property
    def page(self) -> str:
        """The path of the page, from the service's own root."""
        anchor = f"#{anchor_of(self.heading)}" if self.heading else ""
        return f"{page_of(self.document.name)}{anchor}"


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A part with all the words, and a line of it."""

    part: Part
    excerpt: str


def search(asked: str) -> tuple[Hit, ...]:
    """Return the parts that have every word, those with the words in their headings first."""
    words = asked[:LONGEST_SEARCH].casefold().split()
    found = [part for part in _parts() if words and all(word in _folded(part) for word in words)]
    # The sort is stable: parts of the same rank stay in the order of the index.
    found.sort(key=lambda part: -_rank(part, words))
    return tuple(Hit(part=part, excerpt=_excerpt(part, words)) for part in found[:_MOST_FOUND])


@cache
def _parts() -> tuple[Part, ...]:
    names = (topic.name for section in sections() for topic in section.topics)
    return tuple(part for name in names for part in _parts_of(documents()[name]))


def _parts_of(document: Document) -> list[Part]:
    """Cut a document at its headings; a line of a program that begins as one is none."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    is_code = False
    for line in document.text.splitlines()[1:]:
        is_code ^= line.lstrip().startswith("```")
        if line.startswith("## ") and not is_code:
            parts.append((line[3:], []))
        else:
            parts[-1][1].append(line)
    return [Part(document=document, heading=head, text="\n".join(text)) for head, text in parts]


@cache
def _folded(part: Part) -> str:
    return f"{part.document.title}\n{part.heading}\n{part.text}".casefold()


def _rank(part: Part, words: list[str]) -> int:
    title, heading = part.document.title.casefold(), part.heading.casefold()
    in_heading = sum(word in heading for word in words)
    in_title = sum(word in title for word in words)
    return 4 * in_heading + 2 * in_title + (not part.heading)


def _excerpt(part: Part, words: list[str]) -> str:
    """Return the surroundings of the first word that stands in the text, on one line."""
    text = " ".join(_SIGNS.sub("", part.text).split())
    at = min((found for word in words if (found := text.casefold().find(word)) >= 0), default=0)
    start = max(0, at - _EXCERPT // 3)
    cut = text[start : start + _EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT < len(text) else ''}"


#: So many are offered.
_MOST_OFFERED = 5
_SCOPES = re.compile(r"^- \*\*Scopes\*\*: ([^.]*)\.", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The reader of a guide."""

    values: Values
    #: What the values are of, and its page; None if the guide shows placeholders.
    name: str | None = None
    url: str | None = None
    #: Whether the query names something that is not there, or that the reader may not see.
    is_refused: bool = False
    #: Scopes that the guide asks for and the application is not registered for, and where to add
    #: them.
    missing_scopes: tuple[str, ...] = ()
    edit_url: str | None = None


def asking_reader(document: Document) -> Reader:
    """Return the reader of a guide, with values of what the query names if they may see them."""
    query = list_query("application", "project", "integration")
    values = Values(base_url=settings().base_url)
    try:
        return _of_query(query, values, document)
    except (ForbiddenError, NotFoundError):
        return Reader(values=values, is_refused=True)


def _of_query(query: Mapping[str, str], values: Values, document: Document) -> Reader:
    """Return the reader; raise ForbiddenError or NotFoundError if they may not see the values."""
    application_id = row_id(query, "application")
    integration_id = row_id(query, "integration")
    project_path = query.get("project", "").strip("/")
    if not project_path.isprintable():  # no path, and nothing to ask a database for
        raise NotFoundError
    if application_id is not None:
        return _of_application(application_id, values, document)
    if integration_id is not None:
        return _of_integration(project_path, integration_id, values)
    if project_path:
        return _of_project(project_path, values)
    return Reader(values=values)


def _of_application(application_id: int, values: Values, document: Document) -> Reader:
    application = _application(application_id)
    is_own = application.is_owned_by(viewer().user_id or 0)
    pages = "applications" if is_own else "admin.applications"
    asked = _scopes_of(document)
    return Reader(
        values=replace(
            values,
            client_id=application.application_id,
            redirect_uri=next(iter(application.redirect_uris), None),
        ),
        name=application.name,
        url=url_for(f"{pages}.show", application_id=application.id),
        missing_scopes=tuple(each for each in asked if each not in application.scopes),
        edit_url=url_for(f"{pages}.edit", application_id=application.id),
    )


def _scopes_of(document: Document) -> tuple[str, ...]:
    """Return the scopes that a guide tells to register."""
    line = _SCOPES.search(document.text)
    return tuple(re.findall(r"`([a-z_]+)`", line[1])) if line else ()


def _application(application_id: int) -> ApplicationView:
    """Return an application whose page the viewer may see, or raise NotFoundError."""
    reader = viewer()
    if reader.user_id is None:
        raise NotFoundError
    if reader.is_admin:
        return get_any(application_id, session=db.session())
    return get_own(application_id, owner_id=reader.user_id, session=db.session())


def _of_integration(project_path: str, integration_id: int, values: Values) -> Reader:
    """Return a reader who may see the integration's credentials."""
    project = get_project(project_path, viewer(), session=db.session())
    if not project.can_integrate:
        raise ForbiddenError
    integration = get_receiver(work(), project, integration_id)
    return Reader(
        values=replace(values, integration_url=integration.url, project_path=project.path),
        name=integration.name,
        url=url_for(
            "integration_keys.credentials",
            project_path=project.path,
            integration_id=integration.id,
        ),
    )


def _of_project(project_path: str, values: Values) -> Reader:
    project = get_project(project_path, viewer(), session=db.session())
    return Reader(
        values=replace(values, project_path=project.path),
        name=project.path,
        url=url_for("projects.show_namespace", full_path=project.path),
    )


def offered_applications(document: Document, reader: Reader) -> tuple[ApplicationView, ...]:
    """Return applications of the viewer's own whose values a guide without values could have."""
    user_id = viewer().user_id
    if user_id is None or reader.name is not None or CLIENT_ID not in document.text:
        return ()
    return newest_own(user_id, count=_MOST_OFFERED, session=db.session())
