r"""Reads the classic syntax of matchers, the only one before Alertmanager 0.27.

A value may be enclosed in double quotes, and is everything up to the next comma if it is not. In
both, `\n`, `\"` and `\\` are escapes, and a backslash before other characters is itself.
"""

import re
from contextlib import suppress

from domain.alerts.matching.matchers import Matcher, Operator
from domain.alerts.matching.syntax_error import MatcherSyntaxError, check_pattern

_SPACE = " \t\n\r\f\v"
#: A comma inside of quotes separates nothing.
_PART = re.compile(r'(?:\\[^,]|"(?:\\.|[^"\\])*(?:"|\\?\Z)|[^,"\\]|\\(?=,|\Z))*', re.DOTALL)
_MATCHER = re.compile(
    r"\s*(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?P<operator>=~|!=|!~|=)\s*(?P<value>.*)",
    re.DOTALL | re.ASCII,
)
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_UNQUOTED = re.compile(r'(?:\\.|[^"\\])*\\?', re.DOTALL)
_ESCAPE = re.compile(r'\\([n"\\])')
_MEANINGS = {"n": "\n", '"': '"', "\\": "\\"}


def read_classic(text: str) -> tuple[Matcher, ...] | None:
    """Return the matchers of a text, or None if the syntax does not take it."""
    inner = text.strip(_SPACE).removeprefix("{").removesuffix("}")
    parts = _parts(inner)
    matchers = [_read_part(part) for part in parts]
    known = tuple(matcher for matcher in matchers if matcher is not None)
    return known if len(known) == len(parts) else None


def _parts(text: str) -> list[str]:
    """Return what lies between the commas; nothing need follow the last one."""
    parts, position = [], 0
    while position <= len(text):
        found = _PART.match(text, position)
        end = found.end() if found else position
        parts.append(text[position:end])
        position = end + 1
    return parts if parts[-1].strip() else parts[:-1]


def _read_part(text: str) -> Matcher | None:
    found = _MATCHER.fullmatch(text)
    value = _read_value(found["value"].rstrip(_SPACE)) if found else None
    if found is None or value is None:
        return None
    matcher = Matcher(found["name"], Operator(found["operator"]), value)
    with suppress(MatcherSyntaxError):
        check_pattern(matcher, 0)
        return matcher
    return None


def _read_value(text: str) -> str | None:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None and _UNQUOTED.fullmatch(text) is None:
        return None
    return _ESCAPE.sub(lambda escape: _MEANINGS[escape[1]], quoted[1] if quoted else text)
