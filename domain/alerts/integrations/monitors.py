"""Monitors: groups of integrations of a project that share their alerts.

Each integration is a monitor by itself until a user joins it with others. Reports are grouped into
alerts, and recoveries resolve alerts, within a monitor. The stored fingerprint of an alert is
combined with its monitor (`domain.alerts.reading.fingerprint.within_monitor`).

==========================  =======================================================================
event                       effect
==========================  =======================================================================
integration created         It gets a new monitor. If a host of an earlier release stores alerts
                            for it without a monitor, they are moved to this monitor later.
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

Requests that started before a change of monitors may store alerts with the former monitor.
Therefore, a job of the worker moves such alerts until `_IN_FLIGHT` has passed. It also moves
resolved alerts, which are needed for the history of an alert. There may be millions of them.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from domain.alerts.formats.registry import type_named
from domain.alerts.handling.activity import BY_ITSELF, NoteKind, add_entry
from domain.alerts.handling.status import lock_alerts_of
from domain.alerts.integrations.integrations import lock_integrations
from domain.alerts.reading.fingerprint import within_monitor
from domain.alerts.storing.lifecycle import RESOLVED
from domain.core.database.rows import delete_rows, insert_into, update_rows
from domain.core.errors import InvalidError
from domain.core.hosts import list_present
from domain.core.randomness import random_hex
from models import (
    Alert,
    AlertReporter,
    Delivery,
    IncidentAlert,
    IncidentFingerprint,
    Integration,
    Occurrence,
)

#: Monitor of the oldest integration in a project of release 0.1.0.
UNCHANGED = 0
#: First migration whose code supports monitors.
_FIRST_REVISION = "0112"
#: Maximum time during which a request may still store alerts with the former monitor.
_IN_FLIGHT = timedelta(minutes=2)
_OPEN = ("triggered", "acknowledged", "ignored")
_SLICE = 500
_IGNORED = "ignored"


class _Moved(NamedTuple):
    """An alert that is moved to another monitor."""

    id: int
    status: str
    fingerprint: bytes
    monitor_id: int | None
    integration_id: int | None

    def within(self, monitor_id: int) -> bytes:
        return within_monitor(within_monitor(self.fingerprint, self.monitor_id), monitor_id)


_COLUMNS = (Alert.id, Alert.status, Alert.fingerprint, Alert.monitor_id, Alert.integration_id)


def new_monitor_id() -> int:
    """Return the ID of a monitor that no integration has ever had."""
    return (int(random_hex(8), 16) >> 1) + 1


def joined_with(integration: Integration, others: Iterable[Integration]) -> tuple[int, ...]:
    """Return the IDs of the integrations that share their alerts with this one."""
    if integration.monitor_id is None:
        return ()
    return tuple(
        other.id
        for other in others
        if other.id != integration.id and other.monitor_id == integration.monitor_id
    )


def join(
    integration: Integration,
    wanted: Sequence[int],
    others: Sequence[Integration],
    *,
    session: Session,
    now: datetime,
) -> str | None:
    """Join an integration with the given integrations, and separate it from all others.

    Return a short description of the change, or None. The caller has locked the integrations, and
    `others` contains all other integrations of the project. Raise InvalidError, which names the
    field.
    """
    present = joined_with(integration, others)
    if set(wanted) == set(present):
        return None
    partners = _partners(integration, wanted, others)
    lock_alerts_of(integration.project_id, session=session)
    if any(each.monitor_id is None for each in (integration, *others)):
        _settle([integration, *others], session=session, now=now)
    if set(present) - set(wanted):
        _give(integration, new_monitor_id(), session=session, now=now)
    if not partners:
        return "separated"
    monitor_id = partners[0].monitor_id or UNCHANGED
    for each in (integration, *partners):
        if each.monitor_id != monitor_id:
            _give(each, monitor_id, session=session, now=now)
    return "joined with " + ", ".join(each.name for each in partners)


def _partners(
    integration: Integration, wanted: Sequence[int], others: Sequence[Integration]
) -> list[Integration]:
    """Return the integrations to join.

    Raise InvalidError if one of them cannot be joined.
    """
    by_id = {each.id: each for each in others}
    if wanted and not type_named(integration.type).receives:
        message = "A link to an on-call tool receives no alerts, so it cannot share alerts."
        raise InvalidError(message, field="joined_with")
    for each in wanted:
        if each not in by_id or not type_named(by_id[each].type).receives:
            message = (
                f"`joined_with` contains {each}, which is not another integration of this project "
                "that receives alerts."
            )
            raise InvalidError(message, field="joined_with")
        left_out = set(joined_with(by_id[each], others)) - set(wanted)
        if left_out:
            names = f'"{by_id[each].name}" is joined with "{by_id[min(left_out)].name}"'
            raise InvalidError(f"{names}. Choose both or neither.", field="joined_with")
    return [by_id[each] for each in dict.fromkeys(wanted)]


def _give(integration: Integration, monitor_id: int, *, session: Session, now: datetime) -> None:
    """Set the monitor of an integration, and move its open alerts to it.

    Its other alerts are moved later.
    """
    former, integration.monitor_id = integration.monitor_id, monitor_id
    integration.monitor_changed_at = now
    session.flush()
    own: Any = Alert.integration_id == integration.id
    shares = select(func.count()).where(
        Integration.project_id == integration.project_id, Integration.monitor_id == former
    )
    if former is not None and not session.scalar(shares):
        # No other integration reports the alerts of deleted integrations of the former monitor.
        own = or_(own, Alert.integration_id.is_(None) & (Alert.monitor_id == former))
    _move_open(integration.project_id, own, monitor_id, session=session, now=now)


def _other_monitor(monitor_id: int) -> Any:
    return func.coalesce(Alert.monitor_id, UNCHANGED) != monitor_id


def _move_open(
    project_id: int, condition: Any, monitor_id: int, *, session: Session, now: datetime
) -> None:
    """Move open alerts of a project to a monitor. The caller has locked the project."""
    statement = select(*_COLUMNS).where(
        Alert.project_id == project_id,
        Alert.status.in_(_OPEN),
        Alert.fingerprint.is_not(None),
        condition,
        _other_monitor(monitor_id),
    )
    found = [_Moved._make(row) for row in session.execute(statement.order_by(Alert.id))]
    for begin in range(0, len(found), _SLICE):
        some = found[begin : begin + _SLICE]
        _resolve_doubles(project_id, some, monitor_id, session=session, now=now)
        _move(project_id, some, monitor_id, session=session)


def _resolve_doubles(
    project_id: int, moved: Sequence[_Moved], monitor_id: int, *, session: Session, now: datetime
) -> None:
    """Resolve all but one of the open alerts that would have the same fingerprint.

    The remaining alert gets the highest severity. If that raises its severity, people are notified
    as after a further report.
    """
    equal: dict[bytes, list[_Moved]] = {}
    for each in moved:
        equal.setdefault(each.within(monitor_id), []).append(each)
    # With `+ 0`, the planner can only use the indexes that begin with the fingerprint (migration
    # 0051).
    statement = select(*_COLUMNS).where(
        Alert.fingerprint.in_(equal), Alert.project_id + 0 == project_id, Alert.status.in_(_OPEN)
    )
    for row in session.execute(statement).all():
        equal[row.fingerprint].append(_Moved._make(row))
    over = func.greatest if session.get_bind().dialect.name == "postgresql" else func.max
    for some in equal.values():
        kept, *ended = sorted(some, key=lambda each: (each.status == _IGNORED, each.id))
        if not ended:
            continue
        ids = [each.id for each in ended]
        session.execute(
            update_rows(Alert)
            .where(Alert.id.in_(ids))
            .values(status=RESOLVED, ended_at=over(Alert.started_at, now))
        )
        worst = session.execute(
            select(Alert.severity, Alert.severity_reason)
            .where(Alert.id.in_(ids))
            .order_by(Alert.severity)
            .limit(1)
        ).one()
        own = update_rows(Alert).where(Alert.id == kept.id, Alert.severity > worst.severity)
        session.execute(own.values(severity=worst.severity, severity_reason=worst.severity_reason))
        number = session.scalar(select(Alert.iid).where(Alert.id == kept.id))
        for alert_id in ids:
            entry = add_entry(
                alert_id, NoteKind.STATUS, RESOLVED, by=None, session=session, now=now
            )
            entry.via = f"{BY_ITSELF}: alert #{number} of a joined integration is the same"
    session.flush()


#: Update of an alert that also checks the former fingerprint, since another worker may have moved
#: it.
_WITHIN = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"), Alert.fingerprint == bindparam("former"))
    .values(fingerprint=bindparam("identity"), monitor_id=bindparam("monitor"))
)


def _move(project_id: int, moved: Sequence[_Moved], monitor_id: int, *, session: Session) -> None:
    """Store the fingerprints of alerts within a monitor, and update their open incidents."""
    rows = [
        {
            "alert_id": each.id,
            "former": each.fingerprint,
            "identity": each.within(monitor_id),
            "monitor": monitor_id,
        }
        for each in moved
    ]
    if rows:
        session.connection().execute(_WITHIN, rows)
        _move_holds(project_id, moved, monitor_id, session=session)


def _move_holds(
    project_id: int, moved: Sequence[_Moved], monitor_id: int, *, session: Session
) -> None:
    """Replace the former fingerprints of moved alerts in open incidents."""
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
            "fingerprint": by_alert[row.alert_id].within(monitor_id),
        }
        for row in held
        if by_alert[row.alert_id].fingerprint == row.fingerprint
    ]
    if not rows:
        return
    former = [(row.incident_id, row.fingerprint) for row in held]
    holds = tuple_(IncidentFingerprint.incident_id, IncidentFingerprint.fingerprint)
    session.execute(delete_rows(IncidentFingerprint).where(holds.in_(former)))
    session.execute(
        insert_into(IncidentFingerprint, session=session).on_conflict_do_nothing(), rows
    )


def settle_monitors(*, session: Session, now: datetime, between: Callable[[], None]) -> None:
    """Move alerts to changed monitors, and create monitors for integrations of earlier releases.

    `between` commits. While any host runs an earlier release, integrations without a monitor keep
    sharing their alerts. Alerts that the host stores for an integration with a monitor are moved to
    it.
    """
    pending = select(Integration.project_id).distinct()
    present = list_present(session=session, now=now)
    know_monitors = all(host.revision >= _FIRST_REVISION for host in present)
    if know_monitors:
        without = pending.where(Integration.monitor_id.is_(None))
        for project_id in session.scalars(without).all():
            _settle(_locked(project_id, session=session), session=session, now=now)
            between()
    changed = select(Integration.id, Integration.project_id).where(
        Integration.monitor_changed_at.is_not(None)
    )
    over = now - _IN_FLIGHT if know_monitors else None
    for integration_id, project_id in session.execute(changed.order_by(Integration.id)).all():
        _follow(integration_id, project_id, over, session=session, now=now, between=between)


def _locked(project_id: int, *, session: Session) -> list[Integration]:
    found = lock_integrations(project_id, session=session)
    lock_alerts_of(project_id, session=session)
    return found


def _settle(integrations: Sequence[Integration], *, session: Session, now: datetime) -> None:
    """Create monitors for integrations of a project that have none.

    The caller has locked the project.
    """
    new = sorted(
        (each for each in integrations if each.monitor_id is None),
        key=lambda each: (not type_named(each.type).receives, each.id),
    )
    has_first = any(each.monitor_id == UNCHANGED for each in integrations)
    for each in new:
        each.monitor_id = new_monitor_id() if has_first else UNCHANGED
        each.monitor_changed_at = now if has_first else None
        has_first = True
    session.flush()
    if len(integrations) > 1 and new:
        _give_to_last_reporters(new[0].project_id, integrations, session=session, now=now)


def _give_to_last_reporters(
    project_id: int, integrations: Sequence[Integration], *, session: Session, now: datetime
) -> None:
    """Assign each open alert without a monitor to the integration of its last report."""
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
        select(*_COLUMNS, last.label("reporter_id")).where(
            Alert.project_id == project_id,
            Alert.status.in_(_OPEN),
            Alert.fingerprint.is_not(None),
            Alert.monitor_id.is_(None),
        )
    ).all()
    owners = {each.id: each.monitor_id or UNCHANGED for each in integrations}
    of_monitors: dict[int, list[_Moved]] = {}
    others: list[tuple[int, int, int]] = []
    for row in rows:
        alert = _Moved._make(row[:5])
        owner = row.reporter_id if row.reporter_id in owners else alert.integration_id
        if owner is None:
            continue
        of_monitors.setdefault(owners.get(owner, UNCHANGED), []).append(alert)
        if alert.integration_id is not None and alert.integration_id != owner:
            others.append((alert.id, owner, alert.integration_id))
    for alert_id, owner, former in others:
        own = update_rows(Alert).where(Alert.id == alert_id)
        session.execute(own.values(integration_id=owner))
        named = {"alert_id": alert_id, "integration_id": former, "created_at": now}
        statement = insert_into(AlertReporter, session=session).values(**named)
        session.execute(statement.on_conflict_do_nothing())
    for monitor_id, alerts in of_monitors.items():
        for begin in range(0, len(alerts), _SLICE) if monitor_id else ():
            some = alerts[begin : begin + _SLICE]
            # An integration with a monitor may already have stored an equal alert in it.
            _resolve_doubles(project_id, some, monitor_id, session=session, now=now)
            _move(project_id, some, monitor_id, session=session)


def _follow(
    integration_id: int,
    project_id: int,
    over: datetime | None,
    *,
    session: Session,
    now: datetime,
    between: Callable[[], None],
) -> None:
    """Move the alerts of an integration to its monitor, newest first.

    A change of the monitor before `over` is then marked as complete.
    """
    own = {each.id: each for each in _locked(project_id, session=session)}.get(integration_id)
    if own is None or own.monitor_id is None or own.monitor_changed_at is None:
        between()
        return
    monitor_id, changed_at = own.monitor_id, own.monitor_changed_at
    is_own: Any = Alert.integration_id == integration_id
    _move_open(project_id, is_own, monitor_id, session=session, now=now)
    between()
    resolved = select(*_COLUMNS, Alert.started_at).where(
        is_own,
        Alert.status == RESOLVED,
        Alert.fingerprint.is_not(None),
        _other_monitor(monitor_id),
    )
    resolved = resolved.order_by(Alert.started_at.desc(), Alert.id.desc()).limit(_SLICE)
    after: Any = None
    while rows := session.execute(_older(resolved, after)).all():
        _move(project_id, [_Moved._make(row[:5]) for row in rows], monitor_id, session=session)
        after = rows[-1].started_at, rows[-1].id
        between()
    if over is not None and changed_at < over:
        session.execute(
            update_rows(Integration)
            .where(Integration.id == integration_id, Integration.monitor_changed_at == changed_at)
            .values(monitor_changed_at=None)
        )
        between()


def _older(statement: Select[*tuple[Any, ...]], after: Any) -> Select[*tuple[Any, ...]]:
    if after is None:
        return statement
    return statement.where(tuple_(Alert.started_at, Alert.id) < after)
