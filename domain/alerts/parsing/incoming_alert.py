"""Parsed alerts, in a common form for all formats, and parsing errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.core.errors import DomainError

#: Title of alerts that have no title from the sender.
DEFAULT_TITLE = "New: Alert"


class Severity(StrEnum):
    """Alert severities, from highest to lowest."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"
    UNKNOWN = "unknown"

    def __init__(self, _word: str) -> None:
        """Set `rank`, from 0 for critical to 5 for unknown."""
        self.rank = len(type(self).__members__)


class AlertState(StrEnum):
    """The alert state that an item reports."""

    FIRING = "firing"
    RECOVERY = "recovery"


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingAlert:
    """An alert as a sender reported it, in any format.

    Strings contain only storable characters and are truncated to the length of their columns. The
    payload contains the complete strings. `ended_at` is set if and only if the state is RECOVERY.
    """

    title: str
    description: str | None
    severity: Severity
    state: AlertState
    #: Start of the alert, as an aware datetime in UTC, like `ended_at`.
    started_at: datetime
    ended_at: datetime | None
    service: str | None
    monitoring_tool: str | None
    #: Host names without line breaks, at most 255 characters in total.
    hosts: tuple[str, ...]
    environment: str | None
    #: SHA-256 hash that identifies the alert. Alerts without a fingerprint are never grouped.
    fingerprint: bytes | None
    #: Source of the fingerprint, for display.
    fingerprint_source: str
    #: Reason for the severity, for display.
    severity_reason: str
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    #: Sentences about assumptions that were made during parsing.
    parse_warnings: tuple[str, ...]
    #: Index of the item in the body, or 0 if the body is a single alert.
    item_index: int
    #: Names of the fields among title, severity and started_at that the sender omitted. These
    #: fields have default values. An uncertain start also counts as omitted: a start that is too
    #: old to be plausible, or that has no offset from UTC.
    left_out: frozenset[str] = frozenset()

    @property
    def reported_start(self) -> datetime | None:
        """Start of the alert, or None if the sender's value is missing or uncertain."""
        return None if "started_at" in self.left_out else self.started_at


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectedAlertItem:
    """An item that is not a valid alert, with the reason for its rejection."""

    item_index: int
    reason: str


class EventAction(StrEnum):
    """The action of an event for PagerDuty's Events API."""

    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    #: A change event, which does not belong to an alert.
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class ParsedPagerDutyEvent:
    """An event for PagerDuty's Events API. The response contains its dedup_key."""

    action: EventAction
    dedup_key: str = ""
    fingerprint: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedBody:
    """The alerts, rejected items and warnings from parsing a request body."""

    alerts: tuple[IncomingAlert, ...]
    refused: tuple[RejectedAlertItem, ...]
    #: Number of alerts that the sender omitted, according to the sender.
    truncated_alerts: int
    parse_warnings: tuple[str, ...]
    #: Number of items that were dropped by a mapping rule.
    dropped: int = 0
    #: Event for PagerDuty's Events API, or None if the body is not an event.
    event: ParsedPagerDutyEvent | None = None


class UnreadableBodyError(DomainError):
    """The body is not a valid JSON object, or is nested too deeply.

    The message states the reason.
    """


class MissingAttributesError(DomainError):
    """Required attributes are missing or have the wrong type.

    `names` lists these attributes.
    """

    def __init__(self, names: Sequence[str], *, hint: str = "") -> None:
        """Add the names of the attributes and the hint to the message."""
        super().__init__(f"Missing or malformed attributes: {', '.join(names)}. {hint}".rstrip())
        self.names = tuple(names)


class NoValidItemError(DomainError):
    """The body contains no valid alert.

    `refused` contains the reason for each item.
    """

    def __init__(self, message: str, *, refused: Sequence[RejectedAlertItem] = ()) -> None:
        """Store the reasons in addition to the message."""
        super().__init__(message)
        self.refused = tuple(refused)


class InvalidEventError(DomainError):
    """An event for PagerDuty's Events API is malformed.

    `problems` lists all mistakes.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        """Store the mistakes in addition to the message."""
        super().__init__(f"Event object is invalid: {'; '.join(problems)}.")
        self.problems = tuple(problems)
