"""Reads the facts for messages: alerts and incidents that need attention, and follow-ups."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, and_, exists, func, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.activity import FormerAlerts, NoteKind, former_alerts
from domain.alerts.handling.alert_detail import AlertFacts, first_fields, read_facts
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.reading.incoming import Severity
from domain.paging.notifications.page_targets import RANK_OF_INCIDENT, Subject, rank_of, shown_title
from domain.paging.notifications.paging import ASKED, MAY_BE_READ, PageKind
from domain.paging.notifications.policy import PageReason, PagingPolicy
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

#: Maximum number of alerts and incidents that a message names. Others are only counted.
MOST_NAMED = 10
_log = logging.getLogger("gatebell.pages")
_WORDS = {"acknowledged": "Acknowledged", "resolved": "Resolved", "ignored": "Ignored"}
_NO_FACTS = AlertFacts(links={}, labels=())

Value = TypeVar("Value")
_Thing = tuple[Subject, type[Any], SQLColumnExpression[int]]
#: Subjects of pages with their tables and the columns for sorting by severity.
_THINGS: tuple[_Thing, ...] = (
    (Subject.INCIDENT, Incident, RANK_OF_INCIDENT),
    (Subject.ALERT, Alert, Alert.severity),
)


@dataclass(frozen=True, kw_only=True)
class FiringAlert:
    """An alert or incident that needs attention."""

    about: Subject
    title: str
    #: First fields of the report, if it has no title.
    fields: Sequence[tuple[str, str]]
    severity: str
    #: Path of the project.
    path: str
    iid: int
    started_at: datetime
    reason: PageReason | None


@dataclass(frozen=True, kw_only=True)
class SingleAlert:
    """Further facts for a message about a single alert or incident."""

    #: Names and values of details, such as the service.
    details: Sequence[tuple[str, str]]
    description: str | None
    facts: AlertFacts
    former: FormerAlerts | None


@dataclass(frozen=True, kw_only=True)
class Firing:
    """The alerts and incidents of a message that still need attention."""

    count: int
    #: Number of incidents among them.
    incidents: int
    projects: int
    #: The most severe alerts and incidents.
    named: Sequence[FiringAlert]
    #: Facts about the only alert or incident. None if there are several.
    single: SingleAlert | None


def firing_of(
    contact: Contact, batches: Sequence[int], policy: PagingPolicy, *, session: Session
) -> Firing:
    """Return the alerts and incidents of batches that still need attention, most severe first.

    For a user who was paged manually, this includes alerts that another user has acknowledged.
    """
    counts: dict[Subject, Mapping[int, int]] = {}
    named: list[FiringAlert] = []
    first: Alert | Incident | None = None
    for about, thing, severity in _things(PageKind.FIRING, batches, session=session):
        waiting = _waiting(about, thing, contact, batches)
        rows = session.execute(waiting.order_by(severity, thing.id).limit(MOST_NAMED)).all()
        counts[about] = _by_project(rows, waiting, session=session)
        first = first or next((row[0] for row in rows), None)
        named += _named(contact, about, rows, policy, session=session)
    named.sort(key=lambda each: SEVERITIES.index(Severity(each.severity)))
    count = sum(sum(each.values()) for each in counts.values())
    return Firing(
        count=count,
        incidents=sum(counts.get(Subject.INCIDENT, {}).values()),
        projects=len({project_id for each in counts.values() for project_id in each}),
        named=named[:MOST_NAMED],
        single=_single(first, policy, session=session) if first and count == 1 else None,
    )


def _things(kind: PageKind, batches: Sequence[int], *, session: Session) -> Sequence[_Thing]:
    """Return the subjects of the pages of a kind in batches, which saves a query in most cases."""
    of_alerts = Page.alert_id.is_not(None)
    of_batches = Page.batch_id.in_(batches), Page.kind == kind.value
    found = set(session.scalars(select(of_alerts).where(*of_batches).distinct()))
    return [each for each in _THINGS if (each[0] is Subject.ALERT) in found]


def _by_project(
    rows: Sequence[tuple[Any, str]], waiting: Select[Any, str], *, session: Session
) -> Mapping[int, int]:
    """Count all alerts or incidents by project; `rows` are the first ones."""
    if len(rows) < MOST_NAMED:
        return Counter(thing.project_id for thing, _ in rows)
    found = waiting.subquery()
    by_project = select(found.c.project_id, func.count()).group_by(found.c.project_id)
    return dict(session.execute(by_project).all())


def _waiting(
    about: Subject, thing: type[Any], contact: Contact, batches: Sequence[int]
) -> Select[Any, str]:
    note = _notes_of(about)
    has_answered = exists().where(
        note.key == about.column,
        note.table.kind == NoteKind.STATUS.value,
        note.table.user_id == contact.user_id,
        note.table.created_at >= Page.created_at,
    )
    paged = select(about.column).where(
        Page.batch_id.in_(batches),
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
        Page.held_by.is_(None),
    )
    asked = thing.id.in_(paged.where(Page.key.like(f"{ASKED}%"), ~has_answered))
    waits = or_(thing.status == "triggered", and_(thing.status == "acknowledged", asked))
    return (
        select(thing, Project.path)
        .join(Project, Project.id == thing.project_id)
        .where(thing.id.in_(paged), waits, Project.deleted_at.is_(None))
    )


class _Notes(NamedTuple):
    """The table of user actions on alerts or incidents, and its key column."""

    table: type[Any]
    key: SQLColumnExpression[int]


def _notes_of(about: Subject) -> _Notes:
    if about is Subject.ALERT:
        return _Notes(AlertNote, AlertNote.alert_id)
    return _Notes(IncidentNote, IncidentNote.incident_id)


def _named(
    contact: Contact,
    about: Subject,
    rows: Sequence[tuple[Alert | Incident, str]],
    policy: PagingPolicy,
    *,
    session: Session,
) -> Sequence[FiringAlert]:
    alerts = [thing for thing, _ in rows if isinstance(thing, Alert)]
    untold: Mapping[int, Sequence[tuple[str, str]]] = {}
    fields = _or_else(untold, lambda: first_fields(alerts, session=session, reading=policy.reading))
    unknown: Mapping[int, PageReason] = {}
    reasons = _or_else(
        unknown,
        lambda: policy.explain[about](
            [thing.id for thing, _ in rows],
            user_id=contact.user_id,
            channel_id=None if contact.user_id else contact.id,
            session=session,
        ),
    )
    return [
        FiringAlert(
            about=about,
            title=shown_title(thing),
            fields=fields.get(thing.id, ()) if about is Subject.ALERT else (),
            severity=SEVERITIES[rank_of(thing)].value,
            path=path,
            iid=thing.iid,
            started_at=thing.started_at if isinstance(thing, Alert) else thing.created_at,
            reason=reasons.get(thing.id),
        )
        for thing, path in rows
    ]


def _single(thing: Alert | Incident, policy: PagingPolicy, *, session: Session) -> SingleAlert:
    if isinstance(thing, Incident):
        details = (("Status", thing.status), ("Alerts", str(thing.alerts)))
        return SingleAlert(details=details, description=None, facts=_NO_FACTS, former=None)
    found = (
        ("Severity reason", thing.severity_reason),
        ("Service", thing.service),
        ("Environment", thing.environment),
        ("Hosts", ", ".join(thing.hosts.split("\n")) if thing.hosts else None),
        ("Monitoring tool", thing.monitoring_tool),
    )
    return SingleAlert(
        details=[(name, value) for name, value in found if value],
        description=thing.description,
        facts=_or_else(
            _NO_FACTS, lambda: read_facts(thing, session=session, reading=policy.reading)
        ),
        former=former_alerts(thing.id, session=session),
    )


def _or_else(nothing: Value, read: Callable[[], Value]) -> Value:
    """Return the result of a function, or a default if it fails.

    A page is sent even if a report cannot be read.
    """
    try:
        return read()
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - it must not keep a page from leaving
        _log.exception("a page leaves with less than there is to say")
        return nothing


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """The current state of an alert or incident in words, such as `Acknowledged by @alice`."""

    about: Subject
    words: str
    title: str
    path: str
    iid: int


def follow_ups_of(
    contact: Contact, batches: Sequence[int], *, session: Session
) -> Sequence[FollowUp]:
    """Return the follow-ups for a contact, ordered by project and number.

    An alert or incident is included under these conditions:

    - The contact may have read about it.
    - It is not firing again.
    - Its state was not last changed by the user of the contact.
    """
    found = []
    for about, thing, _severity in _things(PageKind.FOLLOW_UP, batches, session=session):
        told = aliased(Page)
        column = told.alert_id if about is Subject.ALERT else told.incident_id
        knows_of_it = exists().where(
            column == about.column,
            told.kind == PageKind.FIRING.value,
            PageMessage.batch_id == told.batch_id,
            PageMessage.contact_id == contact.id,
            MAY_BE_READ,
        )
        news = select(about.column).where(*_live_news(batches), knows_of_it)
        rows = session.execute(
            select(thing, Project.path)
            .join(Project, Project.id == thing.project_id)
            .where(thing.id.in_(news), thing.status.in_(_WORDS))
            .order_by(thing.project_id, thing.iid)
        ).all()
        changes = _last_changes(about, {each.id: each.status for each, _ in rows}, session=session)
        found += [
            _follow_up(about, each, path, change)
            for each, path in rows
            if not (
                (change := changes.get(each.id))
                and contact.user_id
                and contact.user_id == change.user_id
            )
        ]
    return found


def _live_news(batches: Sequence[int]) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for updates of batches that were not cancelled."""
    is_news = Page.kind == PageKind.FOLLOW_UP.value
    return Page.batch_id.in_(batches), is_news, Page.withdrawn_at.is_(None)


def _last_changes(
    about: Subject, states: Mapping[int, str], *, session: Session
) -> Mapping[int, AlertNote | IncidentNote]:
    """Return the user changes that set the current state of alerts or incidents, by id."""
    note, key = _notes_of(about)
    newest = (
        select(func.max(note.id))
        .where(key.in_(states), note.kind == NoteKind.STATUS.value)
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


def _follow_up(
    about: Subject, thing: Alert | Incident, path: str, change: AlertNote | IncidentNote | None
) -> FollowUp:
    by = f" by @{change.user_name}" if change is not None and change.user_name else ""
    return FollowUp(
        about=about,
        words=f"{_WORDS[thing.status]}{by}",
        title=shown_title(thing),
        path=path,
        iid=thing.iid,
    )
