"""Reads the data for reports: the alerts, pages and answers of projects in a period.

Alerts are found by the index on their start, pages by the index on project and time, and all other
data by ID. Therefore, the cost grows with the length of the period, but not with the amount of
other data. Rows are read in batches, so that memory usage does not grow after an alert storm. A
storm can contain hundreds of thousands of alerts. Therefore, each counted item is a single row with
as few columns and objects as possible.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import AUTOMATIC_VIA, ActivityEntryKind
from domain.alerts.listing.filters import SEVERITIES
from domain.core.types.base import get_column_values
from domain.incidents.timeline import TimelineEntry
from domain.incidents.types import EntryKind
from domain.paging.notifications.page_queue import IS_FIRST_PAGE, PageKind
from domain.paging.notifications.page_subjects import get_severity_rank
from domain.paging.notifications.states import PageState
from domain.paging.on_call.schedule_plans import Period
from domain.reports.types import PageCondition
from models import (
    Alert,
    AlertNote,
    AlertRoute,
    Contact,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    Incident,
    IncidentNote,
    Page,
    PageRecipient,
    Project,
    User,
)

#: Maximum number of IDs in a query. With many more IDs, PostgreSQL would scan whole tables.
BATCH_SIZE = 250
#: Maximum number of rows in memory at the same time.
_MAX_ROWS_IN_MEMORY = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusEntry:
    """A change to an alert's status that was made by a user or by the service.

    Changes that a sender reported are not included.
    """

    status: str
    at: datetime
    #: Username of the author. Empty for the command line.
    by: str
    #: True if the service changed the status because the sender stopped reporting the alert.
    is_automatic: bool


class CountedAlert(NamedTuple):
    """An alert, or an incident in the same form, as counted in reports."""

    id: int
    project_id: int
    iid: int
    title: str
    severity: str
    status: str
    created_at: datetime
    started_at: datetime
    ended_at: datetime | None
    recovery_received_at: datetime | None
    #: Status changes, in chronological order.
    entries: Sequence[StatusEntry]
    is_incident: bool = False


class CountedPage(NamedTuple):
    """A page to a user or channel, as counted in reports."""

    at: datetime
    #: ID of the channel, or None for a user.
    channel_id: int | None
    user_id: int | None
    user: str | None
    time_zone: str | None
    accepted_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedPage:
    """A page to a user or channel, with the details that a report lists."""

    #: Identifier of the page, as returned by `find_listed_page_ids`.
    number: int
    alert: CountedAlert
    at: datetime
    round: int = 1
    step: int = 0
    user: str | None
    #: ID of the channel, or None for a user.
    channel_id: int | None
    #: Label of the channel, or None if the channel was deleted.
    channel: str | None = None
    state: PageState | None
    accepted_at: datetime | None
    batch_id: int | None
    escalation_policy: str | None = None
    route: str | None = None
    #: User or rule that requested a page about an incident.
    asked_by: str | None = None


class RankedRule(NamedTuple):
    """The alerts with the same title in a project, with their numbers of fingerprints and pages."""

    project_id: int
    title: str
    #: Number of distinct fingerprints. Alerts without a fingerprint are counted individually.
    fingerprints: int
    #: Number of pages for all alerts with the title, including alerts that started before the
    #: period.
    pages: int


@dataclass(frozen=True)
class ReportFilter:
    """The scope of a report: the IDs of projects, a period, and a condition for listed pages."""

    project_ids: Collection[int]
    within: Period
    lists_page: PageCondition | None = None

    @property
    def started_condition(self) -> ColumnElement[bool]:
        """SQL condition that matches alerts that started in the period."""
        return and_(
            Alert.project_id.in_(self.project_ids),
            Alert.started_at >= self.within.start,
            Alert.started_at < self.within.end,
        )

    def select_alert_pages(self, *columns: Any) -> Select[*tuple[Any, ...]]:
        """Return a query for pages about alerts in the period, joined with their alerts."""
        pages = EscalationPage
        return (
            select(*columns)
            .select_from(pages)
            .join(Alert, Alert.id == pages.alert_id)
            .where(
                Alert.project_id.in_(self.project_ids),
                # Pages from an earlier release do not have a project.
                or_(pages.project_id.in_(self.project_ids), pages.project_id.is_(None)),
                pages.paged_at >= self.within.start,
                pages.paged_at < self.within.end,
            )
        )

    def select_incident_pages(self, *columns: Any) -> Select[*tuple[Any, ...]]:
        """Return a query for pages about incidents in the period, joined with their recipients."""
        return (
            select(*columns)
            .select_from(Page)
            .join(Incident, Incident.id == Page.incident_id)
            .join(PageRecipient, PageRecipient.id == Page.recipient_id)
            .where(
                Incident.project_id.in_(self.project_ids),
                Page.kind == PageKind.FIRING.value,
                IS_FIRST_PAGE,
                Page.created_at >= self.within.start,
                Page.created_at < self.within.end,
            )
        )


#: Columns for the fields of CountedAlert, in the same order, except `entries` and `is_incident`.
_ALERT_COLUMNS = (
    *(Alert.id, Alert.project_id, Alert.iid, Alert.title, Alert.severity, Alert.status),
    *(Alert.created_at, Alert.started_at, Alert.ended_at, Alert.recovery_received_at),
)
_STATUS_COLUMNS = (
    *(AlertNote.text.label("entry_status"), AlertNote.created_at.label("entry_at")),
    *(AlertNote.via, func.coalesce(User.username, AlertNote.user_name).label("by")),
)
_ENTRY_ID = "entry_id"
_IS_STATUS = AlertNote.kind == ActivityEntryKind.STATUS.value
_ACCEPTED_AT = case((Page.outcome == PageState.ACCEPTED.value, Page.outcome_at)).label(
    "accepted_at"
)


def read_alerts(report_filter: ReportFilter, *, session: Session) -> Iterator[CountedAlert]:
    """Yield the alerts that started in the period, in order of start time."""
    found = _join_status_entries(select(*_ALERT_COLUMNS), session=session).where(
        report_filter.started_condition
    )
    in_order = found.order_by(Alert.started_at, Alert.id, _ENTRY_ID)
    return (
        _build_alert(row, entries) for row, entries in _group_by_alert(in_order, session=session)
    )


def count_alerts(report_filter: ReportFilter, *, session: Session) -> int:
    """Return the number of alerts that started in the period."""
    return session.scalar(select(func.count(Alert.id)).where(report_filter.started_condition)) or 0


def has_alerts_before(project_ids: Collection[int], moment: datetime, *, session: Session) -> bool:
    """Return whether any alert in the projects started before a time."""
    # The minimum is the first entry in an index. With EXISTS, PostgreSQL may scan the table.
    first = (
        select(func.min(Alert.started_at))
        .where(Alert.project_id == Project.id)
        .correlate(Project)
        .scalar_subquery()
    )
    some = select(Project.id).where(Project.id.in_(project_ids), first < moment).limit(1)
    return session.scalar(some) is not None


def read_acknowledgement_times(report_filter: ReportFilter, *, session: Session) -> Iterator[float]:
    """Yield the seconds from the arrival of each alert until a user first acknowledged it."""
    is_by_user = or_(AlertNote.via.is_(None), ~AlertNote.via.startswith(AUTOMATIC_VIA))
    first = (
        select(func.min(AlertNote.created_at))
        .where(AlertNote.alert_id == Alert.id, _IS_STATUS, is_by_user)
        .where(AlertNote.text == "acknowledged")
        .correlate(Alert)
        .scalar_subquery()
    )
    found = select(Alert.created_at, first.label("at")).where(report_filter.started_condition)
    for rows in _read_in_batches(found, session=session):
        yield from (max((at - since).total_seconds(), 0.0) for since, at in rows if at is not None)


def read_paged_alerts(
    report_filter: ReportFilter, *, session: Session
) -> Iterator[tuple[CountedAlert, datetime]]:
    """Yield the alerts with pages in the period, each with the time of its first page."""
    pages = EscalationPage
    columns = pages.alert_id, func.min(pages.paged_at).label("first_paged_at")
    firsts = report_filter.select_alert_pages(*columns).group_by(pages.alert_id).subquery()
    alerts = select(*_ALERT_COLUMNS, firsts.c.first_paged_at).join(
        firsts, firsts.c.alert_id == Alert.id
    )
    found = _join_status_entries(alerts, session=session).order_by(Alert.id, _ENTRY_ID)
    for row, entries in _group_by_alert(found, session=session):
        yield _build_alert(row, entries), row.first_paged_at


def read_paged_incidents(
    report_filter: ReportFilter, *, session: Session
) -> Iterator[tuple[CountedAlert, datetime]]:
    """Yield the incidents with pages in the period, each with the time of its first page."""
    columns = Page.incident_id, func.min(Page.created_at)
    found = report_filter.select_incident_pages(*columns).group_by(Page.incident_id)
    for rows in _read_in_batches(found, BATCH_SIZE, session=session):
        first = {row[0]: row[1] for row in rows}
        for number, incident in _read_incidents(first, session=session).items():
            yield incident, first[number]


def read_pages(report_filter: ReportFilter, *, session: Session) -> Iterator[CountedPage]:
    """Yield the pages in the period: pages about alerts, followed by pages about incidents."""
    pages, recipients = EscalationPage, PageRecipient
    more = User.username, User.time_zone, _ACCEPTED_AT
    of_alerts = (
        report_filter.select_alert_pages(pages.paged_at, pages.channel_id, pages.user_id, *more)
        .outerjoin(User, User.id == pages.user_id)
        .outerjoin(Page, Page.key == pages.page_key)
    )
    of_incidents = report_filter.select_incident_pages(
        Page.created_at, recipients.contact_id, recipients.user_id, *more
    ).outerjoin(User, User.id == recipients.user_id)
    for found in (of_alerts, of_incidents):
        for rows in _read_in_batches(found, session=session):
            yield from (CountedPage(*row) for row in rows)


def find_listed_page_ids(report_filter: ReportFilter, *, session: Session) -> Sequence[int]:
    """Return the numbers of the listed pages, in chronological order, as a compact array.

    The number of a page about an incident is the negated ID of the page.
    """
    pages, lists_page = EscalationPage, report_filter.lists_page
    of_alerts = report_filter.select_alert_pages(
        pages.paged_at.label("at"), pages.id.label("number"), pages.channel_id
    )
    of_incidents = report_filter.select_incident_pages(
        Page.created_at.label("at"), (-Page.id).label("number"), PageRecipient.contact_id
    )
    both = union_all(of_alerts, of_incidents).subquery().c
    found = _read_in_batches(select(*both).order_by(both.at, both.number), session=session)
    listed = (row for rows in found for row in rows)
    if lists_page is not None:
        listed = (row for row in listed if lists_page(row.at, row.channel_id))
    return array("q", (row.number for row in listed))


def list_pages(numbers: Collection[int], *, session: Session) -> Sequence[ListedPage]:
    """Return pages by their numbers, in chronological order."""
    of_alerts = _select_pages().where(EscalationPage.id.in_([each for each in numbers if each > 0]))
    found = [*_read_incident_pages([-each for each in numbers if each < 0], session=session)]
    for rows in _read_in_batches(of_alerts, BATCH_SIZE, session=session):
        entries = find_status_entries({row.id for row in rows}, session=session)
        found += (_build_page(row, _build_alert(row, entries.get(row.id, ()))) for row in rows)
    return sorted(found, key=lambda page: (page.at, page.number))


def rank_rules(
    report_filter: ReportFilter, *, least_openings: int, maximum: int, session: Session
) -> list[RankedRule]:
    """Return the noisiest rules, sorted by number of pages and then by number of openings."""
    columns = (Alert.project_id, Alert.title, Alert.fingerprint)
    opened = select(*columns, literal(1).label("openings"), literal(0).label("pages"))
    paged = report_filter.select_alert_pages(
        *columns, literal(0).label("openings"), literal(1).label("pages")
    )
    # Use a union instead of a join, because PostgreSQL would underestimate two groupings and
    # compare each row with every other row.
    both = union_all(opened.where(report_filter.started_condition), paged).subquery().c
    is_opening, openings, pages = both.openings == 1, func.sum(both.openings), func.sum(both.pages)
    different = func.count(case((is_opening, both.fingerprint)).distinct())
    ungrouped = func.count().filter(is_opening, both.fingerprint.is_(None))
    found = (
        select(both.project_id, both.title, different + ungrouped, pages)
        .group_by(both.project_id, both.title)
        .having(openings >= least_openings)
        .order_by(pages.desc(), openings.desc(), both.title, both.project_id)
        .limit(maximum)
    )
    return [RankedRule(*row) for row in session.execute(found)]


def _read_in_batches(
    found: Select[*tuple[Any, ...]], size: int = _MAX_ROWS_IN_MEMORY, *, session: Session
) -> Iterator[Sequence[Row[*tuple[Any, ...]]]]:
    options = {"yield_per": size}
    return session.connection().execute(found, execution_options=options).partitions()


def _join_status_entries(
    alerts: Select[*tuple[Any, ...]], *, session: Session
) -> Select[*tuple[Any, ...]]:
    """Select alerts with their status changes, one row per change.

    An alert without status changes has a single row.
    """
    is_entry = and_(AlertNote.alert_id == Alert.id, _IS_STATUS)
    columns = (AlertNote.id.label(_ENTRY_ID), *_STATUS_COLUMNS)
    is_author = User.id == AlertNote.user_id
    if session.get_bind().dialect.name != "postgresql":
        return (
            alerts.add_columns(*columns).outerjoin(AlertNote, is_entry).outerjoin(User, is_author)
        )
    # Without statistics, PostgreSQL underestimates the number of status changes, and compares each
    # alert with all status changes. The offset makes PostgreSQL look up the changes of one alert at
    # a time.
    of_alert = select(*columns).outerjoin(User, is_author).where(is_entry).offset(0)
    entry = of_alert.correlate(Alert).lateral("entry")
    return alerts.add_columns(*entry.c).outerjoin(entry, true())


def _group_by_alert(
    found: Select[*tuple[Any, ...]], *, session: Session
) -> Iterator[tuple[Any, Sequence[StatusEntry]]]:
    rows = chain.from_iterable(_read_in_batches(found, session=session))
    for _, same in groupby(rows, key=attrgetter("id")):
        row, *others = same
        entries = row.entry_id is not None
        yield row, [_build_status_entry(each) for each in (row, *others)] if entries else ()


def _build_status_entry(row: Any) -> StatusEntry:
    is_automatic = (row.via or "").startswith(AUTOMATIC_VIA)
    return StatusEntry(
        status=row.entry_status, at=row.entry_at, by=row.by, is_automatic=is_automatic
    )


def _build_alert(row: Any, entries: Sequence[StatusEntry]) -> CountedAlert:
    number, project_id, iid, title, severity, *others = row[: len(_ALERT_COLUMNS)]
    word = SEVERITIES[severity].value
    return CountedAlert._make((number, project_id, iid, title, word, *others, entries, False))


def _select_pages() -> Select[*tuple[Any, ...]]:
    policy_id = func.coalesce(EscalationPage.policy_id, Escalation.policy_id)
    is_known = EscalationPage.policy_id.is_not(None)
    # A page from the default policy has no route, even if a route chose another policy later.
    route_id = case((is_known, EscalationPage.route_id), else_=Escalation.route_id)
    return (
        select(
            *_ALERT_COLUMNS,
            EscalationPage.id.label("number"),
            *(EscalationPage.paged_at.label("at"), EscalationPage.round, EscalationPage.step),
            User.username.label("user"),
            *(EscalationPage.channel_id, Contact.label.label("channel")),
            *(Page.id.label("page_id"), Page.outcome, _ACCEPTED_AT),
            *(Page.withdrawn_at, Page.batch_id),
            EscalationPolicy.name.label("escalation_policy"),
            AlertRoute.name.label("route"),
        )
        .select_from(EscalationPage)
        .join(Alert, Alert.id == EscalationPage.alert_id)
        .outerjoin(User, User.id == EscalationPage.user_id)
        .outerjoin(Contact, Contact.id == EscalationPage.channel_id)
        .outerjoin(Page, Page.key == EscalationPage.page_key)
        .outerjoin(Escalation, Escalation.id == EscalationPage.escalation_id)
        .outerjoin(EscalationPolicy, EscalationPolicy.id == policy_id)
        .outerjoin(AlertRoute, AlertRoute.id == route_id)
    )


def _build_page(row: Any, alert: CountedAlert, asked_by: str | None = None) -> ListedPage:
    if row.page_id is None:
        state = None
    elif row.outcome is not None:
        state = PageState(row.outcome)
    elif row.withdrawn_at is not None:
        state = PageState.WITHDRAWN
    else:
        state = PageState.WAITING if row.batch_id is None else PageState.LEFT
    values = get_column_values(row, ListedPage)
    return ListedPage(**values, alert=alert, state=state, asked_by=asked_by)


def _read_incident_pages(ids: Sequence[int], *, session: Session) -> Iterator[ListedPage]:
    if not ids:
        return
    rows = session.execute(
        select(Page.id.label("page_id"), (-Page.id).label("number"), Page.key, Page.incident_id)
        .add_columns(Page.created_at.label("at"), Page.outcome, _ACCEPTED_AT, Page.withdrawn_at)
        .add_columns(Page.batch_id, User.username.label("user"))
        .add_columns(PageRecipient.contact_id.label("channel_id"))
        .join(PageRecipient, PageRecipient.id == Page.recipient_id)
        .outerjoin(User, User.id == PageRecipient.user_id)
        .where(Page.id.in_(ids))
    ).all()
    incidents = _read_incidents({row.incident_id for row in rows}, session=session)
    is_page = IncidentNote.kind == EntryKind.PAGED.value
    notes = session.scalars(
        select(IncidentNote).where(IncidentNote.incident_id.in_(incidents), is_page)
    )
    asked = {each.page_key: each.requested_by for each in map(TimelineEntry.model_validate, notes)}
    for row in rows:
        yield _build_page(row, incidents[row.incident_id], asked.get(row.key))


def _read_incidents(ids: Collection[int], *, session: Session) -> Mapping[int, CountedAlert]:
    """Return incidents in the form of alerts.

    An incident that was closed together with its alerts counts as automatically resolved.
    """
    entries: dict[int, list[StatusEntry]] = defaultdict(list)
    is_status = IncidentNote.kind == EntryKind.STATUS.value
    notes = (
        select(IncidentNote, func.coalesce(User.username, IncidentNote.user_name))
        .outerjoin(User, User.id == IncidentNote.user_id)
        .where(IncidentNote.incident_id.in_(ids), is_status)
        .order_by(IncidentNote.id)
    )
    for note, by in session.execute(notes):
        is_automatic = "because" in note.details
        entry = StatusEntry(
            status=note.details["new"], at=note.created_at, by=by, is_automatic=is_automatic
        )
        entries[note.incident_id].append(entry)
    return {
        row.id: CountedAlert(
            *(row.id, row.project_id, row.iid, row.title, SEVERITIES[get_severity_rank(row)].value),
            *(row.status, row.created_at, row.created_at, row.resolved_at, None),
            entries=entries[row.id],
            is_incident=True,
        )
        for row in session.scalars(select(Incident).where(Incident.id.in_(ids)))
    }


def find_status_entries(
    alert_ids: Collection[int] | Select[int], *, session: Session
) -> Mapping[int, Sequence[StatusEntry]]:
    """Return the status changes of alerts by alert ID, in chronological order."""
    found: dict[int, list[StatusEntry]] = defaultdict(list)
    alerts = select(Alert.id).where(Alert.id.in_(alert_ids))
    rows = session.execute(_join_status_entries(alerts, session=session).order_by(_ENTRY_ID))
    for row in rows:
        if row.entry_id is not None:
            found[row.id].append(_build_status_entry(row))
    return found
