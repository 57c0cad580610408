"""Splits a program into tokens: names, strings, numbers and symbols.

The lexer reads any input in a single pass, and handles only the syntax of comments and strings in
each language. ADR 43 explains why Python programs are not read with `ast` or `tokenize`.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from domain.releases.checker.findings import iterate_within_limit

NAME, TEXT, NUMBER, SIGN = "name", "text", "number", "sign"


class CommentSyntax(Enum):
    """The characters that start comments in a language: `#`, `//`, or both."""

    HASH = "hash"
    SLASHES = "slashes"
    BOTH = "both"


class Token(NamedTuple):
    """A name, string, number or symbol, and its line number."""

    kind: str
    #: Content. The content of a string excludes its quotes.
    text: str
    line: int
    #: True if a string may contain placeholders in braces.
    is_template: bool = False
    #: True if a string has no closing quote.
    is_open: bool = False


#: Patterns for strings. In all patterns of the product, a possessively repeated group ends with
#: `|(?!)`. Before Python 3.11.5, such a group keeps the input that its last, failed attempt
#: consumed (https://github.com/python/cpython/issues/106052). An alternative that never matches
#: prevents the bug.
_TEXT_PATTERNS = r"""
    |(?P<prefix>[rbfuRBFU]{1,2}(?=["']))?(?:
        \"\"\"(?P<long>(?:[^"\\]|\\.|"(?!"")|(?!))*+)(?:\"\"\"|\\?\Z)
        |'''(?P<other_long>(?:[^'\\]|\\.|'(?!'')|(?!))*+)(?:'''|\\?\Z)
        |"(?P<double>(?:[^"\\\n]|\\.|(?!))*+)(?:"|(?=\n)|\\?\Z)
        |'(?P<single>(?:[^'\\\n]|\\.|(?!))*+)(?:'|(?=\n)|\\?\Z)
    )
    |`(?P<back>(?:[^`\\]|\\.|(?!))*+)(?:`|\\?\Z)
"""
_OTHER_PATTERNS = r"""
    |(?P<name>[A-Za-z_$@][\w$]*+(?:-[a-z]\w*+(?=\s*:))?)
    |(?P<number>[0-9][0-9._]*+)
    |(?P<sign>=>|[=!<>]=+|\?\.|::|->|:=|\*\*|\.\.\.|[^\s\w])
"""
_HASH_COMMENT_PATTERN = r"\#[^\n]*+"
_SLASH_COMMENT_PATTERN = r"//[^\n]*+|/\*.*?(?:\*/|\Z)"
_COMMENT_PATTERNS = {
    CommentSyntax.HASH: _HASH_COMMENT_PATTERN,
    CommentSyntax.SLASHES: _SLASH_COMMENT_PATTERN,
    CommentSyntax.BOTH: rf"{_HASH_COMMENT_PATTERN}|{_SLASH_COMMENT_PATTERN}",
}
_LEXER_PATTERNS: Mapping[CommentSyntax, re.Pattern[str]] = {
    kind: re.compile(
        rf"(?P<skipped>\s++|{comment}){_TEXT_PATTERNS}{_OTHER_PATTERNS}|.", re.VERBOSE | re.DOTALL
    )
    for kind, comment in _COMMENT_PATTERNS.items()
}
#: Groups that match strings, with the number of characters in both quotes.
_TEXT_GROUPS = {"long": 6, "other_long": 6, "double": 2, "single": 2, "back": 2}
_TEMPLATE_GROUPS = frozenset({"back", "long", "other_long"})


def tokenize_source(text: str, comments: CommentSyntax) -> Iterator[Token]:
    """Yield the names, strings, numbers and symbols in a program, without comments and spaces."""
    line, at = 1, 0
    for found in iterate_within_limit(_LEXER_PATTERNS[comments].finditer(text)):
        kind = found.lastgroup
        if kind in _TEXT_GROUPS:
            line += text.count("\n", at, found.start())
            at = found.start()
            prefix = found["prefix"]
            is_template = kind in _TEMPLATE_GROUPS or prefix is not None
            quotes = len(found[0]) - len(found[kind]) - len(prefix or "")
            yield Token(TEXT, found[kind], line, is_template, quotes < _TEXT_GROUPS[kind])
        elif kind is not None and kind not in {"skipped", "prefix"}:
            line += text.count("\n", at, found.start())
            at = found.start()
            yield Token(kind, found[0], line)
