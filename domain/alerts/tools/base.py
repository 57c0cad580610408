r"""Base classes for known monitoring tools.

Keys and values are taken from the documentation of each tool. Paths are written with dots; a number
is an array index, and `\.` is a dot within a key.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import MappingRules, Operator, PayloadCondition, ValueJoin
from domain.alerts.parsing.payload_paths import find_value, has_path, parse_dotted_path
from domain.alerts.parsing.text_conversion import is_blank
from domain.core.labeled_enums import LabeledEnum

CRITICAL, HIGH, MEDIUM, LOW, INFO = (
    Severity.CRITICAL,
    Severity.HIGH,
    Severity.MEDIUM,
    Severity.LOW,
    Severity.INFO,
)
IS, IS_NOT, CONTAINS, CONTAINS_WORD, IS_MISSING = (
    Operator.IS,
    Operator.IS_NOT,
    Operator.CONTAINS,
    Operator.CONTAINS_WORD,
    Operator.IS_MISSING,
)


class ToolKind(LabeledEnum):
    """Categories of monitoring tools, by which web pages group the tools."""

    METRICS = "metrics", "Metrics"
    LOGS = "logs", "Logs"
    ERRORS = "errors", "Errors"
    UPTIME = "uptime", "Uptime"
    NETWORK = "network", "Servers and networks"
    CLOUD = "cloud", "Cloud providers"
    KUBERNETES = "kubernetes", "Kubernetes"
    DELIVERY = "delivery", "CI and deployments"
    INCIDENTS = "incidents", "Incident tools"
    OTHER = "other", "Other"


@dataclass(frozen=True, kw_only=True)
class MonitoringTool:
    """A monitoring tool, and the rules for recognizing its bodies."""

    name: str
    #: Paths that every body of the tool contains, in dot notation and separated by spaces.
    marks: str
    kind: ToolKind = ToolKind.OTHER
    #: A path and the beginning of the text at this path, for tools that cannot be identified by
    #: keys.
    beginning: tuple[str, str] | None = None
    #: True if the tool cannot send the key in an Authorization header.
    uses_key_in_url: bool = False
    #: Instruction for configuring the tool, as a sentence.
    hint: str = ""
    #: Name of the guide in docs/guides, or an empty string.
    guide: str = ""
    #: Values in the example message that cannot be derived from the marks and the mapping.
    example: Mapping[str, object] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Name of the tool in URLs."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def initials(self) -> str:
        """One or two initials of the name, which are shown instead of a logo."""
        return "".join(re.findall(r"\b[A-Z0-9]", self.name)[:2]) or self.name[0].upper()

    def recognizes(self, payload: Mapping[str, object]) -> bool:
        """Return whether a body comes from this tool."""
        if not all(has_path(payload, parse_dotted_path(mark)) for mark in self.marks.split()):
            return False
        if self.beginning is None:
            return True
        path, beginning = self.beginning
        return str(find_value(payload, parse_dotted_path(path))).startswith(beginning)

    @property
    def mapping(self) -> FieldMapping:
        """Mapping that is used to read the tool's bodies."""
        return NO_FIELD_MAPPING


#: Rule for a value: the path, the operator, and words separated by commas.
_PresetRule = tuple[str, Operator, str]


@dataclass(frozen=True, kw_only=True)
class MappedTool(MonitoringTool):
    """A tool whose messages are read with a mapping."""

    #: Paths for each field, by its name. Alternative paths are separated by spaces.
    fields: Mapping[str, str] = field(default_factory=dict)
    #: Paths of the values that are appended to the title and the fingerprint.
    joins: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Severity] = field(default_factory=dict)
    resolved: tuple[_PresetRule, ...] = ()
    dropped: tuple[_PresetRule, ...] = ()

    def recognizes(self, payload: Mapping[str, object]) -> bool:
        """Return whether a body comes from this tool and has the title that the mapping reads."""
        if not super().recognizes(payload):
            return False
        titles = self.fields.get(AlertField.TITLE, "").split()
        found = (find_value(payload, parse_dotted_path(path)) for path in titles)
        return not titles or not all(map(is_blank, found))

    @property
    def mapping(self) -> FieldMapping:
        """Mapping that is used to read the tool's bodies."""
        return FieldMapping(
            {
                AlertField(name): tuple(map(parse_dotted_path, paths.split()))
                for name, paths in self.fields.items()
            },
            MappingRules(
                severity_words=self.words,
                resolved_when=tuple(_build_conditions(self.resolved)),
                dropped_when=tuple(_build_conditions(self.dropped)),
                joins={
                    name: ValueJoin(tuple(map(parse_dotted_path, paths.split())))
                    for name, paths in self.joins.items()
                },
            ),
        )


def _build_conditions(rules: tuple[_PresetRule, ...]) -> Iterator[PayloadCondition]:
    for path, operator, words in rules:
        yield PayloadCondition(
            parse_dotted_path(path), operator, tuple(word.strip() for word in words.split(","))
        )
