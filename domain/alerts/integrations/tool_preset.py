"""What is known of the bodies of a monitoring tool: by which keys to know them, and their mapping.

Paths are written with dots; a number is a position.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.alerts.integration_type import IntegrationType
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import Condition, Join, MappingRules, Operator
from domain.alerts.reading.paths import Path, inner_object

#: The path of a rule, its operator, and words separated by commas.
_Rule = tuple[str, Operator, str]


def path_of(text: str) -> Path:
    """Return the path that a text with dots stands for."""
    return tuple(int(part) if part.isdecimal() else part for part in text.split("."))


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A tool, how its bodies are known, and how they are read."""

    tool: str
    #: The keys that its bodies have, whatever their value.
    marks: str
    #: A key whose text begins like this, for bodies that keys alone do not tell apart.
    beginning: tuple[str, str] | None = None
    type: IntegrationType = IntegrationType.HTTP
    #: By the name of the field; two paths are separated by a space.
    fields: Mapping[str, str] = field(default_factory=dict)
    #: What is put behind title and fingerprint.
    joins: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Severity] = field(default_factory=dict)
    resolved: tuple[_Rule, ...] = ()
    dropped: tuple[_Rule, ...] = ()
    #: What to set in the tool, in a sentence.
    hint: str = ""

    def knows(self, payload: Mapping[str, object]) -> bool:
        """Return whether a body is one of the tool's."""
        if not all(has_path(payload, path_of(mark)) for mark in self.marks.split()):
            return False
        if self.beginning is None:
            return True
        key, beginning = self.beginning
        return str(payload.get(key, "")).startswith(beginning)

    @property
    def mapping(self) -> FieldMapping:
        """How its bodies are read."""
        return FieldMapping(
            {
                AlertField(name): tuple(map(path_of, paths.split()))
                for name, paths in self.fields.items()
            },
            MappingRules(
                severity_words=self.words,
                resolved_when=tuple(_conditions(self.resolved)),
                dropped_when=tuple(_conditions(self.dropped)),
                joins={
                    name: Join(tuple(map(path_of, paths.split())))
                    for name, paths in self.joins.items()
                },
            ),
        )


def _conditions(rules: tuple[_Rule, ...]) -> Iterator[Condition]:
    for path, operator, words in rules:
        yield Condition(path_of(path), operator, tuple(word.strip() for word in words.split(",")))


def has_path(payload: object, path: Path) -> bool:
    """Return whether a payload has a key, even if its value is null."""
    value = payload
    for segment in path:
        if isinstance(value, str):
            value = inner_object(value)
        match value, segment:
            case dict(), str() if segment in value:
                value = value[segment]
            case list(), int() if segment < len(value):
                value = value[segment]
            case _:
                return False
    return True
