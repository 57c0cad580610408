"""Access tokens of projects and groups: personal tokens of a bot that is a member there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.roles import Role
from domain.database.paging import LARGEST_ID
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.keyring import Keyring
from domain.oauth.personal_tokens.lists import TokenFilter, TokenView, get_token, list_tokens
from domain.oauth.personal_tokens.tokens import (
    NewToken,
    TokenDetails,
    check_details,
    create_token,
    revoke_token,
    rotate_token,
)
from domain.oauth.scopes import ScopeView
from domain.projects.bots import bot_roles, make_bot
from domain.projects.members import Place
from models import Bot, PersonalAccessToken

#: What a token of a place may do, in words: those of SCOPES are for somebody who lets one in.
SCOPE_WORDS = {
    view.name: view
    for view in (
        ScopeView(
            name="api",
            title="Everything that its role allows",
            description="Read and change what a member with its role can, here and below.",
        ),
        ScopeView(
            name="read_api",
            title="Read everything that its role allows",
            description="Read through the API what a member with its role can, and change nothing.",
        ),
        ScopeView(
            name="read",
            title="Read everything that its role allows (older name)",
            description="The same as read_api; programs written for older releases ask for it.",
        ),
        ScopeView(
            name="read_user",
            title="Know who it is",
            description="Read the name of the bot that the token acts as.",
        ),
        ScopeView(
            name="read_repository",
            title="Read repositories",
            description="Clone and fetch with Git over HTTPS.",
        ),
        ScopeView(
            name="write_repository",
            title="Change repositories",
            description="Clone, fetch and push with Git over HTTPS.",
        ),
        ScopeView(
            name="read_registry",
            title="Read container images",
            description="Pull images from a container registry.",
        ),
        ScopeView(
            name="write_registry",
            title="Change container images",
            description="Pull and push images of a container registry.",
        ),
        ScopeView(
            name="read_alerts",
            title="Read alerts and incidents",
            description="See alerts and incidents.",
        ),
        ScopeView(
            name="write_alerts",
            title="Work on alerts and incidents",
            description="Acknowledge, resolve and comment on alerts and incidents.",
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class PlaceToken:
    """A token of a project or a group, without its value."""

    token: TokenView
    place: Place
    #: None once its bot has left.
    role: Role | None

    def as_json(self) -> dict[str, Any]:
        """Return the object of the API, with the field names that its clients read."""
        is_group = self.place.group_id is not None
        return {
            **self.token.as_json(),
            "access_level": None if self.role is None else int(self.role),
            "resource_type": "group" if is_group else "project",
            "resource_id": self.place.group_id if is_group else self.place.project_id,
        }


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A part of a list, and how long the whole list is."""

    items: tuple[PlaceToken, ...]
    total: int


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a token shall be able to do, and the role of who asks for it."""

    details: TokenDetails
    role: Role
    giver: Role


def with_roles(
    tokens: tuple[TokenView, ...], place: Place, *, session: Session
) -> tuple[PlaceToken, ...]:
    """Return tokens with the roles that their bots have."""
    roles = bot_roles([token.user_id for token in tokens], session=session)
    return tuple(
        PlaceToken(token=token, place=place, role=roles.get(token.user_id)) for token in tokens
    )


def list_place_tokens(
    wanted: TokenFilter, place: Place, *, session: Session, now: datetime, **part: Any
) -> Counted:
    """Return tokens of a place; `part` is what `list_tokens` takes to choose some of them."""
    found = list_tokens(wanted, session=session, now=now, **part)
    return Counted(items=with_roles(found.items, place, session=session), total=found.total)


def get_place_token(place: Place, token_id: int, *, session: Session, now: datetime) -> PlaceToken:
    """Return a token of this place, or raise NotFoundError."""
    owner_id = _bot_of(place, token_id, session=session)
    token = get_token(token_id, owner_id=owner_id, session=session, now=now)
    return with_roles((token,), place, session=session)[0]


def create_place_token(
    place: Place, wish: Wish, *, session: Session, keyring: Keyring, now: datetime
) -> NewToken:
    """Make a bot with a role and a token, or raise InvalidError naming the field."""
    if wish.role > wish.giver:
        message = f"You cannot give the role {wish.role.label}: your own is {wish.giver.label}."
        raise InvalidError(message, field="role")
    # First, so that no bot is left behind without a token.
    details = check_details(wish.details)
    bot = make_bot(place, details.name, wish.role, session=session, now=now)
    return create_token(bot.id, details, session=session, keyring=keyring, now=now)


def rotate_place_token(
    place: Place,
    token_id: int,
    expires_at: datetime,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewToken:
    """Put a new token in the place of a live one; raise NotFoundError or InvalidError."""
    return rotate_token(
        token_id,
        expires_at,
        owner_id=_bot_of(place, token_id, session=session),
        session=session,
        keyring=keyring,
        now=now,
    )


def check_may_end(token: PlaceToken, role: Role) -> None:
    """Raise ForbiddenError for a token that can do more than who wants to rotate or revoke it.

    A role that one cannot give one cannot take away either.
    """
    if token.role is not None and token.role > role:
        message = (
            f"You cannot rotate or revoke a token with the role {token.role.label}: "
            f"your own is {role.label}."
        )
        raise ForbiddenError(message)


def revoke_place_token(
    place: Place, token_id: int, *, session: Session, now: datetime
) -> TokenView:
    """Make a token of this place worthless; its bot leaves."""
    owner_id = _bot_of(place, token_id, session=session)
    return revoke_token(token_id, owner_id=owner_id, session=session, now=now)


def _bot_of(place: Place, token_id: int, *, session: Session) -> int:
    """Return the bot that a token of this place acts as, or raise NotFoundError."""
    statement = (
        select(Bot.user_id)
        .join(PersonalAccessToken, PersonalAccessToken.user_id == Bot.user_id)
        .where(
            PersonalAccessToken.id == token_id,
            Bot.group_id == place.group_id
            if place.group_id is not None
            else Bot.project_id == place.project_id,
        )
    )
    user_id = session.scalar(statement) if token_id <= LARGEST_ID else None
    if user_id is None:
        message = "There is no such access token here."
        raise NotFoundError(message)
    return user_id
