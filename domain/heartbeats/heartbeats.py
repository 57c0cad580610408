"""Creates, changes, lists and deletes the heartbeats of a project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from domain.alerts.reading.incoming import Severity
from domain.database.paging import Listed, ListPart, fetch_part
from domain.errors import InvalidError, NotFoundError
from domain.heartbeats.reports import fingerprint_of
from domain.heartbeats.schedules import Schedule
from domain.heartbeats.states import (
    Facts,
    HeartbeatState,
    PingKind,
    milliseconds,
    moment_of,
    next_due,
    shown_state,
)
from domain.keyring import Keyring
from domain.randomness import random_uuid
from models import Alert, Heartbeat, Project

LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_ENVIRONMENT = 100, 1_000, 255
#: Of one project.
MOST = 1_000
SEVERITIES = tuple(each.value for each in Severity)


@dataclass(frozen=True, kw_only=True)
class HeartbeatDetails:
    """What a maintainer chooses of a heartbeat; raise InvalidError, naming the field."""

    name: str
    schedule: Schedule
    description: str = ""
    severity: str = Severity.CRITICAL.value
    #: Empty for none.
    environment: str = ""

    def __post_init__(self) -> None:
        """Check the texts; the schedule has checked itself."""
        _check_line("name", self.name, LONGEST_NAME)
        if not self.name.strip():
            raise InvalidError("Enter a name.", field="name")
        _check_line("environment", self.environment, LONGEST_ENVIRONMENT)
        if len(self.description) > LONGEST_DESCRIPTION or "\x00" in self.description:
            message = f"A description may have at most {LONGEST_DESCRIPTION} characters."
            raise InvalidError(message, field="description")
        if self.severity not in SEVERITIES:
            message = f"A severity is one of {', '.join(SEVERITIES)}."
            raise InvalidError(message, field="severity")


def _check_line(name: str, text: str, most: int) -> None:
    if len(text) > most or not text.isprintable():
        message = f"This is one line of at most {most} characters, without control characters."
        raise InvalidError(message, field=name)


@dataclass(frozen=True, kw_only=True)
class HeartbeatView:
    """A heartbeat as people see it."""

    id: int
    project_id: int
    details: HeartbeatDetails
    state: HeartbeatState
    #: When the next ping is expected, and when the alert opens without one; None if none is.
    expected_at: datetime | None
    due_at: datetime | None
    pings: int
    last_ping_at: datetime | None
    last_ping_kind: PingKind | None
    last_exit_status: int | None
    last_duration: timedelta | None
    #: Of the run that is in progress.
    started_at: datetime | None
    down_since: datetime | None
    paused_at: datetime | None
    created_at: datetime
    #: The number of its open alert.
    alert_iid: int | None

    @property
    def name(self) -> str:
        """The name."""
        return self.details.name

    @property
    def schedule(self) -> Schedule:
        """When pings are expected."""
        return self.details.schedule


@dataclass(frozen=True, kw_only=True)
class NewHeartbeat:
    """A new heartbeat, with the secret part of its URL."""

    heartbeat: HeartbeatView
    key: str = field(repr=False)


def create_heartbeat(
    project_id: int,
    details: HeartbeatDetails,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewHeartbeat:
    """Create a heartbeat, which expects nothing before its first ping; raise InvalidError."""
    # Two that are created at once count each other.
    session.execute(
        select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    )
    count = session.scalar(select(func.count()).where(Heartbeat.project_id == project_id))
    if (count or 0) >= MOST:
        raise InvalidError(f"A project can have at most {MOST:,} heartbeats.")
    key = random_uuid()
    row = Heartbeat(
        project_id=project_id,
        key_digest=keyring.digest(key),
        key_ciphertext=keyring.encrypt(key),
        state=HeartbeatState.NEW.value,
        created_at=now,
        **_columns(details),
    )
    session.add(row)
    session.flush()  # to get the id
    return NewHeartbeat(heartbeat=_view(row, {}, now), key=key)


def _columns(details: HeartbeatDetails) -> dict[str, object]:
    schedule, every = details.schedule, details.schedule.every
    return {
        "name": details.name.strip(),
        "description": details.description.strip(),
        "severity": details.severity,
        "environment": details.environment.strip() or None,
        "every_seconds": None if every is None else int(every.total_seconds()),
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "grace_seconds": int(schedule.grace.total_seconds()),
    }


def change_heartbeat(
    project_id: int,
    heartbeat_id: int,
    details: HeartbeatDetails,
    *,
    session: Session,
    now: datetime,
) -> HeartbeatView:
    """Change what a maintainer chooses; a new schedule counts from the last ping on."""
    row = get_row(project_id, heartbeat_id, session=session)
    for name, value in _columns(details).items():
        setattr(row, name, value)
    if row.state in {HeartbeatState.NEW.value, HeartbeatState.UP.value}:
        row.due_ms = milliseconds(now)
    session.flush()  # the view is that of the new values
    return get_heartbeat(project_id, heartbeat_id, session=session, now=now)


def pause_heartbeat(
    project_id: int, heartbeat_id: int, *, session: Session, now: datetime
) -> HeartbeatView:
    """Expect nothing for now; pings are only logged. Its open alert is resolved when settled."""
    row = get_row(project_id, heartbeat_id, session=session)
    if row.state != HeartbeatState.PAUSED.value:
        row.state, row.paused_at = HeartbeatState.PAUSED.value, now
        row.down_since = row.started_ms = row.started_rid = None
        row.due_ms = milliseconds(now) if row.has_alert else None
        session.flush()
    return get_heartbeat(project_id, heartbeat_id, session=session, now=now)


def resume_heartbeat(
    project_id: int, heartbeat_id: int, *, session: Session, now: datetime
) -> HeartbeatView:
    """Expect pings again: the next one as if one had come now, if ever one came."""
    row = get_row(project_id, heartbeat_id, session=session)
    if row.state == HeartbeatState.PAUSED.value:
        is_new = row.last_ping_at is None
        row.state = (HeartbeatState.NEW if is_new else HeartbeatState.UP).value
        row.paused_at, row.counted_from = None, None if is_new else now
        row.due_ms = milliseconds(now)
        session.flush()
    return get_heartbeat(project_id, heartbeat_id, session=session, now=now)


def delete_heartbeat(project_id: int, heartbeat_id: int, *, session: Session) -> None:
    """Delete a heartbeat and its log, or raise NotFoundError; its alerts stay."""
    found = session.execute(
        delete(Heartbeat)
        .where(Heartbeat.id == heartbeat_id, Heartbeat.project_id == project_id)
        .returning(Heartbeat.id)
    ).first()
    if found is None:
        raise _not_found()


def get_heartbeat(
    project_id: int, heartbeat_id: int, *, session: Session, now: datetime
) -> HeartbeatView:
    """Return a heartbeat of the project, or raise NotFoundError."""
    statement = _of(project_id).where(Heartbeat.id == heartbeat_id)
    row = session.scalars(statement).first()
    if row is None:
        raise _not_found()
    return _view(row, _open_alerts(project_id, [row], session=session), now)


def list_heartbeats(
    project_id: int, part: ListPart, *, session: Session, now: datetime
) -> Listed[HeartbeatView]:
    """Return a part of a project's heartbeats."""
    found = fetch_part(_of(project_id), {"id": Heartbeat.id}, part, session=session)
    rows = [row[0] for row in found.items]
    alerts = _open_alerts(project_id, rows, session=session)
    return Listed(
        items=tuple(_view(row, alerts, now) for row in rows),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def get_row(project_id: int, heartbeat_id: int, *, session: Session) -> Heartbeat:
    """Return the locked row of a heartbeat for the modules of this room; raise NotFoundError."""
    statement = _of(project_id).where(Heartbeat.id == heartbeat_id)
    row = session.scalars(statement.with_for_update()).first()
    if row is None:
        raise _not_found()
    return row


def _of(project_id: int) -> Select[Heartbeat]:
    return (
        select(Heartbeat)
        .where(Heartbeat.project_id == project_id)
        .execution_options(populate_existing=True)
    )


def _not_found() -> NotFoundError:
    return NotFoundError("Heartbeat not found in this project.")


def _open_alerts(
    project_id: int, rows: list[Heartbeat], *, session: Session
) -> Mapping[bytes, int]:
    """Return the numbers of the open alerts of heartbeats, by their fingerprints."""
    wanted = [fingerprint_of(row.id) for row in rows if row.has_alert]
    if not wanted:
        return {}
    found = session.execute(
        select(Alert.fingerprint, Alert.iid).where(
            Alert.fingerprint.in_(wanted),
            Alert.project_id == project_id,
            Alert.status != "resolved",
        )
    )
    return {row.fingerprint: row.iid for row in found}


def _view(row: Heartbeat, alerts: Mapping[bytes, int], now: datetime) -> HeartbeatView:
    schedule, state = _schedule(row), HeartbeatState(row.state)
    facts = Facts(
        schedule=schedule,
        state=state,
        has_alert=row.has_alert,
        counted_from=row.counted_from,
        started_at=moment_of(row.started_ms),
        last_ping_kind=PingKind(row.last_ping_kind) if row.last_ping_kind else None,
    )
    is_expected = state is HeartbeatState.UP and row.counted_from is not None
    expected_at = (
        schedule.expected_after(row.counted_from) if is_expected and row.counted_from else None
    )
    return HeartbeatView(
        id=row.id,
        project_id=row.project_id,
        details=HeartbeatDetails(
            name=row.name,
            schedule=schedule,
            description=row.description,
            severity=row.severity,
            environment=row.environment or "",
        ),
        state=shown_state(state, expected_at, now),
        expected_at=expected_at,
        due_at=None if state is HeartbeatState.DOWN else next_due(facts)[0],
        pings=row.pings or 0,
        last_ping_at=row.last_ping_at,
        last_ping_kind=facts.last_ping_kind,
        last_exit_status=row.last_exit_status,
        last_duration=None
        if row.last_duration_ms is None
        else timedelta(milliseconds=row.last_duration_ms),
        started_at=facts.started_at,
        down_since=row.down_since,
        paused_at=row.paused_at,
        created_at=row.created_at,
        alert_iid=alerts.get(fingerprint_of(row.id)),
    )


def _schedule(row: Heartbeat) -> Schedule:
    every = row.every_seconds
    return Schedule(
        every=None if every is None else timedelta(seconds=every),
        cron=row.cron,
        time_zone=row.time_zone,
        grace=timedelta(seconds=row.grace_seconds),
    )
