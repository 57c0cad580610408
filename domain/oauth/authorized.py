"""Applications that a user let in: what they may do, and how to end it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.orm import Session

from domain.errors import NotFoundError
from domain.oauth.scopes import in_order
from models import AccessToken, Application, Authorization, Consent, User


@dataclass(frozen=True, kw_only=True)
class AuthorizedApplication:
    """One application, however many tokens it holds."""

    application_id: int
    name: str
    owner_name: str
    trusted: bool
    scopes: tuple[str, ...]
    first_authorized_at: datetime
    last_token_at: datetime
    token_count: int


def list_authorized(
    user_id: int, *, session: Session, now: datetime
) -> tuple[AuthorizedApplication, ...]:
    """Return the applications with live tokens of this user, the latest first."""
    rows = session.execute(
        select(
            Application,
            User.name,
            func.min(AccessToken.created_at),
            func.max(AccessToken.created_at),
            func.count(),
        )
        .select_from(AccessToken)
        .join(Application, Application.id == AccessToken.application_id)
        .join(User, User.id == Application.owner_id)
        .where(*_live(user_id, now))
        .group_by(Application.id, User.name)
        .order_by(func.max(AccessToken.created_at).desc())
    ).all()
    return tuple(
        AuthorizedApplication(
            application_id=application.id,
            name=application.name,
            owner_name=owner_name,
            trusted=application.trusted,
            scopes=_scopes(application.id, user_id, session=session, now=now),
            first_authorized_at=_first(application.id, user_id, session=session) or first,
            last_token_at=last,
            token_count=count,
        )
        for application, owner_name, first, last, count in rows
    )


def _live(user_id: int, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        AccessToken.user_id == user_id,
        AccessToken.revoked_at.is_(None),
        or_(
            AccessToken.expires_at.is_(None),
            AccessToken.expires_at > now,
            AccessToken.refresh_digest.is_not(None),
        ),
    )


def _scopes(
    application_id: int, user_id: int, *, session: Session, now: datetime
) -> tuple[str, ...]:
    granted = session.scalars(
        select(AccessToken.scopes)
        .where(AccessToken.application_id == application_id, *_live(user_id, now))
        .distinct()
    )
    return in_order({scope for scopes in granted for scope in scopes.split()})


def _first(application_id: int, user_id: int, *, session: Session) -> datetime | None:
    return session.scalar(
        select(func.min(Authorization.created_at)).where(
            Authorization.application_id == application_id, Authorization.user_id == user_id
        )
    )


def revoke_authorized(application_id: int, user_id: int, *, session: Session, now: datetime) -> str:
    """Kill every token and code of this user at an application and forget the consent.

    Returns the application's name; raises NotFoundError if there is no such application.
    """
    name = session.scalar(select(Application.name).where(Application.id == application_id))
    if name is None:
        message = "There is no such application."
        raise NotFoundError(message)
    # The grant first, as redeeming and refreshing hold it: what they are about to issue dies too.
    for table in (Authorization, AccessToken):
        session.execute(
            update(table)
            .where(
                table.application_id == application_id,
                table.user_id == user_id,
                table.revoked_at.is_(None),
            )
            .values(revoked_at=now)
            .execution_options(synchronize_session=False)
        )
    session.execute(
        delete(Consent).where(Consent.application_id == application_id, Consent.user_id == user_id)
    )
    return name
