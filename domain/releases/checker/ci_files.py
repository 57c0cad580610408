"""Reads CI files with the lines of their values, by PyYAML's events.

Events are what the parser meets one after the other. An alias is an event as well, and is not
replaced by what it stands for, so that no file gets larger than it is.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from domain.releases.changes import Change, Names, Where
from domain.releases.checker.findings import Found, UnreadableContentError, paced
from domain.releases.checker.shell import check_shell
from domain.releases.schedule import SCHEDULE

#: Of keys and lists. The scanner's time grows with the square of the depth.
_DEPTH = 100
#: In C where it was built with libyaml, as the wheels are.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OFF = frozenset({"false", "no", "off", "", "null", "~"})
_QUOTED = frozenset({"'", '"'})
_NOT_VALID = "The content is not valid YAML"


def _keywords() -> dict[tuple[str, ...], Change]:
    return {
        tuple(name.split(":")): change
        for change in SCHEDULE
        for match in change.matches
        if isinstance(match, Names) and match.where is Where.CI_KEYWORD
        for name in match.names
    }


_KEYWORDS = _keywords()


class _Place:
    """Where in the document the parser is: the keys from the top."""

    def __init__(self) -> None:
        self._stack: list[str | None] = []
        self._is_mapping: list[bool] = []
        self._expects_key: list[bool] = []

    @property
    def path(self) -> tuple[str, ...]:
        """Return the keys that lead here."""
        return tuple(each for each in self._stack if each is not None)

    def open(self, *, is_mapping: bool, line: int) -> None:
        """Enter a mapping or list; raise UnreadableContentError if it is too deep."""
        if len(self._stack) >= _DEPTH:
            raise UnreadableContentError("The YAML is nested too deeply", line=line)
        self._stack.append(None)
        self._is_mapping.append(is_mapping)
        self._expects_key.append(is_mapping)

    def close(self) -> None:
        """Leave it."""
        for each in (self._stack, self._is_mapping, self._expects_key):
            each.pop()
        self.value_ends()

    def takes_key(self, name: str) -> bool:
        """Take a scalar as key; return whether it is one."""
        if not self._expects_key or not self._expects_key[-1]:
            return False
        self._stack[-1] = name
        self._expects_key[-1] = False
        return True

    def value_ends(self) -> None:
        """Expect the next key."""
        if self._expects_key and self._is_mapping[-1]:
            self._expects_key[-1] = not self._expects_key[-1]


def check_ci_file(text: str) -> Iterator[Found]:
    """Yield what changes for a CI file; raise UnreadableContentError."""
    place = _Place()
    try:
        for event in paced(yaml.parse(text, Loader=_LOADER)):
            yield from _of_event(event, place, text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise UnreadableContentError(_NOT_VALID, line=line) from None


def _of_event(event: yaml.Event, place: _Place, text: str) -> Iterator[Found]:
    line = event.start_mark.line + 1 if event.start_mark else 1
    if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        place.open(is_mapping=isinstance(event, yaml.MappingStartEvent), line=line)
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        place.close()
    elif isinstance(event, yaml.AliasEvent):
        place.value_ends()
    elif isinstance(event, yaml.ScalarEvent):
        yield from _of_scalar(event, place, text, line)


def _of_scalar(event: Any, place: _Place, text: str, line: int) -> Iterator[Found]:
    if place.takes_key(event.value):
        yield from check_shell(event.value, line)
        return
    yield from _of_keyword(event.value, place.path, line)
    # Only the text itself has the lines of a value as they are in the file.
    raw = text[event.start_mark.index : event.end_mark.index]
    yield from check_shell(event.value if event.style in _QUOTED else _unmarked(raw), line)
    place.value_ends()


def _unmarked(raw: str) -> str:
    """Return a block without its `|` or `>`."""
    return raw if raw[:1] not in {"|", ">"} else " " + raw[1:].lstrip("+-0123456789")


def _of_keyword(value: str, path: tuple[str, ...], line: int) -> Iterator[Found]:
    for keyword, change in _KEYWORDS.items():
        if path[-len(keyword) :] == keyword and value.strip().lower() not in _OFF:
            yield Found(change, line, f"The keyword {':'.join(keyword)}")
