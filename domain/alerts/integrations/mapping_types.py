"""Resources and request bodies for mappings: samples, paths, rules and previews."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.alerts.integrations.samples import MAX_SAMPLE_BYTES, MessageTexts
from domain.alerts.integrations.types import IntegrationTypeName, NewIntegration
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import (
    MAX_JOINED_VALUES,
    MappingRules,
    Operator,
    parse_mapping_rules,
    serialize_mapping_rules,
)
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.questions import ANSWER_SEPARATOR
from domain.core.database.pagination import MAX_ID
from domain.core.types.base import Body, Option, Resource, Text, Time, build_choices_schema

_MAX_PATH_LENGTH = 100
_NEVER_RESOLVES_DESCRIPTION = (
    "Reason why alerts with this mapping never resolve. Null if they can resolve, or if a user has "
    "confirmed that only users resolve them."
)
_RESOLVES_SELDOM_DESCRIPTION = (
    "Warning if a recovery must repeat most values of an alert to resolve it. Null otherwise."
)
_VALUES_DESCRIPTION = (
    "Values in the messages that alert fields can be mapped to. Values of the other messages are "
    "listed only if the sample does not contain their paths."
)

#: Path to a value in a payload, as keys and array indexes that start at the top level.
GivenPath = Annotated[
    tuple[str | Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=_MAX_PATH_LENGTH)
]
_DeliveryId = Annotated[int, Field(ge=1, le=MAX_ID)]
_QuestionName = Literal["title", "hosts", "severity", "fingerprint", "resolved_when"]
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
    """Paths whose values are appended to a field, and the separator between the values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: Annotated[tuple[GivenPath, ...], Field(min_length=1, max_length=MAX_JOINED_VALUES)]
    separator: Text = ": "


class MappingRulesBody(BaseModel):
    """The rules of a mapping: severities, recoveries, dropped items and joined values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    severity_words: dict[Text, Severity] = Field(
        default={},
        description="Severity for each word that the sender uses. The word `(none)` is for reports "
        "without a severity.",
    )
    resolved_when: tuple[MappingCondition, ...] = Field(
        default=(), description="Conditions that resolve the alert. One match is enough."
    )
    is_guess: bool = Field(
        default=False, description="True if `resolved_when` is a guess that was not confirmed."
    )
    confirmed: tuple[_QuestionName, ...] = Field(
        default=(),
        description="Names of the questions that were answered by keeping the proposal. They are "
        "not asked again.",
    )
    dropped_when: tuple[MappingCondition, ...] = Field(
        default=(),
        description="Conditions that drop the item. One match is enough. Dropped items are "
        "counted.",
    )
    joins: dict[Literal["title", "fingerprint"], MappingJoin] = Field(
        default={}, description="Values that are appended to a field."
    )
    ignored_words: tuple[Text, ...] = Field(
        default=(),
        description="Words that texts in the fingerprint are compared without, such as `down` and "
        "`up`. If there are any, times, durations and counters in the texts are ignored too.",
    )

    @property
    def rules(self) -> MappingRules:
        """Mapping rules with validated values.

        Raise InvalidError, which describes the problem, if a value is not valid.
        """
        return parse_mapping_rules(self.model_dump(mode="json"))


_SerializedRules = Annotated[MappingRulesBody, BeforeValidator(serialize_mapping_rules)]


_SAMPLE_REPEAT = "Another message about the same problem as the sample, at most 64 KiB."
_SAMPLE_RECOVERY = "Message about the recovery from the problem in the sample, at most 64 KiB."
_KEPT = "If omitted, the saved message is used as long as the sample is the same."


def _build_message_field(role: str, description: str) -> Any:
    """Return the field for a message or its ID, which is also accepted under its former name."""
    return Field(
        default=None,
        validation_alias=AliasChoices(f"sample_{role}", role),
        description=f"{description} The former name `{role}` is still accepted.",
    )


class _SampleMessages(Body):
    """The other messages about the alert in the sample."""

    sample_repeat: JsonText | None = _build_message_field("repeat", _SAMPLE_REPEAT)
    sample_recovery: JsonText | None = _build_message_field("recovery", _SAMPLE_RECOVERY)


class _SavedMessages(_SampleMessages):
    """Messages that are saved with a sample, so that proposals can use them."""

    sample_repeat: JsonText | None = _build_message_field("repeat", f"{_SAMPLE_REPEAT} {_KEPT}")
    sample_recovery: JsonText | None = _build_message_field(
        "recovery", f"{_SAMPLE_RECOVERY} {_KEPT}"
    )


class AlertMappingBody(_SavedMessages):
    """A sample payload, and the paths from which the fields of an alert are read."""

    sample: JsonText = Field(description="One alert in the sender's format, at most 64 KiB.")
    mapping: dict[AlertField, _GivenPaths] = Field(
        default={},
        description=(
            "Path of each mapped field, optionally followed by a fallback path. Unmapped fields "
            "are read from the key with the same name."
        ),
    )
    rules: MappingRulesBody | None = Field(
        default=None,
        description='Rules for values, such as `{"resolved_when": [{"path": ["state"], '
        '"operator": "is", "words": ["ok"]}]}`. The keys are `severity_words`, `resolved_when`, '
        "`dropped_when`, `joins` and `ignored_words`. If omitted, all rules except the severity "
        "words are removed.",
    )

    revision: Text | None = Field(
        default=None,
        description="Value of `revision` in the mapping or in a fix. If the mapping has changed "
        "since, the request fails with status 409.",
    )


class MappedIntegration(NewIntegration, _SampleMessages):
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


class SampleField(Resource):
    """A value in a message that an alert field can be mapped to."""

    path: GivenPath
    label: str = Field(description="Path as shown on web pages.")
    type: Annotated[str, build_choices_schema("string", "number", "boolean", "null", "array")] = (
        Field(validation_alias="json_type")
    )
    example: str = Field(description="First characters of the value.")
    message: Annotated[str, build_choices_schema("sample", "recovery", "repeat")] = Field(
        description="Message that contains the value."
    )


class AlertMapping(Resource):
    """The sample payload and the mapping of an integration."""

    sample: str | None = Field(description="Sample as it was sent. Null if no mapping is saved.")
    sample_repeat: str | None = Field(description=_SAMPLE_REPEAT)
    sample_recovery: str | None = Field(description=_SAMPLE_RECOVERY)
    mapping: dict[AlertField, tuple[GivenPath, ...]]
    rules: _SerializedRules
    never_resolves: str | None = Field(description=_NEVER_RESOLVES_DESCRIPTION)
    resolves_seldom: str | None = Field(description=_RESOLVES_SELDOM_DESCRIPTION)
    values: tuple[SampleField, ...] = Field(description=_VALUES_DESCRIPTION)
    revision: str = Field(description="Identifier of the saved sample and mapping.")


class ReadAlert(Resource):
    """An alert that was parsed from a body."""

    title: str
    severity: Annotated[str, build_choices_schema(*Severity)]
    severity_reason: str
    is_over: bool = Field(description="True if the report resolves the alert.")
    fields: dict[str, str]
    fingerprint: str | None
    fingerprint_source: str

    @property
    def labeled_fields(self) -> tuple[tuple[str, str], ...]:
        """Fields with their labels on web pages."""
        return tuple((name.replace("_", " "), value) for name, value in self.fields.items())


class ReadMessage(Resource):
    """The effect of a repeat or recovery message on the alert that the sample opens."""

    alert: ReadAlert | None = Field(
        description="Alert that is read from the message. Null if the message is dropped."
    )
    joins: bool = Field(description="True if the message belongs to the alert of the sample.")
    resolves: bool = Field(description="True if the message resolves the alert of the sample.")
    sentence: str = Field(description="Sentence that describes the result.")


class AlertReading(Resource):
    """Values that a mapping reads from a delivery."""

    title: str
    severity: Annotated[str, build_choices_schema(*Severity)]
    ended_at: Time | None
    is_dropped: bool = Field(
        description="True if a rule drops the item, so that it opens no alert."
    )
    #: Number of the alert that the delivery belongs to. The oldest delivery has number 1.
    group: int = Field(
        description="Group number. Deliveries with the same number belong to the same alert."
    )


class ReportCounts(Resource):
    """Counts of the alerts and reports that a mapping produces from stored deliveries."""

    opened: int = Field(default=0, description="Number of alerts that are opened.")
    joined: int = Field(default=0, description="Number of reports that join an open alert.")
    resolved: int = Field(default=0, description="Number of alerts that are resolved.")
    repeats: int = Field(
        default=0,
        description=(
            "Number of alerts that are opened while another alert about the same problem is open."
        ),
    )
    unmatched_recoveries: int = Field(
        default=0, description="Number of recoveries without an open alert."
    )
    merged_hosts: int = Field(
        default=0, description="Number of reports that join or resolve the alert of another host."
    )


class ComparedDelivery(Resource):
    """A recent delivery, read with the current mapping and with the proposed mapping."""

    delivery_id: int
    received_at: Time
    present: AlertReading
    proposed: AlertReading


class SamplePreview(Resource):
    """The alert that a sample would open, and the effects of the repeat and the recovery."""

    alert: ReadAlert | None = Field(
        description="Alert that the sample would open. Null if a rule drops the sample."
    )
    never_resolves: str | None = Field(description=_NEVER_RESOLVES_DESCRIPTION)
    resolves_seldom: str | None = Field(description=_RESOLVES_SELDOM_DESCRIPTION)
    parse_warnings: tuple[str, ...]
    repeat: ReadMessage | None = Field(
        description=("Effect of the repeated message. Null if there is no repeated message.")
    )
    recovery: ReadMessage | None = Field(
        description=("Effect of the recovery message. Null if there is no recovery message.")
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
        description="Report counts for the stored deliveries with the current mapping."
    )
    after: ReportCounts = Field(
        description="Report counts for the stored deliveries with the proposed mapping."
    )


_ANSWERS: Any = Field(
    default={},
    description=(
        "Selected answer to each question in a previous response, by question name, such as "
        '`{"severity": "high"}`. Separate several values of one answer with line breaks.'
    ),
)


class RecognitionBody(_SampleMessages):
    """Messages that a monitoring tool sends for one alert."""

    sample: JsonText = Field(
        description="Message about a problem, or an array of such messages, at most 64 KiB."
    )
    answers: Annotated[dict[Text, Text], Option("--answer")] = _ANSWERS

    @property
    def texts(self) -> MessageTexts:
        """The messages as JSON strings. A missing message is an empty string."""
        repeat, recovery = self.sample_repeat or "", self.sample_recovery or ""
        return MessageTexts(sample=self.sample, repeat=repeat, recovery=recovery)


class MappingFinding(Resource):
    """A part of a proposed mapping, and the reason for the proposal."""

    field: AlertField | None = Field(
        description="Field of the alert. Null for the rule that resolves alerts."
    )
    source: str = Field(description="Path of the value, or a description of the rule.")
    confidence: Annotated[str, build_choices_schema(*Confidence)] = Field(
        description="`sure` if the given messages prove it, `likely` if they suggest it, or "
        "`unsure` if the user should check it."
    )
    reason: str


class MappingAnswer(Resource):
    """A possible answer to a question about a proposed mapping."""

    value: str
    label: str = Field(description="Answer as shown on web pages.")


class MappingQuestion(Resource):
    """A question about a fact that the messages do not contain."""

    name: str | None = Field(
        description="Key of the question in `answers`. Null if there are no answers to select from."
    )
    text: str
    choices: tuple[MappingAnswer, ...]
    is_multiple: bool = Field(
        description="True if you can select several choices. Separate their values with line "
        "breaks in `answers`."
    )
    answer: str | None = Field(
        description="Value of the selected answer. Several values are separated by line breaks. "
        "Null if the question has not been answered."
    )

    @property
    def answers(self) -> Sequence[str]:
        """Values of the selected answers."""
        return self.answer.split(ANSWER_SEPARATOR) if self.answer else ()

    @property
    def is_open(self) -> bool:
        """True if the question has answers to select from, and none is selected."""
        return bool(self.choices) and self.answer is None


class AlertRecognition(SamplePreview):
    """The tool that sent a payload, and the proposed settings for an integration."""

    tool: str | None = Field(description="Name of the tool. Null if the tool is unknown.")
    type: IntegrationTypeName = Field(description="Type of the integration to create.")
    hint: str = Field(description="Instructions for configuring the tool. May be empty.")
    sample: str = Field(
        description="Sample to save with the mapping. For an array, this is the first object."
    )
    sample_repeat: str | None = Field(description="Repeated message to save with the sample.")
    sample_recovery: str | None = Field(description="Recovery message to save with the sample.")
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
    role: Annotated[str, build_choices_schema("sample", "repeat", "recovery")]


class DeliveryRecognitionBody(Body):
    """IDs of stored deliveries that concern the same alert, to identify the tool that sent them."""

    sample: _DeliveryId = Field(description="ID of a delivery that reports a problem.")
    sample_repeat: Annotated[_DeliveryId | None, Option("--sample-repeat", former="--repeat")] = (
        _build_message_field("repeat", "ID of another delivery that reports the same problem.")
    )
    sample_recovery: Annotated[
        _DeliveryId | None, Option("--sample-recovery", former="--recovery")
    ] = _build_message_field("recovery", "ID of the delivery that reports the recovery.")
    answers: Annotated[dict[Text, Text], Option("--answer")] = _ANSWERS


class DeliveryRecognition(AlertRecognition):
    """The proposed settings for stored deliveries, and other deliveries for the same alert."""

    related: tuple[RelatedDelivery, ...] = Field(
        description=(
            "Later deliveries, among the last 50, that appear to report the same problem or its "
            "recovery."
        )
    )


class MappingFix(Resource):
    """A changed mapping that solves a problem, and its effect on the stored deliveries."""

    sample: str
    mapping: dict[AlertField, tuple[GivenPath, ...]]
    rules: _SerializedRules
    revision: str = Field(description="Revision of the mapping that the fix changes.")
    deliveries: int = Field(description="Number of stored deliveries that the fix was tried on.")
    before: ReportCounts = Field(
        description="Report counts for the deliveries with the current mapping."
    )
    after: ReportCounts = Field(description="Report counts for the deliveries with the fix.")
