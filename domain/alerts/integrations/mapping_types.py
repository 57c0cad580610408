"""Resources and request bodies for mappings: samples, paths, rules and previews."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.alerts.integrations.types import IntegrationTypeName
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField
from domain.alerts.reading.mapping_rules import (
    MOST_JOINED,
    MappingRules,
    Operator,
    read_rules,
    rules_value,
)
from domain.core.types.base import Body, Resource, Text, Time, one_of

_DEEPEST = 100
_NEVER_RESOLVES = (
    "Reason why alerts that are read with this mapping never resolve. Null if they can."
)
_VALUES = "Values of the sample that fields can be mapped to."
_ALERT = "The alert that the sample would open; null if a rule drops it."

#: Path of keys and array indexes from the top of a payload to a value.
Path = Annotated[
    tuple[str | Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=_DEEPEST)
]
_Paths = Annotated[tuple[Path, ...], Field(min_length=1, max_length=2)]


def _as_text(value: Any) -> Any:
    """Return an object or an array as JSON text, and any other value unchanged."""
    if not isinstance(value, dict | list):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError as error:
        raise ValueError("is nested too deep for JSON in JSON: give it as a text") from error


#: JSON as a text or as part of the body itself. A text is kept unchanged. Otherwise, numbers beyond
#: 64 bits are rounded, and the last value of a duplicate name is used.
JsonText = Annotated[
    str,
    BeforeValidator(_as_text),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]}),
]


class MappingCondition(BaseModel):
    """A rule that compares the value at a path with words, ignoring case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    operator: Operator = Operator.IS
    words: Annotated[tuple[Text, ...], Field(min_length=1)] = Field(
        description="One of them is enough; of `is_not`, it may be none of them."
    )


class MappingJoin(BaseModel):
    """A value that is appended to a field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: Annotated[tuple[Path, ...], Field(min_length=1, max_length=MOST_JOINED)]
    separator: Text = ": "


class MappingRulesBody(BaseModel):
    """The rules of a mapping."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    severity_words: dict[Text, Severity] = Field(
        default={}, description="The severity that each word of the sender stands for."
    )
    resolved_when: tuple[MappingCondition, ...] = Field(
        default=(), description="An alert is over if one of these matches."
    )
    dropped_when: tuple[MappingCondition, ...] = Field(
        default=(), description="An item that one of these matches is dropped and counted."
    )
    joins: dict[Literal["title", "fingerprint"], MappingJoin] = Field(
        default={}, description="Values that are appended to a field."
    )

    @property
    def rules(self) -> MappingRules:
        """Rules with validated values.

        Raise InvalidError, which describes the problem.
        """
        return read_rules(self.model_dump(mode="json"))


_Rules = Annotated[MappingRulesBody, BeforeValidator(rules_value)]


class AlertMappingBody(Body):
    """A sample payload, and the paths from which the fields of an alert are read."""

    sample: JsonText = Field(description="One alert as the sender posts it; at most 64 KiB.")
    mapping: dict[AlertField, _Paths] = Field(
        default={},
        description="The path of each mapped field, and one to fall back to. Other fields are "
        "read from the key of their own name.",
    )
    rules: MappingRulesBody | None = Field(
        default=None,
        description="Rules for values. If omitted, the severity words are kept and all other "
        "rules are removed.",
    )


class SampleField(Resource):
    """A value of the sample that a field can be mapped to."""

    path: Path
    label: str = Field(description="The path as pages show it.")
    type: Annotated[str, one_of("string", "number", "boolean", "null", "array")] = Field(
        validation_alias="json_type"
    )
    example: str = Field(description="The beginning of the value.")


class AlertMapping(Resource):
    """Sample and mapping of an integration."""

    sample: str | None = Field(description="JSON as it was given; null without a mapping.")
    mapping: dict[AlertField, tuple[Path, ...]]
    rules: _Rules
    never_resolves: str | None = Field(description=_NEVER_RESOLVES)
    values: tuple[SampleField, ...] = Field(description=_VALUES)


class ReadAlert(Resource):
    """Alert that was read from a body."""

    title: str
    severity: Annotated[str, one_of(*Severity)]
    severity_reason: str
    is_over: bool = Field(description="True if the report resolves the alert.")
    fields: dict[str, str]
    fingerprint: str | None
    fingerprint_source: str

    @property
    def labelled(self) -> tuple[tuple[str, str], ...]:
        """The fields with their labels on pages."""
        return tuple((name.replace("_", " "), value) for name, value in self.fields.items())


class AlertReading(Resource):
    """Values that a mapping reads from a delivery."""

    title: str
    severity: Annotated[str, one_of(*Severity)]
    ended_at: Time | None
    is_dropped: bool = Field(
        description="True if a rule drops the item, so that it opens no alert."
    )
    #: Number of the alert that the delivery belongs to. The oldest delivery has number 1.
    group: int = Field(description="Deliveries with the same number are reports of one alert.")


class ComparedDelivery(Resource):
    """A recent delivery, read with the current mapping and with the proposed one."""

    delivery_id: int
    received_at: Time
    present: AlertReading
    proposed: AlertReading


class AlertMappingPreview(Resource):
    """Preview of the alerts that a mapping would read. Nothing is saved."""

    values: tuple[SampleField, ...] = Field(description=_VALUES)
    alert: ReadAlert | None = Field(description=_ALERT)
    never_resolves: str | None = Field(description=_NEVER_RESOLVES)
    parse_warnings: tuple[str, ...]
    deliveries: tuple[ComparedDelivery, ...] = Field(description="The latest ones.")
    changed: int = Field(description="The number of deliveries that would be read differently.")


class RecognitionBody(Body):
    """Payload of a monitoring tool."""

    sample: JsonText = Field(description="One body, or an array of them; at most 64 KiB.")


class AlertRecognition(Resource):
    """The tool that sent a payload, and the integration that would read it."""

    tool: str | None = Field(description="Null if no known tool posts this.")
    type: IntegrationTypeName = Field(description="Type of the integration to create.")
    hint: str = Field(description="Setting to change in the tool. It can be empty.")
    sample: str = Field(
        description="Sample to save with the mapping. It is the first object of an array."
    )
    mapping: dict[AlertField, tuple[Path, ...]] = Field(
        description="Mapping to save. It is guessed from the names of the keys if the tool is "
        "unknown."
    )
    rules: _Rules = Field(description="Rules to save with the mapping.")
    values: tuple[SampleField, ...] = Field(description=_VALUES)
    alert: ReadAlert | None = Field(description=_ALERT)
    never_resolves: str | None = Field(description=_NEVER_RESOLVES)
    resolves_seldom: str | None = Field(
        description="Fields that a recovery must repeat to find its alert, if there are many."
    )
    parse_warnings: tuple[str, ...]
