"""Custom mapping: which key of a sender's payload feeds which field of an alert.

A path leads from the top of a payload to one value. It is kept as an array of keys and positions,
so that a key may have dots in it; people see it written like `labels["app.kind"][0]`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from domain.alerts.reading.body import LongNumber
from domain.alerts.reading.text import excerpt, is_blank
from domain.errors import InvalidError

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
#: A sample may be large; what a person chooses from may not.
_MOST_SAMPLE_VALUES = 500
_DEEPEST_PATH = 100
_MOST_PATHS = 2


class Target(StrEnum):
    """A field of an alert that a sender's key can feed, by the name it has in our own format."""

    TITLE = "title"
    DESCRIPTION = "description"
    START_TIME = "start_time"
    END_TIME = "end_time"
    SERVICE = "service"
    MONITORING_TOOL = "monitoring_tool"
    HOSTS = "hosts"
    SEVERITY = "severity"
    FINGERPRINT = "fingerprint"
    ENVIRONMENT = "platform_environment_name"
    RUNBOOK = "runbook"

    #: That of its text, and no other: so a payload can be asked for a field itself.
    __hash__ = str.__hash__


#: They change from one report of an alert to the next.
VOLATILE = (Target.START_TIME, Target.END_TIME, Target.HOSTS)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """For each mapped field its path and, if there is one, the path to fall back to."""

    paths: Mapping[Target, tuple[Path, ...]] = field(default_factory=dict)
    #: In words, where each field comes from. Made once: every alert is read with them.
    sources: Mapping[Target, str] = field(init=False, repr=False, compare=False)
    #: In words, what does not belong to the steady part of a payload.
    volatile: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find the words."""
        sources = {target: self._source(target) for target in Target}
        object.__setattr__(self, "sources", sources)
        object.__setattr__(self, "volatile", ", ".join(sources[target] for target in VOLATILE))

    def _source(self, target: Target) -> str:
        if target not in self.paths:
            return target.value
        return " or else ".join(map(shown, self.paths[target]))

    def fields(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a payload with what feeds each field in the place of that field's own name.

        A mapped field is fed by its paths alone: a sender's own `end_time` may mean something
        else. All others are fed by the key of their own name.
        """
        if not self.paths:
            return payload
        return {**payload, **{target: self._value(payload, target) for target in self.paths}}

    def _value(self, payload: Mapping[str, Any], target: Target) -> Any:
        found = (resolve(payload, path) for path in self.paths[target])
        return next((value for value in found if not is_blank(value)), None)

    def steady_part(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the payload without what changes from one report to the next."""
        steady: Any = {name: payload[name] for name in payload if name not in VOLATILE}
        for target in VOLATILE:
            for path in self.paths.get(target, ()):
                steady = _without(steady, path)
        rest: Mapping[str, Any] = steady
        return rest


#: Every field is fed by the key of its own name.
UNMAPPED = FieldMapping()


def resolve(payload: Any, path: Path) -> Any:
    """Return the value at the end of a path, or None if the path leads nowhere."""
    value = payload
    for step in path:
        match value, step:
            case dict(), str():
                value = value.get(step)
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return None
    return value


def _without(value: Any, path: Path) -> Any:
    step, *rest = path
    match value, step:
        case dict(), str() if step in value:
            changed = {name: value[name] for name in value if name != step}
            return {**changed, step: _without(value[step], tuple(rest))} if rest else changed
        case list(), int() if step < len(value):
            # The place stays, so that what follows keeps its number.
            here = _without(value[step], tuple(rest)) if rest else None
            return [*value[:step], here, *value[step + 1 :]]
    return value


def shown(path: Path) -> str:
    """Write a path for people."""
    text = ""
    for step in path:
        if isinstance(step, str) and _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def read_path(text: str) -> Path:
    """Read a path as `written` writes it; raise InvalidError if it is none."""
    try:
        steps = json.loads(text)
    except (ValueError, RecursionError):
        steps = None
    if not (isinstance(steps, list) and 0 < len(steps) <= _DEEPEST_PATH):
        raise InvalidError("Choose a field of the sample.")
    if not all(_is_step(step) for step in steps):
        raise InvalidError("Choose a field of the sample.")
    return tuple(steps)


def _is_step(step: Any) -> bool:
    return isinstance(step, str) or (type(step) is int and step >= 0)


def written(path: Path) -> str:
    """Write a path as it is kept and as forms carry it: a JSON array."""
    return json.dumps(list(path), ensure_ascii=False)


def read_mapping(stored: Any) -> FieldMapping:
    """Read a mapping as `stored_form` made it; raise InvalidError if it is none."""
    if not isinstance(stored, dict):
        raise InvalidError("A mapping names the path of each field.")
    paths: dict[Target, tuple[Path, ...]] = {}
    for name, given in stored.items():
        target = _target(name)
        if not (isinstance(given, list) and 0 < len(given) <= _MOST_PATHS):
            raise InvalidError("A field has one path, and one to fall back to.", field=name)
        paths[target] = tuple(read_path(json.dumps(path)) for path in given)
    return FieldMapping(paths)


def kept_mapping(stored: Any) -> FieldMapping:
    """Return the mapping that an integration keeps.

    It was checked when it was saved. One that a newer release saved and this one cannot read must
    not cost an alert: fields are then fed by the keys of their own names.
    """
    if not stored:
        return UNMAPPED
    try:
        return read_mapping(stored)
    except InvalidError:
        return UNMAPPED


@lru_cache(maxsize=1024)
def written_mapping(text: str | None) -> FieldMapping:
    """Return the mapping in a JSON text, as `kept_mapping` does; each text is read once."""
    return kept_mapping(json.loads(text)) if text else UNMAPPED


def _target(name: str) -> Target:
    try:
        return Target(name)
    except ValueError as error:
        raise InvalidError(f"{excerpt(name)} is no field of an alert.") from error


def stored_form(mapping: FieldMapping) -> dict[str, list[list[str | int]]]:
    """Return a mapping as JSON keeps it."""
    return {
        target.value: [list(path) for path in mapping.paths[target]] for target in mapping.paths
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleValue:
    """One value of a sample that a field can be fed from."""

    path: Path
    #: string, number, boolean, null or array.
    kind: str
    #: How the value begins, in quotes.
    example: str

    @property
    def label(self) -> str:
        """The path as people read it."""
        return shown(self.path)

    @property
    def written(self) -> str:
        """The path as a form carries it."""
        return written(self.path)


def values_of(sample: Mapping[str, Any]) -> tuple[SampleValue, ...]:
    """Return every value of a sample that a field could be fed from, in the sample's order.

    Of a sample with thousands of values the first 500 are offered.
    """
    found: list[SampleValue] = []
    for path, value in _walk((), sample):
        if len(found) == _MOST_SAMPLE_VALUES:
            break
        found.append(SampleValue(path=path, kind=kind_of(value), example=excerpt(value)))
    return tuple(found)


def _walk(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    children: Sequence[tuple[str | int, Any]] = ()
    match value:
        case dict():
            children = tuple(value.items())
        case list():
            children = tuple(enumerate(value))
    if path and not isinstance(value, dict):
        yield path, value
    for step, child in children:
        yield from _walk((*path, step), child)


_KINDS: Mapping[type, str] = {
    str: "string",
    int: "number",
    float: "number",
    LongNumber: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


def kind_of(value: Any) -> str:
    """Return the type of a JSON value, by the name that JSON has for it."""
    return _KINDS[type(value)]
