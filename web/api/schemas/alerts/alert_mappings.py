"""The mapping of an integration: its sample, its paths, and what it would read."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.alerts.integrations.integrations import IntegrationView
from domain.alerts.integrations.mapping_preview import (
    Comparison,
    DeliveryReading,
    MappingPreview,
    SamplePreview,
)
from domain.alerts.integrations.samples import Sample
from domain.alerts.integrations.trials import ExplainedAlert
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, SampleValue
from domain.alerts.reading.mapping_rules import (
    MOST_JOINED,
    MappingRules,
    Operator,
    read_rules,
    rules_value,
)
from domain.types.base import Body, Resource, Text, Time, one_of
from web.api.schemas.alerts.json_texts import JsonText

_DEEPEST = 100

#: The keys, and positions in arrays, that lead from the top of a payload to a value.
Path = Annotated[
    tuple[str | Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=_DEEPEST)
]
_Paths = Annotated[tuple[Path, ...], Field(min_length=1, max_length=2)]


class MappingCondition(BaseModel):
    """A rule: the value at a path is compared with words; case does not matter."""

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
        """The rules; raise InvalidError with what is wrong."""
        return read_rules(self.model_dump(mode="json"))

    @classmethod
    def of(cls, rules: MappingRules) -> "MappingRulesBody":
        """Present the rules of a mapping."""
        return cls.model_validate(rules_value(rules))


class AlertMappingBody(Body):
    """A payload of the sender, and from where in it each field of an alert is read."""

    sample: JsonText = Field(description="One alert as the sender posts it; at most 64 KiB.")
    mapping: dict[AlertField, _Paths] = Field(
        default={},
        description="The path of each mapped field, and one to fall back to. Other fields are "
        "read from the key of their own name.",
    )
    rules: MappingRulesBody | None = Field(
        default=None, description="Without it, the severity words stay and other rules end."
    )


class SampleField(Resource):
    """A value of the sample that a field can be mapped to."""

    path: Path
    label: str = Field(description="The path as pages show it.")
    type: Annotated[str, one_of("string", "number", "boolean", "null", "array")]
    example: str = Field(description="The beginning of the value.")

    @classmethod
    def of(cls, value: SampleValue) -> "SampleField":
        """Present a value."""
        return cls(path=value.path, label=value.label, type=value.json_type, example=value.example)


class AlertMapping(Resource):
    """Sample and mapping of an integration."""

    sample: str | None = Field(description="JSON as it was given; null without a mapping.")
    mapping: dict[AlertField, tuple[Path, ...]]
    rules: MappingRulesBody
    never_resolves: str | None = Field(
        description="Why alerts that are read like this never resolve; null if they can."
    )
    values: tuple[SampleField, ...] = Field(description="What the sample offers.")

    @classmethod
    def of(
        cls, view: IntegrationView, sample: Sample | None, never_resolves: str | None
    ) -> "AlertMapping":
        """Present the saved mapping."""
        return cls(
            sample=view.sample,
            mapping=dict(view.mapping.paths),
            rules=MappingRulesBody.of(view.mapping.rules),
            never_resolves=never_resolves,
            values=tuple(map(SampleField.of, sample.values)) if sample else (),
        )


class ReadAlert(Resource):
    """How an alert is read from a body."""

    title: str
    severity: Annotated[str, one_of(*Severity)]
    severity_reason: str
    is_over: bool = Field(description="Whether it resolves the alert.")
    fields: dict[str, str]
    fingerprint: str | None
    fingerprint_source: str

    @classmethod
    def of(cls, alert: ExplainedAlert) -> "ReadAlert":
        """Present an alert."""
        return cls(
            title=alert.title,
            severity=alert.severity,
            severity_reason=alert.severity_reason,
            is_over=alert.is_over,
            fields={name.replace(" ", "_"): value for name, value in alert.fields},
            fingerprint=alert.fingerprint,
            fingerprint_source=alert.fingerprint_source,
        )


class AlertReading(Resource):
    """What a mapping reads from a delivery."""

    title: str
    severity: Annotated[str, one_of(*Severity)]
    ended_at: Time | None
    is_dropped: bool = Field(description="Whether a rule drops it: then it is no alert.")
    group: int = Field(description="Deliveries with the same number are reports of one alert.")

    @classmethod
    def of(cls, reading: DeliveryReading) -> "AlertReading":
        """Present what was read."""
        return cls.model_validate(reading)


class ComparedDelivery(Resource):
    """A recent delivery, read with the current mapping and with the proposed one."""

    delivery_id: int
    received_at: Time
    present: AlertReading
    proposed: AlertReading

    @classmethod
    def of(cls, compared: Comparison) -> "ComparedDelivery":
        """Present a comparison."""
        return cls(
            delivery_id=compared.delivery_id,
            received_at=compared.received_at,
            present=AlertReading.of(compared.present),
            proposed=AlertReading.of(compared.proposed),
        )


class AlertMappingPreview(Resource):
    """What a mapping would read; nothing is saved."""

    values: tuple[SampleField, ...] = Field(description="What the sample offers.")
    alert: ReadAlert | None = Field(
        description="The alert that the sample would open; null if a rule drops it."
    )
    never_resolves: str | None = Field(
        description="Why alerts that are read like this never resolve; null if they can."
    )
    parse_warnings: tuple[str, ...]
    deliveries: tuple[ComparedDelivery, ...] = Field(description="The latest ones.")
    changed: int = Field(description="The number of deliveries that would be read differently.")

    @classmethod
    def of(
        cls, sample: Sample, read: SamplePreview, compared: MappingPreview
    ) -> "AlertMappingPreview":
        """Present both previews of a mapping."""
        return cls(
            values=tuple(map(SampleField.of, sample.values)),
            alert=ReadAlert.of(read.alert) if read.alert else None,
            never_resolves=read.never_resolves,
            parse_warnings=read.parse_warnings,
            deliveries=tuple(map(ComparedDelivery.of, compared.comparisons)),
            changed=compared.changed,
        )
