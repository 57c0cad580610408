"""Service accounts of confidential applications (RFC 6749 section 4.4).

A service account is a member of groups and projects like a user, with roles assigned by
maintainers. The service account is deactivated when the application is deleted or the owner
disables the service account. The user account is kept, since events still refer to it.
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from domain.access.actor import UnitOfWork
from domain.accounts.machine_accounts import create_machine_account
from domain.accounts.users import ACTIVE, SERVICE
from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.database.statements import StatementConnection
from domain.projects.user_profiles import Membership, find_memberships
from models import AccessToken, Application, Member, User
from models import ServiceAccount as Row

#: States of an owner who was locked out, but may still know the secret.
_LOCKED_STATES = ("locked", "blocked")
_OWNER = aliased(User)


class ServiceAccountRow(NamedTuple):
    """The service account of a client, as selected by `_SERVICE_ACCOUNT_QUERY`."""

    user_id: int
    #: True if the service account may receive tokens.
    is_usable: bool


_SERVICE_ACCOUNT_QUERY = (
    select(
        User.id,
        (User.state == ACTIVE)
        & or_(Application.is_instance_wide, _OWNER.state.not_in(_LOCKED_STATES)),
    )
    .join(Row, Row.user_id == User.id)
    .join(Application, Application.id == Row.application_id)
    .join(_OWNER, _OWNER.id == Application.owner_id)
    .where(Row.application_id == bindparam("application_id"))
)


def find_service_account_row(
    application_id: int, *, connection: StatementConnection
) -> ServiceAccountRow | None:
    """Return the service account of an application, or None."""
    row = connection.fetch_first_row(_SERVICE_ACCOUNT_QUERY, {"application_id": application_id})
    return ServiceAccountRow._make(row) if row else None


@dataclass(frozen=True, kw_only=True)
class ServiceAccount:
    """A service account, as shown on the page of its application."""

    username: str
    name: str
    #: Memberships with their roles.
    memberships: tuple[Membership, ...]
    #: Time when the newest stored token was issued, if any.
    last_token_at: datetime | None


def find_service_account(
    application_id: int, *, session: Session, today: date
) -> ServiceAccount | None:
    """Return the service account of an application with its roles, or None."""
    mine = select(User).join(Row, Row.user_id == User.id)
    user = session.scalar(mine.where(Row.application_id == application_id))
    if user is None:
        return None
    newest = select(func.max(AccessToken.created_at)).where(AccessToken.user_id == user.id)
    return ServiceAccount(
        username=user.username,
        name=user.name,
        memberships=find_memberships(user.id, today=today, session=session),
        last_token_at=session.scalar(newest),
    )


def set_service_account(
    application: Application, *, is_wanted: bool, session: Session, now: datetime
) -> None:
    """Create, rename or deactivate the service account of an application.

    The service account has the name of the application.
    """
    session.flush()
    held = select(Application.id).where(Application.id == application.id)
    # The lock serializes concurrent calls, so that only one call creates the account.
    session.execute(held.with_for_update())
    mine = Row.application_id == application.id
    user_id = session.scalar(select(Row.user_id).where(mine))
    if is_wanted and user_id is None:
        prefix = f"application_{application.id}_bot"
        user = create_machine_account(prefix, application.name, SERVICE, session=session, now=now)
        session.add(Row(application_id=application.id, user_id=user.id))
    elif is_wanted:
        session.get_one(User, user_id).name = application.name
    elif user_id is not None:
        deactivate_service_accounts(Application.id == application.id, session=session)
    session.flush()
    session.expire(application, ["service_account"])


def deactivate_service_accounts(applications: ColumnElement[bool], *, session: Session) -> None:
    """Deactivate the service accounts of all applications that meet a condition.

    The memberships of the service accounts are deleted. Their user accounts are blocked, which also
    makes their tokens invalid.
    """
    these = select(Row.user_id).join(Application, Application.id == Row.application_id)
    ids = list(session.scalars(these.where(applications)))
    for statement in (
        build_bulk_delete(Member).where(Member.user_id.in_(ids)),
        build_bulk_update(User).where(User.id.in_(ids)).values(state="blocked"),
        build_bulk_delete(Row).where(Row.user_id.in_(ids)),
    ):
        session.execute(statement)


def revoke_service_account_tokens(work: UnitOfWork, applications: ColumnElement[bool]) -> None:
    """Revoke the service account tokens of all applications that meet a condition."""
    theirs = exists().where(
        Row.user_id == AccessToken.user_id, Row.application_id == Application.id, applications
    )
    work.session.execute(
        build_bulk_update(AccessToken)
        .where(theirs, AccessToken.revoked_at.is_(None))
        .values(revoked_at=work.now)
    )
