"""Applies changes of alerts to incidents: rules open them, alerts join them, recoveries close them.

The background worker passes up to a few hundred changes of one transaction. Before any change to
the incidents of a project, its counter is locked. Two workers with alerts of the same fingerprint
run one after the other, and the second finds the incident of the first.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Change, ChangeKind
from domain.alerts.formats.base import Reading
from domain.alerts.listing.filters import OPEN_STATUSES as OPEN_ALERTS
from domain.alerts.matching.conditions import meets
from domain.alerts.matching.labels import AlertLabels, labels_of
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.core.database.rows import delete_rows, insert_into
from domain.incidents.changes import close_recovered, severity_changed, severity_entry
from domain.incidents.links import LinkedAlert, hold, holders_of, link, open_incidents_of
from domain.incidents.listing import lock_incidents
from domain.incidents.opening import Composer, open_by_rules
from domain.incidents.responders import Opened, call_responders
from domain.incidents.rule_engine import (
    STORM_SIZE,
    STORM_TIME,
    ActiveRule,
    FiringAlert,
    Joining,
    Opening,
    RuleState,
    active_rules,
    plan,
)
from domain.incidents.timeline import NewEntry, add_entries, alerts_in
from domain.incidents.types import HIGHEST_URGENCY, MOST_NAMED_ALERTS, OPEN_STATUSES, EntryKind
from domain.paging.notifications.policy import PagingPolicy
from domain.paging.silences.muting import silenced
from domain.projects.views import Namespace
from models import Alert, Incident, IncidentWaiting, Project

#: Maximum number of waiting alerts in one transaction.
_BATCH = 200


def wait(project_id: int, alert_ids: Collection[int], *, session: Session) -> None:
    """Store alerts that wait for the end of a silence. Alerts that already wait are kept."""
    if alert_ids:
        rows = [{"project_id": project_id, "alert_id": each} for each in sorted(alert_ids)]
        statement = insert_into(IncidentWaiting, session=session).on_conflict_do_nothing()
        session.execute(statement, rows)


def wait_no_more(alert_ids: Collection[int], *, session: Session) -> None:
    """Delete waiting alerts that opened an incident, are resolved, or match no rule any more."""
    if alert_ids:
        session.execute(delete_rows(IncidentWaiting).where(IncidentWaiting.alert_id.in_(alert_ids)))


def waiting_projects(*, session: Session) -> Sequence[tuple[int, str]]:
    """Return the IDs and paths of projects with waiting alerts, sorted by ID.

    Alerts of archived projects wait until the project is unarchived.
    """
    rows = session.execute(
        select(Project.id, Project.path)
        .where(
            Project.id.in_(select(IncidentWaiting.project_id)),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
        .order_by(Project.id)
    )
    return [(row.id, row.path) for row in rows]


def waiting_alerts(
    project_id: int, *, after: int, limit: int, session: Session
) -> Sequence[tuple[int, bool]]:
    """Return the IDs of waiting alerts above `after`, and whether each alert is open."""
    rows = session.execute(
        select(Alert.id, Alert.status)
        .join(IncidentWaiting, IncidentWaiting.alert_id == Alert.id)
        .where(IncidentWaiting.project_id == project_id, IncidentWaiting.alert_id > after)
        .order_by(IncidentWaiting.alert_id)
        .limit(limit)
    )
    return [(row.id, row.status in OPEN_ALERTS) for row in rows]


#: Changes after which an alert may open an incident. Acknowledging it has no effect.
_FIRING = frozenset({ChangeKind.OPENED, ChangeKind.REOPENED, ChangeKind.RAISED})
_RECOVERED = frozenset({ChangeKind.RESOLVED, ChangeKind.IGNORED})


@dataclass(frozen=True, kw_only=True)
class IncidentContext:
    """The settings and dependencies that incidents need."""

    session: Session
    now: datetime
    reading: Reading
    #: Function that returns the URL of an alert's page for the path of its project and its number.
    alert_url: Callable[[str, int], str]
    paging: PagingPolicy


def follow_alerts(changes: Sequence[Change], context: IncidentContext) -> None:
    """Open, extend and close incidents when alerts change. The caller commits."""
    by_project: dict[int, list[Change]] = defaultdict(list)
    for change in changes:
        by_project[change.project_id].append(change)
    projects = context.session.execute(
        select(Project.id, Project.path)
        .where(Project.id.in_(by_project), Project.deleted_at.is_(None))
        .order_by(Project.id)
    ).all()
    # All projects are locked in this order before recipients of pages, to prevent deadlocks between
    # workers.
    for project_id, _ in projects:
        lock_incidents(project_id, session=context.session)
    opened: list[Opened] = []
    for project_id, path in projects:
        opened += _InProject(project_id, path, context).follow(by_project[project_id])
    _call(opened, context)


def _call(opened: Sequence[Opened], context: IncidentContext) -> None:
    call_responders(opened, context.paging, session=context.session, now=context.now)


def open_for_waiting(context: IncidentContext, *, between: Callable[[], None]) -> None:
    """Open incidents for alerts that waited for the end of a silence or maintenance window.

    `between` commits after each batch.
    """
    for project_id, path in waiting_projects(session=context.session):
        last: int | None = 0
        while last is not None:
            lock_incidents(project_id, session=context.session)
            batch = _InProject(project_id, path, context)
            last = batch.look_again(after=last)
            _call(batch.opened, context)
            between()


class _InProject:
    """The incidents of a project that is locked."""

    def __init__(self, project_id: int, path: str, context: IncidentContext) -> None:
        self.id = project_id
        self.path = path
        self.context = context
        self.session = context.session
        self.opened: list[Opened] = []

    def follow(self, changes: Sequence[Change]) -> Sequence[Opened]:
        """Process changes in order, grouping similar ones, and return the opened incidents."""
        known = [change for change in changes if change.kind in _FIRING | _RECOVERED]
        self._lock_alerts([change.alert_id for change in known])
        for is_firing, some in groupby(known, lambda change: change.kind in _FIRING):
            if is_firing:
                self._fire_changed(list(some))
            else:
                self._close([change.alert_id for change in some])
        return self.opened

    def look_again(self, *, after: int) -> int | None:
        """Process some waiting alerts above an ID, and return the last ID, or None at the end."""
        found = waiting_alerts(self.id, after=after, limit=_BATCH, session=self.session)
        if not found:
            return None
        self._lock_alerts([alert_id for alert_id, _ in found])
        wait_no_more([alert_id for alert_id, is_open in found if not is_open], session=self.session)
        self._fire([alert_id for alert_id, is_open in found if is_open], raised=())
        return found[-1][0]

    def _lock_alerts(self, alert_ids: Sequence[int]) -> None:
        """Lock the alerts to link, in the same order as changes of status."""
        ids = select(Alert.id).where(Alert.id.in_(alert_ids)).order_by(Alert.id)
        self.session.execute(ids.with_for_update(read=True, key_share=True)).all()

    def _close(self, alert_ids: Sequence[int]) -> None:
        closed = close_recovered(self.id, alert_ids, session=self.session, now=self.context.now)
        for incident in closed:
            details = {"status": "resolved", "by": "alerts"}
            self._record(EventKind.INCIDENT_CHANGED, incident, details)

    def _record(self, kind: EventKind, incident: Incident, details: Mapping[str, object]) -> None:
        about = {"project": self.path, "iid": incident.iid, **details}
        event = Event(kind=kind, subject=incident.title, details=about)
        store_event(event, EventSource(), session=self.session, now=self.context.now)

    def _fire_changed(self, changes: Sequence[Change]) -> None:
        raised = {change.alert_id for change in changes if change.kind is ChangeKind.RAISED}
        self._fire([change.alert_id for change in changes], raised=raised)

    def _fire(self, alert_ids: Sequence[int], *, raised: Collection[int]) -> None:
        firing = self._firing(alert_ids, raised)
        fingerprints = {each.alert.fingerprint for each in firing} - {None}
        holders = holders_of(
            self.id, [each for each in fingerprints if each is not None], session=self.session
        )
        rules = {each.rule.id for each in firing if each.rule is not None}
        states = {rule_id: self._state(rule_id) for rule_id in rules}
        planned = plan(firing, holders, states)
        self._open(planned.openings)
        self._join(planned.joinings)

    def _firing(self, alert_ids: Sequence[int], raised: Collection[int]) -> list[FiringAlert]:
        """Return the data of alerts in their order, without deleted ones."""
        rows = self.session.execute(
            select(Alert.id, Alert.iid, Alert.fingerprint, Alert.severity).where(
                Alert.id.in_(alert_ids)
            )
        ).all()
        by_id = {row.id: row for row in rows}
        linked = open_incidents_of(by_id, session=self.session)
        rules, waiting = self._rules_of([each for each in by_id if each not in linked])
        wait_no_more(by_id.keys() - waiting, session=self.session)
        wait(self.id, waiting, session=self.session)
        return [
            FiringAlert(
                alert=LinkedAlert(alert_id, by_id[alert_id].iid, by_id[alert_id].fingerprint),
                urgency=HIGHEST_URGENCY - by_id[alert_id].severity,
                is_raised=alert_id in raised,
                incident_id=linked[alert_id].id if alert_id in linked else None,
                rule=rules.get(alert_id),
            )
            for alert_id in alert_ids
            if alert_id in by_id
        ]

    def _rules_of(
        self, alert_ids: Sequence[int]
    ) -> tuple[Mapping[int, ActiveRule], Collection[int]]:
        """Return the first matching rule for each alert, and the alerts that wait.

        Alerts wait if they are silenced and no rule that they match opens incidents for silenced
        alerts.
        """
        rules = active_rules(self.id, session=self.session)
        if not rules or not alert_ids:
            return {}, ()
        found = labels_of(alert_ids, session=self.session, reading=self.context.reading)
        labels = tuple(found.values())
        held = silenced(labels, at=self.context.now, session=self.session)
        audible = [each for each in labels if each.alert_id not in held]
        muted = [each for each in labels if each.alert_id in held]
        opening = dict(_matching([each for each in rules if each.opens_when_silenced], muted))
        waiting = dict(_matching(rules, muted)).keys() - opening
        return {**dict(_matching(rules, audible)), **opening}, waiting

    def _state(self, rule_id: int) -> RuleState:
        rows = self.session.execute(
            select(Incident.id, Incident.status, Incident.created_at)
            .where(Incident.rule_id == rule_id)
            .order_by(Incident.id.desc())
            .limit(STORM_SIZE)
        ).all()
        recent = [row for row in rows if row.created_at > self.context.now - STORM_TIME]
        is_open = bool(recent) and recent[0].status in OPEN_STATUSES
        return RuleState(count=len(recent), newest=recent[0].id if is_open else None)

    def _open(self, openings: Sequence[Opening]) -> None:
        opened = open_by_rules(
            self.id,
            openings,
            session=self.session,
            now=self.context.now,
            composer=Composer(
                reading=self.context.reading,
                alert_url=lambda iid: self.context.alert_url(self.path, iid),
            ),
        )
        for incident, opening in zip(opened, openings, strict=True):
            alerts = [alert.iid for alert in opening.alerts[:MOST_NAMED_ALERTS]]
            details = {"alerts": alerts, "by": "rule", "rule": opening.rule.name}
            self._record(EventKind.INCIDENT_CREATED, incident, details)
            place = Namespace(project_id=self.id, path=self.path)
            self.opened.append(Opened(incident=incident, rule=opening.rule, project=place))

    def _join(self, joinings: Mapping[int, Joining]) -> None:
        if not joinings:
            return
        session, now = self.session, self.context.now
        links = {
            incident_id: [*joining.again, *joining.stormy]
            for incident_id, joining in joinings.items()
        }
        link(links, session=session)
        hold(links, self.id, session=session)
        entries: list[NewEntry] = []
        rows = session.scalars(
            select(Incident).where(Incident.id.in_(joinings)).order_by(Incident.id)
        )
        for row in rows:
            joining = joinings[row.id]
            row.alerts += len(links[row.id])
            entries += _entries(row.id, joining)
            if joining.urgency > row.urgency:
                raised = severity_entry(row, joining.urgency)
                severity_changed(row, [raised], session=session, now=now)
                entries.append(raised)
            row.updated_at = now
        add_entries(entries, by=None, session=session, now=now)
        session.flush()


def _matching(
    rules: Sequence[ActiveRule], alerts: Collection[AlertLabels]
) -> Iterator[tuple[int, ActiveRule]]:
    for alert in alerts:
        found = next((rule for rule in rules if meets(rule.conditions, alert)), None)
        if found is not None:
            yield alert.alert_id, found


def _entries(incident_id: int, joining: Joining) -> Iterator[NewEntry]:
    for alerts, more in ((joining.again, {}), (joining.stormy, {"rule": joining.rule_name})):
        if alerts:
            details = {**alerts_in([alert.iid for alert in alerts]), **more}
            yield NewEntry(incident_id=incident_id, kind=EntryKind.JOINED, details=details)
