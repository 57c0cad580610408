"""The documents that /help shows, and their order, which is that of `docs/README.md`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
#: Shown by /help itself.
_INDEX = "README"
_TITLE = re.compile(r"\A# (.+)\n")
_SECTION = re.compile(r"^## (.+)$")
_TOPIC = re.compile(r"^- \[(.+?)\]\((.+?)\.md\): (.+)$")


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
