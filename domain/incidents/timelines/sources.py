"""Sources of timelines: reports, activity, pages, deployments and entries of incidents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.alerts.handling.activity import BY_ITSELF, ActivityView, NoteKind, entries_among
from domain.alerts.handling.occurrences import list_occurrences
from domain.alerts.handling.types import AlertActivity, AlertAuthor, AlertOccurrence
from domain.alerts.storing.lifecycle import Action
from domain.ci_cd.deployment_actions import deployments_between
from domain.core.database.paging import Slice
from domain.incidents.timeline import TimelineEntry, list_entries, sentence_of
from domain.incidents.timelines.merging import Position, Row, Source, position_at, stored
from domain.incidents.timelines.types import ItemKind, TimelineItem
from domain.incidents.types import EntryFilter, EntryKind
from domain.paging.escalations.explanation import UNKNOWN, Fate, fates_of, pages_among
from domain.paging.escalations.types import SentPage
from domain.projects.views import ProjectView
from models import Alert, IncidentAlert

#: Maximum time between a deployment and an alert that it may have caused.
_BEFORE = timedelta(hours=1)
#: Maximum number of alerts in the timeline of an incident. The newest are used.
MOST_ALERTS = 500
#: Kinds of alert activity that are shown in the timeline of an incident.
_OF_INCIDENTS = frozenset({NoteKind.STATUS, NoteKind.NOTE})
_KINDS = {
    NoteKind.NOTE: ItemKind.NOTE,
    NoteKind.STATUS: ItemKind.STATUS,
    NoteKind.ASSIGNEE: ItemKind.ASSIGNEE,
    NoteKind.HANDLING: ItemKind.HANDLING,
    NoteKind.PAGE: ItemKind.UNREACHED,
    NoteKind.ESCALATION: ItemKind.ESCALATION,
    NoteKind.CHANGE: ItemKind.CHANGE,
}


def reports_of(alert_id: int, *, session: Session) -> Source:
    """Return the reports of an alert. Reports of the same sender without changes are joined."""

    def read(following: Position | None, most: int, is_oldest_first: bool) -> Sequence[Row]:  # noqa: FBT001 - as Read
        found = list_occurrences(
            alert_id,
            (following[0], following[1]) if following else None,
            size=most,
            is_oldest_first=is_oldest_first,
            session=session,
        )
        return [_report(each) for each in found.items]

    return Source(letter="r", numbers=2, read=read)


def _report(report: AlertOccurrence) -> Row:
    is_quiet = report.action in {Action.JOINED, Action.UNCHANGED}
    return Row(
        position=(report.delivery_id, report.item - 1),
        item=TimelineItem(kind=ItemKind.REPORT, at=report.received_at, reports=(report,)),
        joins=(report.action, report.sender, report.is_test, report.integration_id)
        if is_quiet
        else None,
    )


def activity_of(alert_id: int, *, session: Session) -> Source:
    """Return all activity of an alert: actions of users, changes by reports, and failed pages."""
    return _activity({alert_id: ()}, frozenset(NoteKind), session=session)


def activity_among(numbers: Mapping[int, int], *, session: Session) -> Source:
    """Return the actions of users on the alerts of an incident.

    `numbers` contains the numbers (iid) of the alerts by their IDs.
    """
    alerts = {alert_id: (iid,) for alert_id, iid in numbers.items()}
    return _activity(alerts, _OF_INCIDENTS, session=session)


def _activity(
    alerts: Mapping[int, tuple[int, ...]], kinds: Collection[NoteKind], *, session: Session
) -> Source:
    def read(following: Position | None, most: int, is_oldest_first: bool) -> Sequence[Row]:  # noqa: FBT001 - as Read
        found = entries_among(
            alerts,
            following[0] if following else None,
            kinds=kinds,
            size=most,
            is_oldest_first=is_oldest_first,
            session=session,
        )
        return [_entry(view, alerts[alert_id]) for alert_id, view in found]

    return Source(letter="a", numbers=1, read=read)


def _entry(view: ActivityView, alerts: tuple[int, ...]) -> Row:
    shown = AlertActivity.model_validate(view)
    item = TimelineItem(
        kind=_KINDS[view.kind],
        at=view.created_at,
        author=shown.author,
        text=view.text,
        via=view.via,
        changes=shown.changes,
        alerts=alerts,
    )
    is_joined = bool(alerts) and view.kind is NoteKind.STATUS
    joins = (view.kind, view.user_name, view.text, view.via) if is_joined else None
    return Row(position=(view.id,), item=item, joins=joins)


def pages_of(alert_ids: Mapping[int, tuple[int, ...]], *, session: Session) -> Source:
    """Return the pages for alerts. The values of `alert_ids` become the `alerts` of the items."""

    def read(following: Position | None, most: int, is_oldest_first: bool) -> Sequence[Row]:  # noqa: FBT001 - as Read
        found = pages_among(
            alert_ids,
            following[0] if following else None,
            size=most,
            is_oldest_first=is_oldest_first,
            session=session,
        )
        return [
            Row(
                position=(page.id,),
                item=TimelineItem(
                    kind=ItemKind.PAGE, at=page.at, page=page, alerts=alert_ids[page.alert_id or 0]
                ),
                joins=(page.name, page.step, page.round, page.state, page.contacts),
            )
            for page in found
        ]

    return Source(letter="p", numbers=1, read=read)


def deployments_near(
    work: Work,
    project: ProjectView,
    environments: Collection[str],
    *,
    opened_at: datetime,
    ended_at: datetime | None,
) -> Source:
    """Return deployments from an hour before an alert opened until its end.

    If the viewer may not see environments, the source is empty.
    """
    found = (
        deployments_between(
            work, project, environments, start=opened_at - _BEFORE, end=ended_at or work.now
        )
        if environments and project.shows_environments
        else ()
    )
    rows = [
        Row(
            position=position_at(each.created_at, each.id),
            item=TimelineItem(kind=ItemKind.DEPLOYMENT, at=each.created_at, deployment=each),
        )
        for each in found
    ]
    return stored("d", rows)


def entries_of(incident_id: int, *, shows_internal: bool, session: Session) -> Source:
    """Return the comments on an incident and its changes."""

    def read(following: Position | None, most: int, is_oldest_first: bool) -> Sequence[Row]:  # noqa: FBT001 - as Read
        found = list_entries(
            incident_id,
            Slice(size=most, before=following[0] if following else None),
            shows_internal=shows_internal,
            which=EntryFilter.ALL,
            is_oldest_first=is_oldest_first,
            session=session,
        )
        fates = fates_of([each.page_key for each in found.items], session=session)
        return [
            Row(
                position=(each.id,),
                item=_page_of_incident(each, fates.get(each.page_key, UNKNOWN))
                if each.kind is EntryKind.PAGED
                else _of_incident(each),
            )
            for each in found.items
        ]

    return Source(letter="n", numbers=1, read=read)


def _page_of_incident(entry: TimelineEntry, fate: Fate) -> TimelineItem:
    page = SentPage(
        id=entry.id,
        alert_id=None,
        at=entry.created_at,
        name=f"@{entry.text}",
        round=1,
        step=0,
        asked_by=entry.asked_by,
        state=fate.state,
        contacts=fate.contacts,
    )
    return TimelineItem(kind=ItemKind.PAGE, at=entry.created_at, page=page)


_KINDS_OF_INCIDENTS = {EntryKind.NOTE: ItemKind.NOTE, EntryKind.PAGE: ItemKind.UNREACHED}


def _of_incident(entry: TimelineEntry) -> TimelineItem:
    return TimelineItem(
        kind=_KINDS_OF_INCIDENTS.get(entry.kind, ItemKind.INCIDENT),
        at=entry.created_at,
        author=AlertAuthor.model_validate(entry.user) if entry.user else None,
        text=sentence_of(entry),
        via=BY_ITSELF if entry.is_by_itself else entry.details.get("via"),
        alerts=tuple(entry.details.get("alerts", ())),
        note_id=entry.id if entry.is_comment else None,
        internal=entry.is_internal,
        updated_at=entry.updated_at if entry.is_comment and entry.is_edited else None,
    )


@dataclass(frozen=True, kw_only=True)
class IncidentAlerts:
    """The alerts in the timeline of an incident."""

    numbers: Mapping[int, int]
    rows: Sequence[Row]
    environments: frozenset[str]
    opened_at: datetime | None


def alerts_of(incident_id: int, *, session: Session) -> IncidentAlerts:
    """Return the newest alerts of an incident, with the times at which they opened and ended."""
    found = session.execute(
        select(
            Alert.id,
            Alert.iid,
            Alert.title,
            Alert.environment,
            Alert.created_at,
            Alert.recovery_received_at,
        )
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .where(IncidentAlert.incident_id == incident_id)
        .order_by(IncidentAlert.alert_id.desc())
        .limit(MOST_ALERTS)
    ).all()
    moments = [(ItemKind.OPENED, row.created_at, row) for row in found]
    moments += [
        (ItemKind.ENDED, row.recovery_received_at, row) for row in found if row.recovery_received_at
    ]
    return IncidentAlerts(
        numbers={row.id: row.iid for row in found},
        rows=[
            Row(
                position=position_at(at, row.id),
                item=TimelineItem(kind=kind, at=at, text=row.title, alerts=(row.iid,)),
                joins=kind,
            )
            for kind, at, row in moments
        ],
        environments=frozenset(row.environment for row in found if row.environment),
        opened_at=min((row.created_at for row in found), default=None),
    )
