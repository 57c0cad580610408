"""The activity of an alert: user actions, notes, and changes made by reports.

Queries for earlier alerts have a bounded cost: they use the index on the fingerprint and read only
a few alerts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.storing.lifecycle import RESOLVED
from domain.alerts.storing.reported_fields import RECORDED_COLUMNS
from domain.audit.events import EventActor
from domain.core.database.bulk_statements import build_bulk_insert
from domain.core.database.pagination import KeysetPage, KeysetRange
from domain.core.types.base import get_column_values
from models import Alert, AlertNote

#: Prefix of `via` for actions that the service itself performs.
AUTOMATIC_VIA = "by itself"
#: Maximum number of earlier alerts that are counted exactly.
MAX_COUNTED_EARLIER_ALERTS = 20
_MAX_NOTE_EXCERPT_LENGTH = 200


class ActivityEntryKind(StrEnum):
    """The kinds of entries in an alert's activity, such as notes and status changes."""

    #: Text that a user wrote.
    NOTE = "note"
    #: Status that a user set.
    STATUS = "status"
    #: Username of the new assignee, or an empty string if the alert was unassigned.
    ASSIGNEE = "assignee"
    #: Outcome of paging a user or channel, as a sentence without its subject.
    PAGE = "page"
    #: Any other action by a user, such as snoozing, as a sentence without its subject.
    HANDLING = "handling"
    #: Reason why no page was sent or why paging is delayed, as a sentence.
    ESCALATION = "escalation"
    #: Fields that a report changed. A trigger stores them as a NOTE with changes (migration 0051).
    CHANGE = "change"


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """The value of a field before and after a report. None means no value."""

    #: Name of the field on web pages.
    field: str
    old: str | None
    new: str | None
    #: True if the severity increased.
    is_rise: bool = False


@dataclass(frozen=True, kw_only=True)
class ActivityView:
    """An entry in an alert's activity."""

    id: int
    kind: ActivityEntryKind
    #: ID of the user, or None for changes made by a report and for deleted accounts.
    user_id: int | None
    user_name: str
    text: str
    created_at: datetime
    #: Source of the action as a phrase, or None if the user used a web page or a token.
    via: str | None = None
    changes: tuple[FieldChange, ...] = ()

    @property
    def author(self) -> Mapping[str, object] | None:
        """ID and name of the author, or None for a report or the command line."""
        has_author = self.kind is not ActivityEntryKind.CHANGE and self.user_name
        return {"id": self.user_id, "username": self.user_name} if has_author else None

    @property
    def is_automatic(self) -> bool:
        """True if the service itself performed the action."""
        return bool(self.via and self.via.startswith(AUTOMATIC_VIA))


def add_activity_entry(
    alert_id: int,
    kind: ActivityEntryKind,
    text: str,
    *,
    by: EventActor | None,
    session: Session,
    now: datetime,
) -> AlertNote:
    """Add an entry to the activity of an alert, and return its row.

    If `by` is None, the entry is attributed to the command line. Only modules of this package may
    use the row.
    """
    row = AlertNote(
        alert_id=alert_id,
        user_id=by.id if by else None,
        user_name=by.name if by else "",
        kind=kind.value,
        text=text,
        created_at=now,
    )
    session.add(row)
    return row


@dataclass(frozen=True, kw_only=True)
class NewActivityEntry:
    """An activity entry that the service writes, optionally about a user."""

    alert_id: int
    kind: ActivityEntryKind
    text: str
    user_id: int | None = None
    user_name: str = ""


def add_activity_entries(
    entries: Sequence[NewActivityEntry], *, session: Session, now: datetime
) -> None:
    """Add activity entries for several alerts in one statement."""
    if entries:
        rows = [{**vars(entry), "kind": entry.kind.value, "created_at": now} for entry in entries]
        session.execute(build_bulk_insert(AlertNote), rows)


def list_activity(
    alert_id: int, part: KeysetRange, *, session: Session
) -> KeysetPage[ActivityView]:
    """Return a page of an alert's activity, newest first."""
    return _fetch_activity_page(
        select(AlertNote).where(AlertNote.alert_id == alert_id), part, session=session
    )


def list_notes(alert_id: int, part: KeysetRange, *, session: Session) -> KeysetPage[ActivityView]:
    """Return a page of the notes that users wrote about an alert, newest first."""
    written = select(AlertNote).where(
        AlertNote.alert_id == alert_id,
        AlertNote.kind == ActivityEntryKind.NOTE.value,
        AlertNote.changes.is_(None),
    )
    return _fetch_activity_page(written, part, session=session)


def list_activity_for_alerts(
    alert_ids: Collection[int],
    following: int | None,
    *,
    kinds: Collection[ActivityEntryKind] = frozenset(ActivityEntryKind),
    size: int,
    is_oldest_first: bool,
    session: Session,
) -> Sequence[tuple[int, ActivityView]]:
    """Return activity entries for several alerts, each with the ID of its alert.

    The entries start after the entry with the ID `following`. They are in reverse chronological
    order unless `is_oldest_first` is set.
    """
    # Adding 0 prevents Postgres from scanning the entries of all alerts in the order of their IDs.
    key = AlertNote.id + 0
    wanted = select(AlertNote).where(
        AlertNote.alert_id.in_(alert_ids), *_build_kind_conditions(kinds)
    )
    if following is not None:
        wanted = wanted.where(key > following if is_oldest_first else key < following)
    order = key.asc() if is_oldest_first else key.desc()
    rows = session.scalars(wanted.order_by(order).limit(size))
    return [(row.alert_id, build_activity_view(row)) for row in rows]


def _build_kind_conditions(kinds: Collection[ActivityEntryKind]) -> Iterator[ColumnElement[bool]]:
    if ActivityEntryKind.CHANGE not in kinds:
        yield AlertNote.changes.is_(None)
    if len(kinds) < len(ActivityEntryKind):
        yield AlertNote.kind.in_([each.value for each in kinds])


def _fetch_activity_page(
    statement: Select[AlertNote], part: KeysetRange, *, session: Session
) -> KeysetPage[ActivityView]:
    if part.before is not None:
        statement = statement.where(AlertNote.id < part.before)
    newest = statement.order_by(AlertNote.id.desc()).limit(part.size + 1)
    rows = session.scalars(newest).all()
    items = tuple(map(build_activity_view, rows[: part.size]))
    return KeysetPage(
        items=items, next_before=items[-1].id if items and len(rows) > part.size else None
    )


def build_activity_view(row: AlertNote) -> ActivityView:
    """Convert the database row of an activity entry to a view."""
    changes: Mapping[str, list[Any]] = row.changes or {}
    return ActivityView(
        **get_column_values(row, ActivityView)
        | {
            "kind": ActivityEntryKind(row.kind)
            if row.changes is None
            else ActivityEntryKind.CHANGE,
            "changes": tuple(
                _build_field_change(name, *changes[name])
                for name in RECORDED_COLUMNS
                if name in changes
            ),
        }
    )


def _build_field_change(name: str, old: Any, new: Any) -> FieldChange:
    if name == "severity":
        words = SEVERITIES[old].value, SEVERITIES[new].value
        return FieldChange(field="severity", old=words[0], new=words[1], is_rise=new < old)
    return FieldChange(field=name.replace("_", " "), old=old, new=new)


@dataclass(frozen=True, kw_only=True)
class EarlierAlertNote:
    """The last note on an earlier alert, or the user who resolved the alert."""

    iid: int
    #: Name of the user, or an empty string if the account was deleted.
    user_name: str
    #: First characters of the note as one line, or None if a user resolved the alert without a
    #: note.
    text: str | None


@dataclass(frozen=True, kw_only=True)
class EarlierAlerts:
    """Earlier alerts with the same fingerprint as an alert."""

    count: int
    #: True if there are more earlier alerts than `count`.
    has_more: bool
    #: Number (`iid`) of the most recent earlier alert.
    last_iid: int
    last_started_at: datetime
    note: EarlierAlertNote | None

    @property
    def count_phrase(self) -> str:
        """Number of earlier alerts as a phrase, such as "twice"."""
        if self.has_more:
            return f"more than {self.count} times"
        return {1: "once", 2: "twice"}.get(self.count, f"{self.count} times")


def find_earlier_alerts(alert_id: int, *, session: Session) -> EarlierAlerts | None:
    """Return a summary of earlier alerts with the same fingerprint.

    Return None if this is the first alert with its fingerprint, or if the alert has no fingerprint.
    """
    of = select(Alert.project_id, Alert.fingerprint).where(Alert.id == alert_id)
    found = session.execute(of).first()
    if found is None or found.fingerprint is None:
        return None
    # With `+ 0`, the planner can only use the indexes that begin with the fingerprint (migration
    # 0051).
    rows = session.execute(
        select(Alert.id, Alert.iid, Alert.started_at)
        .where(
            Alert.fingerprint == found.fingerprint,
            Alert.project_id + 0 == found.project_id,
            Alert.id < alert_id,
        )
        .order_by(Alert.project_id.desc(), Alert.id.desc())
        .limit(MAX_COUNTED_EARLIER_ALERTS + 1)
    ).all()
    if not rows:
        return None
    counted = rows[:MAX_COUNTED_EARLIER_ALERTS]
    return EarlierAlerts(
        count=len(counted),
        has_more=len(rows) > MAX_COUNTED_EARLIER_ALERTS,
        last_iid=rows[0].iid,
        last_started_at=rows[0].started_at,
        note=_find_last_note({row.id: row.iid for row in counted}, session=session),
    )


def _find_last_note(iids: dict[int, int], *, session: Session) -> EarlierAlertNote | None:
    """Return the latest note on the alerts, or the user who last resolved one of the alerts."""
    row = _find_latest_entry(tuple(iids), ActivityEntryKind.NOTE, session=session)
    if row is not None:
        return EarlierAlertNote(
            iid=iids[row.alert_id], user_name=row.user_name, text=_shorten_note(row.text)
        )
    row = _find_latest_entry(tuple(iids), ActivityEntryKind.STATUS, session=session)
    if row is None or row.text != RESOLVED or not row.user_name:
        return None
    return EarlierAlertNote(iid=iids[row.alert_id], user_name=row.user_name, text=None)


def _find_latest_entry(
    ids: Sequence[int], kind: ActivityEntryKind, *, session: Session
) -> AlertNote | None:
    # Sorting by the alert first prevents Postgres from scanning the whole table in the order of
    # IDs.
    return session.scalar(
        select(AlertNote)
        .where(
            AlertNote.alert_id.in_(ids), AlertNote.kind == kind.value, AlertNote.changes.is_(None)
        )
        .order_by(AlertNote.alert_id.desc(), AlertNote.id.desc())
        .limit(1)
    )


def _shorten_note(text: str) -> str:
    line = " ".join(text.split())
    return (
        line
        if len(line) <= _MAX_NOTE_EXCERPT_LENGTH
        else f"{line[: _MAX_NOTE_EXCERPT_LENGTH - 1].rstrip()}…"
    )
