"""Reads the data for messages: alerts and incidents that need attention, and follow-ups."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, SQLColumnExpression, and_, exists, func, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.activity import ActivityEntryKind, EarlierAlerts, find_earlier_alerts
from domain.alerts.handling.alert_detail import (
    AlertLinksAndLabels,
    find_first_fields,
    find_links_and_labels,
)
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.parsing.incoming_alert import Severity
from domain.paging.notifications.page_queue import MANUAL_PAGE_PREFIX, MAY_BE_READ, PageKind
from domain.paging.notifications.page_subjects import (
    INCIDENT_SEVERITY_RANK,
    SubjectKind,
    format_title,
    get_severity_rank,
)
from domain.paging.notifications.paging_settings import PageReason, PagingSettings
from models import (
    Alert,
    AlertNote,
    Contact,
    Incident,
    IncidentNote,
    Page,
    PageMessage,
    Project,
)

#: Maximum number of alerts and incidents that a message lists. Further alerts and incidents are
#: only counted.
MAX_LISTED_SUBJECTS = 10
_log = logging.getLogger("gatebell.pages")
_STATUS_WORDS = {"acknowledged": "Acknowledged", "resolved": "Resolved", "ignored": "Ignored"}
_NO_FACTS = AlertLinksAndLabels(links={}, labels=())

Value = TypeVar("Value")


class _SubjectTable(NamedTuple):
    """The database table for a kind of page subject, its sort column, and its notes table."""

    about: SubjectKind
    thing: type[Any]
    severity: SQLColumnExpression[int]
    note: type[Any]
    note_key: SQLColumnExpression[int]


_SUBJECT_TABLES = (
    _SubjectTable(
        *(SubjectKind.INCIDENT, Incident, INCIDENT_SEVERITY_RANK),
        *(IncidentNote, IncidentNote.incident_id),
    ),
    _SubjectTable(SubjectKind.ALERT, Alert, Alert.severity, AlertNote, AlertNote.alert_id),
)


@dataclass(frozen=True, kw_only=True)
class FiringSubject:
    """An alert or incident that needs attention."""

    about: SubjectKind
    id: int
    title: str
    #: First fields of the report, if the report has no title.
    fields: Sequence[tuple[str, str]]
    severity: str
    #: Path of the project.
    path: str
    iid: int
    started_at: datetime
    reason: PageReason | None


@dataclass(frozen=True, kw_only=True)
class SingleSubjectDetails:
    """The details, labels and earlier alerts for a message about a single alert or incident."""

    #: Names and values of details, such as the service.
    details: Sequence[tuple[str, str]]
    description: str | None
    facts: AlertLinksAndLabels
    former: EarlierAlerts | None


@dataclass(frozen=True, kw_only=True)
class FiringSummary:
    """The alerts and incidents in a message that still need attention."""

    count: int
    #: Number of incidents that need attention.
    incidents: int
    projects: int
    #: The most severe alerts and incidents, which the message lists.
    named: Sequence[FiringSubject]
    #: Details of the alert or incident. None if the message is about several alerts or incidents.
    single: SingleSubjectDetails | None


def find_firing_summary(
    contact: Contact, batches: Sequence[int], policy: PagingSettings, *, session: Session
) -> FiringSummary:
    """Return the alerts and incidents in batches that still need attention, most severe first.

    For a user who was paged manually, this includes alerts that another user has acknowledged.
    """
    counts: dict[SubjectKind, Mapping[int, int]] = {}
    named: list[FiringSubject] = []
    first: Alert | Incident | None = None
    for table in _find_subject_tables(PageKind.FIRING, batches, session=session):
        waiting = _select_waiting_subjects(table, contact, batches)
        in_order = waiting.order_by(table.severity, table.thing.id)
        rows = session.execute(in_order.limit(MAX_LISTED_SUBJECTS)).all()
        counts[table.about] = _count_by_project(rows, waiting, session=session)
        first = first or next((row[0] for row in rows), None)
        named += _build_firing_subjects(contact, table.about, rows, policy, session=session)
    named.sort(key=lambda each: SEVERITIES.index(Severity(each.severity)))
    count = sum(sum(each.values()) for each in counts.values())
    return FiringSummary(
        count=count,
        incidents=sum(counts.get(SubjectKind.INCIDENT, {}).values()),
        projects=len({project_id for each in counts.values() for project_id in each}),
        named=named[:MAX_LISTED_SUBJECTS],
        single=_build_single_subject_details(first, policy, session=session)
        if first and count == 1
        else None,
    )


def _find_subject_tables(
    kind: PageKind, batches: Sequence[int], *, session: Session
) -> Sequence[_SubjectTable]:
    """Return the tables of the subject kinds that have pages in the batches.

    In most cases, this saves a query.
    """
    of_alerts = Page.alert_id.is_not(None)
    of_batches = Page.batch_id.in_(batches), Page.kind == kind.value
    found = set(session.scalars(select(of_alerts).where(*of_batches).distinct()))
    return [each for each in _SUBJECT_TABLES if (each.about is SubjectKind.ALERT) in found]


def _count_by_project(
    rows: Sequence[tuple[Any, str]], waiting: Select[Any, str], *, session: Session
) -> Mapping[int, int]:
    """Count all alerts or incidents by project.

    `rows` contains the listed alerts or incidents. The database is queried only if there may be
    more.
    """
    if len(rows) < MAX_LISTED_SUBJECTS:
        return Counter(thing.project_id for thing, _ in rows)
    found = waiting.subquery()
    by_project = select(found.c.project_id, func.count()).group_by(found.c.project_id)
    return dict(session.execute(by_project).all())


def _select_waiting_subjects(
    subject_table: _SubjectTable, contact: Contact, batches: Sequence[int]
) -> Select[Any, str]:
    about, thing, _severity, note, note_key = subject_table
    has_answered = exists().where(
        note_key == about.column,
        note.kind == ActivityEntryKind.STATUS.value,
        note.user_id == contact.user_id,
        note.created_at >= Page.created_at,
    )
    paged = select(about.column).where(
        Page.batch_id.in_(batches),
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
        Page.held_by.is_(None),
    )
    asked = thing.id.in_(paged.where(Page.key.like(f"{MANUAL_PAGE_PREFIX}%"), ~has_answered))
    waits = or_(thing.status == "triggered", and_(thing.status == "acknowledged", asked))
    return (
        select(thing, Project.path)
        .join(Project, Project.id == thing.project_id)
        .where(thing.id.in_(paged), waits, Project.deleted_at.is_(None))
    )


def _build_firing_subjects(
    contact: Contact,
    subject_kind: SubjectKind,
    rows: Sequence[tuple[Alert | Incident, str]],
    policy: PagingSettings,
    *,
    session: Session,
) -> Sequence[FiringSubject]:
    alerts = [thing for thing, _ in rows if isinstance(thing, Alert)]
    untold: Mapping[int, Sequence[tuple[str, str]]] = {}
    fields = _run_or_default(
        untold, lambda: find_first_fields(alerts, session=session, reading=policy.reading)
    )
    unknown: Mapping[int, PageReason] = {}
    reasons = _run_or_default(
        unknown,
        lambda: policy.reason_finders[subject_kind](
            [thing.id for thing, _ in rows],
            user_id=contact.user_id,
            channel_id=None if contact.user_id else contact.id,
            session=session,
        ),
    )
    return [
        FiringSubject(
            about=subject_kind,
            id=thing.id,
            title=format_title(thing),
            fields=fields.get(thing.id, ()) if subject_kind is SubjectKind.ALERT else (),
            severity=SEVERITIES[get_severity_rank(thing)].value,
            path=path,
            iid=thing.iid,
            started_at=thing.started_at if isinstance(thing, Alert) else thing.created_at,
            reason=reasons.get(thing.id),
        )
        for thing, path in rows
    ]


def _build_single_subject_details(
    subject: Alert | Incident, policy: PagingSettings, *, session: Session
) -> SingleSubjectDetails:
    if isinstance(subject, Incident):
        details = (("Status", subject.status), ("Alerts", str(subject.alerts)))
        return SingleSubjectDetails(details=details, description=None, facts=_NO_FACTS, former=None)
    found = (
        ("Severity reason", subject.severity_reason),
        ("Service", subject.service),
        ("Environment", subject.environment),
        ("Hosts", ", ".join(subject.hosts.split("\n")) if subject.hosts else None),
        ("Monitoring tool", subject.monitoring_tool),
    )
    return SingleSubjectDetails(
        details=[(name, value) for name, value in found if value],
        description=subject.description,
        facts=_run_or_default(
            _NO_FACTS,
            lambda: find_links_and_labels(subject, session=session, reading=policy.reading),
        ),
        former=find_earlier_alerts(subject.id, session=session),
    )


def _run_or_default(nothing: Value, read_value: Callable[[], Value]) -> Value:
    """Return the result of a function, or a default if it fails.

    A page is sent even if a report cannot be read.
    """
    try:
        return read_value()
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - the error must not prevent a page
        _log.exception(
            "Part of a page could not be read; the page will be sent without it.",
            extra={"event": "page.text_incomplete"},
        )
        return nothing


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """The new state of an alert or incident about which a recipient was paged.

    `words` describes the state, such as `Acknowledged by @alice`.
    """

    about: SubjectKind
    words: str
    title: str
    path: str
    iid: int


def find_follow_ups(
    contact: Contact, batches: Sequence[int], *, session: Session
) -> Sequence[FollowUp]:
    """Return the follow-ups for a contact, ordered by project and number.

    An alert or incident is included under these conditions:

    - The contact may have received a page about it.
    - It is not firing again.
    - Its state was not last changed by the contact's user.
    """
    found = []
    for table in _find_subject_tables(PageKind.FOLLOW_UP, batches, session=session):
        about, thing = table.about, table.thing
        told = aliased(Page)
        column = told.alert_id if about is SubjectKind.ALERT else told.incident_id
        knows_of_it = exists().where(
            column == about.column,
            told.kind == PageKind.FIRING.value,
            PageMessage.batch_id == told.batch_id,
            PageMessage.contact_id == contact.id,
            MAY_BE_READ,
        )
        news = select(about.column).where(
            Page.batch_id.in_(batches),
            Page.kind == PageKind.FOLLOW_UP.value,
            Page.withdrawn_at.is_(None),
            knows_of_it,
        )
        rows = session.execute(
            select(thing, Project.path)
            .join(Project, Project.id == thing.project_id)
            .where(thing.id.in_(news), thing.status.in_(_STATUS_WORDS))
            .order_by(thing.project_id, thing.iid)
        ).all()
        statuses = {each.id: each.status for each, _ in rows}
        changes = _find_last_changes(table, statuses, session=session)
        for each, path in rows:
            change = changes.get(each.id)
            if change and contact.user_id and contact.user_id == change.user_id:
                continue
            by = f" by @{change.user_name}" if change and change.user_name else ""
            words = f"{_STATUS_WORDS[each.status]}{by}"
            title = format_title(each)
            found.append(FollowUp(about=about, words=words, title=title, path=path, iid=each.iid))
    return found


def _find_last_changes(
    subject_table: _SubjectTable, states: Mapping[int, str], *, session: Session
) -> Mapping[int, AlertNote | IncidentNote]:
    """Return notes about the changes that set the current status of alerts or incidents, by ID."""
    note, key = subject_table.note, subject_table.note_key
    newest = (
        select(func.max(note.id))
        .where(key.in_(states), note.kind == ActivityEntryKind.STATUS.value)
        .group_by(key)
    )
    found: dict[int, AlertNote | IncidentNote] = {}
    for row in session.scalars(select(note).where(note.id.in_(newest))):
        is_of_alert = isinstance(row, AlertNote)
        number, state = (
            (row.alert_id, row.text) if is_of_alert else (row.incident_id, row.details["new"])
        )
        if state == states[number]:
            found[number] = row
    return found
