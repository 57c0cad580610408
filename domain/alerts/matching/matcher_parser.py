r"""Parses label matchers in the same way as the default mode of Alertmanager 0.27 and later.

The documentation of Alertmanager (configuration, “Label matchers”) describes two syntaxes. A string
is parsed with the classic syntax if possible, and otherwise with the UTF-8 syntax. A string that
any version of Alertmanager accepts has the same meaning here.

Before 0.27, Alertmanager supported only the classic syntax. In this syntax, a value may be enclosed
in double quotes; an unquoted value extends to the next comma. In both cases, `\n`, `\"` and `\\`
are escapes, and any other backslash is literal. In the UTF-8 syntax, names and values are literals
without reserved characters, or quoted strings with Go's escape sequences.
"""

import re
from contextlib import suppress
from functools import lru_cache

from domain.alerts.matching.matcher_syntax import Matcher, MatcherOperator, compile_pattern
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.errors import InvalidError


class MatcherSyntaxError(Exception):
    """A syntax error at the character index `position`. `reason` has no full stop."""

    def __init__(self, position: int, reason: str) -> None:
        """Store the position of the syntax error in the text, and its reason."""
        super().__init__(reason)
        self.position = position
        self.reason = reason


def check_matcher_pattern(matcher: Matcher, position: int) -> None:
    """Check that the regular expression of a matcher is valid in RE2 syntax.

    Raise MatcherSyntaxError if it is not.
    """
    if matcher.operator.is_regex:
        try:
            compile_pattern(matcher.value)
        except InvalidError as error:
            raise MatcherSyntaxError(position, f"the value of {matcher.name} {error}") from error


_SPACE = " \t\n\r\f\v"
#: Pattern of the part between two commas. Commas within quotes are not separators.
_CLASSIC_PART = re.compile(r'(?:\\[^,]|"(?:\\.|[^"\\])*(?:"|\\?\Z)|[^,"\\]|\\(?=,|\Z))*', re.DOTALL)
_CLASSIC_MATCHER = re.compile(
    r"\s*(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?P<operator>=~|!=|!~|=)\s*(?P<value>.*)",
    re.DOTALL | re.ASCII,
)
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_UNQUOTED = re.compile(r'(?:\\.|[^"\\])*\\?', re.DOTALL)
_ESCAPE = re.compile(r'\\([n"\\])')
_ESCAPE_MEANINGS = {"n": "\n", '"': '"', "\\": "\\"}


def parse_classic_matchers(text: str) -> tuple[Matcher, ...] | None:
    """Return the matchers in a string, or None if it is not valid in the classic syntax."""
    inner = text.strip(_SPACE).removeprefix("{").removesuffix("}")
    parts = _split_at_commas(inner)
    matchers = [_parse_classic_matcher(part) for part in parts]
    known = tuple(matcher for matcher in matchers if matcher is not None)
    return known if len(known) == len(parts) else None


def _split_at_commas(text: str) -> list[str]:
    """Split a string at commas, ignoring an empty part after the last comma."""
    parts, position = [], 0
    while position <= len(text):
        found = _CLASSIC_PART.match(text, position)
        end = found.end() if found else position
        parts.append(text[position:end])
        position = end + 1
    return parts if parts[-1].strip() else parts[:-1]


def _parse_classic_matcher(text: str) -> Matcher | None:
    found = _CLASSIC_MATCHER.fullmatch(text)
    value = _parse_value(found["value"].rstrip(_SPACE)) if found else None
    if found is None or value is None:
        return None
    matcher = Matcher(found["name"], MatcherOperator(found["operator"]), value)
    with suppress(MatcherSyntaxError):
        check_matcher_pattern(matcher, 0)
        return matcher
    return None


def _parse_value(text: str) -> str | None:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None and _UNQUOTED.fullmatch(text) is None:
        return None
    return _ESCAPE.sub(lambda escape: _ESCAPE_MEANINGS[escape[1]], quoted[1] if quoted else text)


_LITERAL = re.compile(r"""[^\s{}!=~,\\"'`]+""")
_STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"', re.DOTALL)
_OPERATOR = re.compile("=~|!=|!~|=")
_UTF8_SPACE = re.compile(r"\s*")
_UTF8_ESCAPE = re.compile(
    rb"""\\(?:(?P<mark>[abfnrtv\\"])|x(?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"""
    rb"""|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<unknown>))"""
)
_UTF8_ESCAPE_BYTES = dict(zip(b'abfnrtv\\"', b'\a\b\f\n\r\t\v\\"', strict=True))
_MAX_CODE_POINT = 0x10FFFF


class _Utf8MatcherParser:
    """A parser for the UTF-8 syntax that reads a string from start to end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = _skip_spaces(text, 0)

    def skip_character(self, mark: str) -> bool:
        """Skip a character and the following spaces, and return whether the character was found."""
        if not self._text.startswith(mark, self.position):
            return False
        self.position = _skip_spaces(self._text, self.position + len(mark))
        return True

    def is_at_closing_brace(self, close: str) -> bool:
        """Return whether the next character is the closing brace.

        If `close` is empty, return whether the string ends here.
        """
        rest = self._text[self.position : self.position + 1]
        return rest == close

    def finish(self, close: str) -> None:
        """Skip the closing brace, and raise an error unless the string ends there."""
        if close and not self.skip_character(close):
            raise self.build_error("a comma or a closing brace")
        if self.position < len(self._text):
            raise self.build_error("the end of the text" if close else "a comma")

    def parse_matcher(self) -> Matcher:
        begin = self.position
        name = self._parse_word("the name of a label")
        if not name:
            raise MatcherSyntaxError(begin, "the name of a label is empty")
        operator = self._parse_operator()
        at_value = self.position
        matcher = Matcher(name, operator, self._parse_word("a value"))
        check_matcher_pattern(matcher, at_value)
        return matcher

    def build_error(self, expected: str) -> MatcherSyntaxError:
        rest = self._text[self.position :]
        found = f'"{rest[0]}"' if rest else "the end of the text"
        return MatcherSyntaxError(self.position, f"expected {expected}, found {found}")

    def _parse_word(self, what: str) -> str:
        if self._text.startswith('"', self.position):
            return self._parse_string()
        found = _LITERAL.match(self._text, self.position)
        if found is None:
            raise self.build_error(what)
        self.position = _skip_spaces(self._text, found.end())
        return found[0]

    def _parse_string(self) -> str:
        found = _STRING.match(self._text, self.position)
        if found is None:
            raise MatcherSyntaxError(self.position, "this double quote is not closed")
        begin = self.position
        self.position = _skip_spaces(self._text, found.end())
        return _unescape_string(found[1], begin)

    def _parse_operator(self) -> MatcherOperator:
        found = _OPERATOR.match(self._text, self.position)
        if found is None:
            raise self.build_error("one of = != =~ !~")
        self.position = _skip_spaces(self._text, found.end())
        return MatcherOperator(found[0])


def _skip_spaces(text: str, position: int) -> int:
    found = _UTF8_SPACE.match(text, position)
    return found.end() if found else position


def _unescape_string(text: str, begin: int) -> str:
    def decode_escape(found: re.Match[bytes]) -> bytes:
        if found["mark"]:
            return bytes([_UTF8_ESCAPE_BYTES[found["mark"][0]]])
        if found["byte"] or found["octal"]:
            return bytes([int(found["byte"] or found["octal"], 16 if found["byte"] else 8)])
        code = int(found["short"] or found["long"] or b"ffffffff", 16)
        if code > _MAX_CODE_POINT:
            raise MatcherSyntaxError(begin, "this string contains an unknown escape sequence")
        return chr(code).encode("utf-8", "surrogatepass")

    try:
        return _UTF8_ESCAPE.sub(decode_escape, text.encode()).decode()
    except UnicodeDecodeError as error:
        raise MatcherSyntaxError(begin, "this string is not UTF-8") from error


def parse_utf8_matchers(text: str) -> tuple[Matcher, ...]:
    """Return the matchers in a string in the UTF-8 syntax.

    Raise MatcherSyntaxError if the string is not valid.
    """
    reader = _Utf8MatcherParser(text)
    close = "}" if reader.skip_character("{") else ""
    matchers = []
    while not reader.is_at_closing_brace(close):
        matchers.append(reader.parse_matcher())
        if not reader.skip_character(","):
            break
    reader.finish(close)
    return tuple(matchers)


#: Maximum length of a string of matchers, in characters.
MAX_MATCHERS_TEXT_LENGTH = 4_000
MAX_MATCHERS = 50


def parse_matchers(text: str, *, field: str = "matchers") -> tuple[Matcher, ...]:
    """Parse the matchers in a string.

    The string may be enclosed in braces. An empty string and `{}` contain no matchers. `field` is
    the name of the parameter or form field in errors. Raise InvalidError if the string is not
    valid. The message of a syntax error contains the position and the reason.
    """
    _check_size(text, field)
    try:
        found = _parse_text(text)
    except MatcherSyntaxError as error:
        message = f"Character {error.position + 1}: {error.reason}."
        raise InvalidError(message, field=field) from error
    if len(found) > MAX_MATCHERS:
        raise InvalidError(f"Use at most {MAX_MATCHERS} matchers.", field=field)
    return found


def _check_size(text: str, field: str) -> None:
    if len(text) > MAX_MATCHERS_TEXT_LENGTH:
        raise InvalidError(
            f"Matchers can have at most {MAX_MATCHERS_TEXT_LENGTH:,} characters.", field=field
        )
    if replace_unstorable_characters(text) != text:
        message = "Matchers cannot contain NUL characters or lone surrogates."
        raise InvalidError(message, field=field)


@lru_cache(maxsize=2_000)
def _parse_text(text: str) -> tuple[Matcher, ...]:
    found = parse_classic_matchers(text)
    matchers = parse_utf8_matchers(text) if found is None else found
    if any("\x00" in matcher.value + matcher.name for matcher in matchers):
        raise MatcherSyntaxError(0, "a name or value contains a NUL character")
    return matchers
