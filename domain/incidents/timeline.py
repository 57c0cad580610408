"""The timeline of an incident: user comments, and changes to the incident."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.audit.events import EventActor
from domain.core.database.pagination import KeysetPage, KeysetRange
from domain.core.types.base import Resource
from domain.incidents.types import EntryFilter, EntryKind, IncidentPerson
from models import IncidentNote

#: Maximum number of alerts that an entry lists. Additional alerts are only counted.
MAX_ALERTS_PER_ENTRY = 20


@dataclass(frozen=True, kw_only=True)
class NewTimelineEntry:
    """An entry to store in the timeline of an incident."""

    incident_id: int
    kind: EntryKind
    text: str = ""
    details: Mapping[str, Any] | None = None
    is_internal: bool = False


class TimelineEntry(Resource):
    """A stored entry in the timeline of an incident, with its author and details."""

    id: int
    incident_id: int
    kind: EntryKind
    user_id: int | None
    user_name: str
    text: str
    details: Mapping[str, Any]
    is_internal: bool
    created_at: datetime
    updated_at: datetime

    @property
    def user(self) -> IncidentPerson | None:
        """Author of the entry, or None for rules and commands."""
        return IncidentPerson(id=self.user_id, username=self.user_name) if self.user_name else None

    @property
    def page_key(self) -> str | None:
        """Key of the page that the entry describes, or None for other entries."""
        return self.details.get("page")

    @property
    def requested_by(self) -> str:
        """User or rule that requested the page, as a phrase such as `@alice`."""
        if self.details.get("rule"):
            return f"the rule “{self.details['rule']}”"
        return f"@{self.user_name}" if self.user_name else "the operator"

    @property
    def is_comment(self) -> bool:
        """True if the entry is a comment by a user."""
        return self.kind is EntryKind.NOTE

    @property
    def is_automatic(self) -> bool:
        """True if the entry was caused by a rule or by the state of the alerts."""
        has_reason = bool(self.details.get("rule") or self.details.get("because"))
        return not self.user_name and (has_reason or self.kind is EntryKind.JOINED)

    @property
    def is_edited(self) -> bool:
        """True if the comment was edited."""
        return self.updated_at > self.created_at


def build_alert_details(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the details of a timeline entry about alerts: their first numbers and their count."""
    return {"alerts": list(numbers[:MAX_ALERTS_PER_ENTRY]), "count": len(numbers)}


def add_timeline_entries(
    entries: Iterable[NewTimelineEntry],
    *,
    actor: EventActor | None,
    session: Session,
    now: datetime,
) -> None:
    """Store timeline entries.

    If `actor` is None, the entries are attributed to the service itself.
    """
    rows = [_build_acknowledgement_values(entry, actor, now) for entry in entries]
    if rows:
        session.execute(insert(IncidentNote), rows)


def add_timeline_entry(
    entry: NewTimelineEntry, *, actor: EventActor | None, session: Session, now: datetime
) -> IncidentNote:
    """Store a timeline entry, and return its row.

    Only modules of this package may use the row.
    """
    row = IncidentNote(**_build_acknowledgement_values(entry, actor, now))
    session.add(row)
    session.flush()  # The flush assigns the ID.
    return row


def _build_acknowledgement_values(
    entry: NewTimelineEntry, actor: EventActor | None, now: datetime
) -> dict[str, Any]:
    return {
        "incident_id": entry.incident_id,
        "user_id": actor.id if actor else None,
        "user_name": actor.name if actor else "",
        "kind": entry.kind.value,
        "text": entry.text,
        "details": dict(entry.details or {}),
        "is_internal": entry.is_internal,
        "created_at": now,
        "updated_at": now,
    }


def list_timeline_entries(
    incident_id: int,
    keyset_range: KeysetRange,
    *,
    shows_internal: bool,
    entry_filter: EntryFilter = EntryFilter.ALL,
    is_oldest_first: bool = False,
    session: Session,
) -> KeysetPage[TimelineEntry]:
    """Return a page of the timeline, newest first by default.

    The page continues at the entry with the ID `keyset_range.before`.
    """
    wanted = select(IncidentNote).where(IncidentNote.incident_id == incident_id)
    if not shows_internal:
        wanted = wanted.where(IncidentNote.is_internal.is_(False))
    if entry_filter is not EntryFilter.ALL:
        is_comment = IncidentNote.kind == EntryKind.NOTE.value
        wanted = wanted.where(is_comment if entry_filter is EntryFilter.COMMENTS else ~is_comment)
    key = IncidentNote.id
    if keyset_range.before is not None:
        wanted = wanted.where(
            key > keyset_range.before if is_oldest_first else key < keyset_range.before
        )
    order = key.asc() if is_oldest_first else key.desc()
    rows = session.scalars(wanted.order_by(order).limit(keyset_range.size + 1)).all()
    items = tuple(map(TimelineEntry.model_validate, rows[: keyset_range.size]))
    return KeysetPage(
        items=items, next_before=items[-1].id if len(rows) > keyset_range.size else None
    )


_Details = Mapping[str, Any]


def has_set_status(incident_id: int, user_id: int, *, session: Session) -> bool:
    """Return whether a user set the latest status of an incident."""
    newest = (
        select(IncidentNote.user_id)
        .where(IncidentNote.incident_id == incident_id, IncidentNote.kind == EntryKind.STATUS)
        .order_by(IncidentNote.id.desc())
        .limit(1)
    )
    return session.scalar(newest) == user_id


def _format_alerts(details: _Details) -> str:
    numbers = ", ".join(f"#{iid}" for iid in details.get("alerts", ()))
    left_out = details.get("count", 0) - len(details.get("alerts", ()))
    noun = "alert" if details.get("count") == 1 else "alerts"
    return f"{noun} {numbers}" + (f" and {left_out:,} more" if left_out > 0 else "")


def _format_opened_entry(details: _Details) -> str:
    by = f" by the rule “{details['rule']}”" if details.get("rule") else ""
    source = f" from {_format_alerts(details)}" if details.get("count") else ""
    return f"opened{by}{source}"


def _format_joined_entry(details: _Details) -> str:
    if details.get("rule"):
        rule = details["rule"]
        return f"added {_format_alerts(details)}, because the rule “{rule}” opened many incidents"
    return f"added {_format_alerts(details)}, received again"


def _format_status_entry(details: _Details) -> str:
    new, old = details["new"], details["old"]
    verb = {"acknowledged": "acknowledged it", "resolved": "closed it"}.get(new, "reopened it")
    if new == "triggered" and old == "acknowledged":
        verb = "withdrew the acknowledgement"
    if details.get("because"):
        return f"closed it: {details['because']}"
    count = details.get("count", 0)
    what = f" and its {count:,} {'alert' if count == 1 else 'alerts'}" if count else ""
    return verb.replace(" it", f" it{what}")


def _format_unpaged_entry(details: _Details) -> str:
    head, tail = "did not page all responders of", ""
    if details["nobody"]:
        head, tail = "paged nobody for", ", and the escalations of its alerts continue"
    return f"{head} the rule “{details['rule']}”: {'; '.join(details['reasons'])}{tail}"


_FORMATTERS: Mapping[EntryKind, Callable[[_Details], str]] = {
    EntryKind.OPENED: _format_opened_entry,
    EntryKind.JOINED: _format_joined_entry,
    EntryKind.LINKED: lambda details: f"linked {_format_alerts(details)}",
    EntryKind.UNLINKED: lambda details: f"unlinked {_format_alerts(details)}",
    EntryKind.STATUS: _format_status_entry,
    EntryKind.UNPAGED: _format_unpaged_entry,
    EntryKind.SEVERITY: lambda details: (
        f"changed the severity from {details['old']} to {details['new']}"
    ),
    EntryKind.TITLE: lambda details: (
        f"changed the title from “{details['old']}” to “{details['new']}”"
    ),
    EntryKind.DESCRIPTION: lambda _details: "changed the description",
    EntryKind.CLOSING: lambda details: (
        f"turned {'on' if details['new'] else 'off'} closing when its alerts are resolved"
    ),
    EntryKind.QUIET: lambda details: (
        "turned off pages for its open alerts while it is acknowledged"
        if details["new"]
        else "turned on pages for its open alerts while it is acknowledged"
    ),
}


def format_timeline_entry(entry: TimelineEntry) -> str:
    """Return a phrase such as `closed it and its 2 alerts`, or the text of a comment."""
    if entry.kind in {EntryKind.NOTE, EntryKind.PAGE}:
        return entry.text
    if entry.kind in {EntryKind.ASSIGNED, EntryKind.UNASSIGNED, EntryKind.PAGED}:
        return f"{entry.kind.value} @{entry.text}"
    return _FORMATTERS[entry.kind](entry.details)
