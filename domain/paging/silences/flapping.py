"""Detects flapping and recurring alerts by comparing alerts with the same fingerprint.

While an alert is flapping, repeated pages to a recipient are sent at intervals instead of each time
the alert opens. An alert may open shortly after the end of an acknowledged alert with the same
fingerprint. The user who acknowledged the previous alert may still be working on the problem, so
the new alert pages only if it stays open.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, select
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.acknowledgements import find_last_acknowledgements
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.listing.status_history import find_last_status_changes
from domain.core.clock import CLOCK_TOLERANCE
from domain.core.database.bulk_statements import build_session_insert, split_into_batches
from domain.core.types.base import get_column_values
from domain.paging.silences.types import FlapSettings
from models import (
    Alert,
    FlapSetting,
)

_MINUTE = timedelta(minutes=1)
#: Maximum number of previous alerts that are searched for an acknowledgement.
_MAX_PREVIOUS_ALERTS = 10
_ACKNOWLEDGED = "acknowledged"
_TRIGGERED = "triggered"
#: Stored value of the `critical` severity.
_CRITICAL_RANK = 0


DEFAULT_FLAP_SETTINGS = FlapSettings()


def find_flap_settings(
    project_ids: Iterable[int], *, session: Session
) -> Mapping[int, FlapSettings]:
    """Return the flap detection settings of projects, by project ID.

    Projects without stored settings have the default settings.
    """
    wanted = set(project_ids)
    rows = session.scalars(select(FlapSetting).where(FlapSetting.project_id.in_(wanted)))
    return dict.fromkeys(wanted, DEFAULT_FLAP_SETTINGS) | {
        row.project_id: FlapSettings(enabled=row.is_on, **get_column_values(row, FlapSettings))
        for row in rows
    }


def get_flap_settings(project_id: int, *, session: Session) -> FlapSettings:
    """Return the flap detection settings of a project, or the defaults if none are stored."""
    return find_flap_settings([project_id], session=session)[project_id]


def store_flap_settings(project_id: int, flap_settings: FlapSettings, *, session: Session) -> None:
    """Store the flap detection settings of a project."""
    values = flap_settings.model_dump()
    values["is_on"] = values.pop("enabled")
    insert = build_session_insert(FlapSetting, session=session).values(
        project_id=project_id, **values
    )
    session.execute(insert.on_conflict_do_update(index_elements=["project_id"], set_=values))


@dataclass(frozen=True, kw_only=True)
class AlertHold:
    """The reason why pages about an alert wait, and the end of the wait if the alert stays open."""

    alert_id: int
    until: datetime
    #: Number and ID of the acknowledged alert. None for a flapping alert.
    continues_iid: int | None = None
    continues_id: int | None = None
    acknowledged_by: str = ""
    #: Minimum number of openings of a flapping alert, and the period in minutes.
    openings: int = 0
    within_minutes: int = 0
    hold_minutes: int = 0


@dataclass(frozen=True, kw_only=True)
class AlertRecurrence:
    """The recurrence of an alert soon after the end of an unanswered alert.

    Both alerts have the same fingerprint.
    """

    #: ID of the alert that ended.
    previous_id: int
    #: Time between the end of the previous alert and the start of the new alert.
    time_since_end: timedelta
    #: Interval between repeated pages. Zero unless the alert is flapping.
    between_repeats: timedelta


def find_alert_recurrences(
    alerts: Mapping[int, int], *, moment: datetime, session: Session
) -> Mapping[int, AlertRecurrence]:
    """Return the recurrences among new alerts, by alert ID.

    `alerts` maps alert IDs to project IDs. If flap detection is off in a project, none of its
    alerts counts as recurring.
    """
    found: dict[int, AlertRecurrence] = {}
    for each, ids in _group_by_settings(alerts, session=session).items():
        if not each.enabled:
            continue
        before = _find_previous_alerts(ids, each.within_minutes * _MINUTE, session=session)
        if not before:
            continue
        notes = find_last_status_changes([row.id for row in before.values()], session=session)
        flapping = _find_flapping_holds(list(before), each, moment=moment, session=session)
        hold = each.hold_minutes * _MINUTE
        found |= {
            alert_id: AlertRecurrence(
                previous_id=row.id,
                time_since_end=max(row.created_at - row.ended_at, timedelta()),
                between_repeats=hold if alert_id in flapping else timedelta(),
            )
            for alert_id, row in before.items()
            if row.id not in notes or notes[row.id].text == _TRIGGERED
        }
    return found


def find_alert_holds(
    alerts: Mapping[int, int], *, moment: datetime, session: Session
) -> Mapping[int, AlertHold]:
    """Return the holds on alerts at a given time, by alert ID.

    `alerts` maps alert IDs to project IDs. If an alert continues an acknowledged alert, all of its
    pages wait, even if it is flapping. The function runs one query for each thousand alerts with
    the same settings. It runs a few more queries for alerts that opened shortly after another alert
    ended.
    """
    found: dict[int, AlertHold] = {}
    for each, ids in _group_by_settings(alerts, session=session).items():
        found |= (
            _find_flapping_holds(ids, each, moment=moment, session=session) if each.enabled else {}
        )
        found |= _find_continuation_holds(ids, each, moment=moment, session=session)
    return found


def find_holds_on_continuing_alerts(
    alerts: Mapping[int, int], *, moment: datetime, session: Session
) -> Mapping[int, AlertHold]:
    """Return the holds on alerts that continue an acknowledged alert, by alert ID.

    `alerts` maps alert IDs to project IDs.
    """
    found: dict[int, AlertHold] = {}
    for each, ids in _group_by_settings(alerts, session=session).items():
        found |= _find_continuation_holds(ids, each, moment=moment, session=session)
    return found


def _group_by_settings(
    alerts: Mapping[int, int], *, session: Session
) -> Mapping[FlapSettings, Sequence[int]]:
    settings = find_flap_settings(alerts.values(), session=session)
    found: dict[FlapSettings, list[int]] = {}
    for alert_id, project_id in alerts.items():
        found.setdefault(settings[project_id], []).append(alert_id)
    return found


def _find_flapping_holds(
    ids: Sequence[int], settings: FlapSettings, *, moment: datetime, session: Session
) -> dict[int, AlertHold]:
    """Return holds on the alerts that opened too often, by alert ID.

    The first alert above the limit still pages.
    """
    within, hold = settings.within_minutes * _MINUTE, settings.hold_minutes * _MINUTE
    earlier = aliased(Alert)
    # The limit bounds the number of rows that the query reads from the index and the table, even if
    # the alert has opened far more often.
    opened_at = (
        select(earlier.created_at)
        .where(
            earlier.fingerprint == Alert.fingerprint,
            earlier.project_id == Alert.project_id,
            earlier.id < Alert.id,
        )
        .order_by(earlier.id.desc())
        .offset(settings.openings)
        .limit(1)
        .correlate(Alert)
        .scalar_subquery()
    )
    rows = [
        row
        for some in split_into_batches(ids)
        for row in session.execute(
            select(Alert.id, Alert.created_at, opened_at.label("opened_at")).where(
                Alert.id.in_(some),
                Alert.fingerprint.is_not(None),
                Alert.status.in_(OPEN_STATUSES),
                _build_opened_since_condition(moment - hold, moment),
                *(() if settings.holds_critical else (Alert.severity > _CRITICAL_RANK,)),
            )
        )
    ]
    return {
        row.id: AlertHold(
            alert_id=row.id,
            until=row.created_at + hold,
            openings=settings.openings + 2,
            within_minutes=settings.within_minutes,
            hold_minutes=settings.hold_minutes,
        )
        for row in rows
        if row.opened_at is not None and row.opened_at > row.created_at - within
    }


def _find_continuation_holds(
    ids: Sequence[int], settings: FlapSettings, *, moment: datetime, session: Session
) -> dict[int, AlertHold]:
    """Return holds on the alerts that continue an acknowledged alert, by alert ID."""
    if not settings.reopen_minutes:
        return {}
    window = settings.reopen_minutes * _MINUTE
    opened = _find_opening_times(moment - window, ids, at_time=moment, session=session)
    found: dict[int, AlertHold] = {}
    # This maps the earliest known alert of each chain to the alert that is checked.
    stories = {alert_id: alert_id for alert_id in opened}
    for _ in range(_MAX_PREVIOUS_ALERTS):
        if not stories:
            break
        before = _find_previous_alerts(list(stories), window, session=session)
        # An end well after the opening of the next alert was recorded by a clock that was ahead, so
        # such rows are ignored.
        before = {
            alert_id: row
            for alert_id, row in before.items()
            if row.ended_at <= row.created_at + CLOCK_TOLERANCE
        }
        notes = find_last_status_changes([row.id for row in before.values()], session=session)
        for alert_id, row in before.items():
            note, story = notes.get(row.id), stories[alert_id]
            if note is not None and note.text == _ACKNOWLEDGED:
                found[story] = AlertHold(
                    alert_id=story,
                    until=opened[story] + window,
                    continues_iid=row.iid,
                    continues_id=row.id,
                    acknowledged_by=note.user_name,
                )
        stories = {
            row.id: stories[alert_id] for alert_id, row in before.items() if row.id not in notes
        }
    rises = _find_severity_increases(found, session=session)
    return {alert_id: hold for alert_id, hold in found.items() if alert_id not in rises}


def _find_severity_increases(
    holds_by_alert: Mapping[int, AlertHold], *, session: Session
) -> Collection[int]:
    """Return the IDs of critical alerts that continue a less severe alert.

    The user who acknowledged the less severe alert does not know the new severity.
    """
    is_critical = Alert.severity == _CRITICAL_RANK
    critical = [
        alert_id
        for some in split_into_batches(list(holds_by_alert))
        for alert_id in session.scalars(select(Alert.id).where(Alert.id.in_(some), is_critical))
    ]
    former = {each: holds_by_alert[each].continues_id or 0 for each in critical}
    given = find_last_acknowledgements(former.values(), session=session) if former else {}
    return {
        alert_id
        for alert_id, former_id in former.items()
        if former_id in given and given[former_id].severity > _CRITICAL_RANK
    }


def _build_opened_since_condition(moment: datetime, at_time: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that matches alerts opened after `moment` and by `at_time`.

    Small differences between clocks are tolerated.
    """
    return and_(Alert.created_at > moment, Alert.created_at <= at_time + CLOCK_TOLERANCE)


def _find_opening_times(
    moment: datetime, ids: Sequence[int], *, at_time: datetime, session: Session
) -> Mapping[int, datetime]:
    """Return the opening times of open alerts that opened after a given time, by alert ID."""
    rows = (
        row
        for some in split_into_batches(ids)
        for row in session.execute(
            select(Alert.id, Alert.created_at).where(
                Alert.id.in_(some),
                Alert.fingerprint.is_not(None),
                Alert.status.in_(OPEN_STATUSES),
                _build_opened_since_condition(moment, at_time),
            )
        )
    )
    return {row.id: row.created_at for row in rows}


def _find_previous_alerts(
    ids: Sequence[int], window: timedelta, *, session: Session
) -> Mapping[int, Row[*tuple[Any, ...]]]:
    """Return the previous alerts that ended shortly before the given alerts opened, by alert ID."""
    earlier, previous = aliased(Alert), aliased(Alert)
    previous_id = (
        select(func.max(earlier.id))
        .where(
            earlier.fingerprint == Alert.fingerprint,
            earlier.project_id == Alert.project_id,
            earlier.id < Alert.id,
        )
        .correlate(Alert)
        .scalar_subquery()
    )
    rows = [
        row
        for some in split_into_batches(ids)
        for row in session.execute(
            select(
                Alert.id.label("after"),
                Alert.created_at,
                previous.id,
                previous.iid,
                previous.ended_at,
            )
            .join(previous, previous.id == previous_id)
            .where(Alert.id.in_(some))
        )
    ]
    return {
        row.after: row
        for row in rows
        if row.ended_at is not None and row.ended_at > row.created_at - window
    }
