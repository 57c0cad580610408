"""Resources and request bodies for integrations and their keys."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from domain.alerts.deliveries import DeliveryOutcome
from domain.alerts.formats.base import AlertFormat, IntegrationType, ParserSettings
from domain.alerts.formats.registry import INTEGRATION_TYPE_NAMES, INTEGRATION_TYPES
from domain.alerts.parsing.mapping import FieldMapping
from domain.alerts.parsing.text_conversion import format_canonical_json, format_indented_json
from domain.alerts.recognition.known_tools import find_known_tool
from domain.alerts.tools.base import MonitoringTool
from domain.core.errors import NotFoundError
from domain.core.grace_period import GracePeriod
from domain.core.types.base import (
    Body,
    Numbers,
    Option,
    RequestTime,
    Resource,
    SecretResource,
    Text,
    Time,
    Words,
    build_choices_schema,
    make_fields_optional,
)
from domain.core.types.pagination import KeysetQuery, OffsetQuery, PagedQuery

#: Minimum and maximum time after which open alerts without a report are resolved, in minutes.
#: Senders repeat alerts at intervals of minutes to hours.
MIN_RESOLVE_AFTER_MINUTES, MAX_RESOLVE_AFTER_MINUTES = 5, 90 * 24 * 60
#: Maximum time during which a replaced key stays valid.
MAX_KEY_GRACE_PERIOD = max(each.length for each in GracePeriod)

#: Length of a mapping revision, in characters.
_REVISION_LENGTH = 16


def _validate_resolve_after(minutes: int | None) -> int | None:
    if minutes and minutes < MIN_RESOLVE_AFTER_MINUTES:
        raise ValueError(f"must be at least {MIN_RESOLVE_AFTER_MINUTES}, or 0 for never")
    return minutes or None


_ResolveAfterMinutes = Annotated[
    Annotated[int, Field(ge=0, le=MAX_RESOLVE_AFTER_MINUTES)] | None,
    AfterValidator(_validate_resolve_after),
]
_REJECTED_SINCE_DESCRIPTION = (
    "Time since which an integration that worked before has rejected all requests. Null unless it "
    "has rejected at least three requests over at least ten minutes."
)
_RESOLVE_AFTER_DESCRIPTION = (
    "Number of minutes without a report after which open alerts are resolved."
)
IntegrationTypeName = Annotated[str, build_choices_schema(*INTEGRATION_TYPE_NAMES)]


class IntegrationQuery(PagedQuery):
    """Query parameters for a list of a project's integrations, oldest first."""

    sort: Literal["asc", "desc"] = "asc"


class IntegrationBody(Body):
    """The settings of an integration that users can change."""

    name: Text = Field(
        default="",
        description="Name of the integration. By default, the first integration of a type is "
        "named after the type.",
    )
    active: Annotated[bool, Option("--active/--inactive")] = True
    api_url: Text | None = Field(
        default=None,
        description="URL of the on-call tool for the type `external`. The type `prometheus` has a "
        "deprecated API URL, which is stored but not used.",
    )
    resolve_after_minutes: _ResolveAfterMinutes = Field(
        default=None, description=f"{_RESOLVE_AFTER_DESCRIPTION} Null or 0 to turn this off."
    )
    environment_labels: Annotated[Words, Option("--environment-label")] = Field(
        default=(),
        description="Labels that contain the environment of an alert, for the type `prometheus`. "
        "The first of these labels in an alert is used. These labels take precedence over "
        "`platform_environment_name`.",
    )
    service_labels: Annotated[Words, Option("--service-label")] = Field(
        default=(),
        description="Labels that contain the service of an alert, for the type `prometheus`. "
        "These labels take precedence over `service`.",
    )
    accepts_key_in_url: Annotated[bool, Option("--key-in-url/--no-key-in-url")] = Field(
        default=False,
        description="True if senders that cannot set headers may add `?key=KEY` to the URL.",
    )
    joined_with: Annotated[Numbers, Option("--joined-with")] = Field(
        default=(),
        description="IDs of all other integrations of the project that share their alerts with "
        "this integration, such as a redundant Alertmanager. Reports with the same fingerprint "
        "are then grouped into one alert.",
    )


class _IntegrationTypeField(Body):
    type: Literal[*INTEGRATION_TYPE_NAMES] = Field(  # type: ignore[valid-type]
        description=" ".join(each.help for each in INTEGRATION_TYPES)
    )


class NewIntegration(IntegrationBody, _IntegrationTypeField):
    """The type and the settings of a new integration."""


@make_fields_optional
class IntegrationChange(IntegrationBody):
    """Changes to an integration. Omitted fields are not changed."""


class LabelQuery(OffsetQuery):
    """Query parameters for a list of received labels, with proposed labels first."""


class ReceivedLabel(Resource):
    """A label in the latest deliveries of an integration."""

    name: str
    values: int = Field(description="Number of distinct values of the label.")
    examples: tuple[str, ...]
    proposed_as: Annotated[str | None, build_choices_schema("environment", "service")] = Field(
        description="Field for which the label is proposed. Null for other labels, and for labels "
        "that are already used."
    )


class IntegrationSummary(Resource):
    """The main fields of an integration, for lists of integrations."""

    id: int
    name: str
    type: IntegrationTypeName
    active: bool
    url: str | None = Field(
        description="URL for senders. Null for a link to an on-call tool, and for callers who "
        "cannot change the integration."
    )
    last_delivery_at: Time | None
    last_outcome: DeliveryOutcome | None = Field(
        description="Outcome of the last delivery. `refused` means that the delivery was rejected."
    )
    rejected_since: Time | None = Field(description=_REJECTED_SINCE_DESCRIPTION)


class Integration(Resource):
    """An integration with its settings."""

    id: int
    name: str
    type: IntegrationTypeName
    active: bool
    url: str | None = Field(description="URL for senders. Null for a link to an on-call tool.")
    endpoint_identifier: str | None = Field(description="Last part of the URL.")
    api_url: str | None
    has_mapping: bool
    open_questions: int = Field(
        default=0,
        description=(
            "Number of unanswered questions about the mapping. The *Configure* page shows the "
            "questions."
        ),
    )
    resolve_after_minutes: int | None = Field(
        description=f"{_RESOLVE_AFTER_DESCRIPTION} Null if this is turned off."
    )
    environment_labels: tuple[str, ...]
    service_labels: tuple[str, ...]
    accepts_key_in_url: bool = Field(description="True if senders can send the key in the URL.")
    joined_with: tuple[int, ...] = Field(
        description="IDs of the integrations that share their alerts with this integration."
    )
    created_at: Time
    last_delivery_at: Time | None
    last_outcome: DeliveryOutcome | None = Field(
        description="Outcome of the last delivery. `refused` means that the delivery was rejected."
    )
    rejected_since: Time | None = Field(description=_REJECTED_SINCE_DESCRIPTION)


class IntegrationWithKey(Integration, SecretResource):
    """A new integration with its key."""

    key: str | None = Field(description="Integration key. Null for a link to an on-call tool.")


@dataclass(frozen=True, kw_only=True)
class IntegrationView:
    """An integration with its URL and its latest delivery."""

    id: int
    project_id: int
    name: str
    type: IntegrationType
    active: bool
    endpoint_identifier: str
    url: str
    created_at: datetime
    last_delivery_at: datetime | None
    #: Outcome of the last delivery: `accepted` or `refused`.
    last_outcome: str | None
    #: Time since which the integration has rejected all requests, if it accepted earlier requests.
    rejected_since: datetime | None
    api_url: str | None
    #: Payload that the mapping was created from, as JSON text.
    sample: str | None = field(repr=False)
    #: Another message about the same problem, and the message about the recovery, as JSON text.
    sample_repeat: str | None = field(repr=False)
    sample_recovery: str | None = field(repr=False)
    mapping: FieldMapping
    #: True if a mapping is stored. If a later release stored a mapping that this release cannot
    #: read, `mapping` is empty.
    has_mapping: bool
    #: Minutes without a report after which open alerts are resolved, or None for never.
    resolve_after_minutes: int | None
    #: Labels for the environment and the service. The first label that is present in an alert is
    #: used.
    environment_labels: tuple[str, ...]
    service_labels: tuple[str, ...]
    accepts_key_in_url: bool
    #: IDs of the integrations that share the monitor.
    joined_with: tuple[int, ...]
    monitor_id: int | None

    @property
    def mapping_revision(self) -> str:
        """Identifier of the saved messages and mapping, which changes when any of them changes."""
        messages = (self.sample, self.sample_repeat, self.sample_recovery)
        text = format_canonical_json([*messages, self.mapping.stored])
        return sha256(text).hexdigest()[:_REVISION_LENGTH]

    @property
    def receives_alerts(self) -> bool:
        """True if the integration receives alerts, and therefore has a URL, keys and deliveries."""
        return self.type.receives

    @property
    def format(self) -> AlertFormat:
        """Format of the alerts that the integration receives.

        Raise NotFoundError if the integration does not receive alerts.
        """
        if isinstance(self.type, AlertFormat):
            return self.type
        raise NotFoundError("A link to an on-call tool does not receive alerts.")

    def build_example_body(self, *, now: datetime, reading: ParserSettings) -> str:
        """Return the sample as its sender posts it, or an example if there is no sample."""
        sample = self._decode_sample(reading)
        if sample is None:
            return self.format.build_example_body(now=now)
        body = self.format.build_sample_body(sample)
        return self.sample or "" if body is sample else format_indented_json(body)

    def find_tool(self, *, reading: ParserSettings) -> MonitoringTool | None:
        """Return the known tool that sends the sample, or None."""
        known = find_known_tool(self._decode_sample(reading) or {})
        return known.tool if known else None

    def _decode_sample(self, reading: ParserSettings) -> dict[str, object] | None:
        if self.sample is None:
            return None
        sample = self.format.decode_stored_body(self.sample.encode(), reading=reading)
        return sample if isinstance(sample, dict) else None

    def build_recovery_body(
        self, body: str, *, now: datetime, reading: ParserSettings
    ) -> str | None:
        """Return a copy of a body, changed so that it resolves the body's alerts.

        Return None if no such copy can be built.
        """
        value = self.format.decode_stored_body(body.encode(), reading=reading)
        recovery = self.format.build_recovery(value, self.mapping, now=now)
        return format_indented_json(recovery) if recovery else None


class KeyRotation(Body):
    """A request to replace the current key."""

    previous_key_expires_at: RequestTime | None = Field(
        default=None,
        description=(
            "Time until which the old key stays valid, at most "
            f"{MAX_KEY_GRACE_PERIOD.days} days from now. If omitted, the old key stops working "
            "immediately."
        ),
    )
    key_id: Text = Field(
        default="",
        description="ID of the key to replace. If this key has already been replaced, the request "
        "fails with status 409.",
    )


class KeyQuery(KeysetQuery):
    """Query parameters for a list of an integration's valid keys."""


class IntegrationKey(Resource):
    """A valid key of an integration."""

    id: str = Field(description="Identifier that does not reveal the key.")
    state: Annotated[str, build_choices_schema("current", "previous")]
    last_used_at: Time | None
    expires_at: Time | None = Field(description="Expiry time. Null for the current key.")


class IntegrationCredentials(SecretResource):
    """The URL and the keys that are needed to configure a sender."""

    url: str
    key: str = Field(description="Current key.")
    url_with_key: str | None = Field(
        description="URL with the key, for senders that cannot set headers. Null if the "
        "integration does not accept the key in the URL."
    )
    keys: tuple[IntegrationKey, ...] = Field(description="All valid keys.")

    @property
    def current_key(self) -> IntegrationKey:
        """The key that new requests should use."""
        return self.keys[0]

    @property
    def previous_key(self) -> IntegrationKey | None:
        """The previous key, or None if it is no longer valid."""
        return self.keys[1] if len(self.keys) > 1 else None
