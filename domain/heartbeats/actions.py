"""Actions on heartbeats, their pings and their URLs."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, Select, delete, func, select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.core.database.paging import Page, Slice, fetch_page, fetch_part
from domain.core.database.statements import SessionConnection, columns_for
from domain.core.errors import InvalidError, NotFoundError
from domain.core.grace_period import GracePeriod
from domain.core.keyring import Keyring
from domain.core.randomness import random_uuid
from domain.core.types.base import Found, PagedQuery
from domain.heartbeats.evaluation import facts_of, fingerprint_of, schedule_of, settle
from domain.heartbeats.states import HeartbeatState, Schedule, milliseconds, next_due, shown_state
from domain.heartbeats.types import (
    Address,
    Heartbeat,
    HeartbeatChange,
    HeartbeatPing,
    HeartbeatQuery,
    HeartbeatUrl,
    HeartbeatWithUrl,
    NewHeartbeat,
    UrlReset,
)
from domain.projects.views import ProjectView
from models import Alert, Project
from models import Heartbeat as HeartbeatRow
from models import HeartbeatPing as PingRow

#: Maximum number of heartbeats in a project.
MOST = 1_000
#: Maximum time during which a replaced URL stays valid.
LONGEST_GRACE = max(each.length for each in GracePeriod)
_BY_URGENCY = tuple(HeartbeatState(word) for word in ("down", "late", "up", "new", "paused"))


@question("heartbeats.index")
def list_heartbeats(work: Work, project: ProjectView, query: HeartbeatQuery) -> Found[Heartbeat]:
    """List the heartbeats of a project."""
    rows = _heartbeats(project)
    found = fetch_part(rows, {"id": HeartbeatRow.id}, query.part, session=work.session)
    alerts = _open_alerts(work, project, found.items)
    return Found.of(found, lambda row: _heartbeat(work, project, row, alerts))


@question("heartbeats.index")
def list_by_urgency(work: Work, project: ProjectView) -> list[Heartbeat]:
    """Return all heartbeats of a project, most urgent first."""
    rows = work.session.execute(_heartbeats(project)).all()
    alerts = _open_alerts(work, project, rows)
    found = [_heartbeat(work, project, row, alerts) for row in rows]
    return sorted(found, key=lambda each: (_BY_URGENCY.index(each.state), each.name.lower()))


@question("heartbeats.show")
def show_heartbeat(work: Work, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Show a heartbeat.

    Raise NotFoundError if the project has no such heartbeat.
    """
    statement = _heartbeats(project).where(HeartbeatRow.id == heartbeat_id)
    row = work.session.execute(statement).first()
    if row is None:
        raise _not_found()
    return _heartbeat(work, project, row, _open_alerts(work, project, [row]))


@question("heartbeats.pings")
def list_pings(
    work: Work, project: ProjectView, heartbeat_id: int, query: PagedQuery
) -> Found[HeartbeatPing]:
    """List the pings in the log of a heartbeat, newest first.

    Raise NotFoundError if the project has no such heartbeat.
    """
    _get(work, _row(project, heartbeat_id))
    rows = _pings(heartbeat_id)
    found = fetch_part(rows, {"id": PingRow.id}, query.part, session=work.session)
    return Found.of(found, HeartbeatPing.model_validate)


@question("heartbeats.pings")
def show_log(
    work: Work, project: ProjectView, heartbeat_id: int, part: Slice
) -> Page[HeartbeatPing]:
    """Return a page of the log of a heartbeat.

    Raise NotFoundError if the project has no such heartbeat.
    """
    _get(work, _row(project, heartbeat_id))
    present = HeartbeatPing.model_validate
    return fetch_page(_pings(heartbeat_id), PingRow.id, part, session=work.session, view=present)


@action("heartbeats.create")
def create_heartbeat(work: Work, project: ProjectView, new: NewHeartbeat) -> HeartbeatWithUrl:
    """Create a heartbeat, which waits for its first ping.

    Raise InvalidError if a value is not valid or the project has too many heartbeats.
    """
    # The lock makes concurrent requests count each other's heartbeats.
    lock = select(Project.id).where(Project.id == project.id).with_for_update(key_share=True)
    work.session.execute(lock)
    count = select(func.count()).where(HeartbeatRow.project_id == project.id)
    if (work.session.scalar(count) or 0) >= MOST:
        message = f"A project can have at most {MOST:,} heartbeats. Delete a heartbeat first."
        raise InvalidError(message)
    row = HeartbeatRow(project_id=project.id, state=HeartbeatState.NEW.value, created_at=work.now)
    _set(row, dict(new), {})
    key = _new_key(work, row)
    work.session.add(row)
    work.session.flush()
    _record(work, project, row, "created")
    made = show_heartbeat(work, project, row.id)
    return HeartbeatWithUrl(**dict(made), url=_url(work, key))


@action("heartbeats.change")
def change_heartbeat(
    work: Work, project: ProjectView, heartbeat_id: int, change: HeartbeatChange
) -> Heartbeat:
    """Change a heartbeat.

    A new schedule starts at the last ping.

    Raise InvalidError or NotFoundError.
    """
    row = _lock(work, project, heartbeat_id)
    _set(row, change.given, vars(schedule_of(row)))
    if work.session.is_modified(row):
        if row.state in {HeartbeatState.NEW.value, HeartbeatState.UP.value}:
            row.due_ms = milliseconds(work.now)
        _record(work, project, row, "changed")
    return _stored(work, project, row)


@action("heartbeats.pause")
def pause_heartbeat(work: Work, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Pause a heartbeat and resolve its open alert.

    Pings are only logged while the heartbeat is paused.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock(work, project, heartbeat_id)
    if row.state != HeartbeatState.PAUSED.value:
        _record(work, project, row, "paused")
    _pause(work, row)
    return _stored(work, project, row)


@action("heartbeats.resume")
def resume_heartbeat(work: Work, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Resume a heartbeat as if a ping had just arrived.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock(work, project, heartbeat_id)
    if row.state == HeartbeatState.PAUSED.value:
        is_new = row.last_ping_at is None
        row.state = (HeartbeatState.NEW if is_new else HeartbeatState.UP).value
        row.paused_at, row.counted_from = None, None if is_new else work.now
        row.due_ms = milliseconds(work.now)
        _record(work, project, row, "resumed")
    return _stored(work, project, row)


@action("heartbeats.delete")
def delete_heartbeat(work: Work, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Delete a heartbeat and its log, and resolve its open alert.

    The alerts of the heartbeat are kept.

    Return the deleted heartbeat. Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock(work, project, heartbeat_id)
    before = show_heartbeat(work, project, heartbeat_id)
    _pause(work, row)
    work.session.execute(delete(HeartbeatRow).where(HeartbeatRow.id == heartbeat_id))
    _record(work, project, before, "deleted")
    return before


@question("heartbeats.url")
def show_url(work: Work, project: ProjectView, heartbeat_id: int) -> HeartbeatUrl:
    """Show the URL of a heartbeat.

    The request is recorded in the audit log.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _get(work, _row(project, heartbeat_id))
    kind = EventKind.HEARTBEAT_URL_READ
    work.record(kind, subject=row.name, details={"project": project.path})
    return HeartbeatUrl.model_validate(_address(work, row))


@question("heartbeats.url")
def find_address(work: Work, project: ProjectView, heartbeat_id: int) -> Address:
    """Return the URL of a heartbeat for its page.

    Raise NotFoundError if the project has no such heartbeat.
    """
    return _address(work, _get(work, _row(project, heartbeat_id)))


@action("heartbeats.reset_url")
def reset_url(work: Work, project: ProjectView, heartbeat_id: int, reset: UrlReset) -> HeartbeatUrl:
    """Replace the URL of a heartbeat.

    The old URL can stay valid for some time.

    Raise InvalidError or NotFoundError.
    """
    if reset.previous_for > LONGEST_GRACE:
        message = f"The old URL can stay valid for at most {LONGEST_GRACE.days} days."
        raise InvalidError(message, field="previous_for")
    row = _lock(work, project, heartbeat_id)
    is_kept = reset.previous_for > timedelta(0)
    row.previous_key_digest = row.key_digest if is_kept else None
    row.previous_key_expires_at = work.now + reset.previous_for if is_kept else None
    _new_key(work, row)
    work.session.flush()  # Fails here if the key is not unique.
    until = row.previous_key_expires_at
    _record(work, project, row, "url_reset", previous_url_expires_at=until and until.isoformat())
    return HeartbeatUrl.model_validate(_address(work, row))


def _heartbeats(project: ProjectView) -> Select[*tuple[Any, ...]]:
    columns = columns_for(HeartbeatRow.__mapper__.column_attrs.keys(), {"": HeartbeatRow})
    return select(*columns, HeartbeatRow.pings.label("pings_count")).where(
        HeartbeatRow.project_id == project.id
    )


def _pings(heartbeat_id: int) -> Select[*tuple[Any, ...]]:
    """Return a query for the log of a heartbeat with the fields of `HeartbeatPing`."""
    kept = func.coalesce(func.length(PingRow.body), 0)
    return select(
        *PingRow.__table__.columns,
        PingRow.sender.label("remote_address"),
        PingRow.size.label("body_size"),
        (PingRow.size > kept).label("body_truncated"),
    ).where(PingRow.heartbeat_id == heartbeat_id)


def _open_alerts(
    work: Work, project: ProjectView, rows: Sequence[Row[*tuple[Any, ...]]]
) -> Mapping[bytes, int]:
    """Return the numbers of open alerts of heartbeats, by their fingerprints."""
    wanted = [fingerprint_of(row.id) for row in rows if row.has_alert]
    if not wanted:
        return {}
    found = work.session.execute(
        select(Alert.fingerprint, Alert.iid).where(
            Alert.fingerprint.in_(wanted),
            Alert.project_id == project.id,
            Alert.status != "resolved",
        )
    )
    return {row.fingerprint: row.iid for row in found}


def _heartbeat(
    work: Work, project: ProjectView, row: Row[*tuple[Any, ...]], alerts: Mapping[bytes, int]
) -> Heartbeat:
    facts = facts_of(row)
    schedule, state = facts.schedule, facts.state
    is_expected = state is HeartbeatState.UP and facts.counted_from is not None
    expected_at = schedule.expected_after(row.counted_from) if is_expected else None
    return Heartbeat(
        **{
            **row._asdict(),
            "state": shown_state(state, expected_at, work.now),
            "next_expected_at": expected_at,
            "overdue_at": None if state is HeartbeatState.DOWN else next_due(facts)[0],
            "started_at": facts.started_at,
            "alert_iid": alerts.get(fingerprint_of(row.id)),
            "web_url": f"{work.settings.base_url}/{project.path}/-/heartbeats/{row.id}",
        }
    )


def _row(project: ProjectView, heartbeat_id: int) -> Select[HeartbeatRow]:
    return (
        select(HeartbeatRow)
        .where(HeartbeatRow.project_id == project.id, HeartbeatRow.id == heartbeat_id)
        .execution_options(populate_existing=True)
    )


def _get(work: Work, statement: Select[HeartbeatRow]) -> HeartbeatRow:
    row = work.session.scalars(statement).first()
    if row is None:
        raise _not_found()
    return row


def _lock(work: Work, project: ProjectView, heartbeat_id: int) -> HeartbeatRow:
    return _get(work, _row(project, heartbeat_id).with_for_update())


def _not_found() -> NotFoundError:
    return NotFoundError("Heartbeat not found in this project.")


def _set(row: HeartbeatRow, given: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Set the given values.

    Raise InvalidError for a schedule that cannot be met.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    schedule = _schedule(wanted, dict(present))
    for name, value in {**wanted, **vars(schedule)}.items():
        setattr(row, name, value)
    row.description, row.environment = row.description.strip(), row.environment or None


def _schedule(wanted: Mapping[str, Any], present: dict[str, Any]) -> Schedule:
    """Return the current schedule with the given changes."""
    # An interval replaces a cron expression, and vice versa.
    if wanted.get("cron"):
        present["every"] = None
    if "every" in wanted:
        present["cron"] = None
    parts = Schedule.__dataclass_fields__.keys() & wanted.keys()
    values = present | {name: wanted[name] for name in parts}
    return Schedule(**{**values, "cron": values["cron"] or None})


def _new_key(work: Work, row: HeartbeatRow) -> str:
    """Generate a new URL for a heartbeat, and return its secret part."""
    key, keyring = random_uuid(), work.policy(Keyring)
    row.key_digest, row.key_ciphertext = keyring.digest(key), keyring.encrypt(key)
    return key


def _address(work: Work, row: HeartbeatRow) -> Address:
    until = row.previous_key_expires_at
    is_live = row.previous_key_digest is not None and until is not None and until > work.now
    secret = work.policy(Keyring).decrypt(row.key_ciphertext)
    return Address(
        id=row.id,
        url=_url(work, secret),
        secret=secret,
        previous_url_expires_at=until if is_live else None,
    )


def _url(work: Work, key: str) -> str:
    return f"{work.settings.base_url}/-/ping/{key}"


def _pause(work: Work, row: HeartbeatRow) -> None:
    """Set the state to paused, and resolve the open alert."""
    if row.state != HeartbeatState.PAUSED.value:
        row.state, row.paused_at = HeartbeatState.PAUSED.value, work.now
        row.down_since = row.started_ms = row.started_rid = None
        row.due_ms = milliseconds(work.now) if row.has_alert else None
    work.session.flush()
    settle(row.id, connection=SessionConnection(work.session), now=work.now)


def _record(
    work: Work,
    project: ProjectView,
    heartbeat: HeartbeatRow | Heartbeat,
    change: str,
    **more: object,
) -> None:
    details = {"project": project.path, "heartbeat": heartbeat.id, "change": change, **more}
    work.record(EventKind.HEARTBEAT_CHANGED, subject=heartbeat.name, details=details)


def _stored(work: Work, project: ProjectView, row: HeartbeatRow) -> Heartbeat:
    work.session.flush()
    return show_heartbeat(work, project, row.id)
