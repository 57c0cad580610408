"""Finds whole words in sentences, except words that are negated."""

import re

#: Position in a compound such as `ResolvedCritical` at which the next word begins.
_CASE_CHANGE = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")
#: Number of characters before a word in which a negation can be.
_MAX_DISTANCE = 60
_CLAUSE_END = re.compile(r"[.,;:|!?()\[\]<>=→/]|\s[-\u2013\u2014]+\s")
#: Patterns of texts before and after a word that negate the word.
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|unable|hardly|\w+n['\u2019]t)\b(?:\W+\w+){0,3}"
    r"|\b(?:no|without|neither|nor)\b(?:\W+\w+)?"
    r"|\b(?:un|non|from|(?:failed|fails|unable|yet|has|have|needs?) to(?: be)?)\b)\W*$"
)
_NEGATED_AFTER = re.compile(
    r"\s*[:=]\s*(?:false|no|never)\s*(?:[.,;)]|$)"
    r"|\s+(?:not|never|fails?|failed|failure|pending|impossible|rate|ratio|criteria|threshold)\b"
)


def contains_unnegated_word(text: str, word: str) -> bool:
    """Return whether a text contains a whole word or phrase that is not negated, ignoring case.

    Words end at separators and at a change of case: `ResolvedCritical` contains `resolved`. Neither
    `unsuccessful` nor `not successful` contains `successful`.
    """
    end = r"(?![^\W_])" if word[-1:].isalnum() else ""
    start = r"(?<![^\W_])" if word[:1].isalnum() else ""
    pattern = re.compile(f"{start}{re.escape(word.casefold())}{end}")
    texts = dict.fromkeys((text.casefold(), _CASE_CHANGE.sub(" ", text).casefold()))
    return any(
        not _is_negated(each, *found.span()) for each in texts for found in pattern.finditer(each)
    )


def _is_negated(text: str, start: int, end: int) -> bool:
    near = text[max(0, start - _MAX_DISTANCE) : start].replace("_", " ")
    before = _CLAUSE_END.split(near)[-1]
    return bool(_NEGATED_BEFORE.search(before) or _NEGATED_AFTER.match(text, end))
