"""Monitors: groups of integrations of a project that share their alerts.

Each integration has its own monitor until a user joins it with other integrations. Reports are
grouped into alerts, and recoveries resolve alerts, within a monitor. The stored fingerprint of an
alert is combined with its monitor (`domain.alerts.parsing.fingerprint.combine_with_monitor`).

==========================  =======================================================================
event                       effect
==========================  =======================================================================
integration created         It gets a new monitor. If a host that runs an earlier release stores
                            alerts for it without a monitor, they are moved to this monitor later.
integration joined          It gets the monitor of the others, and its alerts are moved there.
integration separated       It gets a new monitor, and its own alerts are moved there.
integration deleted         Its alerts keep the monitor. Only integrations that were joined with it
                            can still report them.
two open alerts of a        The older alert stays open with the higher severity, and the newer one
monitor become equal        is resolved. An ignored alert never replaces one that is not ignored.
upgrade from 0.1.0          The oldest integration of a project keeps its fingerprints unchanged
                            (monitor 0), and each other integration gets a new monitor. An open
                            alert is assigned to the integration of its last report.
==========================  =======================================================================

Requests that started before a monitor was changed may store alerts with the previous monitor.
Therefore, a worker job moves such alerts until `_MAX_REQUEST_DURATION` has passed. The job also
moves resolved alerts, which are needed for the history of an alert. There may be millions of
resolved alerts.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.formats.registry import get_integration_type
from domain.alerts.handling.activity import AUTOMATIC_VIA, ActivityEntryKind, add_activity_entry
from domain.alerts.handling.status import lock_project_alerts
from domain.alerts.integrations.integrations import lock_integrations
from domain.alerts.parsing.fingerprint import combine_with_monitor
from domain.alerts.storing.lifecycle import RESOLVED
from domain.core.database.bulk_statements import (
    build_bulk_delete,
    build_bulk_update,
    build_session_insert,
)
from domain.core.errors import InvalidError
from domain.core.hosts import list_running_hosts
from domain.core.randomness import generate_random_hex
from models import (
    Alert,
    AlertReporter,
    Delivery,
    IncidentAlert,
    IncidentFingerprint,
    Integration,
    Occurrence,
)

#: Monitor of a project's oldest integration after an upgrade from release 0.1.0.
UNCHANGED_MONITOR_ID = 0
#: First migration whose code supports monitors.
_FIRST_SUPPORTING_REVISION = "0112"
#: Maximum time during which a request may still store alerts with the previous monitor.
_MAX_REQUEST_DURATION = timedelta(minutes=2)
_UNRESOLVED_STATUSES = ("triggered", "acknowledged", "ignored")
_MAX_ROWS_PER_STATEMENT = 500
_IGNORED = "ignored"


class _MovedAlert(NamedTuple):
    """An alert to move to another monitor, with its fingerprint in the current monitor."""

    id: int
    status: str
    fingerprint: bytes
    monitor_id: int | None
    integration_id: int | None

    def compute_fingerprint_in(self, monitor_id: int) -> bytes:
        return combine_with_monitor(
            combine_with_monitor(self.fingerprint, self.monitor_id), monitor_id
        )


_MOVED_ALERT_COLUMNS = (
    Alert.id,
    Alert.status,
    Alert.fingerprint,
    Alert.monitor_id,
    Alert.integration_id,
)


def generate_monitor_id() -> int:
    """Return a new monitor ID, which no integration has ever had."""
    return (int(generate_random_hex(8), 16) >> 1) + 1


def list_joined_ids(integration: Integration, others: Iterable[Integration]) -> tuple[int, ...]:
    """Return the IDs of the integrations that share their alerts with an integration."""
    if integration.monitor_id is None:
        return ()
    return tuple(
        other.id
        for other in others
        if other.id != integration.id and other.monitor_id == integration.monitor_id
    )


def join_integrations(
    work: UnitOfWork,
    integration: Integration,
    wanted: Sequence[int],
    others: Sequence[Integration],
) -> str | None:
    """Join an integration with the given integrations, and separate it from all others.

    Return a short description of the change, or None if nothing changed. The caller must have
    locked the integrations, and `others` contains all other integrations of the project. Raise
    InvalidError, which names the field, if an integration cannot be joined.
    """
    session, now = work.session, work.now
    present = list_joined_ids(integration, others)
    if set(wanted) == set(present):
        return None
    partners = _get_integrations_to_join(integration, wanted, others)
    lock_project_alerts(integration.project_id, session=session)
    if any(each.monitor_id is None for each in (integration, *others)):
        _create_missing_monitors([integration, *others], session=session, now=now)
    if set(present) - set(wanted):
        _set_monitor(integration, generate_monitor_id(), session=session, now=now)
    if not partners:
        return "separated"
    monitor_id = partners[0].monitor_id or UNCHANGED_MONITOR_ID
    for each in (integration, *partners):
        if each.monitor_id != monitor_id:
            _set_monitor(each, monitor_id, session=session, now=now)
    return "joined with " + ", ".join(each.name for each in partners)


def _get_integrations_to_join(
    integration: Integration, wanted: Sequence[int], others: Sequence[Integration]
) -> list[Integration]:
    """Return the integrations to join.

    Raise InvalidError if an integration cannot be joined.
    """
    by_id = {each.id: each for each in others}
    if wanted and not get_integration_type(integration.type).receives:
        message = "A link to an on-call tool receives no alerts, so it cannot share alerts."
        raise InvalidError(message, field="joined_with")
    for each in wanted:
        if each not in by_id or not get_integration_type(by_id[each].type).receives:
            message = (
                f"`joined_with` contains {each}. It can contain only other integrations of this "
                "project that receive alerts."
            )
            raise InvalidError(message, field="joined_with")
        left_out = set(list_joined_ids(by_id[each], others)) - set(wanted)
        if left_out:
            names = f'"{by_id[each].name}" is joined with "{by_id[min(left_out)].name}"'
            raise InvalidError(f"{names}. Choose both or neither.", field="joined_with")
    return [by_id[each] for each in dict.fromkeys(wanted)]


def _set_monitor(
    integration: Integration, monitor_id: int, *, session: Session, now: datetime
) -> None:
    """Set the monitor of an integration, and move the integration's open alerts to the monitor.

    The integration's resolved alerts are moved later.
    """
    former, integration.monitor_id = integration.monitor_id, monitor_id
    integration.monitor_changed_at = now
    session.flush()
    own: Any = Alert.integration_id == integration.id
    shares = select(func.count()).where(
        Integration.project_id == integration.project_id, Integration.monitor_id == former
    )
    if former is not None and not session.scalar(shares):
        # The previous monitor has no integrations left, so the alerts from its deleted integrations
        # are moved as well.
        own = or_(own, Alert.integration_id.is_(None) & (Alert.monitor_id == former))
    _move_open_alerts(integration.project_id, own, monitor_id, session=session, now=now)


def _build_other_monitor_condition(monitor_id: int) -> Any:
    return func.coalesce(Alert.monitor_id, UNCHANGED_MONITOR_ID) != monitor_id


def _move_open_alerts(
    project_id: int, condition: Any, monitor_id: int, *, session: Session, now: datetime
) -> None:
    """Move open alerts of a project to a monitor. The caller must have locked the project."""
    statement = select(*_MOVED_ALERT_COLUMNS).where(
        Alert.project_id == project_id,
        Alert.status.in_(_UNRESOLVED_STATUSES),
        Alert.fingerprint.is_not(None),
        condition,
        _build_other_monitor_condition(monitor_id),
    )
    found = [_MovedAlert._make(row) for row in session.execute(statement.order_by(Alert.id))]
    for begin in range(0, len(found), _MAX_ROWS_PER_STATEMENT):
        some = found[begin : begin + _MAX_ROWS_PER_STATEMENT]
        _resolve_duplicates(project_id, some, monitor_id, session=session, now=now)
        _move_alerts(project_id, some, monitor_id, session=session)


def _resolve_duplicates(
    project_id: int,
    moved: Sequence[_MovedAlert],
    monitor_id: int,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Resolve all but one of the open alerts that would have the same fingerprint.

    The remaining alert receives the highest severity. If this raises its severity, users are
    notified as if a new report had raised it.
    """
    equal: dict[bytes, list[_MovedAlert]] = {}
    for each in moved:
        equal.setdefault(each.compute_fingerprint_in(monitor_id), []).append(each)
    # With `+ 0`, the planner can only use the indexes that begin with the fingerprint (migration
    # 0051).
    statement = select(*_MOVED_ALERT_COLUMNS).where(
        Alert.fingerprint.in_(equal),
        Alert.project_id + 0 == project_id,
        Alert.status.in_(_UNRESOLVED_STATUSES),
    )
    for row in session.execute(statement).all():
        equal[row.fingerprint].append(_MovedAlert._make(row))
    over = func.greatest if session.get_bind().dialect.name == "postgresql" else func.max
    for some in equal.values():
        kept, *ended = sorted(some, key=lambda each: (each.status == _IGNORED, each.id))
        if not ended:
            continue
        ids = [each.id for each in ended]
        session.execute(
            build_bulk_update(Alert)
            .where(Alert.id.in_(ids))
            .values(status=RESOLVED, ended_at=over(Alert.started_at, now))
        )
        worst = session.execute(
            select(Alert.severity, Alert.severity_reason)
            .where(Alert.id.in_(ids))
            .order_by(Alert.severity)
            .limit(1)
        ).one()
        own = build_bulk_update(Alert).where(Alert.id == kept.id, Alert.severity > worst.severity)
        session.execute(own.values(severity=worst.severity, severity_reason=worst.severity_reason))
        number = session.scalar(select(Alert.iid).where(Alert.id == kept.id))
        for alert_id in ids:
            entry = add_activity_entry(
                alert_id, ActivityEntryKind.STATUS, RESOLVED, by=None, session=session, now=now
            )
            entry.via = f"{AUTOMATIC_VIA}: alert #{number} of a joined integration is the same"
    session.flush()


#: UPDATE statement that also checks the previous fingerprint, since another worker may have moved
#: the alert.
_SET_FINGERPRINT_AND_MONITOR = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"), Alert.fingerprint == bindparam("former"))
    .values(fingerprint=bindparam("identity"), monitor_id=bindparam("monitor"))
)


def _move_alerts(
    project_id: int, moved: Sequence[_MovedAlert], monitor_id: int, *, session: Session
) -> None:
    """Store the fingerprints that alerts have in a monitor, and update their open incidents."""
    rows = [
        {
            "alert_id": each.id,
            "former": each.fingerprint,
            "identity": each.compute_fingerprint_in(monitor_id),
            "monitor": monitor_id,
        }
        for each in moved
    ]
    if rows:
        session.connection().execute(_SET_FINGERPRINT_AND_MONITOR, rows)
        _replace_incident_fingerprints(project_id, moved, monitor_id, session=session)


def _replace_incident_fingerprints(
    project_id: int, moved: Sequence[_MovedAlert], monitor_id: int, *, session: Session
) -> None:
    """Replace the previous fingerprints of moved alerts in open incidents."""
    by_alert = {each.id: each for each in moved}
    held = session.execute(
        select(
            IncidentFingerprint.incident_id, IncidentFingerprint.fingerprint, IncidentAlert.alert_id
        )
        .join(IncidentAlert, IncidentAlert.incident_id == IncidentFingerprint.incident_id)
        .where(
            IncidentFingerprint.project_id == project_id,
            IncidentFingerprint.fingerprint.in_({each.fingerprint for each in moved}),
            IncidentAlert.alert_id.in_(by_alert),
        )
    ).all()
    rows = [
        {
            "project_id": project_id,
            "incident_id": row.incident_id,
            "fingerprint": by_alert[row.alert_id].compute_fingerprint_in(monitor_id),
        }
        for row in held
        if by_alert[row.alert_id].fingerprint == row.fingerprint
    ]
    if not rows:
        return
    former = [(row.incident_id, row.fingerprint) for row in held]
    holds = tuple_(IncidentFingerprint.incident_id, IncidentFingerprint.fingerprint)
    session.execute(build_bulk_delete(IncidentFingerprint).where(holds.in_(former)))
    session.execute(
        build_session_insert(IncidentFingerprint, session=session).on_conflict_do_nothing(), rows
    )


def update_monitors(*, session: Session, now: datetime, between: Callable[[], None]) -> None:
    """Move alerts to changed monitors, and create monitors for integrations from earlier releases.

    `between` is called after each step, and must commit. While any host runs an earlier release,
    integrations without a monitor keep sharing their alerts. Alerts that such a host stores for an
    integration with a monitor are moved to that monitor.
    """
    pending = select(Integration.project_id).distinct()
    present = list_running_hosts(session=session, now=now)
    know_monitors = all(host.revision >= _FIRST_SUPPORTING_REVISION for host in present)
    if know_monitors:
        without = pending.where(Integration.monitor_id.is_(None))
        for project_id in session.scalars(without).all():
            _create_missing_monitors(
                _lock_project(project_id, session=session), session=session, now=now
            )
            between()
    changed = select(Integration.id, Integration.project_id).where(
        Integration.monitor_changed_at.is_not(None)
    )
    over = now - _MAX_REQUEST_DURATION if know_monitors else None
    for integration_id, project_id in session.execute(changed.order_by(Integration.id)).all():
        _move_integration_alerts(
            integration_id, project_id, over, session=session, now=now, between=between
        )


def _lock_project(project_id: int, *, session: Session) -> list[Integration]:
    found = lock_integrations(project_id, session=session)
    lock_project_alerts(project_id, session=session)
    return found


def _create_missing_monitors(
    integrations: Sequence[Integration], *, session: Session, now: datetime
) -> None:
    """Create monitors for the integrations of a project that have no monitor.

    The caller must have locked the project.
    """
    new = sorted(
        (each for each in integrations if each.monitor_id is None),
        key=lambda each: (not get_integration_type(each.type).receives, each.id),
    )
    has_first = any(each.monitor_id == UNCHANGED_MONITOR_ID for each in integrations)
    for each in new:
        each.monitor_id = generate_monitor_id() if has_first else UNCHANGED_MONITOR_ID
        each.monitor_changed_at = now if has_first else None
        has_first = True
    session.flush()
    if len(integrations) > 1 and new:
        _assign_to_last_reporters(new[0].project_id, integrations, session=session, now=now)


def _assign_to_last_reporters(
    project_id: int, integrations: Sequence[Integration], *, session: Session, now: datetime
) -> None:
    """Assign each open alert without a monitor to the integration that last reported the alert."""
    last = (
        select(Delivery.integration_id)
        .join(Occurrence, Occurrence.delivery_id == Delivery.id)
        .where(Occurrence.alert_id == Alert.id)
        .order_by(Occurrence.delivery_id.desc())
        .limit(1)
        .correlate(Alert)
        .scalar_subquery()
    )
    rows = session.execute(
        select(*_MOVED_ALERT_COLUMNS, last.label("reporter_id")).where(
            Alert.project_id == project_id,
            Alert.status.in_(_UNRESOLVED_STATUSES),
            Alert.fingerprint.is_not(None),
            Alert.monitor_id.is_(None),
        )
    ).all()
    owners = {each.id: each.monitor_id or UNCHANGED_MONITOR_ID for each in integrations}
    of_monitors: dict[int, list[_MovedAlert]] = {}
    others: list[tuple[int, int, int]] = []
    for row in rows:
        alert = _MovedAlert._make(row[:5])
        owner = row.reporter_id if row.reporter_id in owners else alert.integration_id
        if owner is None:
            continue
        of_monitors.setdefault(owners.get(owner, UNCHANGED_MONITOR_ID), []).append(alert)
        if alert.integration_id is not None and alert.integration_id != owner:
            others.append((alert.id, owner, alert.integration_id))
    for alert_id, owner, former in others:
        own = build_bulk_update(Alert).where(Alert.id == alert_id)
        session.execute(own.values(integration_id=owner))
        named = {"alert_id": alert_id, "integration_id": former, "created_at": now}
        statement = build_session_insert(AlertReporter, session=session).values(**named)
        session.execute(statement.on_conflict_do_nothing())
    for monitor_id, alerts in of_monitors.items():
        for begin in range(0, len(alerts), _MAX_ROWS_PER_STATEMENT) if monitor_id else ():
            some = alerts[begin : begin + _MAX_ROWS_PER_STATEMENT]
            # An integration with a monitor may already have stored an alert with the same
            # fingerprint.
            _resolve_duplicates(project_id, some, monitor_id, session=session, now=now)
            _move_alerts(project_id, some, monitor_id, session=session)


def _move_integration_alerts(
    integration_id: int,
    project_id: int,
    over: datetime | None,
    *,
    session: Session,
    now: datetime,
    between: Callable[[], None],
) -> None:
    """Move the alerts of an integration to its monitor, newest first.

    Afterwards, the change of the monitor is marked as complete if it was made before `over`.
    """
    own = {each.id: each for each in _lock_project(project_id, session=session)}.get(integration_id)
    if own is None or own.monitor_id is None or own.monitor_changed_at is None:
        between()
        return
    monitor_id, changed_at = own.monitor_id, own.monitor_changed_at
    is_own: Any = Alert.integration_id == integration_id
    _move_open_alerts(project_id, is_own, monitor_id, session=session, now=now)
    between()
    resolved = select(*_MOVED_ALERT_COLUMNS, Alert.started_at).where(
        is_own,
        Alert.status == RESOLVED,
        Alert.fingerprint.is_not(None),
        _build_other_monitor_condition(monitor_id),
    )
    resolved = resolved.order_by(Alert.started_at.desc(), Alert.id.desc()).limit(
        _MAX_ROWS_PER_STATEMENT
    )
    after: Any = None
    while rows := session.execute(_filter_started_before(resolved, after)).all():
        _move_alerts(
            project_id, [_MovedAlert._make(row[:5]) for row in rows], monitor_id, session=session
        )
        after = rows[-1].started_at, rows[-1].id
        between()
    if over is not None and changed_at < over:
        session.execute(
            build_bulk_update(Integration)
            .where(Integration.id == integration_id, Integration.monitor_changed_at == changed_at)
            .values(monitor_changed_at=None)
        )
        between()


def _filter_started_before(
    statement: Select[*tuple[Any, ...]], after: Any
) -> Select[*tuple[Any, ...]]:
    if after is None:
        return statement
    return statement.where(tuple_(Alert.started_at, Alert.id) < after)
