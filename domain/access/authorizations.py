"""Links between authorizations and the objects that applications create.

The objects stop working when the application's access is revoked.
"""

from datetime import datetime
from typing import Protocol, cast

from sqlalchemy import ColumnElement, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from domain.access.actor import UnitOfWork
from domain.core.errors import ForbiddenError
from models import AccessToken, Authorization


class _PresentedToken(Protocol):
    authorization_id: int | None


def lock_authorization(work: UnitOfWork) -> int | None:
    """Lock the authorization of the application that acts for a user, and return its ID.

    Return None if no application acts for the user. A concurrent revocation waits until the
    transaction ends. Raise ForbiddenError if the authorization has already been revoked.
    """
    token = cast("_PresentedToken | None", work.actor.token)
    if token is None or token.authorization_id is None:
        return None
    found = select(Authorization.id).where(
        Authorization.id == token.authorization_id, Authorization.revoked_at.is_(None)
    )
    held = work.session.scalar(found.with_for_update(key_share=True))
    if held is None:
        raise ForbiddenError("The application that uses this token no longer has access.")
    return held


def has_live_access(
    authorization_id: InstrumentedAttribute[int | None], now: datetime
) -> ColumnElement[bool]:
    """Return an SQL condition that is true for rows whose application still has access.

    The condition is also true for rows that were created without an application.
    """
    is_live = exists().where(
        AccessToken.authorization_id == authorization_id,
        AccessToken.revoked_at.is_(None),
        or_(AccessToken.refresh_digest.is_not(None), AccessToken.expires_at > now),
    )
    return or_(authorization_id.is_(None), is_live)
