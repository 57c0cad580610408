"""Which tags of a repository a rule removes: by name, by age, and all but the newest."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import re2

from domain.errors import InvalidError
from domain.registry.repositories import TagView

#: No rule removes it, as clients of the API expect.
_KEPT = "latest"
LONGEST_REGEX = 255
#: In bytes; RE2 takes linear time in any case.
_REGEX_MEMORY = 1_000_000
_AGE = re.compile(r"(\d{1,6})\s*(h|hours?|d|days?|w|weeks?|months?)")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24}


@dataclass(frozen=True, kw_only=True)
class RemovalRule:
    """Tags that match, without those to keep, the newest and those that are too young."""

    delete: str
    keep: str = ""
    keep_newest: int = 0
    older_than: timedelta = timedelta(0)

    def check(self) -> None:
        """Raise InvalidError for a regular expression that is none."""
        for name, pattern in (("name_regex_delete", self.delete), ("name_regex_keep", self.keep)):
            _compiled(pattern, name)

    def as_json(self) -> dict[str, str | int]:
        """Return the rule as it is stored."""
        return {
            "delete": self.delete,
            "keep": self.keep,
            "keep_newest": self.keep_newest,
            "older_than_seconds": int(self.older_than.total_seconds()),
        }

    def removed(self, tags: Iterable[TagView], *, now: datetime) -> tuple[TagView, ...]:
        """Return the tags that the rule removes."""
        delete, keep = _compiled(self.delete, "name_regex_delete"), None
        if self.keep:
            keep = _compiled(self.keep, "name_regex_keep")
        matching = [
            tag
            for tag in tags
            if tag.name != _KEPT
            and delete.fullmatch(tag.name)
            and not (keep and keep.fullmatch(tag.name))
        ]
        newest_first = sorted(matching, key=lambda tag: (tag.pushed_at, tag.name), reverse=True)
        limit = now - self.older_than
        return tuple(tag for tag in newest_first[self.keep_newest :] if tag.pushed_at <= limit)


def rule_of(stored: dict[str, str | int]) -> RemovalRule:
    """Return a stored rule."""
    return RemovalRule(
        delete=str(stored["delete"]),
        keep=str(stored["keep"]),
        keep_newest=int(stored["keep_newest"]),
        older_than=timedelta(seconds=int(stored["older_than_seconds"])),
    )


def parse_age(text: str) -> timedelta:
    """Return the age of `1h`, `7d`, `2 weeks` or `1month` (30 days); raise InvalidError."""
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        message = "older_than must be an age like 12h, 7d, 2w or 1month"
        raise InvalidError(message, field="older_than")
    return timedelta(hours=int(found[1]) * _HOURS[found[2][0]])


def _compiled(pattern: str, name: str) -> Any:
    options = re2.Options()
    options.max_mem = _REGEX_MEMORY
    options.never_capture = True
    options.log_errors = False
    if len(pattern) > LONGEST_REGEX:
        message = f"{name} can have at most {LONGEST_REGEX} characters"
        raise InvalidError(message, field=name)
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        message = f"{name} must be a regular expression in RE2 syntax"
        raise InvalidError(message, field=name) from error
