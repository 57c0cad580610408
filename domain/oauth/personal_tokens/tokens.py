"""Creates, rotates and revokes personal access tokens."""

import unicodedata
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.scopes import ADMINISTRATOR_SCOPES, SCOPES, UnknownScopeError, parse_scopes
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.database.pagination import MAX_ID
from domain.core.errors import DomainError, InvalidError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.oauth.personal_tokens.application_created_tokens import (
    ParentAuthorization,
    lock_parent_authorization,
)
from domain.oauth.personal_tokens.token_lists import (
    TokenView,
    build_live_personal_token_condition,
    build_token_view,
    get_token_row,
)
from domain.projects.bots import remove_idle_bot_membership
from models import PersonalAccessToken, User

#: Scopes for OpenID Connect and refresh tokens, which apply only to applications.
_APPLICATION_SCOPES = frozenset({"openid", "profile", "email", "offline_access"})
#: Scopes that pages offer for a personal access token.
PERSONAL_SCOPES = tuple(
    scope.name for scope in SCOPES if scope.is_offered and scope.name not in _APPLICATION_SCOPES
)
#: Personal scopes without the scopes for administrators.
ORDINARY_SCOPES = tuple(name for name in PERSONAL_SCOPES if name not in ADMINISTRATOR_SCOPES)
MAX_TOKEN_NAME_LENGTH = 100
MAX_TOKEN_DESCRIPTION_LENGTH = 255


class NotPersonalTokenError(DomainError):
    """Error for an OAuth token where only a personal access token is allowed."""


@dataclass(frozen=True, kw_only=True)
class TokenDetails:
    """The requested settings of a personal access token.

    The scopes are separated by spaces.
    """

    name: str
    scopes: str
    #: Time when the token expires. If it is None, the token expires with its `parent`, or never
    #: if it has no parent.
    expires_at: datetime | None
    description: str = ""
    #: Authorization of the application that creates the token, which the token cannot outlive.
    parent: ParentAuthorization | None = None


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A new token and its value, which is stored only as a hash."""

    clear: str = field(repr=False)
    token: TokenView


def create_personal_token(
    user_id: int, details: TokenDetails, *, session: Session, keyring: Keyring, now: datetime
) -> NewToken:
    """Create and store a personal access token.

    Raise InvalidError with the name of the field if a value is invalid, or NotFoundError if there
    is no such user.
    """
    checked = check_token_details(details)
    user = session.get(User, user_id) if user_id <= MAX_ID else None
    if user is None:
        raise NotFoundError("User not found.")
    if not user.is_admin:
        check_no_administrator_scopes(checked)
    return _store_token(user_id, checked, session=session, keyring=keyring, now=now)


def check_token_details(details: TokenDetails) -> TokenDetails:
    """Check the details of a token, and return the details to store.

    Raise InvalidError with the name of the field if a value is invalid.
    """
    return TokenDetails(
        name=_validate_name(details.name),
        scopes=_validate_scopes(details.scopes),
        expires_at=details.expires_at,
        description=_validate_description(details.description),
        parent=details.parent,
    )


def check_no_administrator_scopes(details: TokenDetails) -> None:
    """Reject scopes that only tokens of administrators may have.

    Raise InvalidError if such a scope is requested.
    """
    for scope in details.scopes.split():
        if scope in ADMINISTRATOR_SCOPES:
            message = f"Only personal access tokens of administrators can have the {scope} scope."
            raise InvalidError(message, field="scopes")


def _validate_name(name: str) -> str:
    stripped = name.strip()
    if not stripped:
        raise InvalidError("Enter a name that describes the purpose of the token.", field="name")
    if len(stripped) > MAX_TOKEN_NAME_LENGTH:
        raise InvalidError(
            f"A name can have at most {MAX_TOKEN_NAME_LENGTH} characters.", field="name"
        )
    if _has_control_characters(stripped):
        raise InvalidError("A name must not contain control characters.", field="name")
    return stripped


def _validate_description(description: str) -> str:
    stripped = description.strip()
    if len(stripped) > MAX_TOKEN_DESCRIPTION_LENGTH:
        message = f"A description can have at most {MAX_TOKEN_DESCRIPTION_LENGTH} characters."
        raise InvalidError(message, field="description")
    if _has_control_characters(stripped):
        message = "A description must be a single line without control characters."
        raise InvalidError(message, field="description")
    return stripped


def _has_control_characters(text: str) -> bool:
    return any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)


def _validate_scopes(text: str) -> str:
    try:
        scopes = parse_scopes(text)
    except UnknownScopeError as error:
        raise InvalidError(str(error).capitalize() + ".", field="scopes") from error
    if not scopes:
        raise InvalidError("Choose at least one scope.", field="scopes")
    for scope in scopes:
        if scope in _APPLICATION_SCOPES:
            message = f"The scope {scope} is for applications, not for personal access tokens."
            raise InvalidError(message, field="scopes")
    return " ".join(scopes)


def _store_token(
    user_id: int,
    details: TokenDetails,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
    replaced: PersonalAccessToken | None = None,
) -> NewToken:
    credential, parent = (
        keyring.issue_credential(CredentialType.PERSONAL_ACCESS_TOKEN),
        details.parent,
    )
    ends = [details.expires_at, parent.ends_at if parent else None]
    row = PersonalAccessToken(
        user_id=user_id,
        name=details.name,
        description=details.description,
        family_id=(replaced.family_id or replaced.id) if replaced else None,
        keeps_admin_mode=replaced is not None and replaced.keeps_admin_mode,
        digest=credential.digest,
        scopes=details.scopes,
        created_at=now,
        expires_at=min((each for each in ends if each is not None), default=None),
        revoked_at=None,
        last_used_at=None,
        authorization_id=parent.authorization_id if parent else None,
        key_thumbprint=parent.key_thumbprint if parent else None,
    )
    session.add(row)
    session.flush()  # This assigns the ID.
    return NewToken(clear=credential.clear, token=build_token_view(row, now))


def rotate_personal_token(
    work: UnitOfWork, token_id: int, expires_at: datetime | None, *, owner_id: int | None
) -> NewToken:
    """Revoke an active token, and return a new token that replaces it.

    Only one of several concurrent rotations succeeds. Raise NotFoundError for a token of another
    user unless `owner_id` is None. Raise InvalidError for a token that can no longer be used.
    """
    session, keyring, now = work.session, work.policy(Keyring), work.now
    old = get_token_row(token_id, owner_id=owner_id, session=session)
    family_id = old.family_id or old.id
    _lock_family(family_id, session=session)
    claimed = session.scalar(
        build_bulk_update(PersonalAccessToken)
        .where(PersonalAccessToken.id == token_id, build_live_personal_token_condition(now))
        .values(revoked_at=now, family_id=family_id)
        .returning(PersonalAccessToken.id)
    )
    if claimed is None:
        raise InvalidError("This token was revoked or has expired. Create a new token.")
    details = TokenDetails(
        name=old.name,
        scopes=old.scopes,
        expires_at=expires_at,
        description=old.description,
        parent=_find_parent(old, session=session),
    )
    return _store_token(
        old.user_id, details, session=session, keyring=keyring, now=now, replaced=old
    )


def _find_parent(token: PersonalAccessToken, *, session: Session) -> ParentAuthorization | None:
    if token.authorization_id is None:
        return None
    return lock_parent_authorization(token.authorization_id, token.key_thumbprint, session=session)


def _lock_family(family_id: int, *, session: Session) -> None:
    """Lock a token family, so that concurrent rotations cannot add tokens during a revocation."""
    token = PersonalAccessToken
    session.execute(
        select(token.id)
        .where((token.id == family_id) | (token.family_id == family_id))
        .order_by(token.id)
        .with_for_update()
    )


def revoke_token_family(work: UnitOfWork, presented: str) -> TokenView | None:
    """Revoke the family of a rotated token that is presented for another rotation.

    The token was presented twice, so it may have been stolen. Return the presented token. If the
    token was not rotated, return None and change nothing.
    """
    session, keyring, now = work.session, work.policy(Keyring), work.now
    token = PersonalAccessToken
    digests = keyring.compute_digests(presented, CredentialType.PERSONAL_ACCESS_TOKEN)
    row = session.scalar(
        select(token).where(token.digest.in_(digests), token.revoked_at.is_not(None))
    )
    if row is None or row.family_id is None:
        return None
    _lock_family(row.family_id, session=session)
    session.execute(
        build_bulk_update(token)
        .where(token.family_id == row.family_id, token.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    remove_idle_bot_membership(row.user_id, session=session, now=now)
    return build_token_view(row, now)


def revoke_own_tokens(user_id: int, *, session: Session, now: datetime) -> int:
    """Revoke all personal access tokens of a user, and return the number of revoked tokens."""
    revoked = session.scalars(
        build_bulk_update(PersonalAccessToken)
        .where(PersonalAccessToken.user_id == user_id, PersonalAccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(PersonalAccessToken.id)
    )
    return len(revoked.all())


def revoke_personal_token(work: UnitOfWork, token_id: int, *, owner_id: int | None) -> TokenView:
    """Revoke a token if it has not been revoked yet, and return the token.

    Raise NotFoundError for a token of another user unless `owner_id` is None.
    """
    session, now = work.session, work.now
    token = get_token_row(token_id, owner_id=owner_id, session=session)
    if token.revoked_at is None:
        token.revoked_at = now
        session.flush()  # The next query must not find the revoked token.
        remove_idle_bot_membership(token.user_id, session=session, now=now)
    return build_token_view(token, now)
