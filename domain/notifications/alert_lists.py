"""The alerts that a message is about: those that fire, and what became of earlier ones."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Select, and_, distinct, exists, func, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.activity import FormerAlerts, NoteKind, former_alerts
from domain.alerts.handling.alert_detail import AlertFacts, first_fields, read_facts
from domain.alerts.listing.filters import SEVERITIES
from domain.notifications.paging import ASKED, PageKind
from domain.notifications.policy import PageReason, PagingPolicy
from models import Alert, AlertNote, Contact, Page, PageMessage, Project

#: So many alerts are named; of others the number is given.
MOST_NAMED = 10
_log = logging.getLogger("gatebell.pages")
_WORDS = {"acknowledged": "Acknowledged", "resolved": "Resolved", "ignored": "Ignored"}
_NO_FACTS = AlertFacts(links={}, labels=())

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class FiringAlert:
    """An alert that waits for somebody."""

    title: str
    #: The first fields of its report, if that has no title.
    fields: Sequence[tuple[str, str]]
    severity: str
    #: Of its project.
    path: str
    iid: int
    started_at: datetime
    reason: PageReason | None


@dataclass(frozen=True, kw_only=True)
class SingleAlert:
    """What is said of an alert that is alone in its message."""

    #: What its columns say, by name.
    details: Sequence[tuple[str, str]]
    description: str | None
    facts: AlertFacts
    former: FormerAlerts | None


@dataclass(frozen=True, kw_only=True)
class Firing:
    """The alerts of a message that still wait for somebody."""

    count: int
    projects: int
    #: The most severe ones.
    named: Sequence[FiringAlert]
    #: None if there are several.
    single: SingleAlert | None


def firing_of(
    contact: Contact, batches: Sequence[int], policy: PagingPolicy, *, session: Session
) -> Firing:
    """Return the alerts of batches that still wait for somebody, the most severe first.

    For a person who was asked for, that is an acknowledged one as well.
    """
    paged = select(Page.alert_id).where(
        Page.batch_id.in_(batches),
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
    )
    waits = or_(
        Alert.status == "triggered",
        and_(Alert.status == "acknowledged", Alert.id.in_(paged.where(Page.key.like(f"{ASKED}%")))),
    )
    waiting: Select[Alert, str] = (
        select(Alert, Project.path)
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id.in_(paged), waits, Project.deleted_at.is_(None))
    )
    found = waiting.subquery()
    count, projects = session.execute(
        select(func.count(), func.count(distinct(found.c.project_id))).select_from(found)
    ).one()
    named = waiting.order_by(Alert.severity, Alert.id).limit(MOST_NAMED)
    rows = session.execute(named).all()
    return Firing(
        count=count,
        projects=projects,
        named=_named(contact, rows, policy, session=session),
        single=_single(rows[0][0], policy, session=session) if len(rows) == 1 else None,
    )


def _named(
    contact: Contact,
    rows: Sequence[tuple[Alert, str]],
    policy: PagingPolicy,
    *,
    session: Session,
) -> Sequence[FiringAlert]:
    alerts = [alert for alert, _ in rows]
    untold: Mapping[int, Sequence[tuple[str, str]]] = {}
    fields = _or_else(untold, lambda: first_fields(alerts, session=session, reading=policy.reading))
    unknown: Mapping[int, PageReason] = {}
    reasons = _or_else(
        unknown,
        lambda: policy.explain(
            [alert.id for alert in alerts],
            user_id=contact.user_id,
            channel_id=None if contact.user_id else contact.id,
            session=session,
        ),
    )
    return [
        FiringAlert(
            title=alert.title,
            fields=fields.get(alert.id, ()),
            severity=SEVERITIES[alert.severity].value,
            path=path,
            iid=alert.iid,
            started_at=alert.started_at,
            reason=reasons.get(alert.id),
        )
        for alert, path in rows
    ]


def _single(alert: Alert, policy: PagingPolicy, *, session: Session) -> SingleAlert:
    details = (
        ("Why this severity", alert.severity_reason),
        ("Service", alert.service),
        ("Environment", alert.environment),
        ("Hosts", ", ".join(alert.hosts.split("\n")) if alert.hosts else None),
        ("Monitoring tool", alert.monitoring_tool),
    )
    return SingleAlert(
        details=[(name, value) for name, value in details if value],
        description=alert.description,
        facts=_or_else(
            _NO_FACTS, lambda: read_facts(alert, session=session, reading=policy.reading)
        ),
        former=former_alerts(alert.id, session=session),
    )


def _or_else(nothing: Value, read: Callable[[], Value]) -> Value:
    """Return what can be read; a page leaves without it, whatever is wrong with a report."""
    try:
        return read()
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - it must not keep a page from leaving
        _log.exception("a page leaves with less than there is to say")
        return nothing


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """The present state of an alert in words, such as `Acknowledged by @alice`."""

    words: str
    title: str
    path: str
    iid: int


def follow_ups_of(
    contact: Contact, batches: Sequence[int], *, session: Session
) -> Sequence[FollowUp]:
    """Return what the contact is to be told of alerts, in the order of their numbers.

    Only alerts that it got a message about, that do not fire again, and whose state the person did
    not change.
    """
    told, was_sent = aliased(Page), aliased(PageMessage)
    knows_of_it = exists().where(
        told.alert_id == Page.alert_id,
        told.kind == PageKind.FIRING.value,
        was_sent.batch_id == told.batch_id,
        was_sent.contact_id == contact.id,
        was_sent.outcome == "sent",
    )
    rows = session.execute(
        select(Alert, Project.path)
        .join(Project, Project.id == Alert.project_id)
        .where(
            Alert.id.in_(
                select(Page.alert_id).where(
                    Page.batch_id.in_(batches), Page.kind == PageKind.FOLLOW_UP.value, knows_of_it
                )
            ),
            Alert.status.in_(_WORDS),
        )
        .order_by(Alert.project_id, Alert.iid)
    ).all()
    changes = _last_changes([alert for alert, _ in rows], session=session)
    return [
        _follow_up(alert, path, change)
        for alert, path in rows
        if not (
            (change := changes.get(alert.id))
            and contact.user_id
            and contact.user_id == change.user_id
        )
    ]


def _last_changes(alerts: Sequence[Alert], *, session: Session) -> Mapping[int, AlertNote]:
    """Return the changes by users that put alerts into their present state, by alert."""
    states = {alert.id: alert.status for alert in alerts}
    newest = (
        select(func.max(AlertNote.id))
        .where(AlertNote.alert_id.in_(states), AlertNote.kind == NoteKind.STATUS.value)
        .group_by(AlertNote.alert_id)
    )
    rows = session.scalars(select(AlertNote).where(AlertNote.id.in_(newest)))
    return {row.alert_id: row for row in rows if row.text == states[row.alert_id]}


def _follow_up(alert: Alert, path: str, change: AlertNote | None) -> FollowUp:
    by = f" by @{change.user_name}" if change is not None and change.user_name else ""
    return FollowUp(
        words=f"{_WORDS[alert.status]}{by}", title=alert.title, path=path, iid=alert.iid
    )
