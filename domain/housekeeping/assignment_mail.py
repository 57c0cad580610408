"""Sends emails about alerts and incidents that were assigned by another user."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, false, select
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.alerts.listing.filters import SEVERITIES
from domain.core.database.bulk_statements import build_bulk_delete
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from domain.delivery.queue import QueueState, read_queue_state
from domain.paging.notifications.message_content import format_one_line, truncate_text
from domain.paging.notifications.notice_checks import (
    find_allowed_projects,
    serialize_notice_subject,
)
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

#: Maximum number of notices processed in one run. The next run processes the rest.
_MAX_NOTICES_PER_RUN = 1_000
_MAX_LISTED_ASSIGNMENTS = 20
_MAX_TITLE_LENGTH = 150
#: Severities by the number that incidents store, which increases with the severity.
_SEVERITIES_BY_URGENCY = tuple(reversed(SEVERITIES))


@dataclass(frozen=True, kw_only=True)
class _AssignedItem:
    """An alert or an incident that was assigned to a user."""

    #: Kind of the item, as it appears in URLs.
    kind: str
    severity: str
    title: str
    path: str
    iid: int
    id: int
    project_id: int
    by: str = ""

    @property
    def description(self) -> str:
        title = truncate_text(format_one_line(self.title), _MAX_TITLE_LENGTH)
        return f"{title} ({self.path} #{self.iid})"

    def build_lines(self, base_url: str) -> Iterator[str]:
        by = f", by @{self.by}" if self.by else ""
        yield f"[{self.severity}] {self.description}{by}"
        yield f"{base_url}/{self.path}/-/{self.kind}/{self.iid}"


def queue_assignment_mail(
    message_settings: MessageSettings, *, session: Session, now: datetime
) -> int:
    """Queue an email for each user with new assignments, and return the number of emails.

    Assignments that were revoked in the meantime are left out, as are users who turned off updates.
    """
    notices = session.scalars(
        select(AssignmentNotice)
        .order_by(AssignmentNotice.id)
        .limit(_MAX_NOTICES_PER_RUN)
        .with_for_update(skip_locked=True)
    ).all()
    if not notices:
        return 0
    told = _filter_visible_assignments(
        _find_assignments(notices, session=session), session=session, now=now
    )
    addresses = _find_recipients(told.keys(), session=session)
    messages = [
        NewEmail(
            key=f"assigned to {user_id} until {notices[-1].id} at {now.isoformat()}",
            recipient=addresses[user_id].email,
            subject=_build_subject(some),
            text=_build_text(addresses[user_id], some, message_settings),
            about=_build_assignment_notice_subject(user_id, some),
        )
        for user_id, some in told.items()
        if user_id in addresses
    ]
    _delete_notices([each.id for each in notices], session=session)
    return queue_emails(messages, session=session, keyring=message_settings.keyring, now=now)


def _filter_visible_assignments(
    told: Mapping[int, Sequence[_AssignedItem]], *, session: Session, now: datetime
) -> Mapping[int, Sequence[_AssignedItem]]:
    """Return the assignments in active projects to which the assigned users still have access."""
    found: dict[int, Sequence[_AssignedItem]] = {}
    for user_id, some in told.items():
        projects = find_allowed_projects(
            _build_assignment_notice_subject(user_id, some), session=session, now=now
        )
        if allowed := [each for each in some if each.project_id in projects]:
            found[user_id] = allowed
    return found


def _build_assignment_notice_subject(
    user_id: int, items: Sequence[_AssignedItem]
) -> Mapping[str, Any]:
    projects = sorted({each.project_id for each in items})
    assigned = [[each.project_id, each.kind, each.id, each.by] for each in items]
    return {
        **serialize_notice_subject(user_id, Ability.READ_ALERTS, projects),
        "assigned": assigned,
    }


def requeue_visible_assignments(
    about: Mapping[str, Any], *, session: Session, now: datetime
) -> None:
    """Queue the assignments from a canceled email again, if the recipient may still see them."""
    if "assigned" not in about:
        return
    told = find_allowed_projects(about, session=session, now=now)
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


def delete_assignment_notices(*, session: Session) -> None:
    """Delete all notices, because email is not configured."""
    if session.scalar(select(AssignmentNotice.id).limit(1)) is not None:
        session.execute(delete(AssignmentNotice))


def get_assignment_queue_state(*, session: Session) -> QueueState:
    """Return the state of the queue of notices. Notices have no attempts, so none is failing."""
    return read_queue_state(since=AssignmentNotice.created_at, has_failed=false(), session=session)


def _delete_notices(ids: Sequence[int], *, session: Session) -> None:
    session.execute(build_bulk_delete(AssignmentNotice).where(AssignmentNotice.id.in_(ids)))


def _find_assignments(
    notices: Sequence[AssignmentNotice], *, session: Session
) -> Mapping[int, Sequence[_AssignedItem]]:
    """Return the current assignments by user ID, without duplicate alerts and incidents."""
    known = _find_assigned_alerts(notices, session=session) | _find_assigned_incidents(
        notices, session=session
    )
    found: dict[int, dict[tuple[str, int], _AssignedItem]] = defaultdict(dict)
    for each in notices:
        key = ("alerts", each.alert_id) if each.alert_id else ("incidents", each.incident_id or 0)
        row = known.get((each.user_id, *key))
        if row is not None:
            found[each.user_id][key] = replace(row, by=each.by_name)
    return {user_id: tuple(some.values()) for user_id, some in found.items()}


_ItemsByKey = dict[tuple[int, str, int], _AssignedItem]


def _find_assigned_alerts(notices: Sequence[AssignmentNotice], *, session: Session) -> _ItemsByKey:
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
        (user_id, "alerts", row.id): _AssignedItem(
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


def _find_assigned_incidents(
    notices: Sequence[AssignmentNotice], *, session: Session
) -> _ItemsByKey:
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
        (user_id, "incidents", row.id): _AssignedItem(
            kind="incidents",
            id=row.id,
            project_id=row.project_id,
            severity=_SEVERITIES_BY_URGENCY[row.urgency].value,
            title=row.title,
            path=path,
            iid=row.iid,
        )
        for user_id, row, path in rows
    }


def _find_recipients(user_ids: Collection[int], *, session: Session) -> Mapping[int, User]:
    """Return the users who receive emails, by ID."""
    without_updates = select(PageRecipient.user_id).where(
        PageRecipient.user_id.is_not(None), PageRecipient.wants_follow_ups.is_(False)
    )
    rows = session.scalars(
        select(User).where(
            User.id.in_(user_ids),
            User.id.not_in(without_updates),
            IS_ACTIVE_HUMAN,
        )
    )
    return {row.id: row for row in rows}


def _build_subject(items: Sequence[_AssignedItem]) -> str:
    if len(items) == 1:
        return f"Assigned to you: {items[0].description}"
    return f"Assigned to you: {items[0].description} and {len(items) - 1} more"


def _build_text(
    user: User, items: Sequence[_AssignedItem], message_settings: MessageSettings
) -> str:
    lines = [
        line
        for each in items[:_MAX_LISTED_ASSIGNMENTS]
        for line in (*each.build_lines(message_settings.base_url), "")
    ]
    if len(items) > _MAX_LISTED_ASSIGNMENTS:
        lines += [f"and {len(items) - _MAX_LISTED_ASSIGNMENTS} more", ""]
    return (
        f"Hello {user.name or user.username},\n\n"
        "You have new assignments:\n\n" + "\n".join(lines) + "\n"
        f"-- \n{message_settings.instance_name}, {message_settings.base_url}\n"
        "You can turn updates off in your preferences: "
        f"{message_settings.base_url}/-/user_settings/contacts\n"
    )
