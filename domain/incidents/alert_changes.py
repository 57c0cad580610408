"""Opens, extends and closes incidents when alerts change.

The background worker passes up to a few hundred changes per transaction. The incident counter of a
project is locked before the project's incidents are changed. Therefore, two workers that process
alerts with the same fingerprint run one after the other, and the second worker finds the incident
that the first worker opened.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import ChangeKind, QueuedChange
from domain.alerts.formats.base import ParserSettings
from domain.alerts.listing.filters import OPEN_STATUSES as OPEN_ALERTS
from domain.alerts.listing.types import build_alert_url
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.alerts.matching.conditions import meets_conditions
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.incidents.alert_links import (
    LinkedAlert,
    claim_fingerprints,
    find_incidents_by_fingerprint,
    find_open_incidents_for_alerts,
    store_alert_links,
)
from domain.incidents.changes import (
    change_incident_severity,
    close_recovered_incidents,
    release_pages_if_critical,
)
from domain.incidents.listing import lock_incidents
from domain.incidents.opening import open_incidents_by_rules
from domain.incidents.responders import OpenedIncident, assign_and_page_responders
from domain.incidents.rule_decisions import (
    STORM_SIZE,
    STORM_TIME,
    ActiveRule,
    FiringAlert,
    PlannedIncident,
    PlannedJoin,
    RecentRuleIncidents,
    find_active_rules,
    plan_incidents,
)
from domain.incidents.timeline import NewTimelineEntry, add_timeline_entries, build_alert_details
from domain.incidents.types import MAX_LISTED_ALERTS, MAX_URGENCY, OPEN_STATUSES, EntryKind
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.silences.active_mutes import find_silenced_alerts
from domain.projects.views import Namespace
from models import Alert, Incident, PendingIncidentAlert, Project

#: Maximum number of waiting alerts in one transaction.
_MAX_WAITING_ALERTS_PER_BATCH = 200


def _delete_waiting_alerts(alert_ids: Collection[int], *, session: Session) -> None:
    """Remove alerts from the list of alerts that wait for an incident.

    An alert is removed if it opened an incident, is resolved, or no longer matches a rule.
    """
    if alert_ids:
        session.execute(
            build_bulk_delete(PendingIncidentAlert).where(
                PendingIncidentAlert.alert_id.in_(alert_ids)
            )
        )


#: Kinds of changes after which an alert may open an incident. Acknowledgements have no effect.
_FIRING_KINDS = frozenset({ChangeKind.OPENED, ChangeKind.REOPENED, ChangeKind.RAISED})
_RECOVERY_KINDS = frozenset({ChangeKind.RESOLVED, ChangeKind.IGNORED})


@dataclass(frozen=True, kw_only=True)
class IncidentContext:
    """The database session, the current time and the settings that incident changes need."""

    session: Session
    now: datetime
    reading: ParserSettings
    base_url: str
    paging: PagingSettings


def apply_alert_changes(changes: Sequence[QueuedChange], context: IncidentContext) -> None:
    """Open, extend and close incidents when alerts change. The caller must commit."""
    by_project: dict[int, list[QueuedChange]] = defaultdict(list)
    for change in changes:
        by_project[change.project_id].append(change)
    projects = context.session.execute(
        select(Project.id, Project.path)
        .where(Project.id.in_(by_project), Project.deleted_at.is_(None))
        .order_by(Project.id)
    ).all()
    # To prevent deadlocks between workers, all projects are locked in the order of their IDs,
    # before any recipients of pages are locked.
    for project_id, _ in projects:
        lock_incidents(project_id, session=context.session)
    opened: list[OpenedIncident] = []
    for project_id, path in projects:
        incidents = _ProjectIncidentUpdater(project_id, path, context)
        opened += incidents.process_changes(by_project[project_id])
    assign_and_page_responders(opened, context.paging, session=context.session, now=context.now)


def open_incidents_for_waiting_alerts(
    context: IncidentContext, *, commit_batch: Callable[[], None]
) -> None:
    """Open incidents for alerts that waited for the end of a silence or maintenance window.

    Alerts in archived projects wait until the project is unarchived. `commit_batch` is called after
    each batch, and must commit.
    """
    session = context.session
    projects = session.execute(
        select(Project.id, Project.path)
        .where(
            Project.id.in_(select(PendingIncidentAlert.project_id)),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
        .order_by(Project.id)
    ).all()
    for project_id, path in projects:
        last: int | None = 0
        while last is not None:
            lock_incidents(project_id, session=session)
            batch = _ProjectIncidentUpdater(project_id, path, context)
            last = batch.process_waiting_alerts(after=last)
            assign_and_page_responders(
                batch.opened, context.paging, session=session, now=context.now
            )
            commit_batch()


class _ProjectIncidentUpdater:
    """Applies alert changes to the incidents of one project, which the caller has locked."""

    def __init__(self, project_id: int, path: str, context: IncidentContext) -> None:
        self.id = project_id
        self.path = path
        self.context = context
        self.session = context.session
        self.opened: list[OpenedIncident] = []

    def process_changes(self, changes: Sequence[QueuedChange]) -> Sequence[OpenedIncident]:
        """Process changes in order, and return the opened incidents.

        Consecutive changes of the same type, such as several recoveries, are processed together.
        """
        known = [change for change in changes if change.kind in _FIRING_KINDS | _RECOVERY_KINDS]
        self._lock_alerts([change.alert_id for change in known])
        for is_firing, some in groupby(known, lambda change: change.kind in _FIRING_KINDS):
            group = list(some)
            ids = [change.alert_id for change in group]
            if is_firing:
                raised = {each.alert_id for each in group if each.kind is ChangeKind.RAISED}
                self._process_firing_alerts(ids, raised=raised)
                continue
            for incident in close_recovered_incidents(
                self.id, ids, session=self.session, now=self.context.now
            ):
                details = {"status": "resolved", "by": "alerts"}
                self._record_event(EventKind.INCIDENT_CHANGED, incident, details)
        return self.opened

    def process_waiting_alerts(self, *, after: int) -> int | None:
        """Process a batch of waiting alerts whose IDs are greater than `after`.

        Return the last ID in the batch, or None if no waiting alerts are left.
        """
        found = self.session.execute(
            select(Alert.id, Alert.status)
            .join(PendingIncidentAlert, PendingIncidentAlert.alert_id == Alert.id)
            .where(
                PendingIncidentAlert.project_id == self.id, PendingIncidentAlert.alert_id > after
            )
            .order_by(PendingIncidentAlert.alert_id)
            .limit(_MAX_WAITING_ALERTS_PER_BATCH)
        ).all()
        if not found:
            return None
        self._lock_alerts([row.id for row in found])
        still_open = [row.id for row in found if row.status in OPEN_ALERTS]
        closed = {row.id for row in found} - set(still_open)
        _delete_waiting_alerts(closed, session=self.session)
        self._process_firing_alerts(still_open, raised=())
        last: int = found[-1].id
        return last

    def _lock_alerts(self, alert_ids: Sequence[int]) -> None:
        """Lock the alerts to link, in the same order in which status changes lock alerts."""
        ids = select(Alert.id).where(Alert.id.in_(alert_ids)).order_by(Alert.id)
        self.session.execute(ids.with_for_update(read=True, key_share=True)).all()

    def _record_event(
        self, kind: EventKind, incident: Incident, details: Mapping[str, object]
    ) -> None:
        about = {"project": self.path, "iid": incident.iid, **details}
        event = Event(kind=kind, subject=incident.title, details=about)
        store_event(event, EventSource(), session=self.session, now=self.context.now)

    def _process_firing_alerts(self, alert_ids: Sequence[int], *, raised: Collection[int]) -> None:
        firing = self._find_firing_alerts(alert_ids, raised)
        fingerprints = {each.alert.fingerprint for each in firing} - {None}
        holders = find_incidents_by_fingerprint(
            self.id, [each for each in fingerprints if each is not None], session=self.session
        )
        rules = {each.rule.id for each in firing if each.rule is not None}
        states = {rule_id: self._get_recent_rule_incidents(rule_id) for rule_id in rules}
        planned = plan_incidents(firing, holders, states)
        self._open_incidents(planned.openings)
        self._add_alerts_to_incidents(planned.joinings)

    def _find_firing_alerts(
        self, alert_ids: Sequence[int], raised: Collection[int]
    ) -> list[FiringAlert]:
        """Return the alerts with these IDs in the given order, with their incidents and rules.

        Deleted alerts are omitted. `raised` contains the IDs of alerts whose severity was raised.
        """
        rows = self.session.execute(
            select(Alert.id, Alert.iid, Alert.fingerprint, Alert.severity).where(
                Alert.id.in_(alert_ids)
            )
        ).all()
        by_id = {row.id: row for row in rows}
        linked = find_open_incidents_for_alerts(by_id, session=self.session)
        rules, waiting = self._find_rules([each for each in by_id if each not in linked])
        _delete_waiting_alerts(by_id.keys() - waiting, session=self.session)
        if waiting:
            held = [{"project_id": self.id, "alert_id": each} for each in sorted(waiting)]
            # Alerts that are already waiting are not changed.
            statement = build_session_insert(
                PendingIncidentAlert, session=self.session
            ).on_conflict_do_nothing()
            self.session.execute(statement, held)
        return [
            FiringAlert(
                alert=LinkedAlert(alert_id, by_id[alert_id].iid, by_id[alert_id].fingerprint),
                urgency=MAX_URGENCY - by_id[alert_id].severity,
                is_raised=alert_id in raised,
                incident_id=linked[alert_id].id if alert_id in linked else None,
                rule=rules.get(alert_id),
            )
            for alert_id in alert_ids
            if alert_id in by_id
        ]

    def _find_rules(
        self, alert_ids: Sequence[int]
    ) -> tuple[Mapping[int, ActiveRule], Collection[int]]:
        """Return the first matching rule for each alert, and the IDs of waiting alerts.

        Silenced alerts wait unless they match a rule that opens incidents for silenced alerts.
        """
        rules = find_active_rules(self.id, session=self.session)
        if not rules or not alert_ids:
            return {}, ()
        found = find_alert_labels(alert_ids, session=self.session, reading=self.context.reading)
        labels = tuple(found.values())
        held = find_silenced_alerts(labels, moment=self.context.now, session=self.session)
        audible = [each for each in labels if each.alert_id not in held]
        muted = [each for each in labels if each.alert_id in held]
        opening = dict(
            _find_matching_rules([each for each in rules if each.opens_when_silenced], muted)
        )
        waiting = dict(_find_matching_rules(rules, muted)).keys() - opening
        return {**dict(_find_matching_rules(rules, audible)), **opening}, waiting

    def _get_recent_rule_incidents(self, rule_id: int) -> RecentRuleIncidents:
        rows = self.session.execute(
            select(Incident.id, Incident.status, Incident.created_at)
            .where(Incident.rule_id == rule_id)
            .order_by(Incident.id.desc())
            .limit(STORM_SIZE)
        ).all()
        recent = [row for row in rows if row.created_at > self.context.now - STORM_TIME]
        is_open = bool(recent) and recent[0].status in OPEN_STATUSES
        return RecentRuleIncidents(count=len(recent), newest=recent[0].id if is_open else None)

    def _open_incidents(self, openings: Sequence[PlannedIncident]) -> None:
        opened = open_incidents_by_rules(
            self.id,
            openings,
            session=self.session,
            now=self.context.now,
            reading=self.context.reading,
            alert_url=lambda iid: build_alert_url(self.path, iid, self.context.base_url),
        )
        for incident, opening in zip(opened, openings, strict=True):
            alerts = [alert.iid for alert in opening.alerts[:MAX_LISTED_ALERTS]]
            details = {"alerts": alerts, "by": "rule", "rule": opening.rule.name}
            self._record_event(EventKind.INCIDENT_CREATED, incident, details)
            place = Namespace(project_id=self.id, path=self.path)
            self.opened.append(OpenedIncident(incident=incident, rule=opening.rule, project=place))

    def _add_alerts_to_incidents(self, joinings: Mapping[int, PlannedJoin]) -> None:
        if not joinings:
            return
        session, now = self.session, self.context.now
        links = {
            incident_id: [*joining.alerts_with_held_fingerprint, *joining.over_limit]
            for incident_id, joining in joinings.items()
        }
        store_alert_links(links, session=session)
        claim_fingerprints(links, self.id, session=session)
        entries: list[NewTimelineEntry] = []
        rows = session.scalars(
            select(Incident).where(Incident.id.in_(joinings)).order_by(Incident.id)
        )
        for row in rows:
            joining = joinings[row.id]
            row.alerts += len(links[row.id])
            entries += _build_join_entries(row.id, joining)
            if joining.urgency > row.urgency:
                raised = change_incident_severity(row, joining.urgency)
                release_pages_if_critical(row, [raised], session=session, now=now)
                entries.append(raised)
            row.updated_at = now
        add_timeline_entries(entries, actor=None, session=session, now=now)
        session.flush()


def _find_matching_rules(
    rules: Sequence[ActiveRule], alerts: Collection[AlertLabels]
) -> Iterator[tuple[int, ActiveRule]]:
    for alert in alerts:
        found = next((rule for rule in rules if meets_conditions(rule.conditions, alert)), None)
        if found is not None:
            yield alert.alert_id, found


def _build_join_entries(incident_id: int, joining: PlannedJoin) -> Iterator[NewTimelineEntry]:
    for alerts, more in (
        (joining.alerts_with_held_fingerprint, {}),
        (joining.over_limit, {"rule": joining.rule_name}),
    ):
        if alerts:
            details = {**build_alert_details([alert.iid for alert in alerts]), **more}
            yield NewTimelineEntry(incident_id=incident_id, kind=EntryKind.JOINED, details=details)
