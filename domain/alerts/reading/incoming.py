"""The frozen values that every payload becomes at the door."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.errors import DomainError


class Severity(StrEnum):
    """How bad it is, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"
    UNKNOWN = "unknown"

    def __init__(self, _word: str) -> None:
        """Remember the place in the order, 0 for critical to 5 for unknown."""
        self.rank = len(type(self).__members__)


class State(StrEnum):
    """What an item says about itself."""

    FIRING = "firing"
    RECOVERY = "recovery"


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingAlert:
    """One alert as a sender reported it, whatever the format.

    Texts fit their columns and can be stored; the payload keeps them whole. A recovery always has
    an end and a firing alert never has one.
    """

    title: str
    description: str | None
    severity: Severity
    state: State
    #: Aware, in UTC.
    started_at: datetime
    ended_at: datetime | None
    service: str | None
    monitoring_tool: str | None
    #: No line breaks, none empty, at most 255 characters in all.
    hosts: tuple[str, ...]
    environment: str | None
    #: SHA-256; None is never grouped.
    fingerprint: bytes | None
    #: What the fingerprint was made of, in words.
    fingerprint_source: str
    #: Why the severity is what it is, in words.
    severity_reason: str
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    #: What a maintainer should know about how the item was read.
    parse_warnings: tuple[str, ...]
    #: Position among the items of the body; 0 where a body is one alert.
    item_index: int
    #: Which of title, severity and started_at the sender left out, so that a default stands there.
    left_out: frozenset[str] = frozenset()

    @property
    def given_start(self) -> datetime | None:
        """When it began, if the sender says so."""
        return None if "started_at" in self.left_out else self.started_at


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedItem:
    """An item that is no alert, and why."""

    item_index: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedBody:
    """All that a body said."""

    alerts: tuple[IncomingAlert, ...]
    refused: tuple[RefusedItem, ...]
    #: How many alerts the sender left out, by its own count.
    truncated_alerts: int
    parse_warnings: tuple[str, ...]


class UnreadableBody(DomainError):  # noqa: N818  the name says what was received, not what we did
    """The body is not one JSON object of bearable depth; the text says why."""


class MissingAttributes(DomainError):  # noqa: N818  as above
    """Required top-level attributes are absent or of the wrong type; `names` lists them."""

    def __init__(self, names: Sequence[str], *, hint: str = "") -> None:
        """Name the attributes in a sentence; a hint is another one."""
        super().__init__(f"Missing or malformed attributes: {', '.join(names)}. {hint}".rstrip())
        self.names = tuple(names)


class NoValidItem(DomainError):  # noqa: N818  as above
    """None of the items is an alert; `refused` has a reason for each, or is empty."""

    def __init__(self, message: str, *, refused: Sequence[RefusedItem] = ()) -> None:
        """Say so in a sentence and keep the reasons."""
        super().__init__(message)
        self.refused = tuple(refused)
