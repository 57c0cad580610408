"""Actions on heartbeats, their pings and their URLs."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, Select, delete, func, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_list_page, fetch_page
from domain.core.database.statements import SessionConnection, build_columns
from domain.core.errors import InvalidError, NotFoundError
from domain.core.grace_period import GracePeriod
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_uuid
from domain.core.time_zones import normalize_zone_name
from domain.core.types.pagination import ListPage, PagedQuery
from domain.heartbeats.evaluation import (
    build_heartbeat_facts,
    build_schedule,
    compute_heartbeat_fingerprint,
    evaluate_heartbeat,
)
from domain.heartbeats.states import (
    HeartbeatSchedule,
    HeartbeatState,
    convert_to_unix_ms,
    get_next_due_time,
)
from domain.heartbeats.types import (
    Heartbeat,
    HeartbeatChange,
    HeartbeatPing,
    HeartbeatQuery,
    HeartbeatUrl,
    HeartbeatUrlWithSecret,
    HeartbeatWithUrl,
    NewHeartbeat,
    UrlReset,
)
from domain.projects.views import ProjectView
from models import Alert, Project
from models import Heartbeat as HeartbeatRow
from models import HeartbeatPing as PingRow

#: Maximum number of heartbeats in a project.
MAX_HEARTBEATS = 1_000
#: Maximum time during which a replaced URL stays valid.
MAX_URL_GRACE_PERIOD = max(each.length for each in GracePeriod)
_STATES_BY_URGENCY = tuple(HeartbeatState(word) for word in ("down", "late", "up", "new", "paused"))


@read_action("heartbeats.index")
def list_heartbeats(
    work: UnitOfWork, project: ProjectView, query: HeartbeatQuery
) -> ListPage[Heartbeat]:
    """List the heartbeats of a project."""
    rows = _build_heartbeats_query(project)
    found = fetch_list_page(
        rows, {"id": HeartbeatRow.id}, query.requested_range, session=work.session
    )
    alerts = _find_open_alerts(work, project, found.items)
    return ListPage.from_page_result(
        found, lambda row: _build_heartbeat(work, project, row, alerts)
    )


@read_action("heartbeats.index")
def list_heartbeats_by_urgency(work: UnitOfWork, project: ProjectView) -> list[Heartbeat]:
    """Return all heartbeats of a project, most urgent first."""
    rows = work.session.execute(_build_heartbeats_query(project)).all()
    alerts = _find_open_alerts(work, project, rows)
    found = [_build_heartbeat(work, project, row, alerts) for row in rows]
    return sorted(found, key=lambda each: (_STATES_BY_URGENCY.index(each.state), each.name.lower()))


@read_action("heartbeats.show")
def show_heartbeat(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Show a heartbeat.

    Raise NotFoundError if the project has no such heartbeat.
    """
    statement = _build_heartbeats_query(project).where(HeartbeatRow.id == heartbeat_id)
    row = work.session.execute(statement).first()
    if row is None:
        raise NotFoundError("Heartbeat not found in this project.")
    return _build_heartbeat(work, project, row, _find_open_alerts(work, project, [row]))


@read_action("heartbeats.pings")
def list_pings(
    work: UnitOfWork, project: ProjectView, heartbeat_id: int, query: PagedQuery
) -> ListPage[HeartbeatPing]:
    """List the pings in the log of a heartbeat, newest first.

    Raise NotFoundError if the project has no such heartbeat.
    """
    _get_row(work, _build_row_query(project, heartbeat_id))
    rows = _build_pings_query(heartbeat_id)
    found = fetch_list_page(rows, {"id": PingRow.id}, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, HeartbeatPing.model_validate)


@read_action("heartbeats.pings")
def fetch_ping_page(
    work: UnitOfWork, project: ProjectView, heartbeat_id: int, part: KeysetRange
) -> KeysetPage[HeartbeatPing]:
    """Return a page of a heartbeat's ping log.

    Raise NotFoundError if the project has no such heartbeat.
    """
    _get_row(work, _build_row_query(project, heartbeat_id))
    present = HeartbeatPing.model_validate
    return fetch_page(
        _build_pings_query(heartbeat_id), PingRow.id, part, session=work.session, view=present
    )


@action("heartbeats.create")
def create_heartbeat(work: UnitOfWork, project: ProjectView, new: NewHeartbeat) -> HeartbeatWithUrl:
    """Create a heartbeat that waits for its first ping.

    Raise InvalidError if a value is not valid or the project has too many heartbeats.
    """
    # The lock serializes concurrent requests, so that their heartbeats are counted.
    lock = select(Project.id).where(Project.id == project.id).with_for_update(key_share=True)
    work.session.execute(lock)
    count = select(func.count()).where(HeartbeatRow.project_id == project.id)
    if (work.session.scalar(count) or 0) >= MAX_HEARTBEATS:
        message = (
            f"A project can have at most {MAX_HEARTBEATS:,} heartbeats. Delete a heartbeat first."
        )
        raise InvalidError(message)
    row = HeartbeatRow(project_id=project.id, state=HeartbeatState.NEW.value, created_at=work.now)
    _set_values(row, dict(new), {})
    key = _generate_key(work, row)
    work.session.add(row)
    work.session.flush()
    _record_change(work, project, row, "created")
    made = show_heartbeat(work, project, row.id)
    return HeartbeatWithUrl(**dict(made), url=_build_url(work, key))


@action("heartbeats.change")
def change_heartbeat(
    work: UnitOfWork, project: ProjectView, heartbeat_id: int, change: HeartbeatChange
) -> Heartbeat:
    """Change a heartbeat.

    A new schedule starts at the last ping.

    Raise NotFoundError if the project has no such heartbeat, or InvalidError for an invalid value.
    """
    row = _lock_row(work, project, heartbeat_id)
    _set_values(row, change.given_values, vars(build_schedule(row)))
    if work.session.is_modified(row):
        if row.state in {HeartbeatState.NEW.value, HeartbeatState.UP.value}:
            row.due_ms = convert_to_unix_ms(work.now)
        _record_change(work, project, row, "changed")
    return _flush_and_show(work, project, row)


@action("heartbeats.pause")
def pause_heartbeat(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Pause a heartbeat and resolve its open alert.

    While a heartbeat is paused, pings are only logged.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock_row(work, project, heartbeat_id)
    if row.state != HeartbeatState.PAUSED.value:
        _record_change(work, project, row, "paused")
    _pause_and_resolve(work, row)
    return _flush_and_show(work, project, row)


@action("heartbeats.resume")
def resume_heartbeat(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Resume a heartbeat as if a ping had just arrived.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock_row(work, project, heartbeat_id)
    if row.state == HeartbeatState.PAUSED.value:
        is_new = row.last_ping_at is None
        row.state = (HeartbeatState.NEW if is_new else HeartbeatState.UP).value
        row.paused_at, row.counted_from = None, None if is_new else work.now
        row.due_ms = convert_to_unix_ms(work.now)
        _record_change(work, project, row, "resumed")
    return _flush_and_show(work, project, row)


@action("heartbeats.delete")
def delete_heartbeat(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Delete a heartbeat and its log, and resolve its open alert.

    The alerts of the heartbeat are not deleted.

    Return the deleted heartbeat. Raise NotFoundError if the project has no such heartbeat.
    """
    row = _lock_row(work, project, heartbeat_id)
    before = show_heartbeat(work, project, heartbeat_id)
    _pause_and_resolve(work, row)
    work.session.execute(delete(HeartbeatRow).where(HeartbeatRow.id == heartbeat_id))
    _record_change(work, project, before, "deleted")
    return before


@read_action("heartbeats.url")
def show_url(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> HeartbeatUrl:
    """Show the URL of a heartbeat.

    The request is recorded in the audit log.

    Raise NotFoundError if the project has no such heartbeat.
    """
    row = _get_row(work, _build_row_query(project, heartbeat_id))
    kind = EventKind.HEARTBEAT_URL_READ
    work.record_audit_event(kind, subject=row.name, details={"project": project.path})
    return HeartbeatUrl.model_validate(_build_url_with_secret(work, row))


@read_action("heartbeats.url")
def get_heartbeat_url(
    work: UnitOfWork, project: ProjectView, heartbeat_id: int
) -> HeartbeatUrlWithSecret:
    """Return the URL of a heartbeat for display on its web page.

    Raise NotFoundError if the project has no such heartbeat.
    """
    return _build_url_with_secret(work, _get_row(work, _build_row_query(project, heartbeat_id)))


@action("heartbeats.reset_url")
def reset_url(
    work: UnitOfWork, project: ProjectView, heartbeat_id: int, reset: UrlReset
) -> HeartbeatUrl:
    """Replace the URL of a heartbeat.

    The old URL can stay valid for a grace period.

    Raise NotFoundError if the project has no such heartbeat, or InvalidError if the grace period is
    too long.
    """
    if reset.previous_for > MAX_URL_GRACE_PERIOD:
        message = f"The old URL can stay valid for at most {MAX_URL_GRACE_PERIOD.days} days."
        raise InvalidError(message, field="previous_for")
    row = _lock_row(work, project, heartbeat_id)
    is_kept = reset.previous_for > timedelta(0)
    row.previous_key_digest = row.key_digest if is_kept else None
    row.previous_key_expires_at = work.now + reset.previous_for if is_kept else None
    _generate_key(work, row)
    work.session.flush()  # The flush fails if the key is not unique.
    until = row.previous_key_expires_at
    _record_change(
        work, project, row, "url_reset", previous_url_expires_at=until and until.isoformat()
    )
    return HeartbeatUrl.model_validate(_build_url_with_secret(work, row))


def _build_heartbeats_query(project: ProjectView) -> Select[*tuple[Any, ...]]:
    columns = build_columns(HeartbeatRow.__mapper__.column_attrs.keys(), {"": HeartbeatRow})
    return select(*columns, HeartbeatRow.pings.label("pings_count")).where(
        HeartbeatRow.project_id == project.id
    )


def _build_pings_query(heartbeat_id: int) -> Select[*tuple[Any, ...]]:
    """Return a query for a heartbeat's log that selects the fields of `HeartbeatPing`."""
    kept = func.coalesce(func.length(PingRow.body), 0)
    return select(
        *PingRow.__table__.columns,
        PingRow.sender.label("remote_address"),
        PingRow.size.label("body_size"),
        (PingRow.size > kept).label("body_truncated"),
    ).where(PingRow.heartbeat_id == heartbeat_id)


def _find_open_alerts(
    work: UnitOfWork, project: ProjectView, rows: Sequence[Row[*tuple[Any, ...]]]
) -> Mapping[bytes, int]:
    """Return the IIDs of open heartbeat alerts, by fingerprint."""
    wanted = [compute_heartbeat_fingerprint(row.id) for row in rows if row.has_alert]
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


def _build_heartbeat(
    work: UnitOfWork, project: ProjectView, row: Row[*tuple[Any, ...]], alerts: Mapping[bytes, int]
) -> Heartbeat:
    facts = build_heartbeat_facts(row)
    schedule, state = facts.schedule, facts.state
    is_expected = state is HeartbeatState.UP and facts.counted_from is not None
    expected_at = schedule.get_expected_time(row.counted_from) if is_expected else None
    is_late = expected_at is not None and expected_at < work.now
    return Heartbeat(
        **{
            **row._asdict(),
            "state": HeartbeatState.LATE if is_late else state,
            "next_expected_at": expected_at,
            "overdue_at": None if state is HeartbeatState.DOWN else get_next_due_time(facts)[0],
            "started_at": facts.started_at,
            "alert_iid": alerts.get(compute_heartbeat_fingerprint(row.id)),
            "web_url": f"{work.settings.base_url}/{project.path}/-/heartbeats/{row.id}",
        }
    )


def _build_row_query(project: ProjectView, heartbeat_id: int) -> Select[HeartbeatRow]:
    return (
        select(HeartbeatRow)
        .where(HeartbeatRow.project_id == project.id, HeartbeatRow.id == heartbeat_id)
        .execution_options(populate_existing=True)
    )


def _get_row(work: UnitOfWork, statement: Select[HeartbeatRow]) -> HeartbeatRow:
    row = work.session.scalars(statement).first()
    if row is None:
        raise NotFoundError("Heartbeat not found in this project.")
    return row


def _lock_row(work: UnitOfWork, project: ProjectView, heartbeat_id: int) -> HeartbeatRow:
    return _get_row(work, _build_row_query(project, heartbeat_id).with_for_update())


def _set_values(
    row: HeartbeatRow, given_values: Mapping[str, Any], present: Mapping[str, Any]
) -> None:
    """Set the given values of a heartbeat.

    Raise InvalidError for a schedule that cannot be met.
    """
    wanted = {name: value for name, value in given_values.items() if value is not None}
    schedule = _build_changed_schedule(wanted, dict(present))
    for name, value in {**wanted, **vars(schedule)}.items():
        setattr(row, name, value)
    row.description, row.environment = row.description.strip(), row.environment or None


def _build_changed_schedule(
    wanted: Mapping[str, Any], present: dict[str, Any]
) -> HeartbeatSchedule:
    """Return the current schedule with the given changes."""
    # An interval replaces a cron expression, and vice versa.
    if wanted.get("cron"):
        present["every"] = None
    if "every" in wanted:
        present["cron"] = None
    parts = HeartbeatSchedule.__dataclass_fields__.keys() & wanted.keys()
    values = present | {name: wanted[name] for name in parts}
    if "time_zone" in wanted:
        values["time_zone"] = normalize_zone_name(wanted["time_zone"])
    return HeartbeatSchedule(**{**values, "cron": values["cron"] or None})


def _generate_key(work: UnitOfWork, row: HeartbeatRow) -> str:
    """Generate a new URL for a heartbeat, and return its secret part."""
    key, keyring = generate_random_uuid(), work.policy(Keyring)
    row.key_digest, row.key_ciphertext = keyring.compute_digest(key), keyring.encrypt(key)
    return key


def _build_url_with_secret(work: UnitOfWork, row: HeartbeatRow) -> HeartbeatUrlWithSecret:
    until = row.previous_key_expires_at
    is_valid = row.previous_key_digest is not None and until is not None and until > work.now
    secret = work.policy(Keyring).decrypt(row.key_ciphertext)
    return HeartbeatUrlWithSecret(
        id=row.id,
        url=_build_url(work, secret),
        secret=secret,
        previous_url_expires_at=until if is_valid else None,
    )


def _build_url(work: UnitOfWork, key: str) -> str:
    return f"{work.settings.base_url}/-/ping/{key}"


def _pause_and_resolve(work: UnitOfWork, row: HeartbeatRow) -> None:
    """Set a heartbeat's state to paused, and resolve its open alert."""
    if row.state != HeartbeatState.PAUSED.value:
        row.state, row.paused_at = HeartbeatState.PAUSED.value, work.now
        row.down_since = row.started_ms = row.started_rid = None
        row.due_ms = convert_to_unix_ms(work.now) if row.has_alert else None
    work.session.flush()
    evaluate_heartbeat(row.id, connection=SessionConnection(work.session), now=work.now)


def _record_change(
    work: UnitOfWork,
    project: ProjectView,
    heartbeat: HeartbeatRow | Heartbeat,
    change: str,
    **more: object,
) -> None:
    details = {"project": project.path, "heartbeat": heartbeat.id, "change": change, **more}
    work.record_audit_event(EventKind.HEARTBEAT_CHANGED, subject=heartbeat.name, details=details)


def _flush_and_show(work: UnitOfWork, project: ProjectView, row: HeartbeatRow) -> Heartbeat:
    work.session.flush()
    return show_heartbeat(work, project, row.id)
