"""The search of /help: whole words, synonyms from the glossary, and evidence last."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from blueprints.help.documents import Document, anchor_of, documents, page_of, sections

#: Maximum length of a search in characters.
LONGEST_SEARCH = 200
#: Maximum number of results.
MOST_RESULTS = 30
#: Length of an excerpt in characters.
_EXCERPT = 160
#: Pattern for Markdown syntax around words.
_SIGNS = re.compile(r"[`*|]|\]\([^)\s]*\)|\[")
_GLOSSARY = "glossary"
#: Folders for engineers, which rank below all other folders.
_EVIDENCE = ("evidence/", "adr/")
_SYNONYM = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Part:
    """The text below a heading, or before the first heading."""

    document: Document
    heading: str
    text: str

    @property
    def page(self) -> str:
        """Path and anchor of the part, relative to the root of the service."""
        anchor = f"#{anchor_of(self.heading)}" if self.heading else ""
        return f"{page_of(self.document.name)}{anchor}"


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A part that matches a search, with an excerpt."""

    part: Part
    excerpt: str


#: Pattern for a search term and its synonyms.
Term = re.Pattern[str]


def search(text: str) -> tuple[Hit, ...]:
    """Return the parts that contain every term of a search, best matches first."""
    terms = list(_terms(text[:LONGEST_SEARCH].casefold()))
    found = [
        part for part in _parts() if terms and all(term.search(_folded(part)) for term in terms)
    ]
    # The sort is stable: parts of the same rank stay in the order of the index.
    found.sort(key=lambda part: _rank(part, terms), reverse=True)
    return tuple(Hit(part=part, excerpt=_excerpt(part, terms)) for part in found[:MOST_RESULTS])


def _terms(text: str) -> Iterator[Term]:
    """Yield the terms of a search; a synonym of several words counts as one term."""
    for phrase, others in _synonyms().items():
        pattern = _pattern(phrase)
        if pattern.search(text):
            text = pattern.sub(" ", text)
            yield re.compile("|".join(_pattern(each).pattern for each in (phrase, *others)))
    for word in text.split():
        yield _pattern(word)


@cache
def _pattern(phrase: str) -> Term:
    """Return a pattern for whole words with optional plural and verb endings."""
    words = r"[\s-]+".join(re.escape(word) for word in re.split(r"[\s-]+", phrase) if word)
    ending = "(?:e?s|e?d|ing)?" if phrase[-1:].isalpha() else ""
    return re.compile(rf"(?<!\w){words}{ending}(?!\w)")


@cache
def _synonyms() -> Mapping[str, Sequence[str]]:
    """Return the product's terms for the words that people search for, longest first."""
    glossary = documents().get(_GLOSSARY)
    table = glossary.text.partition("\n## Synonyms\n")[2].partition("\n## ")[0] if glossary else ""
    found = {
        phrase: [each.strip() for each in terms.casefold().split(",")]
        for phrases, terms in _SYNONYM.findall(table)[1:]  # the first match is the header
        for phrase in (each.strip() for each in phrases.casefold().split(","))
    }
    return dict(sorted(found.items(), key=lambda each: -len(each[0])))


@cache
def _parts() -> tuple[Part, ...]:
    names = (topic.name for section in sections() for topic in section.topics)
    return tuple(part for name in names for part in _parts_of(documents()[name]))


def _parts_of(document: Document) -> list[Part]:
    """Split a document at its headings; a number sign inside a code block is not a heading."""
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


def _rank(part: Part, terms: Sequence[Term]) -> tuple[bool, int]:
    """Return the sort key of a part: evidence last, then by the number of terms in headings."""
    title, heading = part.document.title.casefold(), part.heading.casefold()
    in_heading = sum(term.search(heading) is not None for term in terms)
    in_title = sum(term.search(title) is not None for term in terms)
    headings = 4 * in_heading + 5 * in_title + (not part.heading)
    name = part.document.name
    return not name.startswith(_EVIDENCE), headings - (name == _GLOSSARY)


def _excerpt(part: Part, terms: Sequence[Term]) -> str:
    """Return the text around the first matching term, on one line."""
    text = " ".join(_SIGNS.sub("", part.text).split())
    folded = text.casefold()
    at = min((found.start() for term in terms if (found := term.search(folded))), default=0)
    start = text.rfind(" ", 0, max(0, at - _EXCERPT // 3)) + 1
    cut = text[start : start + _EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT < len(text) else ''}"
