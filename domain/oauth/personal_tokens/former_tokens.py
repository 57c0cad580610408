"""Tokens of administrators that are older than the scope `admin_mode` and keep what it gives."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from domain.oauth.personal_tokens.lists import is_live
from models import AccessToken, Application, PersonalAccessToken, User

#: How many of each kind a page names.
_MOST = 20


@dataclass(frozen=True, kw_only=True)
class FormerToken:
    """A personal access token, or all that an application has of a user."""

    user_id: int
    username: str
    #: Of the token or the application; None for tokens of passwords.
    name: str | None
    is_personal: bool


def list_former_tokens(*, session: Session, now: datetime) -> tuple[FormerToken, ...]:
    """Return the first of them, by the names of their users."""
    personal = session.execute(
        select(User.id, User.username, PersonalAccessToken.name)
        .select_from(PersonalAccessToken)
        .join(User, User.id == PersonalAccessToken.user_id)
        .where(PersonalAccessToken.keeps_admin_mode, User.is_admin, is_live(now))
        .order_by(User.username, PersonalAccessToken.id)
        .limit(_MOST)
    )
    is_usable = or_(
        AccessToken.expires_at.is_(None),
        AccessToken.expires_at > now,
        AccessToken.refresh_digest.is_not(None),
    )
    of_applications = session.execute(
        select(User.id, User.username, func.min(Application.name).label("name"))
        .select_from(AccessToken)
        .join(User, User.id == AccessToken.user_id)
        .outerjoin(Application, Application.id == AccessToken.application_id)
        .where(
            AccessToken.keeps_admin_mode,
            User.is_admin,
            AccessToken.revoked_at.is_(None),
            is_usable,
        )
        .group_by(User.id, User.username, AccessToken.application_id)
        .order_by(User.username)
        .limit(_MOST)
    )
    return tuple(
        FormerToken(user_id=row.id, username=row.username, name=row.name, is_personal=is_personal)
        for rows, is_personal in ((personal, True), (of_applications, False))
        for row in rows
    )
