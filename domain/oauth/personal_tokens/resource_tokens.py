"""Project and group access tokens: personal tokens of a bot that is a member."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.access.scopes import Scope
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ForbiddenError, NotFoundError
from domain.core.keyring import Keyring
from domain.oauth.personal_tokens.token_lists import (
    TokenView,
    get_token,
)
from domain.oauth.personal_tokens.tokens import (
    NewToken,
    TokenDetails,
    check_no_administrator_scopes,
    check_token_details,
    create_personal_token,
)
from domain.projects.bots import create_bot, find_bot_roles
from domain.projects.members import check_can_grant_role, lock_members
from domain.projects.views import Namespace, Viewer, get_viewer
from models import Bot, PersonalAccessToken

#: Texts for the scopes of resource access tokens; the texts in SCOPES are for consent pages.
RESOURCE_SCOPES_BY_NAME = {
    name: Scope(name=name, title=title, description=description)
    for name, title, description in (
        ("api", "Full access to the API", "Read and change everything that the role allows."),
        (
            "read_api",
            "Read access to the API",
            "Read everything that the role allows, without changing anything.",
        ),
        (
            "read",
            "Read access to the API (former name)",
            "Same as read_api, for programs written for older releases.",
        ),
        ("read_user", "Read the profile", "Read the name of the bot that the token acts as."),
        ("read_repository", "Read repositories", "Clone and fetch with Git over HTTPS."),
        ("write_repository", "Change repositories", "Clone, fetch and push with Git over HTTPS."),
        ("read_registry", "Read container images", "Pull images from the container registry."),
        (
            "write_registry",
            "Change container images",
            "Pull, push and delete images in the container registry.",
        ),
        ("read_alerts", "Read alerts and incidents", "Read alerts and incidents."),
        (
            "write_alerts",
            "Work on alerts and incidents",
            "Acknowledge, resolve and comment on alerts and incidents.",
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class ResourceToken:
    """A token of a project or a group, without its value."""

    token: TokenView
    namespace: Namespace
    #: Role of the bot; None if the bot is no longer a member.
    role: Role | None


@dataclass(frozen=True, kw_only=True)
class ResourceTokenRequest:
    """The requested details and role for a new token of a project or a group."""

    details: TokenDetails
    #: Role of the bot, which cannot exceed the creator's role.
    role: Role


def add_bot_roles(
    tokens: Sequence[TokenView], namespace: Namespace, *, session: Session
) -> tuple[ResourceToken, ...]:
    """Return tokens with the roles of their bots."""
    roles = find_bot_roles([token.user_id for token in tokens], session=session)
    return tuple(
        ResourceToken(token=token, namespace=namespace, role=roles.get(token.user_id))
        for token in tokens
    )


def get_resource_token(work: UnitOfWork, namespace: Namespace, token_id: int) -> ResourceToken:
    """Return a token of this project or group.

    Raise NotFoundError if there is no such token.
    """
    session = work.session
    owner_id = _get_bot_id(namespace, token_id, session=session)
    token = get_token(token_id, owner_id=owner_id, session=session, now=work.now)
    return add_bot_roles((token,), namespace, session=session)[0]


def create_resource_token(
    namespace: Namespace,
    resource_token_request: ResourceTokenRequest,
    *,
    viewer: Viewer,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewToken:
    """Create a bot with a role and a token.

    Raise InvalidError with the name of the field if a value is invalid. Raise ForbiddenError if the
    viewer no longer has the required role.
    """
    check_can_grant_role(
        resource_token_request.role, _lock_token_role(namespace, viewer, session=session)
    )
    # The details are checked first, so that no bot without a token is created.
    details = check_token_details(resource_token_request.details)
    check_no_administrator_scopes(details)
    bot = create_bot(namespace, details.name, resource_token_request.role, session=session, now=now)
    return create_personal_token(bot.id, details, session=session, keyring=keyring, now=now)


def get_revocable_token(work: UnitOfWork, namespace: Namespace, token_id: int) -> TokenView:
    """Lock the viewer's role, and return a token that the viewer can rotate and revoke.

    Raise NotFoundError if the project or group has no such token. Raise ForbiddenError if the
    viewer cannot manage tokens, or if the role of the token is higher than the viewer's role.
    """
    role = _lock_token_role(namespace, get_viewer(work), session=work.session)
    token = get_resource_token(work, namespace, token_id)
    if token.role is not None and token.role > role:
        raise ForbiddenError(
            f"You cannot rotate or revoke a token with the {token.role.label} role, because your "
            f"role is {role.label}."
        )
    return token.token


def _lock_token_role(namespace: Namespace, viewer: Viewer, *, session: Session) -> Role:
    """Lock the members, which include the bots, and return the viewer's current role.

    Raise ForbiddenError if the role does not permit managing tokens.
    """
    role = lock_members(namespace, viewer, session=session)
    if namespace.group_id is not None and role < Role.OWNER:
        raise ForbiddenError(f"You need the Owner role in {namespace.path}.")
    return role


def _get_bot_id(namespace: Namespace, token_id: int, *, session: Session) -> int:
    """Return the ID of the bot that owns a token of this project or group.

    Raise NotFoundError if there is no such token.
    """
    statement = (
        select(Bot.user_id)
        .join(PersonalAccessToken, PersonalAccessToken.user_id == Bot.user_id)
        .where(
            PersonalAccessToken.id == token_id,
            Bot.group_id == namespace.group_id
            if namespace.group_id is not None
            else Bot.project_id == namespace.project_id,
        )
    )
    user_id = session.scalar(statement) if token_id <= MAX_ID else None
    if user_id is None:
        raise NotFoundError("Access token not found.")
    return user_id
