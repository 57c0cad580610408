"""Compiles regular expressions of users with RE2, whose matching takes linear time."""

from functools import lru_cache
from typing import Any

import re2

from domain.errors import InvalidError

#: In bytes; a pattern whose program needs more is refused.
_MEMORY = 1_000_000


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
        message = f"is not a regular expression in RE2 syntax ({text})"
        raise InvalidError(message) from error


@lru_cache(maxsize=2_000)
def _wildcards(pattern: str) -> Any:
    return compiled("(?s)" + ".*".join(re2.escape(part) for part in pattern.split("*")))


def fits(pattern: str, value: str) -> bool:
    """Return whether a value is like a pattern in which each `*` stands for any characters."""
    if "*" not in pattern:
        return pattern == value
    return _wildcards(pattern).fullmatch(value) is not None
