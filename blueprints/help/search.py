"""Search at /help: matches whole words and glossary synonyms.

Matches in headings and in tables of codes rank first. Documents in `docs/evidence/` and `docs/adr/`
rank last.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from blueprints.help.documents import (
    Document,
    build_anchor,
    get_page_path,
    load_documents,
    load_sections,
)

#: Maximum length of a search in characters.
MAX_SEARCH_LENGTH = 200
#: Maximum number of results.
MAX_RESULTS = 30
#: Length of an excerpt in characters.
_EXCERPT_LENGTH = 160
#: Pattern for Markdown syntax around words.
_MARKDOWN_PATTERN = re.compile(
    r"^\s*(?:```.*|-(?= )|\d+\.(?= ))|(?<=\|):?-{3,}:?(?=\|)|[`*|]|\]\([^)\s]*\)|\[(?!\")",
    re.MULTILINE,
)
_GLOSSARY_NAME = "glossary"
#: Folders for engineers, which rank below all other folders.
_ENGINEERING_FOLDERS = ("evidence/", "adr/")
#: Pattern for the first cell of a row about a code, such as an error code or a setting. Codes
#: without a dot or underscore may also be ordinary words.
_CODE_ROW_PATTERN = re.compile(r"^\| `([^`|]+[._][^`|]+)`[^|]*\|", re.MULTILINE)
_SYNONYM_PATTERN = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DocumentPart:
    """The text of a document under a heading, or before the first heading."""

    document: Document
    heading: str
    text: str

    @property
    def page(self) -> str:
        """Path and anchor of the part, relative to the root of the service."""
        anchor = f"#{build_anchor(self.heading)}" if self.heading else ""
        return f"{get_page_path(self.document.name)}{anchor}"


@dataclass(frozen=True, kw_only=True)
class DocumentSearchHit:
    """A document part that matches a search, with an excerpt."""

    part: DocumentPart
    excerpt: str


#: Pattern for a search term and its synonyms.
TermPattern = re.Pattern[str]


def search_documents(text: str) -> tuple[DocumentSearchHit, ...]:
    """Return the document parts that contain every search term, best matches first."""
    terms = list(_split_terms(text[:MAX_SEARCH_LENGTH].casefold()))
    found = [
        part
        for part in _load_document_parts()
        if terms and all(term.search(_fold_document_part(part)) for term in terms)
    ]
    # The sort is stable, so parts with the same rank keep the order of the index.
    found.sort(key=lambda part: _rank_document_part(part, terms), reverse=True)
    return tuple(
        DocumentSearchHit(part=part, excerpt=_build_excerpt(part, terms))
        for part in found[:MAX_RESULTS]
    )


def _split_terms(text: str) -> Iterator[TermPattern]:
    """Yield the terms of a search. A synonym with several words counts as one term."""
    for phrase, others in _load_synonyms().items():
        pattern = _compile_phrase(phrase)
        if pattern.search(text):
            text = pattern.sub(" ", text)
            yield re.compile("|".join(_compile_phrase(each).pattern for each in (phrase, *others)))
    for word in text.split():
        yield _compile_phrase(word)


@cache
def _compile_phrase(phrase: str) -> TermPattern:
    """Return a pattern for whole words with optional plural and verb endings."""
    words = r"[\s-]+".join(re.escape(word) for word in re.split(r"[\s-]+", phrase) if word)
    ending = "(?:e?s|e?d|ing)?" if phrase[-1:].isalpha() else ""
    return re.compile(rf"(?<!\w){words}{ending}(?!\w)")


@cache
def _load_synonyms() -> Mapping[str, Sequence[str]]:
    """Return the product's terms for the words that people search for, longest first."""
    glossary = load_documents().get(_GLOSSARY_NAME)
    table = glossary.text.partition("\n## Synonyms\n")[2].partition("\n## ")[0] if glossary else ""
    found = {
        phrase: [each.strip() for each in terms.casefold().split(",")]
        for phrases, terms in _SYNONYM_PATTERN.findall(table)[1:]  # the first match is the header
        for phrase in (each.strip() for each in phrases.casefold().split(","))
    }
    return dict(sorted(found.items(), key=lambda each: -len(each[0])))


@cache
def _load_document_parts() -> tuple[DocumentPart, ...]:
    names = (topic.name for section in load_sections() for topic in section.topics)
    return tuple(part for name in names for part in _split_document(load_documents()[name]))


def _split_document(document: Document) -> list[DocumentPart]:
    """Split a document at its headings.

    A number sign inside a code block is not a heading.
    """
    parts: list[tuple[str, list[str]]] = [("", [])]
    is_code = False
    for line in document.text.splitlines()[1:]:
        is_code ^= line.lstrip().startswith("```")
        if line.startswith("## ") and not is_code:
            parts.append((line[3:], []))
        else:
            parts[-1][1].append(line)
    return [
        DocumentPart(document=document, heading=head, text="\n".join(text)) for head, text in parts
    ]


@cache
def _fold_document_part(document_part: DocumentPart) -> str:
    return (
        f"{document_part.document.title}\n{document_part.heading}\n{document_part.text}".casefold()
    )


@cache
def _list_codes(part: DocumentPart) -> Sequence[str]:
    """Return the codes in the tables of a document part, in lowercase."""
    return [code.casefold() for code in _CODE_ROW_PATTERN.findall(part.text)]


def _rank_document_part(
    document_part: DocumentPart, terms: Sequence[TermPattern]
) -> tuple[bool, int, int]:
    """Return a sort key that is highest for the best match.

    Documents for engineers rank below all other documents. Parts rank higher if more terms occur in
    headings or in tables of codes. Among parts that describe a code in a table, the part with the
    longest tables ranks first.
    """
    title, heading = document_part.document.title.casefold(), document_part.heading.casefold()
    in_heading = sum(term.search(heading) is not None for term in terms)
    in_title = sum(term.search(title) is not None for term in terms)
    codes = _list_codes(document_part)
    described = sum(any(map(term.fullmatch, codes)) for term in terms)
    headings = 4 * in_heading + 5 * in_title + 2 * described + (not document_part.heading)
    name = document_part.document.name
    is_evidence = name.startswith(_ENGINEERING_FOLDERS)
    return not is_evidence, headings - (name == _GLOSSARY_NAME), len(codes) if described else 0


def _build_excerpt(document_part: DocumentPart, terms: Sequence[TermPattern]) -> str:
    """Return the text around the first matching term, on one line."""
    text = " ".join(_MARKDOWN_PATTERN.sub("", document_part.text).split())
    folded = text.casefold()
    at = min((found.start() for term in terms if (found := term.search(folded))), default=0)
    start = text.rfind(" ", 0, max(0, at - _EXCERPT_LENGTH // 3)) + 1
    cut = text[start : start + _EXCERPT_LENGTH]
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT_LENGTH < len(text) else ''}"
