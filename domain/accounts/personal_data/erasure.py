"""Erases a person: deletes their own data, and pseudonymizes data that others need.

The emptied row of the account is kept, so that its ID is never reused. Applications identify users
by this ID (`sub`).
"""

import re
from collections.abc import Iterator

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.administration import check_account_erasable
from domain.accounts.email_addresses import delete_address_messages
from domain.accounts.personal_data.inventory import PERSONAL_DATA, ErasureRule
from domain.accounts.types import ErasureResult
from domain.accounts.users import UserView, clear_erased_account, find_active_user
from domain.alerts.handling.activity import ActivityEntryKind
from domain.audit.seals import store_digest_after_erasure
from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.errors import ConflictError
from domain.incidents.types import EntryKind
from domain.oauth.clients.applications import delete_matching_applications
from domain.projects.access import build_namespace
from domain.projects.deletion import delete_group
from domain.projects.members import list_solely_owned_groups
from models import (
    AlertNote,
    Application,
    AuditEvent,
    AuditStreamEntry,
    Group,
    Incident,
    IncidentNote,
    Project,
)

_BATCH_SIZE = 500


def erase_person(
    work: UnitOfWork, user: UserView, *, heir: UserView | None, audit_key: bytes
) -> ErasureResult:
    """Erase a user's personal data, and transfer the user's applications to `heir`.

    The applications are deleted if `heir` is None. Raise ConflictError for the acting account
    itself, bots, the last administrator, and the only Owner of a group or project. Also raise
    ConflictError if the heir cannot sign in, or if the user has instance-wide applications and
    there is no heir.
    """
    session = work.session
    check_account_erasable(work, user)
    _check_not_sole_owner(user, session=session)
    handed_on, deleted = _transfer_or_delete_applications(user, heir, session=session)
    projects = _delete_own_projects(work, user)
    pseudonym = f"deleted user {user.id}"
    names = _NameReplacer(user, pseudonym)
    _rename_in_activity(user, names, session=session)
    _rename_in_incidents(user, names, session=session)
    _rename_in_audit_events(user, names, session=session, key=audit_key)
    _rename_in_streamed_events(user, names, session=session)
    delete_address_messages(user.id, session=session)
    for table in PERSONAL_DATA:
        if table.on_erasure is ErasureRule.DELETED:
            session.execute(build_bulk_delete(table.model).where(table.build_row_condition(user)))
    clear_erased_account(user.id, pseudonym=pseudonym, session=session)
    session.flush()
    return ErasureResult(
        user_id=user.id,
        pseudonym=pseudonym,
        applications_handed_on=handed_on,
        applications_deleted=deleted,
        projects_deleted=projects,
    )


def count_applications(user: UserView, *, session: Session) -> int:
    """Return the number of applications that are transferred or deleted with their owner."""
    mine = select(func.count(Application.id)).where(Application.owner_id == user.id)
    return session.scalar(mine) or 0


def count_own_projects(user: UserView, *, session: Session) -> int:
    """Return the number of projects that are deleted with the personal namespace."""
    own = select(func.count(Project.id)).join(Group).where(Group.owner_id == user.id)
    return session.scalar(own.where(Project.deleted_at.is_(None))) or 0


def _delete_own_projects(work: UnitOfWork, user: UserView) -> int:
    own = work.session.scalar(select(Group).where(Group.owner_id == user.id))
    if own is None:
        return 0
    own.owner_id = None  # A deleted namespace has no owner.
    return len(delete_group(build_namespace(own), session=work.session, now=work.now))


def _check_not_sole_owner(user: UserView, *, session: Session) -> None:
    paths = list_solely_owned_groups(user.id, session=session)
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""  # noqa: PLR2004 - a few
        message = f"{user.username} is the only Owner of {', '.join(paths[:3])}{more}. "
        raise ConflictError(message + "Make another user an Owner first.")


def _transfer_or_delete_applications(
    user: UserView, heir: UserView | None, *, session: Session
) -> tuple[int, int]:
    mine = Application.owner_id == user.id
    if heir is not None:
        if heir.id == user.id or find_active_user(heir.id, session=session) is None:
            message = "The new owner of the applications must be another user who can sign in."
            raise ConflictError(message, field="heir")
        handed_on = session.scalars(
            update(Application).where(mine).values(owner_id=heir.id).returning(Application.id)
        ).all()
        return len(handed_on), 0
    if session.scalar(select(Application.id).where(mine, Application.is_instance_wide).limit(1)):
        message = "The user has instance-wide applications. Choose a new owner for them."
        raise ConflictError(message, field="heir")
    return 0, delete_matching_applications(mine, session=session)


class _NameReplacer:
    """Replaces a person's names with a pseudonym."""

    def __init__(self, user: UserView, pseudonym: str) -> None:
        self.username = user.username
        self.pseudonym = pseudonym
        # Sort the longest name first, because the email address may start with the username.
        names = sorted({user.email, user.username, user.name} - {""}, key=len, reverse=True)
        either = "|".join(re.escape(name) for name in names)
        self._pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def replace_in_text(self, text: str) -> str:
        """Return a string with the person's names replaced."""
        return self._pattern.sub(self.pseudonym, text)

    def replace_names(self, value: object) -> object:
        """Return a JSON value with the person's names replaced, at any depth."""
        if isinstance(value, str):
            return self.replace_in_text(value)
        if isinstance(value, list):
            return [self.replace_names(each) for each in value]
        if isinstance(value, dict):
            return {name: self.replace_names(each) for name, each in value.items()}
        return value


def _rename_in_activity(user: UserView, names: _NameReplacer, *, session: Session) -> None:
    theirs = update(AlertNote).where(AlertNote.user_id == user.id)
    session.execute(theirs.values(user_name=names.pseudonym))
    assigned = (AlertNote.kind == ActivityEntryKind.ASSIGNEE.value) & (
        AlertNote.text == names.username
    )
    session.execute(update(AlertNote).where(assigned).values(text=names.pseudonym))
    # `domain/paging/escalations/manual_actions.py` writes this text.
    was_paged = (AlertNote.kind == ActivityEntryKind.HANDLING.value) & (
        AlertNote.text == f"paged @{names.username}"
    )
    session.execute(update(AlertNote).where(was_paged).values(text=f"paged @{names.pseudonym}"))


def _rename_in_incidents(user: UserView, names: _NameReplacer, *, session: Session) -> None:
    opened = update(Incident).where(Incident.author_id == user.id)
    session.execute(opened.values(author_name=names.pseudonym))
    theirs = update(IncidentNote).where(IncidentNote.user_id == user.id)
    session.execute(theirs.values(user_name=names.pseudonym))
    kinds = (EntryKind.ASSIGNED.value, EntryKind.UNASSIGNED.value, EntryKind.PAGED.value)
    assigned = IncidentNote.kind.in_(kinds) & (IncidentNote.text == names.username)
    session.execute(update(IncidentNote).where(assigned).values(text=names.pseudonym))


def _rename_in_audit_events(
    user: UserView, names: _NameReplacer, *, session: Session, key: bytes
) -> None:
    for event in _iterate_events(user, session):
        is_actor = event.actor_id == user.id
        if is_actor:
            event.actor_name = names.pseudonym
        if is_actor or event.actor_id is None:
            event.address = event.user_agent = None
        event.subject = names.replace_in_text(event.subject)
        event.details = {name: names.replace_names(each) for name, each in event.details.items()}
        store_digest_after_erasure(event, key=key)


def _rename_in_streamed_events(user: UserView, names: _NameReplacer, *, session: Session) -> None:
    mine = select(AuditStreamEntry).where(AuditStreamEntry.actor_id == user.id)
    for entry in session.scalars(mine):
        shown = dict(entry.payload or {})
        details = {**shown.get("details", {}), "ip_address": None, "user_agent": None}
        renamed = {name: names.replace_names(each) for name, each in shown.items()}
        entry.payload = {**renamed, "details": names.replace_names(details)}


def _iterate_events(user: UserView, session: Session) -> Iterator[AuditEvent]:
    last = 0
    mine = (AuditEvent.actor_id == user.id) | (AuditEvent.user_id == user.id)
    while True:
        later = select(AuditEvent).where(mine, AuditEvent.id > last).order_by(AuditEvent.id)
        events = session.scalars(later.limit(_BATCH_SIZE)).all()
        if not events:
            return
        yield from events
        last = events[-1].id
        session.flush()
