"""The values that every payload is read into, and the errors of reading it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.core.errors import DomainError

#: The title of an alert whose sender gave it none.
DEFAULT_TITLE = "New: Alert"


class Severity(StrEnum):
    """The severity of an alert, the worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"
    UNKNOWN = "unknown"

    def __init__(self, _word: str) -> None:
        """Set `rank`: 0 for critical to 5 for unknown."""
        self.rank = len(type(self).__members__)


class AlertState(StrEnum):
    """Whether an item reports that an alert fires or that it is over."""

    FIRING = "firing"
    RECOVERY = "recovery"


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingAlert:
    """One alert as a sender reported it, in any format.

    Texts are cut to the length of their columns and can be stored; the payload has them in full.
    `ended_at` is set exactly if the state is RECOVERY.
    """

    title: str
    description: str | None
    severity: Severity
    state: AlertState
    #: Timezone-aware, in UTC, as is ended_at.
    started_at: datetime
    ended_at: datetime | None
    service: str | None
    monitoring_tool: str | None
    #: Each without line breaks and not empty; at most 255 characters together.
    hosts: tuple[str, ...]
    environment: str | None
    #: SHA-256; an alert without one is never grouped.
    fingerprint: bytes | None
    #: What the fingerprint was computed from, as a text for people.
    fingerprint_source: str
    #: Why the alert has this severity, as a text for people.
    severity_reason: str
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    #: One sentence for each guess made while the item was read.
    parse_warnings: tuple[str, ...]
    #: Index among the items of the body; 0 if the body is one alert.
    item_index: int
    #: Those of title, severity and started_at that the sender left out: they have default values.
    left_out: frozenset[str] = frozenset()

    @property
    def given_start(self) -> datetime | None:
        """The start that the sender gave, or None."""
        return None if "started_at" in self.left_out else self.started_at


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedItem:
    """An item that is no alert, and the reason."""

    item_index: int
    reason: str


class EventAction(StrEnum):
    """What an event of PagerDuty's Events API asks for."""

    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    #: A change event, which is about no alert.
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class SenderEvent:
    """An event of PagerDuty's Events API, whose response names its dedup_key."""

    action: EventAction
    dedup_key: str = ""
    fingerprint: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedBody:
    """The alerts of a body, its refused items and its parse warnings."""

    alerts: tuple[IncomingAlert, ...]
    refused: tuple[RefusedItem, ...]
    #: The number of alerts that the sender says it left out.
    truncated_alerts: int
    parse_warnings: tuple[str, ...]
    #: The number of items that a rule of the mapping dropped.
    dropped: int = 0
    #: Set if the body is such an event.
    event: SenderEvent | None = None


class UnreadableBody(DomainError):  # noqa: N818  the name says what was received, not what we did
    """The body is not JSON, not an object, or nested too deep; the message says which."""


class MissingAttributes(DomainError):  # noqa: N818  as above
    """Required attributes of the body are absent or of the wrong type; `names` lists them."""

    def __init__(self, names: Sequence[str], *, hint: str = "") -> None:
        """Name the attributes in the message, followed by the hint."""
        super().__init__(f"Missing or malformed attributes: {', '.join(names)}. {hint}".rstrip())
        self.names = tuple(names)


class NoValidItem(DomainError):  # noqa: N818  as above
    """The body has no item that is an alert; `refused` has the reason for each item."""

    def __init__(self, message: str, *, refused: Sequence[RefusedItem] = ()) -> None:
        """Keep the reasons beside the message."""
        super().__init__(message)
        self.refused = tuple(refused)


class InvalidEvent(DomainError):  # noqa: N818  as above
    """An event of PagerDuty's Events API is malformed; `problems` has every mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the mistakes beside the message."""
        super().__init__(f"Event object is invalid: {'; '.join(problems)}.")
        self.problems = tuple(problems)
