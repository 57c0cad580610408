"""Label matchers in Alertmanager's syntax, such as `{service="web", host=~"db-.*"}`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2

from domain.core.errors import InvalidError

#: Memory limit for a compiled pattern, in bytes. Patterns that exceed it are rejected.
_MAX_PATTERN_BYTES = 1_000_000
#: Names that both parsers of Alertmanager accept without quotes.
_PLAIN_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@lru_cache(maxsize=2_000)
def compile_pattern(pattern: str) -> Any:
    """Compile a regular expression in RE2 syntax.

    Call `fullmatch` on the result, since a matcher applies to the whole value. Raise InvalidError
    with RE2's reason if the expression is not valid.
    """
    options = re2.Options()
    options.max_mem = _MAX_PATTERN_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidError(f"is not a regular expression in RE2 syntax ({text})") from error


@lru_cache(maxsize=2_000)
def _compile_wildcards(pattern: str) -> Any:
    return compile_pattern("(?s)" + ".*".join(re2.escape(part) for part in pattern.split("*")))


def matches_wildcards(pattern: str, value: str) -> bool:
    """Return whether a value matches a pattern, in which each `*` matches any characters."""
    if "*" not in pattern:
        return pattern == value
    return _compile_wildcards(pattern).fullmatch(value) is not None


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class MatcherOperator(StrEnum):
    """An operator that compares a label's value with a matcher's value."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LIKE = "=~"
    NOT_LIKE = "!~"

    @property
    def is_regex(self) -> bool:
        """True if the matcher's value is a regular expression."""
        return self in {MatcherOperator.LIKE, MatcherOperator.NOT_LIKE}


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label. `str` returns its canonical form, which can be parsed again."""

    name: str
    operator: MatcherOperator
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the label matches. A missing label is treated like an empty label."""
        found = labels.get(self.name, "")
        if self.operator.is_regex:
            is_match = compile_pattern(self.value).fullmatch(found) is not None
            return is_match == (self.operator is MatcherOperator.LIKE)
        return (found == self.value) == (self.operator is MatcherOperator.EQUAL)

    def __str__(self) -> str:
        """Return `name="value"`, with quotes around the name if it needs them."""
        name = self.name if _PLAIN_NAME.fullmatch(self.name) else _quote_matcher_value(self.name)
        return f"{name}{self.operator}{_quote_matcher_value(self.value)}"


def _quote_matcher_value(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def matches_all_labels(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Return whether all matchers match the labels. An empty list matches any labels."""
    return all(matcher.matches(labels) for matcher in matchers)


def format_matchers(matchers: Iterable[Matcher]) -> str:
    """Return matchers in canonical form, separated by commas and without braces."""
    return ", ".join(map(str, matchers))
