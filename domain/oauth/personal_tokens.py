"""Tokens that users make for their own scripts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.errors import InvalidError
from domain.keyring import Keyring, Kind
from domain.oauth.scopes import UnknownScopeError, parse_scopes
from models import PersonalAccessToken, User


@dataclass(frozen=True, kw_only=True)
class TokenDetails:
    """What a user wants of a token; scopes are space-separated."""

    name: str
    scopes: str
    lifetime: timedelta


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A new token and the only sight of it."""

    clear: str
    expires_at: datetime


def create_token(
    user: User, details: TokenDetails, *, session: Session, keyring: Keyring, now: datetime
) -> NewToken:
    """Store a personal access token, or raise InvalidError naming the field."""
    name = details.name.strip()
    try:
        scopes = parse_scopes(details.scopes)
    except UnknownScopeError as error:
        raise InvalidError(str(error).capitalize() + ".", field="scopes") from error
    if not scopes or not name:
        message = "A token needs a name and at least one scope."
        raise InvalidError(message, field="scopes" if name else "name")
    credential = keyring.issue(Kind.PERSONAL_ACCESS_TOKEN)
    expires_at = now + details.lifetime
    session.add(
        PersonalAccessToken(
            user_id=user.id,
            name=name,
            digest=credential.digest,
            scopes=" ".join(scopes),
            created_at=now,
            expires_at=expires_at,
        )
    )
    return NewToken(clear=credential.clear, expires_at=expires_at)
