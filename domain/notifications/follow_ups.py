"""What became of alerts that a contact was told of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.activity import NoteKind
from domain.notifications.paging import PageKind
from models import Alert, AlertNote, Contact, Page, PageMessage, Project

_WORDS = {"acknowledged": "Acknowledged", "resolved": "Resolved", "ignored": "Ignored"}


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """The present state of an alert in words, such as `Acknowledged by @alice`."""

    words: str
    title: str
    path: str
    iid: int


@dataclass(frozen=True)
class _LastChange:
    status: str
    user_id: int | None
    user_name: str


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
    changes = _last_changes([alert.id for alert, _ in rows], session=session)
    return [
        _follow_up(alert, path, changes.get(alert.id))
        for alert, path in rows
        if not _did_it(contact, alert, changes.get(alert.id))
    ]


def _last_changes(alert_ids: Sequence[int], *, session: Session) -> Mapping[int, _LastChange]:
    """Return the last change of status by a user for each alert that has one."""
    newest = (
        select(func.max(AlertNote.id))
        .where(AlertNote.alert_id.in_(alert_ids), AlertNote.kind == NoteKind.STATUS.value)
        .group_by(AlertNote.alert_id)
    )
    rows = session.scalars(select(AlertNote).where(AlertNote.id.in_(newest)))
    return {row.alert_id: _LastChange(row.text, row.user_id, row.user_name) for row in rows}


def _did_it(contact: Contact, alert: Alert, change: _LastChange | None) -> bool:
    is_of_user = change is not None and change.status == alert.status
    return bool(is_of_user and contact.user_id and change and change.user_id == contact.user_id)


def _follow_up(alert: Alert, path: str, change: _LastChange | None) -> FollowUp:
    is_of_user = change is not None and change.status == alert.status and change.user_name
    by = f" by @{change.user_name}" if change is not None and is_of_user else ""
    return FollowUp(
        words=f"{_WORDS[alert.status]}{by}", title=alert.title, path=path, iid=alert.iid
    )
