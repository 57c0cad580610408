"""Reads the UTF-8 syntax of matchers, which Alertmanager has had since 0.27.

Names and values are literals without reserved characters, or strings in double quotes with the
escapes of Go's string literals.
"""

import re

from domain.alerts.matching.matchers import Matcher, Operator
from domain.alerts.matching.syntax_error import MatcherSyntaxError, check_pattern

_LITERAL = re.compile(r"""[^\s{}!=~,\\"'`]+""")
_STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"', re.DOTALL)
_OPERATOR = re.compile("=~|!=|!~|=")
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(
    rb"""\\(?:(?P<mark>[abfnrtv\\"])|x(?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"""
    rb"""|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<unknown>))"""
)
_MARKS = dict(zip(b'abfnrtv\\"', b'\a\b\f\n\r\t\v\\"', strict=True))
_LARGEST_CODE_POINT = 0x10FFFF


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = _after_space(text, 0)

    def take(self, mark: str) -> bool:
        """Go beyond one character and the space after it, if it is the next one."""
        if not self._text.startswith(mark, self.position):
            return False
        self.position = _after_space(self._text, self.position + len(mark))
        return True

    def is_before(self, close: str) -> bool:
        """Return whether the closing brace is next, or without one the end of the text."""
        rest = self._text[self.position : self.position + 1]
        return rest == close

    def finish(self, close: str) -> None:
        """Go beyond the closing brace, and raise an error if that is not the end of the text."""
        if close and not self.take(close):
            raise self.error("a comma or a closing brace")
        if self.position < len(self._text):
            raise self.error("the end of the text" if close else "a comma")

    def matcher(self) -> Matcher:
        begin = self.position
        name = self._word("the name of a label")
        if not name:
            raise MatcherSyntaxError(begin, "the name of a label is empty")
        operator = self._operator()
        at_value = self.position
        matcher = Matcher(name, operator, self._word("a value"))
        check_pattern(matcher, at_value)
        return matcher

    def error(self, expected: str) -> MatcherSyntaxError:
        rest = self._text[self.position :]
        found = f"“{rest[0]}”" if rest else "the end of the text"
        return MatcherSyntaxError(self.position, f"expected {expected}, found {found}")

    def _word(self, what: str) -> str:
        if self._text.startswith('"', self.position):
            return self._string()
        found = _LITERAL.match(self._text, self.position)
        if found is None:
            raise self.error(what)
        self.position = _after_space(self._text, found.end())
        return found[0]

    def _string(self) -> str:
        found = _STRING.match(self._text, self.position)
        if found is None:
            raise MatcherSyntaxError(self.position, "this double quote has no closing one")
        begin = self.position
        self.position = _after_space(self._text, found.end())
        return _unescaped(found[1], begin)

    def _operator(self) -> Operator:
        found = _OPERATOR.match(self._text, self.position)
        if found is None:
            raise self.error("one of = != =~ !~")
        self.position = _after_space(self._text, found.end())
        return Operator(found[0])


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _unescaped(text: str, begin: int) -> str:
    def meaning(found: re.Match[bytes]) -> bytes:
        if found["mark"]:
            return bytes([_MARKS[found["mark"][0]]])
        if found["byte"] or found["octal"]:
            return bytes([int(found["byte"] or found["octal"], 16 if found["byte"] else 8)])
        code = int(found["short"] or found["long"] or b"ffffffff", 16)
        if code > _LARGEST_CODE_POINT:
            raise MatcherSyntaxError(begin, "this string has a backslash before an unknown escape")
        return chr(code).encode("utf-8", "surrogatepass")

    try:
        return _ESCAPE.sub(meaning, text.encode()).decode()
    except UnicodeDecodeError as error:
        raise MatcherSyntaxError(begin, "this string is not UTF-8") from error


def read_utf8(text: str) -> tuple[Matcher, ...]:
    """Return the matchers of a text, or raise MatcherSyntaxError."""
    reader = _Reader(text)
    close = "}" if reader.take("{") else ""
    matchers = []
    while not reader.is_before(close):
        matchers.append(reader.matcher())
        if not reader.take(","):
            break
    reader.finish(close)
    return tuple(matchers)
