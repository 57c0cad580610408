"""Sends emails about alerts and incidents that were assigned by another user."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.accounts.users import IN_USE
from domain.alerts.listing.filters import SEVERITIES
from domain.core.database.rows import delete_rows
from domain.delivery.mail.outbox import NewMessage, Sign, queue_messages
from domain.paging.notifications.messages import one_line, short
from domain.paging.notifications.notice_checks import about_projects, may_be_told
from models import (
    Alert,
    Assignment,
    AssignmentNotice,
    Incident,
    IncidentAssignee,
    PageRecipient,
    Project,
    User,
)

#: Maximum number of notices in one run. The next run continues.
_MOST_NOTICES = 1_000
_MOST_NAMED = 20
_LONGEST_TITLE = 150
#: Severities by the stored number of incidents, which increases with the severity.
_BY_URGENCY = tuple(reversed(SEVERITIES))


@dataclass(frozen=True, kw_only=True)
class _Told:
    """An alert or an incident that was assigned to a user."""

    #: Kind as it appears in URLs.
    kind: str
    severity: str
    title: str
    path: str
    iid: int
    id: int
    project_id: int
    by: str = ""

    @property
    def words(self) -> str:
        title = short(one_line(self.title), _LONGEST_TITLE)
        return f"{title} ({self.path} #{self.iid})"

    def lines(self, base_url: str) -> Iterator[str]:
        by = f", by @{self.by}" if self.by else ""
        yield f"[{self.severity}] {self.words}{by}"
        yield f"{base_url}/{self.path}/-/{self.kind}/{self.iid}"


def queue_assignment_mail(sign: Sign, *, session: Session, now: datetime) -> int:
    """Queue an email for each user with new assignments, and return their number.

    Assignments that were revoked in the meantime are left out, as are users who turned off updates.
    """
    notices = session.scalars(
        select(AssignmentNotice)
        .order_by(AssignmentNotice.id)
        .limit(_MOST_NOTICES)
        .with_for_update(skip_locked=True)
    ).all()
    if not notices:
        return 0
    told = _allowed(_told(notices, session=session), session=session, now=now)
    addresses = _addresses(told.keys(), session=session)
    messages = [
        NewMessage(
            key=f"assigned to {user_id} until {notices[-1].id} at {now.isoformat()}",
            recipient=addresses[user_id].email,
            subject=_subject(some),
            text=_text(addresses[user_id], some, sign),
            about=_about(user_id, some),
        )
        for user_id, some in told.items()
        if user_id in addresses
    ]
    _forget([each.id for each in notices], session=session)
    return queue_messages(messages, session=session, keyring=sign.keyring, now=now)


def _allowed(
    told: Mapping[int, Sequence[_Told]], *, session: Session, now: datetime
) -> Mapping[int, Sequence[_Told]]:
    """Return the assignments that users may see: they still have access to an active project."""
    found: dict[int, Sequence[_Told]] = {}
    for user_id, some in told.items():
        projects = may_be_told(_about(user_id, some), session=session, now=now)
        if allowed := [each for each in some if each.project_id in projects]:
            found[user_id] = allowed
    return found


def _about(user_id: int, told: Sequence[_Told]) -> Mapping[str, Any]:
    projects = sorted({each.project_id for each in told})
    assigned = [[each.project_id, each.kind, each.id, each.by] for each in told]
    return {**about_projects(user_id, Ability.READ_ALERTS, projects), "assigned": assigned}


def tell_again_of_others(about: Mapping[str, Any], *, session: Session, now: datetime) -> None:
    """Queue another email with those assignments of a canceled one that may still be sent."""
    if "assigned" not in about:
        return
    told = may_be_told(about, session=session, now=now)
    session.add_all(
        AssignmentNotice(
            user_id=about["user"],
            alert_id=number if kind == "alerts" else None,
            incident_id=number if kind == "incidents" else None,
            by_name=by,
            created_at=now,
        )
        for project_id, kind, number, by in about["assigned"]
        if project_id in told
    )


def forget_assignments(*, session: Session) -> None:
    """Delete all notices, because email is not configured."""
    if session.scalar(select(AssignmentNotice.id).limit(1)) is not None:
        session.execute(delete(AssignmentNotice))


def _forget(ids: Sequence[int], *, session: Session) -> None:
    session.execute(delete_rows(AssignmentNotice).where(AssignmentNotice.id.in_(ids)))


def _told(
    notices: Sequence[AssignmentNotice], *, session: Session
) -> Mapping[int, Sequence[_Told]]:
    """Return the current assignments by user id, with each alert and incident once."""
    known = _alerts(notices, session=session) | _incidents(notices, session=session)
    found: dict[int, dict[tuple[str, int], _Told]] = defaultdict(dict)
    for each in notices:
        key = ("alerts", each.alert_id) if each.alert_id else ("incidents", each.incident_id or 0)
        row = known.get((each.user_id, *key))
        if row is not None:
            found[each.user_id][key] = replace(row, by=each.by_name)
    return {user_id: tuple(some.values()) for user_id, some in found.items()}


_Known = dict[tuple[int, str, int], _Told]


def _alerts(notices: Sequence[AssignmentNotice], *, session: Session) -> _Known:
    rows = session.execute(
        select(Assignment.user_id, Alert, Project.path)
        .join(Alert, Alert.id == Assignment.alert_id)
        .join(Project, Project.id == Alert.project_id)
        .where(
            Alert.id.in_({each.alert_id for each in notices if each.alert_id}),
            Project.deleted_at.is_(None),
        )
    )
    return {
        (user_id, "alerts", row.id): _Told(
            kind="alerts",
            id=row.id,
            project_id=row.project_id,
            severity=SEVERITIES[row.severity].value,
            title=row.title,
            path=path,
            iid=row.iid,
        )
        for user_id, row, path in rows
    }


def _incidents(notices: Sequence[AssignmentNotice], *, session: Session) -> _Known:
    rows = session.execute(
        select(IncidentAssignee.user_id, Incident, Project.path)
        .join(Incident, Incident.id == IncidentAssignee.incident_id)
        .join(Project, Project.id == Incident.project_id)
        .where(
            Incident.id.in_({each.incident_id for each in notices if each.incident_id}),
            Project.deleted_at.is_(None),
        )
    )
    return {
        (user_id, "incidents", row.id): _Told(
            kind="incidents",
            id=row.id,
            project_id=row.project_id,
            severity=_BY_URGENCY[row.urgency].value,
            title=row.title,
            path=path,
            iid=row.iid,
        )
        for user_id, row, path in rows
    }


def _addresses(user_ids: Collection[int], *, session: Session) -> Mapping[int, User]:
    """Return the users who receive emails, by id."""
    without_updates = select(PageRecipient.user_id).where(
        PageRecipient.user_id.is_not(None), PageRecipient.wants_follow_ups.is_(False)
    )
    rows = session.scalars(
        select(User).where(
            User.id.in_(user_ids),
            User.id.not_in(without_updates),
            IN_USE,
        )
    )
    return {row.id: row for row in rows}


def _subject(told: Sequence[_Told]) -> str:
    if len(told) == 1:
        return f"Assigned to you: {told[0].words}"
    return f"Assigned to you: {told[0].words} and {len(told) - 1} more"


def _text(user: User, told: Sequence[_Told], sign: Sign) -> str:
    lines = [line for each in told[:_MOST_NAMED] for line in (*each.lines(sign.base_url), "")]
    if len(told) > _MOST_NAMED:
        lines += [f"and {len(told) - _MOST_NAMED} more", ""]
    return (
        f"Hello {user.name or user.username},\n\n"
        "You have new assignments:\n\n" + "\n".join(lines) + "\n"
        f"-- \n{sign.instance_name}, {sign.base_url}\n"
        "You can turn updates off in your preferences: "
        f"{sign.base_url}/-/user_settings/contacts\n"
    )
