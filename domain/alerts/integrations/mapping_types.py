"""Resources and request bodies for mappings: samples, paths, rules and previews."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.alerts.integrations.samples import MAX_SAMPLE_BYTES, MessageTexts
from domain.alerts.integrations.types import IntegrationTypeName, NewIntegration
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField
from domain.alerts.reading.mapping_rules import (
    MAX_JOINED_VALUES,
    MappingRules,
    Operator,
    parse_mapping_rules,
    serialize_mapping_rules,
)
from domain.alerts.recognition.fields import Confidence
from domain.core.database.pagination import MAX_ID
from domain.core.types.base import Body, Resource, Text, Time, describe_choices

_MAX_PATH_LENGTH = 100
_NEVER_RESOLVES_DESCRIPTION = (
    "Reason why alerts with this mapping never resolve. Null if they can resolve."
)
_VALUES_DESCRIPTION = "Values in the sample that alert fields can be mapped to."

#: Path to a value in a payload, as keys and array indexes that start at the top level.
GivenPath = Annotated[
    tuple[str | Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=_MAX_PATH_LENGTH)
]
_DeliveryId = Annotated[int, Field(ge=1, le=MAX_ID)]
_GivenPaths = Annotated[tuple[GivenPath, ...], Field(min_length=1, max_length=2)]


def _serialize_json(value: Any) -> Any:
    """Return an object or an array as JSON text, and any other value unchanged."""
    if not isinstance(value, dict | list):
        return value
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2)
        return (text if len(text) <= MAX_SAMPLE_BYTES else orjson.dumps(value)).decode()
    except orjson.JSONEncodeError as error:
        raise ValueError("is nested too deeply to be sent as JSON. Send it as a string") from error


#: JSON as a string, or embedded in the request body. A string is stored unchanged. In embedded
#: JSON, numbers beyond 64 bits are rounded, and the last value of a duplicate name is used.
JsonText = Annotated[
    str,
    BeforeValidator(_serialize_json),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]}),
]


class MappingCondition(BaseModel):
    """A rule that compares the value at a path with words, ignoring case.

    For example, `{"path": ["state"], "operator": "is", "words": ["ok", "resolved"]}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: GivenPath
    operator: Operator = Operator.IS
    words: Annotated[tuple[Text, ...], Field(min_length=1)] = Field(
        description="Words that the value is compared with. One match is enough, but `is_not` "
        "requires that no word matches."
    )


class MappingJoin(BaseModel):
    """Values that are appended to a field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: Annotated[tuple[GivenPath, ...], Field(min_length=1, max_length=MAX_JOINED_VALUES)]
    separator: Text = ": "


class MappingRulesBody(BaseModel):
    """The rules of a mapping."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    severity_words: dict[Text, Severity] = Field(
        default={}, description="Severities, by the words that the sender uses."
    )
    resolved_when: tuple[MappingCondition, ...] = Field(
        default=(), description="Conditions that resolve the alert. One match is enough."
    )
    is_guess: bool = Field(
        default=False, description="True if `resolved_when` is a guess that was not confirmed."
    )
    dropped_when: tuple[MappingCondition, ...] = Field(
        default=(),
        description="Conditions that drop the item. One match is enough. Dropped items are "
        "counted.",
    )
    joins: dict[Literal["title", "fingerprint"], MappingJoin] = Field(
        default={}, description="Values that are appended to a field."
    )

    @property
    def rules(self) -> MappingRules:
        """Mapping rules with validated values.

        Raise InvalidError, which describes the problem.
        """
        return parse_mapping_rules(self.model_dump(mode="json"))


_SerializedRules = Annotated[MappingRulesBody, BeforeValidator(serialize_mapping_rules)]


class _Messages(Body):
    """Messages about one alert."""

    sample: JsonText
    repeat: JsonText | None = Field(
        default=None, description="Another message about the same problem, at most 64 KiB."
    )
    recovery: JsonText | None = Field(
        default=None, description="Message that the tool sends when the problem is over."
    )

    @property
    def texts(self) -> MessageTexts:
        """The messages as texts."""
        return MessageTexts(
            sample=self.sample, repeat=self.repeat or "", recovery=self.recovery or ""
        )


class AlertMappingBody(Body):
    """A sample payload, and the paths from which the fields of an alert are read."""

    sample: JsonText = Field(description="One alert in the sender's format, at most 64 KiB.")
    mapping: dict[AlertField, _GivenPaths] = Field(
        default={},
        description="Path of each mapped field, optionally followed by a fallback path. Other "
        "fields are read from the key with the same name.",
    )
    rules: MappingRulesBody | None = Field(
        default=None,
        description='Rules for values, such as `{"resolved_when": [{"path": ["state"], '
        '"operator": "is", "words": ["ok"]}]}`. The keys are `severity_words`, `resolved_when`, '
        "`dropped_when` and `joins`. If omitted, all rules except the severity words are removed.",
    )

    revision: Text | None = Field(
        default=None,
        description="Value of `revision` in the mapping or in a fix. If the mapping has changed "
        "since, the request fails with status 409.",
    )


class MappedIntegration(NewIntegration):
    """A new integration, optionally with a mapping, such as a proposal from `recognize`."""

    sample: JsonText | None = Field(
        default=None,
        description="One alert in the sender's format, at most 64 KiB. Required for a mapping.",
    )
    mapping: dict[AlertField, _GivenPaths] = Field(
        default={}, description="Mapping to save, as for `PUT …/mapping`."
    )
    rules: MappingRulesBody | None = Field(
        default=None, description="Rules to save with the mapping, as for `PUT …/mapping`."
    )


class MappingPreviewBody(AlertMappingBody, _Messages):
    """A mapping, and the messages that it is tried on."""


class SampleField(Resource):
    """A value in the sample that an alert field can be mapped to."""

    path: GivenPath
    label: str = Field(description="Path as shown on web pages.")
    type: Annotated[str, describe_choices("string", "number", "boolean", "null", "array")] = Field(
        validation_alias="json_type"
    )
    example: str = Field(description="First characters of the value.")


class AlertMapping(Resource):
    """Sample and mapping of an integration."""

    sample: str | None = Field(description="Sample as it was sent. Null if no mapping is saved.")
    mapping: dict[AlertField, tuple[GivenPath, ...]]
    rules: _SerializedRules
    never_resolves: str | None = Field(description=_NEVER_RESOLVES_DESCRIPTION)
    values: tuple[SampleField, ...] = Field(description=_VALUES_DESCRIPTION)
    revision: str = Field(description="Identifier of the saved sample and mapping.")


class ReadAlert(Resource):
    """An alert that was parsed from a body."""

    title: str
    severity: Annotated[str, describe_choices(*Severity)]
    severity_reason: str
    is_over: bool = Field(description="True if the report resolves the alert.")
    fields: dict[str, str]
    fingerprint: str | None
    fingerprint_source: str

    @property
    def labelled(self) -> tuple[tuple[str, str], ...]:
        """Fields with their labels on web pages."""
        return tuple((name.replace("_", " "), value) for name, value in self.fields.items())


class ReadMessage(Resource):
    """The effect of a repeat or recovery message on the alert that the sample opens."""

    alert: ReadAlert | None = Field(
        description="Alert that is read from it. Null if it is dropped."
    )
    joins: bool = Field(description="True if the message belongs to the alert of the sample.")
    resolves: bool = Field(description="True if the message resolves the alert of the sample.")
    sentence: str = Field(description="The result as a sentence.")


class AlertReading(Resource):
    """Values that a mapping reads from a delivery."""

    title: str
    severity: Annotated[str, describe_choices(*Severity)]
    ended_at: Time | None
    is_dropped: bool = Field(
        description="True if a rule drops the item, so that it opens no alert."
    )
    #: Number of the alert that the delivery belongs to. The oldest delivery has number 1.
    group: int = Field(description="Deliveries with the same number are reports of one alert.")


class ReportCounts(Resource):
    """Numbers of alerts and reports if stored deliveries are read with one mapping."""

    opened: int = Field(default=0, description="Alerts that are opened.")
    joined: int = Field(default=0, description="Reports that join an open alert.")
    resolved: int = Field(default=0, description="Alerts that are resolved.")
    repeats: int = Field(
        default=0, description="Alerts that are opened while one about the same problem is open."
    )
    unmatched_recoveries: int = Field(default=0, description="Recoveries without an open alert.")
    merged_hosts: int = Field(
        default=0, description="Reports that join or resolve the alert of another host."
    )


class ComparedDelivery(Resource):
    """A recent delivery, read with the current mapping and with the proposed mapping."""

    delivery_id: int
    received_at: Time
    present: AlertReading
    proposed: AlertReading


class SamplePreview(Resource):
    """The alert that a sample would open."""

    alert: ReadAlert | None = Field(
        description="Alert that the sample would open. Null if a rule drops the sample."
    )
    never_resolves: str | None = Field(description=_NEVER_RESOLVES_DESCRIPTION)
    resolves_seldom: str | None = Field(
        description="Warning if a recovery must repeat most values of an alert to resolve it. "
        "Null otherwise."
    )
    parse_warnings: tuple[str, ...]
    repeat: ReadMessage | None = Field(
        description="Effect of the repeated message. Null if the request has none."
    )
    recovery: ReadMessage | None = Field(
        description="Effect of the recovery. Null if the request has none."
    )


class AlertMappingPreview(SamplePreview):
    """Preview of the alerts that a mapping would read. Nothing is saved."""

    values: tuple[SampleField, ...] = Field(description=_VALUES_DESCRIPTION)
    deliveries: tuple[ComparedDelivery, ...] = Field(
        description="Latest deliveries, at most 20, read with the current mapping and with the "
        "proposed mapping."
    )
    changed: int = Field(description="Number of deliveries that would be read differently.")
    before: ReportCounts = Field(
        description="Numbers for the stored deliveries and the current mapping."
    )
    after: ReportCounts = Field(
        description="Numbers for the stored deliveries and the proposed mapping."
    )


class RecognitionBody(_Messages):
    """Messages that a monitoring tool sends for one alert."""

    sample: JsonText = Field(
        description="Message about a problem, or an array of them, at most 64 KiB."
    )
    answers: dict[Text, Text] = Field(
        default={},
        description="Value of the chosen answer for each question in a previous response, by the "
        'name of the question, such as `{"severity": "high"}`.',
    )


class MappingFinding(Resource):
    """A part of a proposed mapping, and the reason for the proposal."""

    field: AlertField | None = Field(
        description="Field of the alert. Null for the rule that resolves alerts."
    )
    source: str = Field(description="Path of the value, or the rule as a phrase.")
    confidence: Annotated[str, describe_choices(*Confidence)] = Field(
        description="`sure` if the given messages prove it, `unsure` if the user should check it."
    )
    reason: str


class MappingAnswer(Resource):
    """An answer to a question about a proposed mapping."""

    value: str
    label: str = Field(description="Answer as shown on web pages.")


class MappingQuestion(Resource):
    """A question about a fact that the messages do not contain."""

    name: str | None = Field(description="Key of the answer. Null if there are no answers.")
    text: str
    choices: tuple[MappingAnswer, ...]
    answer: str | None = Field(description="Value of the given answer.")


class AlertRecognition(SamplePreview):
    """The tool that sent a payload, and the proposed settings for an integration."""

    tool: str | None = Field(description="Name of the tool. Null if the tool is unknown.")
    type: IntegrationTypeName = Field(description="Type of the integration to create.")
    hint: str = Field(description="Instruction for configuring the tool. May be empty.")
    sample: str = Field(
        description="Sample to save with the mapping. For an array, this is the first object."
    )
    mapping: dict[AlertField, tuple[GivenPath, ...]] = Field(
        description="Mapping to save. If the tool is unknown, the mapping is guessed from the "
        "keys and values of the messages."
    )
    rules: _SerializedRules = Field(description="Rules to save with the mapping.")
    values: tuple[SampleField, ...] = Field(description=_VALUES_DESCRIPTION)
    findings: tuple[MappingFinding, ...] = Field(
        description="Parts of a guessed mapping. Empty if the tool is known."
    )
    questions: tuple[MappingQuestion, ...] = Field(
        description="Questions about facts that the messages do not contain. May be empty."
    )


class RelatedDelivery(Resource):
    """A stored delivery that looks like a message about the same alert."""

    delivery_id: int
    received_at: Time
    role: Annotated[str, describe_choices("sample", "repeat", "recovery")]


class DeliveryRecognitionBody(Body):
    """Stored deliveries for one alert."""

    sample: _DeliveryId = Field(description="Id of a delivery about a problem.")
    repeat: _DeliveryId | None = Field(
        default=None, description="Id of another delivery about the same problem."
    )
    recovery: _DeliveryId | None = Field(
        default=None, description="Id of the delivery about its recovery."
    )


class DeliveryRecognition(AlertRecognition):
    """The proposed settings for stored deliveries, and further deliveries for the same alert."""

    related: tuple[RelatedDelivery, ...] = Field(
        description="Later deliveries that look like the repeat and the recovery of the sample, "
        "among the last 50."
    )


class MappingFix(Resource):
    """A changed mapping that solves a problem, and its effect on the stored deliveries."""

    sample: str
    mapping: dict[AlertField, tuple[GivenPath, ...]]
    rules: _SerializedRules
    revision: str = Field(description="Revision of the mapping that the fix changes.")
    deliveries: int = Field(description="Number of stored deliveries that the fix was tried on.")
    before: ReportCounts = Field(description="Numbers for the deliveries and the current mapping.")
    after: ReportCounts = Field(description="Numbers for the deliveries and the fix.")
