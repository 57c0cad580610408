"""Label matchers as Alertmanager has them, such as `{service="web", host=~"db-.*"}`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2

from domain.core.errors import InvalidError

#: In bytes; a pattern whose program needs more is refused.
_MEMORY = 1_000_000
#: A name that both of Alertmanager's parsers take without quotes.
_PLAIN_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@lru_cache(maxsize=2_000)
def compiled(pattern: str) -> Any:
    """Return a pattern of RE2, or raise InvalidError with RE2's own reason.

    Use `fullmatch`: a pattern of a matcher is about the whole value.
    """
    options = re2.Options()
    options.max_mem = _MEMORY
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidError(f"is not a regular expression in RE2 syntax ({text})") from error


@lru_cache(maxsize=2_000)
def _wildcards(pattern: str) -> Any:
    return compiled("(?s)" + ".*".join(re2.escape(part) for part in pattern.split("*")))


def fits(pattern: str, value: str) -> bool:
    """Return whether a value is like a pattern in which each `*` stands for any characters."""
    if "*" not in pattern:
        return pattern == value
    return _wildcards(pattern).fullmatch(value) is not None


_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Operator(StrEnum):
    """How a matcher compares the value of a label with its own."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LIKE = "=~"
    NOT_LIKE = "!~"

    @property
    def is_regex(self) -> bool:
        """Whether the matcher's value is a regular expression."""
        return self in {Operator.LIKE, Operator.NOT_LIKE}


@dataclass(frozen=True, slots=True)
class Matcher:
    """One comparison of a label; `str` is its canonical form, which parses to an equal matcher."""

    name: str
    operator: Operator
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the label fits. A missing label has the value of an empty one."""
        found = labels.get(self.name, "")
        if self.operator.is_regex:
            is_match = compiled(self.value).fullmatch(found) is not None
            return is_match == (self.operator is Operator.LIKE)
        return (found == self.value) == (self.operator is Operator.EQUAL)

    def __str__(self) -> str:
        """Return `name="value"`; names that need it are quoted as well."""
        name = self.name if _PLAIN_NAME.fullmatch(self.name) else _quoted(self.name)
        return f"{name}{self.operator}{_quoted(self.value)}"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPED)}"'


def matches(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Return whether every matcher fits the labels; no matchers fit everything."""
    return all(matcher.matches(labels) for matcher in matchers)


def as_text(matchers: Iterable[Matcher]) -> str:
    """Return matchers in their canonical form, separated by commas and without braces."""
    return ", ".join(map(str, matchers))
