"""Finds parts of documents by words. There are few, so every part is looked at."""

import re
from dataclasses import dataclass
from functools import cache

from web.help.documents import Document, documents, page_of, sections
from web.help.rendering import anchor_of

_MOST_FOUND = 30
#: In characters.
LONGEST_SEARCH = 200
_EXCERPT = 160
#: What Markdown writes around words.
_SIGNS = re.compile(r"[`*|]|\]\([^)\s]*\)|\[")


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
