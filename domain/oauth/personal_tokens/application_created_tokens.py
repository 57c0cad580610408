"""Personal access tokens that applications create, which expire with the authorization.

Without this limit, an application could extend two hours of access to a year, or keep its access
after the user revoked it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, not_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ForbiddenError
from domain.oauth.token_authentication.bearer import Bearer
from domain.projects.bots import remove_idle_bot_membership
from models import AccessToken, Authorization, PersonalAccessToken


@dataclass(frozen=True, kw_only=True)
class ParentAuthorization:
    """The authorization of the application that creates a token.

    The token expires with the authorization, and is bound to the authorization's key.
    """

    authorization_id: int
    key_thumbprint: str | None
    #: Time when the authorization expires, if it cannot be renewed.
    ends_at: datetime | None


def find_parent_authorization(bearer: Bearer, *, session: Session) -> ParentAuthorization | None:
    """Lock and return the authorization under which an application creates a token.

    Return None if the bearer has a personal token. Raise ForbiddenError if the bearer has an
    exchanged token or a token that was obtained with a password, or if the authorization was
    revoked.
    """
    _check_not_exchanged(bearer, session=session)
    if bearer.authorization_id is not None:
        return lock_parent_authorization(
            bearer.authorization_id, bearer.key_thumbprint, session=session
        )
    if bearer.personal_token_id is None:
        raise ForbiddenError("A token obtained with a password cannot create access tokens.")
    return None


def lock_parent_authorization(
    authorization_id: int, key_thumbprint: str | None, *, session: Session
) -> ParentAuthorization:
    """Lock and return an active authorization.

    A concurrent revocation that runs later also revokes the new token. Raise ForbiddenError if the
    authorization was already revoked.
    """
    held = session.scalar(
        select(Authorization.id)
        .where(Authorization.id == authorization_id, Authorization.revoked_at.is_(None))
        .with_for_update(key_share=True)
    )
    pair = session.execute(
        select(AccessToken.expires_at, AccessToken.refresh_digest)
        .where(
            AccessToken.authorization_id == authorization_id,
            AccessToken.revoked_at.is_(None),
            not_(AccessToken.is_exchanged),
        )
        .order_by(AccessToken.id.desc())
        .limit(1)
    ).first()
    if held is None or pair is None:
        raise ForbiddenError("The application that uses this token no longer has access.")
    ends_at = pair.expires_at if pair.refresh_digest is None else None
    return ParentAuthorization(
        authorization_id=held, key_thumbprint=key_thumbprint, ends_at=ends_at
    )


def check_can_rotate(token_id: int, bearer: Bearer, *, session: Session) -> None:
    """Check that an application rotates only tokens that it has created.

    Raise ForbiddenError for other tokens.
    """
    if bearer.personal_token_id is not None and bearer.authorization_id is None:
        return
    _check_not_exchanged(bearer, session=session)
    made_by = session.scalar(
        select(PersonalAccessToken.authorization_id).where(PersonalAccessToken.id == token_id)
    )
    if made_by is None or made_by != bearer.authorization_id:
        raise ForbiddenError("An application can only rotate access tokens that it created.")


def _check_not_exchanged(bearer: Bearer, *, session: Session) -> None:
    """Reject an exchanged token, since tokens created with an exchanged token would outlive it.

    Raise ForbiddenError for such a token.
    """
    asked = select(AccessToken.is_exchanged).where(AccessToken.id == bearer.access_token_id)
    if bearer.access_token_id is not None and session.scalar(asked):
        raise ForbiddenError("An exchanged token cannot create or rotate access tokens.")


def revoke_created_tokens(
    authorization_ids: Select[Any], *, session: Session, now: datetime
) -> None:
    """Revoke the tokens that were created with these authorizations, and remove unused bots."""
    owners = session.scalars(
        build_bulk_update(PersonalAccessToken)
        .where(
            PersonalAccessToken.authorization_id.in_(authorization_ids),
            PersonalAccessToken.revoked_at.is_(None),
        )
        .values(revoked_at=now)
        .returning(PersonalAccessToken.user_id)
    ).all()
    for user_id in set(owners):
        remove_idle_bot_membership(user_id, session=session, now=now)
