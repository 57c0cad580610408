"""Determines whether the pages of alerts are held, by which mute, and until when.

Muted alerts are stored and shown as usual. The worker checks for mutes before it sends each page.
It holds a muted page until the time of the next check. By then, mutes may have ended, changed or
been added.

A silence, a maintenance window or an incident holds every page. A flapping alert holds only
repeated pages. The stronger mute takes precedence, regardless of the ends.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Follower
from domain.alerts.formats.base import Reading
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.listing.queries import AlertRow
from domain.alerts.matching.conditions import meets
from domain.alerts.matching.labels import AlertLabels, labels_of
from domain.alerts.matching.matchers import Matcher, matches
from domain.alerts.matching.parser import parse_matchers
from domain.core.database.rows import slices
from domain.core.time_zones import LATEST
from domain.paging.maintenance_windows.windows import CurrentWindow, find_current
from domain.paging.silences.flapping import Hold, find_continuing, holds
from domain.paging.silences.types import MuteKind
from domain.projects.owners import Lineage, by_user, is_used_by, lineages
from domain.projects.views import ProjectView
from models import (
    AlertChange,
    Group,
    Incident,
    IncidentAlert,
    Silence,
    User,
)

#: Longest time until the next check, so that pages are sent soon after a mute ends early.
_ASK_AGAIN = timedelta(seconds=30)
#: Time until the next check while the worker looks for an incident for the alert.
_MOMENT = timedelta(seconds=1)
#: Strengths of mutes; larger numbers are stronger. Kinds that are not listed are the strongest, and
#: hold every page.
_STRENGTHS: Mapping[MuteKind, int] = {MuteKind.FLAPPING: 0, MuteKind.REOPENED: 1}
_STRONGEST = 2


class LiveSilence(NamedTuple):
    """An active silence."""

    id: int
    #: Owner of the silence, and the path of the group if a group is the owner.
    project_id: int | None
    group_id: int | None
    group: str | None
    matchers: tuple[Matcher, ...]
    #: Comment, or the matchers if there is no comment.
    name: str
    #: User name. Empty for the command line.
    created_by: str
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class InForce:
    """The active silences and maintenance windows of a project."""

    silences: int
    windows: int
    #: End of the last mute, if none ends early.
    until: datetime


def in_force(
    projects: Iterable[ProjectView], *, at: datetime, session: Session
) -> Mapping[int, InForce]:
    """Return the active mutes by project, for projects whose alerts the viewer may see.

    Mutes of the groups above are included.
    """
    ids = [project.id for project in projects if project.shows_alerts]
    if not ids:
        return {}
    used = lineages(ids, session=session)
    silences = find_live(used, at=at, session=session)
    windows = find_current(used, at=at, session=session)
    return {
        project_id: InForce(
            silences=len(silences.get(project_id, ())),
            windows=len(windows.get(project_id, ())),
            until=max(
                *(silence.ends_at for silence in silences.get(project_id, ())),
                *(window.occurrence.ends_at for window in windows.get(project_id, ())),
                at,
            ),
        )
        for project_id in silences.keys() | windows.keys()
    }


def find_live(
    used: Mapping[int, Lineage], *, at: datetime, session: Session
) -> Mapping[int, Sequence[LiveSilence]]:
    """Return the active silences of projects and of the groups above, by project id.

    They are ordered by end, the latest first.
    """
    rows = session.execute(
        select(Silence, User.username, Group.path)
        .outerjoin(User, User.id == Silence.created_by_id)
        .outerjoin(Group, Group.id == Silence.group_id)
        .where(is_used_by(Silence, used.values()), Silence.ends_at > at, Silence.starts_at <= at)
        .order_by(Silence.ends_at.desc(), Silence.id)
    )
    live = [
        LiveSilence(
            id=row.id,
            project_id=row.project_id,
            group_id=row.group_id,
            group=group,
            matchers=parse_matchers(row.matchers),
            name=row.comment or row.matchers,
            created_by=author or "",
            ends_at=row.ends_at,
        )
        for row, author, group in rows
    ]
    return by_user(live, used)


@dataclass(frozen=True, kw_only=True)
class Mute:
    """A mute of an alert at a given time."""

    kind: MuteKind
    #: Id of the silence, window, incident or continued alert. 0 for a flapping alert.
    id: int
    #: Description, such as the comment or matchers of a silence, or the name of a window.
    name: str
    #: Name of the user who created the silence or window, or who acknowledged the former alert.
    #: Empty for the command line.
    by: str
    #: End of the mute, if it does not end early. None if it is unknown.
    until: datetime | None
    #: Time of the next check, which is soon, since the mute may end early.
    look_again_at: datetime
    #: Path of the group that owns the silence or window. None for a project.
    group: str | None = None
    #: Number of the alert that this alert continues.
    continues_iid: int | None = None
    #: Number of the acknowledged incident that mutes the alert.
    incident_iid: int | None = None

    @property
    def holds_every_page(self) -> bool:
        """Return whether all pages are held; a flapping alert holds only repeated pages."""
        return self.kind is not MuteKind.FLAPPING


@dataclass(frozen=True)
class _Rules:
    """The active silences and windows, by project."""

    silences: Mapping[int, Sequence[LiveSilence]]
    windows: Mapping[int, Sequence[CurrentWindow]]

    def concern(self, project_id: int) -> bool:
        return project_id in self.silences or project_id in self.windows

    def mutes(self, alert: AlertLabels, at: datetime) -> Iterator[Mute]:
        for silence in self.silences.get(alert.project_id, ()):
            if matches(silence.matchers, alert.labels):
                yield Mute(
                    kind=MuteKind.SILENCE,
                    id=silence.id,
                    name=silence.name,
                    by=silence.created_by,
                    until=silence.ends_at,
                    look_again_at=_again(silence.ends_at, at),
                    group=silence.group,
                )
                break  # silences are ordered by end, the latest first
        for window in self.windows.get(alert.project_id, ()):
            if meets(window.conditions, alert):
                yield Mute(
                    kind=MuteKind.MAINTENANCE,
                    id=window.id,
                    name=window.name,
                    by=window.created_by,
                    until=window.occurrence.ends_at,
                    look_again_at=_again(window.occurrence.ends_at, at),
                    group=window.group,
                )


def muted(alerts: Sequence[AlertLabels], *, at: datetime, session: Session) -> Mapping[int, Mute]:
    """Return the mutes of alerts at a given time, by alert id.

    If an alert has several mutes, the strongest is returned, or the last to end among equally
    strong mutes. Open alerts are matched by their current labels. The number of queries does not
    depend on the number of silences or windows. It grows by a few for each thousand alerts.
    """
    rules = _rules({alert.project_id for alert in alerts}, at=at, session=session)
    mutes = [mute_of for alert in alerts for mute_of in _pairs(alert, rules, at)]
    projects = {alert.alert_id: alert.project_id for alert in alerts}
    mutes += _held(projects, at=at, session=session)
    return _strongest(mutes + _quieted(projects, at=at, session=session))


def silenced(alerts: Sequence[AlertLabels], *, at: datetime, session: Session) -> Collection[int]:
    """Return the ids of alerts that a silence or maintenance window matches at a given time.

    Flapping alerts and alerts that continue another alert do not count as silenced.
    """
    rules = _rules({alert.project_id for alert in alerts}, at=at, session=session)
    return {alert.alert_id for alert in alerts if _pairs(alert, rules, at)}


def muted_rows(
    rows: Sequence[AlertRow], *, at: datetime, session: Session, reading: Reading
) -> Mapping[int, Mute]:
    """Return the mutes of open alerts in a list; read payloads only if necessary."""
    projects = {row.id: row.project_id for row in rows if row.status in OPEN_STATUSES}
    mutes = _of_open(projects, at=at, session=session, reading=reading)
    return _strongest(mutes + _held(projects, at=at, session=session))


def fully_muted(
    projects: Mapping[int, int], *, at: datetime, session: Session, reading: Reading
) -> Mapping[int, Mute]:
    """Return the mutes that hold every page of open alerts, by alert id.

    `projects` maps the ids of alerts to the ids of their projects. Payloads are read only if a mute
    needs them. The number of queries does not grow with the number of alerts.
    """
    mutes = _of_open(projects, at=at, session=session, reading=reading)
    found = find_continuing(projects, at=at, session=session)
    mutes += [(alert_id, _of_hold(hold, at)) for alert_id, hold in found.items()]
    return _strongest(mutes)


def _of_open(
    projects: Mapping[int, int], *, at: datetime, session: Session, reading: Reading
) -> list[tuple[int, Mute]]:
    """Return the silences, windows and incidents that mute open alerts."""
    rules = _rules(set(projects.values()), at=at, session=session)
    concerned = [alert_id for alert_id, project in projects.items() if rules.concern(project)]
    alerts = labels_of(concerned, session=session, reading=reading).values() if concerned else ()
    mutes = [mute_of for alert in alerts for mute_of in _pairs(alert, rules, at)]
    return mutes + _quieted(projects, at=at, session=session)


def muted_alert(alert_id: int, *, at: datetime, session: Session, reading: Reading) -> Mute | None:
    """Return the mute of an alert at a given time, or None."""
    alerts = tuple(labels_of([alert_id], session=session, reading=reading).values())
    return muted(alerts, at=at, session=session).get(alert_id)


def _rules(project_ids: set[int], *, at: datetime, session: Session) -> _Rules:
    silences: dict[int, Sequence[LiveSilence]] = {}
    windows: dict[int, Sequence[CurrentWindow]] = {}
    ids = sorted(project_ids)
    for some in slices(ids):
        used = lineages(some, session=session)
        silences |= find_live(used, at=at, session=session)
        windows |= find_current(used, at=at, session=session)
    return _Rules(silences, windows)


def _pairs(alert: AlertLabels, rules: _Rules, at: datetime) -> list[tuple[int, Mute]]:
    return [(alert.alert_id, mute) for mute in rules.mutes(alert, at)]


def _held(projects: Mapping[int, int], *, at: datetime, session: Session) -> list[tuple[int, Mute]]:
    found = holds(projects, at=at, session=session)
    return [(alert_id, _of_hold(hold, at)) for alert_id, hold in found.items()]


def _strongest(mutes: Sequence[tuple[int, Mute]]) -> Mapping[int, Mute]:
    """Return the strongest mute of each alert; among equally strong mutes, the last to end."""
    found: dict[int, Mute] = {}
    for alert_id, mute in mutes:
        if alert_id not in found or _rank(mute) > _rank(found[alert_id]):
            found[alert_id] = mute
    return found


def _rank(mute: Mute) -> tuple[int, datetime]:
    return _STRENGTHS.get(mute.kind, _STRONGEST), mute.until or LATEST


def _quieted(
    projects: Mapping[int, int], *, at: datetime, session: Session
) -> list[tuple[int, Mute]]:
    """Return mutes by acknowledged incidents, for their alerts and alerts that may join them.

    The incident of a new alert is chosen separately (`domain/incidents/`). The first step of the
    escalation waits for that choice.
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
    for some in slices(ids):
        links = select(IncidentAlert.alert_id, IncidentAlert.incident_id).where(
            IncidentAlert.alert_id.in_(some), IncidentAlert.incident_id.in_(incidents)
        )
        joined = dict(session.execute(links).all())
        found += [(each, _by_incident(at, incidents[joined[each]])) for each in joined]
        waiting = select(AlertChange.alert_id).where(
            AlertChange.follower == Follower.INCIDENTS.value,
            AlertChange.alert_id.in_(set(some) - joined.keys()),
            # A failing change must not hold pages.
            AlertChange.tries == 0,
        )
        found += [(each, _by_incident(at, None)) for each in session.scalars(waiting)]
    return found


def _by_incident(at: datetime, incident: Row[*tuple[Any, ...]] | None) -> Mute:
    """Return the mute by an incident, or by the pending search for an incident."""
    joined = incident and f"it belongs to incident #{incident.iid}, which somebody has acknowledged"
    return Mute(
        kind=MuteKind.INCIDENT,
        id=incident.id if incident else 0,
        name=joined or "the incident rules for the alert are still being checked",
        by="",
        until=None,
        look_again_at=at + (_ASK_AGAIN if incident else _MOMENT),
        incident_iid=incident.iid if incident else None,
    )


def _of_hold(hold: Hold, at: datetime) -> Mute:
    if hold.continues_id is None:
        name = (
            f"opened {hold.openings} or more times within {hold.within_minutes} minutes, so the "
            f"same people are paged again at most every {hold.hold_minutes} minutes"
        )
        kind = MuteKind.FLAPPING
    else:
        name = f"continues alert #{hold.continues_iid}"
        kind = MuteKind.REOPENED
    return Mute(
        kind=kind,
        id=hold.continues_id or 0,
        name=name,
        by=hold.acknowledged_by,
        until=hold.until,
        look_again_at=_again(hold.until, at),
        continues_iid=hold.continues_iid,
    )


def _again(until: datetime, at: datetime) -> datetime:
    return min(until, at + _ASK_AGAIN)
