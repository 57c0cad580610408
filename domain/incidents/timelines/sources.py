"""Sources of timelines: reports, activity, pages, deployments and incident entries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.handling.activity import (
    AUTOMATIC_VIA,
    ActivityEntryKind,
    ActivityView,
    list_activity_for_alerts,
)
from domain.alerts.handling.occurrences import list_occurrences
from domain.alerts.handling.types import AlertActivity, AlertAuthor
from domain.alerts.storing.lifecycle import Action
from domain.ci_cd.deployment_actions import find_deployments_between
from domain.core.database.pagination import KeysetRange
from domain.incidents.timeline import TimelineEntry, format_timeline_entry, list_timeline_entries
from domain.incidents.timelines.merging import (
    RowRange,
    TimelineRow,
    TimelineSource,
    build_position,
    build_source_from_rows,
)
from domain.incidents.timelines.types import ItemKind, TimelineItem
from domain.incidents.types import EntryFilter, EntryKind
from domain.paging.escalations.reporting.explanation import list_sent_pages
from domain.paging.escalations.reporting.page_status import (
    UNKNOWN_PAGE_STATUS,
    PageStatus,
    find_page_statuses,
)
from domain.paging.escalations.types import SentPage
from domain.projects.views import ProjectView
from models import Alert, IncidentAlert

#: Maximum time between a deployment and an alert that it may have caused.
_MAX_TIME_AFTER_DEPLOYMENT = timedelta(hours=1)
#: Maximum number of alerts in the timeline of an incident. The newest alerts are used.
MAX_TIMELINE_ALERTS = 500
#: Kinds of alert activity that are shown in the timeline of an incident.
INCIDENT_ACTIVITY_KINDS = frozenset({ActivityEntryKind.STATUS, ActivityEntryKind.NOTE})
_ITEM_KINDS_BY_ACTIVITY = {
    ActivityEntryKind.NOTE: ItemKind.NOTE,
    ActivityEntryKind.STATUS: ItemKind.STATUS,
    ActivityEntryKind.ASSIGNEE: ItemKind.ASSIGNEE,
    ActivityEntryKind.HANDLING: ItemKind.HANDLING,
    ActivityEntryKind.PAGE: ItemKind.UNREACHED,
    ActivityEntryKind.ESCALATION: ItemKind.ESCALATION,
    ActivityEntryKind.CHANGE: ItemKind.CHANGE,
}


def build_report_source(alert_id: int, *, session: Session) -> TimelineSource:
    """Return a source of an alert's reports.

    Adjacent unchanged reports from the same sender are combined.
    """

    def read(part: RowRange) -> Sequence[TimelineRow]:
        found = list_occurrences(
            alert_id,
            (part.following[0], part.following[1]) if part.following else None,
            size=part.most,
            is_oldest_first=part.is_oldest_first,
            session=session,
        )
        rows = []
        for each in found.items:
            is_quiet = each.action in {Action.JOINED, Action.UNCHANGED}
            sender = (each.action, each.sender, each.is_test, each.integration_id)
            item = TimelineItem(kind=ItemKind.REPORT, at=each.received_at, reports=(each,))
            rows.append(
                TimelineRow(
                    position=(each.delivery_id, each.item - 1),
                    item=item,
                    joins=sender if is_quiet else None,
                )
            )
        return rows

    return TimelineSource(letter="r", numbers=2, read=read)


def build_activity_source(
    alerts: Mapping[int, tuple[int, ...]],
    kinds: Collection[ActivityEntryKind] = frozenset(ActivityEntryKind),
    *,
    session: Session,
) -> TimelineSource:
    """Return a source of alert activity: user actions, changes by reports, and failed pages.

    `alerts` maps the ID of each alert to the value of the `alerts` field in its items.
    """

    def read(part: RowRange) -> Sequence[TimelineRow]:
        found = list_activity_for_alerts(
            alerts,
            part.following[0] if part.following else None,
            kinds=kinds,
            size=part.most,
            is_oldest_first=part.is_oldest_first,
            session=session,
        )
        return [_build_activity_row(view, alerts[alert_id]) for alert_id, view in found]

    return TimelineSource(letter="a", numbers=1, read=read)


def _build_activity_row(view: ActivityView, alerts: tuple[int, ...]) -> TimelineRow:
    shown = AlertActivity.model_validate(view)
    item = TimelineItem(
        kind=_ITEM_KINDS_BY_ACTIVITY[view.kind],
        at=view.created_at,
        author=shown.author,
        text=view.text,
        via=view.via,
        changes=shown.changes,
        alerts=alerts,
    )
    is_joined = bool(alerts) and view.kind is ActivityEntryKind.STATUS
    joins = (view.kind, view.user_name, view.text, view.via) if is_joined else None
    return TimelineRow(position=(view.id,), item=item, joins=joins)


def build_page_source(
    alert_ids: Mapping[int, tuple[int, ...]], *, session: Session
) -> TimelineSource:
    """Return a source of pages about alerts.

    `alert_ids` maps the ID of each alert to the value of the `alerts` field in its items.
    """

    def read(part: RowRange) -> Sequence[TimelineRow]:
        found = list_sent_pages(
            alert_ids,
            part.following[0] if part.following else None,
            size=part.most,
            is_oldest_first=part.is_oldest_first,
            session=session,
        )
        return [
            TimelineRow(
                position=(page.id,),
                item=TimelineItem(
                    kind=ItemKind.PAGE, at=page.at, page=page, alerts=alert_ids[page.alert_id or 0]
                ),
                joins=(page.name, page.step, page.round, page.state, page.contacts),
            )
            for page in found
        ]

    return TimelineSource(letter="p", numbers=1, read=read)


def build_deployment_source(
    work: UnitOfWork,
    project: ProjectView,
    environments: Collection[str],
    *,
    opened_at: datetime,
    ended_at: datetime | None,
) -> TimelineSource:
    """Return a source of deployments from an hour before an alert opened until the alert ended.

    If the viewer may not see environments, the source is empty.
    """
    found = (
        find_deployments_between(
            work,
            project,
            environments,
            start=opened_at - _MAX_TIME_AFTER_DEPLOYMENT,
            end=ended_at or work.now,
        )
        if environments and project.can_see_environments
        else ()
    )
    rows = [
        TimelineRow(
            position=build_position(each.created_at, each.id),
            item=TimelineItem(kind=ItemKind.DEPLOYMENT, at=each.created_at, deployment=each),
        )
        for each in found
    ]
    return build_source_from_rows("d", rows)


def build_entry_source(
    incident_id: int, *, shows_internal: bool, session: Session
) -> TimelineSource:
    """Return a source of comments on an incident, and of changes to the incident."""

    def read(part: RowRange) -> Sequence[TimelineRow]:
        found = list_timeline_entries(
            incident_id,
            KeysetRange(size=part.most, before=part.following[0] if part.following else None),
            shows_internal=shows_internal,
            entry_filter=EntryFilter.ALL,
            is_oldest_first=part.is_oldest_first,
            session=session,
        )
        fates = find_page_statuses([each.page_key for each in found.items], session=session)
        return [
            TimelineRow(
                position=(each.id,),
                item=_build_page_item(each, fates.get(each.page_key, UNKNOWN_PAGE_STATUS))
                if each.kind is EntryKind.PAGED
                else _build_entry_item(each),
            )
            for each in found.items
        ]

    return TimelineSource(letter="n", numbers=1, read=read)


def _build_page_item(entry: TimelineEntry, fate: PageStatus) -> TimelineItem:
    page = SentPage(
        id=entry.id,
        alert_id=None,
        at=entry.created_at,
        name=f"@{entry.text}",
        round=1,
        step=0,
        asked_by=entry.requested_by,
        state=fate.state,
        contacts=fate.contacts,
    )
    return TimelineItem(kind=ItemKind.PAGE, at=entry.created_at, page=page)


def _build_entry_item(entry: TimelineEntry) -> TimelineItem:
    kinds = {EntryKind.NOTE: ItemKind.NOTE, EntryKind.PAGE: ItemKind.UNREACHED}
    return TimelineItem(
        kind=kinds.get(entry.kind, ItemKind.INCIDENT),
        at=entry.created_at,
        author=AlertAuthor.model_validate(entry.user) if entry.user else None,
        text=format_timeline_entry(entry),
        via=AUTOMATIC_VIA if entry.is_automatic else entry.details.get("via"),
        alerts=tuple(entry.details.get("alerts", ())),
        note_id=entry.id if entry.is_comment else None,
        internal=entry.is_internal,
        updated_at=entry.updated_at if entry.is_comment and entry.is_edited else None,
    )


@dataclass(frozen=True, kw_only=True)
class IncidentAlerts:
    """The alerts in the timeline of an incident."""

    #: Numbers (iid) as in the `alerts` field of an item, by alert ID.
    numbers: Mapping[int, tuple[int, ...]]
    rows: Sequence[TimelineRow]
    environments: frozenset[str]
    opened_at: datetime | None


def find_incident_alerts(incident_id: int, *, session: Session) -> IncidentAlerts:
    """Return the newest alerts in an incident, with the times at which they opened and ended."""
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
        .limit(MAX_TIMELINE_ALERTS)
    ).all()
    moments = [(ItemKind.OPENED, row.created_at, row) for row in found]
    moments += [
        (ItemKind.ENDED, row.recovery_received_at, row) for row in found if row.recovery_received_at
    ]
    return IncidentAlerts(
        numbers={row.id: (row.iid,) for row in found},
        rows=[
            TimelineRow(
                position=build_position(at, row.id),
                item=TimelineItem(kind=kind, at=at, text=row.title, alerts=(row.iid,)),
                joins=kind,
            )
            for kind, at, row in moments
        ],
        environments=frozenset(row.environment for row in found if row.environment),
        opened_at=min((row.created_at for row in found), default=None),
    )
