"""Parses label matchers as Alertmanager 0.27 and later do in their default mode.

Its documentation (configuration, “Label matchers”) has two syntaxes. What the classic one takes is
read by it, else the UTF-8 one reads it. So text that either version of Alertmanager takes means
the same here.
"""

from functools import lru_cache

from domain.alerts.matching.classic_syntax import read_classic
from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.syntax_error import MatcherSyntaxError
from domain.alerts.matching.utf8_syntax import read_utf8
from domain.alerts.reading.text import storable
from domain.errors import InvalidError

#: In characters.
LONGEST_TEXT = 4_000
MOST_MATCHERS = 50


def parse_matchers(text: str, *, field: str = "matchers") -> tuple[Matcher, ...]:
    """Return the matchers of a text; raise InvalidError that says where it is wrong, and why.

    The text may have braces around it. An empty text and `{}` have no matchers. `field` is the
    name of the parameter or form field that the text came from.
    """
    _check_size(text, field)
    try:
        found = _parse(text)
    except MatcherSyntaxError as error:
        message = f"Character {error.position + 1}: {error.reason}."
        raise InvalidError(message, field=field) from error
    if len(found) > MOST_MATCHERS:
        message = f"Use at most {MOST_MATCHERS} matchers."
        raise InvalidError(message, field=field)
    return found


def _check_size(text: str, field: str) -> None:
    if len(text) > LONGEST_TEXT:
        message = f"Matchers can have at most {LONGEST_TEXT:,} characters."
        raise InvalidError(message, field=field)
    if storable(text) != text:
        message = "Matchers cannot contain NUL characters or lone surrogates."
        raise InvalidError(message, field=field)


@lru_cache(maxsize=2_000)
def _parse(text: str) -> tuple[Matcher, ...]:
    found = read_classic(text)
    matchers = read_utf8(text) if found is None else found
    if any("\x00" in matcher.value + matcher.name for matcher in matchers):
        raise MatcherSyntaxError(0, "a name or value has the character NUL")
    return matchers
