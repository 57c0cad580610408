"""Splits a program into words, texts and signs, in one pass whatever the program is.

The lexer knows no language, only how its comments and texts look. `ast` and `tokenize` read Python
more exactly; why they are not used is in docs/adr/0043-the-checker-reads-with-one-lexer.md.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

NAME, TEXT, NUMBER, SIGN = "name", "text", "number", "sign"


class Comments(Enum):
    """How the comments of a language begin."""

    HASH = "hash"
    SLASHES = "slashes"
    BOTH = "both"
    NONE = "none"


class Token(NamedTuple):
    """A word, text or sign, and its line."""

    kind: str
    #: Of a text what is between its quotes.
    text: str
    line: int
    #: Whether a text may hold values in braces.
    is_template: bool = False


_TEXTS = r"""
    |(?P<prefix>[rbfuRBFU]{1,2}(?=["']))?+(?:
        \"\"\"(?P<long>.*?)(?:\"\"\"|\Z)
        |'''(?P<other_long>.*?)(?:'''|\Z)
        |"(?P<double>(?:[^"\\\n]|\\.)*+)(?:"|(?=\n)|\\?\Z)
        |'(?P<single>(?:[^'\\\n]|\\.)*+)(?:'|(?=\n)|\\?\Z)
    )
    |`(?P<back>(?:[^`\\]|\\.)*+)(?:`|\\?\Z)
"""
_REST = r"""
    |(?P<name>[A-Za-z_$@][\w$]*+(?:-[a-z]\w*+(?=\s*:))?)
    |(?P<number>[0-9][0-9._]*+)
    |(?P<sign>=>|[=!<>]=+|\?\.|::|->|:=|\*\*|\.\.\.|[^\s\w])
"""
_HASH = r"\#[^\n]*+"
_SLASHES = r"//[^\n]*+|/\*.*?(?:\*/|\Z)"
_COMMENTS = {
    Comments.HASH: _HASH,
    Comments.SLASHES: _SLASHES,
    Comments.BOTH: rf"{_HASH}|{_SLASHES}",
    Comments.NONE: r"(?!)",
}
_LEXERS: Mapping[Comments, re.Pattern[str]] = {
    kind: re.compile(rf"(?P<skipped>\s++|{comment}){_TEXTS}{_REST}|.", re.VERBOSE | re.DOTALL)
    for kind, comment in _COMMENTS.items()
}
_TEXT_GROUPS = frozenset({"long", "other_long", "double", "single", "back"})
_WITH_BRACES = frozenset({"back", "long", "other_long"})


def tokens(text: str, comments: Comments) -> Iterator[Token]:
    """Yield the tokens of a program."""
    line, at = 1, 0
    for found in _LEXERS[comments].finditer(text):
        kind = found.lastgroup
        if kind in _TEXT_GROUPS:
            line += text.count("\n", at, found.start())
            at = found.start()
            is_template = kind in _WITH_BRACES or found["prefix"] is not None
            yield Token(TEXT, found[kind], line, is_template)
        elif kind is not None and kind not in {"skipped", "prefix"}:
            line += text.count("\n", at, found.start())
            at = found.start()
            yield Token(kind, found[0], line)
