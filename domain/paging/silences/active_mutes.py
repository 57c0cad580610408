"""Finds the mutes that hold back pages about alerts, and the end times of the mutes.

Muted alerts are stored and shown as usual. The worker checks for mutes before it sends each page.
If an alert is muted, the worker holds its page until the next check, since mutes may end, change or
be added in the meantime.

A silence, a maintenance window or an incident holds every page. A flapping alert holds only
repeated pages. The stronger mute takes precedence, regardless of the end times.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Follower
from domain.alerts.formats.base import ParserSettings
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.listing.queries import AlertListRow
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.alerts.matching.conditions import meets_conditions
from domain.alerts.matching.matcher_parser import parse_matchers
from domain.alerts.matching.matcher_syntax import Matcher, matches_all_labels
from domain.core.database.bulk_statements import split_into_batches
from domain.core.time_zones import LATEST_TIME
from domain.paging.maintenance_windows.occurrences import CurrentWindow, find_current_windows
from domain.paging.silences.flapping import (
    AlertHold,
    find_alert_holds,
    find_holds_on_continuing_alerts,
)
from domain.paging.silences.types import MuteKind
from domain.projects.row_ownership import (
    GroupChain,
    build_used_by_condition,
    find_group_chains,
    group_rows_by_project,
)
from domain.projects.views import ProjectView
from models import (
    AlertChange,
    Group,
    Incident,
    IncidentAlert,
    Silence,
    User,
)

#: Maximum time until the next check, so that pages are sent soon after a mute ends early.
_CHECK_INTERVAL = timedelta(seconds=30)
#: Time until the next check while the worker searches for the incident of an alert.
_INCIDENT_SEARCH_CHECK_INTERVAL = timedelta(seconds=1)
#: Strengths of mutes; larger numbers are stronger. Kinds that are not listed are the strongest, and
#: hold every page.
_STRENGTHS: Mapping[MuteKind, int] = {MuteKind.FLAPPING: 0, MuteKind.REOPENED: 1}
_MAX_STRENGTH = 2


class ActiveSilence(NamedTuple):
    """A silence that is active at the time of the query."""

    id: int
    #: Owner of the silence, and the path of the group if a group owns the silence.
    project_id: int | None
    group_id: int | None
    group: str | None
    matchers: tuple[Matcher, ...]
    #: Comment, or the matchers if there is no comment.
    name: str
    has_comment: bool
    #: Username of the creator. Empty if the silence was created on the command line.
    created_by: str
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class ActiveMutes:
    """The active silences and maintenance windows of a project."""

    silences: int
    windows: int
    #: Time at which the last mute ends, unless mutes are lifted earlier.
    until: datetime


def find_active_mutes(
    projects: Iterable[ProjectView], *, moment: datetime, session: Session
) -> Mapping[int, ActiveMutes]:
    """Return the active mutes of projects whose alerts the viewer may see, by project ID.

    Mutes of ancestor groups are included.
    """
    ids = [project.id for project in projects if project.can_see_alerts]
    if not ids:
        return {}
    used = find_group_chains(ids, session=session)
    silences = find_active_silences(used, moment=moment, session=session)
    windows = find_current_windows(used, moment=moment, session=session)
    return {
        project_id: ActiveMutes(
            silences=len(silences.get(project_id, ())),
            windows=len(windows.get(project_id, ())),
            until=max(
                *(silence.ends_at for silence in silences.get(project_id, ())),
                *(window.occurrence.ends_at for window in windows.get(project_id, ())),
                moment,
            ),
        )
        for project_id in silences.keys() | windows.keys()
    }


def find_active_silences(
    group_chains: Mapping[int, GroupChain], *, moment: datetime, session: Session
) -> Mapping[int, Sequence[ActiveSilence]]:
    """Return the active silences of projects and of their ancestor groups, by project ID.

    Silences are ordered by end time, latest first.
    """
    rows = session.execute(
        select(Silence, User.username, Group.path)
        .outerjoin(User, User.id == Silence.created_by_id)
        .outerjoin(Group, Group.id == Silence.group_id)
        .where(
            build_used_by_condition(Silence, group_chains.values()),
            Silence.ends_at > moment,
            Silence.starts_at <= moment,
        )
        .order_by(Silence.ends_at.desc(), Silence.id)
    )
    live = [
        ActiveSilence(
            id=row.id,
            project_id=row.project_id,
            group_id=row.group_id,
            group=group,
            matchers=parse_matchers(row.matchers),
            name=row.comment or row.matchers,
            has_comment=bool(row.comment),
            created_by=author or "",
            ends_at=row.ends_at,
        )
        for row, author, group in rows
    ]
    return group_rows_by_project(live, group_chains)


@dataclass(frozen=True, kw_only=True)
class Mute:
    """The reason why an alert is muted, such as a silence or incident, and the end of the mute."""

    kind: MuteKind
    #: ID of the silence, window, incident or continued alert. 0 for a flapping alert, or while the
    #: incident rules are still being checked.
    id: int
    #: Description, such as the comment or matchers of a silence, or the name of a window.
    name: str
    #: Name of the user who created the silence or window, or who acknowledged the previous alert.
    #: Empty if the silence or window was created on the command line.
    by: str
    #: End of the mute, if it does not end early. None if the end is unknown.
    until: datetime | None
    #: Time of the next check. The check comes soon, since the mute may end early.
    look_again_at: datetime
    #: False if `name` contains the matchers of a silence.
    has_comment: bool = True
    #: Path of the group that owns the silence or window. None if a project owns it.
    group: str | None = None
    #: Number of the alert that this alert continues.
    continues_iid: int | None = None
    #: Number of the acknowledged incident that mutes the alert.
    incident_iid: int | None = None

    @property
    def holds_every_page(self) -> bool:
        """True if the mute holds back all pages.

        The mute of a flapping alert holds back only repeated pages.
        """
        return self.kind is not MuteKind.FLAPPING


@dataclass(frozen=True)
class _ActiveSilencesAndWindows:
    """The active silences and windows, by project ID."""

    silences: Mapping[int, Sequence[ActiveSilence]]
    windows: Mapping[int, Sequence[CurrentWindow]]

    def includes_project(self, project_id: int) -> bool:
        return project_id in self.silences or project_id in self.windows

    def find_alert_mutes(self, alert: AlertLabels, moment: datetime) -> Iterator[Mute]:
        for silence in self.silences.get(alert.project_id, ()):
            if matches_all_labels(silence.matchers, alert.labels):
                yield Mute(
                    kind=MuteKind.SILENCE,
                    id=silence.id,
                    name=silence.name,
                    has_comment=silence.has_comment,
                    by=silence.created_by,
                    until=silence.ends_at,
                    look_again_at=_compute_next_check(silence.ends_at, moment),
                    group=silence.group,
                )
                break  # Silences are ordered by end time, latest first.
        for window in self.windows.get(alert.project_id, ()):
            if meets_conditions(window.conditions, alert):
                yield Mute(
                    kind=MuteKind.MAINTENANCE,
                    id=window.id,
                    name=window.name,
                    by=window.created_by,
                    until=window.occurrence.ends_at,
                    look_again_at=_compute_next_check(window.occurrence.ends_at, moment),
                    group=window.group,
                )


def find_mutes(
    alerts: Sequence[AlertLabels], *, moment: datetime, session: Session
) -> Mapping[int, Mute]:
    """Return the mutes of alerts at a given time, by alert ID.

    If an alert has several mutes, the strongest mute is returned. Among equally strong mutes, the
    mute that ends last is returned. Open alerts are matched by their current labels. The number of
    queries does not depend on the number of silences or windows, and grows by a few queries for
    each thousand alerts.
    """
    rules = _load_silences_and_windows(
        {alert.project_id for alert in alerts}, moment=moment, session=session
    )
    mutes = [mute_of for alert in alerts for mute_of in _list_mutes(alert, rules, moment)]
    projects = {alert.alert_id: alert.project_id for alert in alerts}
    mutes += _find_mutes_from_holds(projects, moment=moment, session=session)
    return _select_strongest_mute(
        mutes + _find_incident_mutes(projects, moment=moment, session=session)
    )


def find_silenced_alerts(
    alerts: Sequence[AlertLabels], *, moment: datetime, session: Session
) -> Collection[int]:
    """Return the IDs of alerts that a silence or maintenance window matches at a given time.

    Flapping alerts and alerts that continue another alert do not count as silenced.
    """
    rules = _load_silences_and_windows(
        {alert.project_id for alert in alerts}, moment=moment, session=session
    )
    return {alert.alert_id for alert in alerts if _list_mutes(alert, rules, moment)}


def find_mutes_for_listed_alerts(
    rows: Sequence[AlertListRow],
    *,
    moment: datetime,
    session: Session,
    parser_settings: ParserSettings,
) -> Mapping[int, Mute]:
    """Return the mutes of the open alerts in a list, by alert ID.

    Payloads are read only if necessary.
    """
    projects = {row.id: row.project_id for row in rows if row.status in OPEN_STATUSES}
    mutes = _find_open_alert_mutes(
        projects, moment=moment, session=session, parser_settings=parser_settings
    )
    return _select_strongest_mute(
        mutes + _find_mutes_from_holds(projects, moment=moment, session=session)
    )


def find_full_mutes(
    projects: Mapping[int, int],
    *,
    moment: datetime,
    session: Session,
    parser_settings: ParserSettings,
) -> Mapping[int, Mute]:
    """Return the mutes that suppress all pages of open alerts, by alert ID.

    `projects` maps alert IDs to project IDs. Payloads are read only if a mute needs them. The
    number of queries does not grow with the number of alerts.
    """
    mutes = _find_open_alert_mutes(
        projects, moment=moment, session=session, parser_settings=parser_settings
    )
    found = find_holds_on_continuing_alerts(projects, moment=moment, session=session)
    mutes += [(alert_id, _build_mute_from_hold(hold, moment)) for alert_id, hold in found.items()]
    return _select_strongest_mute(mutes)


def _find_open_alert_mutes(
    projects: Mapping[int, int],
    *,
    moment: datetime,
    session: Session,
    parser_settings: ParserSettings,
) -> list[tuple[int, Mute]]:
    """Return the mutes that silences, windows and incidents cause for open alerts."""
    rules = _load_silences_and_windows(set(projects.values()), moment=moment, session=session)
    concerned = [
        alert_id for alert_id, project in projects.items() if rules.includes_project(project)
    ]
    alerts = (
        find_alert_labels(concerned, session=session, reading=parser_settings).values()
        if concerned
        else ()
    )
    mutes = [mute_of for alert in alerts for mute_of in _list_mutes(alert, rules, moment)]
    return mutes + _find_incident_mutes(projects, moment=moment, session=session)


def find_alert_mute(
    alert_id: int, *, moment: datetime, session: Session, parser_settings: ParserSettings
) -> Mute | None:
    """Return the mute of an alert at a given time, or None."""
    alerts = tuple(find_alert_labels([alert_id], session=session, reading=parser_settings).values())
    return find_mutes(alerts, moment=moment, session=session).get(alert_id)


def _load_silences_and_windows(
    project_ids: set[int], *, moment: datetime, session: Session
) -> _ActiveSilencesAndWindows:
    silences: dict[int, Sequence[ActiveSilence]] = {}
    windows: dict[int, Sequence[CurrentWindow]] = {}
    ids = sorted(project_ids)
    for some in split_into_batches(ids):
        used = find_group_chains(some, session=session)
        silences |= find_active_silences(used, moment=moment, session=session)
        windows |= find_current_windows(used, moment=moment, session=session)
    return _ActiveSilencesAndWindows(silences, windows)


def _list_mutes(
    alert: AlertLabels, rules: _ActiveSilencesAndWindows, moment: datetime
) -> list[tuple[int, Mute]]:
    return [(alert.alert_id, mute) for mute in rules.find_alert_mutes(alert, moment)]


def _find_mutes_from_holds(
    projects: Mapping[int, int], *, moment: datetime, session: Session
) -> list[tuple[int, Mute]]:
    found = find_alert_holds(projects, moment=moment, session=session)
    return [(alert_id, _build_mute_from_hold(hold, moment)) for alert_id, hold in found.items()]


def _select_strongest_mute(mutes: Sequence[tuple[int, Mute]]) -> Mapping[int, Mute]:
    """Return the strongest mute of each alert.

    Among equally strong mutes, return the mute that ends last.
    """
    found: dict[int, Mute] = {}
    for alert_id, mute in mutes:
        if alert_id not in found or _get_mute_rank(mute) > _get_mute_rank(found[alert_id]):
            found[alert_id] = mute
    return found


def _get_mute_rank(mute: Mute) -> tuple[int, datetime]:
    return _STRENGTHS.get(mute.kind, _MAX_STRENGTH), mute.until or LATEST_TIME


def _find_incident_mutes(
    projects: Mapping[int, int], *, moment: datetime, session: Session
) -> list[tuple[int, Mute]]:
    """Return mutes for alerts that belong to acknowledged incidents or may join them.

    The incident of a new alert is chosen separately (`domain/incidents/`). The first step of the
    alert's escalation waits for this choice.
    """
    rows = session.execute(
        select(Incident.id, Incident.iid, Incident.project_id).where(
            Incident.project_id.in_(set(projects.values())),
            Incident.status == "acknowledged",
            Incident.quiets_alerts,
        )
    ).all()
    if not rows:
        return []
    incidents = {row.id: row for row in rows}
    of_these = {row.project_id for row in rows}
    ids = [alert_id for alert_id, project_id in projects.items() if project_id in of_these]
    found: list[tuple[int, Mute]] = []
    for some in split_into_batches(ids):
        links = select(IncidentAlert.alert_id, IncidentAlert.incident_id).where(
            IncidentAlert.alert_id.in_(some), IncidentAlert.incident_id.in_(incidents)
        )
        joined = dict(session.execute(links).all())
        found += [(each, _build_incident_mute(moment, incidents[joined[each]])) for each in joined]
        waiting = select(AlertChange.alert_id).where(
            AlertChange.follower == Follower.INCIDENTS.value,
            AlertChange.alert_id.in_(set(some) - joined.keys()),
            # A change that could not be processed must not hold pages.
            AlertChange.tries == 0,
        )
        found += [(each, _build_incident_mute(moment, None)) for each in session.scalars(waiting)]
    return found


def _build_incident_mute(moment: datetime, incident: Row[*tuple[Any, ...]] | None) -> Mute:
    """Return the mute caused by an incident or by the pending search for an incident."""
    joined = incident and f"it belongs to incident #{incident.iid}, which somebody has acknowledged"
    return Mute(
        kind=MuteKind.INCIDENT,
        id=incident.id if incident else 0,
        name=joined or "the incident rules for the alert are still being checked",
        by="",
        until=None,
        look_again_at=moment + (_CHECK_INTERVAL if incident else _INCIDENT_SEARCH_CHECK_INTERVAL),
        incident_iid=incident.iid if incident else None,
    )


def _build_mute_from_hold(alert_hold: AlertHold, moment: datetime) -> Mute:
    if alert_hold.continues_id is None:
        name = (
            f"opened {alert_hold.openings} or more times within {alert_hold.within_minutes} "
            "minutes, so the same people are paged again at most every "
            f"{alert_hold.hold_minutes} minutes"
        )
        kind = MuteKind.FLAPPING
    else:
        name = f"continues alert #{alert_hold.continues_iid}"
        kind = MuteKind.REOPENED
    return Mute(
        kind=kind,
        id=alert_hold.continues_id or 0,
        name=name,
        by=alert_hold.acknowledged_by,
        until=alert_hold.until,
        look_again_at=_compute_next_check(alert_hold.until, moment),
        continues_iid=alert_hold.continues_iid,
    )


def _compute_next_check(until: datetime, moment: datetime) -> datetime:
    return min(until, moment + _CHECK_INTERVAL)
