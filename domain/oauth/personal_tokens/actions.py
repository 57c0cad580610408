"""Actions on personal, project and group access tokens.

In operator commands, `work.actor.id` is the owner of the tokens, or None for all users.
"""

from datetime import datetime, timedelta
from typing import Any

from domain.access.actions import action, read_action
from domain.access.actor import AccessMethod, UnitOfWork
from domain.access.scopes import ADMIN_MODE, ADMINISTRATOR_SCOPES
from domain.audit.events import EventKind
from domain.core.database.pagination import PageResult
from domain.core.errors import ForbiddenError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.oauth.personal_tokens import resource_tokens, token_lists, tokens
from domain.oauth.personal_tokens.application_created_tokens import (
    check_can_rotate,
    find_parent_authorization,
)
from domain.oauth.personal_tokens.lifetimes import TokenLifetimes
from domain.oauth.personal_tokens.resource_tokens import ResourceToken, ResourceTokenRequest
from domain.oauth.personal_tokens.token_lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.tokens import NewToken, NotPersonalTokenError, TokenDetails
from domain.oauth.personal_tokens.types import (
    AccessToken,
    NewAccessToken,
    NewResourceAccessToken,
    OwnTokenBody,
    ResourceAccessToken,
    ResourceTokenBody,
    RotationBody,
    TokenBody,
    TokenQuery,
)
from domain.oauth.token_authentication.bearer import Bearer, InsufficientScopeError
from domain.projects.bots import find_bot_namespace
from domain.projects.views import ProjectOrGroup, get_viewer

#: Default lifetime of a rotated token, which API clients rely on.
_ROTATED_TOKEN_LIFETIME = timedelta(days=7)


@read_action("personal_access_tokens.index")
def list_tokens(work: UnitOfWork, query: TokenQuery) -> ListPage[AccessToken]:
    """List the caller's tokens, or the tokens of all users if the caller is an administrator."""
    found = _find_tokens(work, query, query.build_filter(owner_id=_get_owner_id(work)))
    return ListPage.from_page_result(found, AccessToken.model_validate)


@read_action("personal_access_tokens.show_self")
def show_presented_token(work: UnitOfWork) -> AccessToken:
    """Show the token that authenticates the request."""
    return AccessToken.model_validate(_get_token(work, _get_presented_token_id(work)))


@read_action("personal_access_tokens.show")
def show_token(work: UnitOfWork, token_id: int) -> AccessToken:
    """Show a token."""
    return AccessToken.model_validate(_get_token(work, token_id))


@action("personal_access_tokens.rotate_self")
def rotate_presented_token(work: UnitOfWork, rotation: RotationBody) -> NewAccessToken:
    """Rotate the token that authenticates the request."""
    until = _compute_rotated_expiry(work, rotation)
    return _build_new_token(
        _rotate_token(work, _get_rotatable_token_id(work), until, owner_id=_get_owner_id(work))
    )


@action("personal_access_tokens.rotate")
def rotate_token(work: UnitOfWork, token_id: int, rotation: RotationBody) -> NewAccessToken:
    """Rotate a personal access token.

    API requests must be authenticated with a personal access token.
    """
    bearer = _find_bearer(work)
    if bearer is not None:
        if bearer.personal_token_id is None:
            raise ForbiddenError(
                "This token cannot rotate personal access tokens. Use a personal access token, or "
                "rotate the token on its page."
            )
        check_can_rotate(token_id, bearer, session=work.session)
        _check_administrator_scopes(_get_token(work, token_id), bearer)
    until = _compute_rotated_expiry(work, rotation)
    return _build_new_token(_rotate_token(work, token_id, until, owner_id=_get_owner_id(work)))


@action("personal_access_tokens.renew")
def renew_token(work: UnitOfWork, token_id: int) -> NewAccessToken:
    """Replace a token with a new token that has the same lifetime."""
    return _build_new_token(_renew_token(work, _get_token(work, token_id)))


@action("personal_access_tokens.revoke_self")
def revoke_presented_token(work: UnitOfWork) -> AccessToken:
    """Revoke the token that authenticates the request."""
    return _revoke_token(work, _get_presented_token_id(work), owner_id=_get_owner_id(work))


@action("personal_access_tokens.revoke")
def revoke_token(work: UnitOfWork, token_id: int) -> AccessToken:
    """Revoke a token."""
    return _revoke_token(work, token_id, owner_id=_get_owner_id(work))


@action("personal_access_tokens.create")
def create_token(work: UnitOfWork, user_id: int, new: TokenBody) -> NewAccessToken:
    """Create a personal access token for a user."""
    return _create_token(work, user_id, _build_details(work, new))


@action("personal_access_tokens.create_own", command="create")
def create_own_token(work: UnitOfWork, new: OwnTokenBody) -> NewAccessToken:
    """Create a personal access token. It is shown only once."""
    day = work.now.date() + timedelta(days=new.days) if new.days else new.expires_at
    details = _build_details(work, new.model_copy(update={"expires_at": day}))
    return _create_token(work, work.actor.id or 0, details)


def revoke_reused_token_family(work: UnitOfWork, presented: str) -> None:
    """Revoke the successors of a rotated token that is presented again."""
    token = tokens.revoke_token_family(work, presented)
    if token is not None:
        details = {"reason": "a token that had been rotated was used to rotate again"}
        place = find_bot_namespace(token.user_id, session=work.session)
        work.record_audit_event(
            EventKind.TOKEN_REVOKED,
            subject=token.name,
            details=details,
            user_id=token.user_id,
            event_namespace=place,
        )


@read_action("resource_tokens.index")
def list_resource_tokens(
    work: UnitOfWork, holder: ProjectOrGroup, query: TokenQuery
) -> ListPage[ResourceAccessToken]:
    """List the tokens of a project or a group."""
    found = _find_tokens(work, query, query.build_filter(namespace=holder.namespace))
    seen = resource_tokens.add_bot_roles(found.items, holder.namespace, session=work.session)
    return ListPage(items=[_build_resource_token(each) for each in seen], total=found.total)


@read_action("resource_tokens.show")
def show_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, token_id: int
) -> ResourceAccessToken:
    """Show a token."""
    return _build_resource_token(
        resource_tokens.get_resource_token(work, holder.namespace, token_id)
    )


@action("resource_tokens.create")
def create_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, new: ResourceTokenBody
) -> NewResourceAccessToken:
    """Create an access token and its bot user for a project or group."""
    bearer = _find_bearer(work)
    if bearer is not None and bearer.is_bot:
        raise ForbiddenError("A bot cannot create access tokens.")
    made = resource_tokens.create_resource_token(
        holder.namespace,
        ResourceTokenRequest(details=_build_details(work, new), role=new.access_level),
        viewer=get_viewer(work),
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )
    _record_event(work, EventKind.TOKEN_ISSUED, made.token)
    return _build_new_resource_token(work, holder, made)


@action("resource_tokens.rotate_self")
def rotate_presented_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, rotation: RotationBody
) -> NewResourceAccessToken:
    """Rotate the token that authenticates the request."""
    token = resource_tokens.get_resource_token(
        work, holder.namespace, _get_rotatable_token_id(work)
    ).token
    until = _compute_rotated_expiry(work, rotation)
    return _build_new_resource_token(
        work, holder, _rotate_token(work, token.id, until, owner_id=token.user_id)
    )


@action("resource_tokens.rotate")
def rotate_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, token_id: int, rotation: RotationBody
) -> NewResourceAccessToken:
    """Rotate a project or group access token.

    The role of the token cannot be higher than the role of the caller.
    """
    bearer = _find_bearer(work)
    if bearer is not None and bearer.is_bot and bearer.personal_token_id != token_id:
        raise ForbiddenError("A bot can only rotate its own token.")
    token = resource_tokens.get_revocable_token(work, holder.namespace, token_id)
    if bearer is not None:
        check_can_rotate(token_id, bearer, session=work.session)
    until = _compute_rotated_expiry(work, rotation)
    return _build_new_resource_token(
        work, holder, _rotate_token(work, token_id, until, owner_id=token.user_id)
    )


@action("resource_tokens.renew")
def renew_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, token_id: int
) -> NewResourceAccessToken:
    """Replace a token with a new token that has the same lifetime."""
    token = resource_tokens.get_revocable_token(work, holder.namespace, token_id)
    return _build_new_resource_token(work, holder, _renew_token(work, token))


@action("resource_tokens.revoke")
def revoke_resource_token(work: UnitOfWork, holder: ProjectOrGroup, token_id: int) -> AccessToken:
    """Revoke an access token and remove its bot.

    The bot is then no longer a member.
    """
    token = resource_tokens.get_revocable_token(work, holder.namespace, token_id)
    return _revoke_token(work, token_id, owner_id=token.user_id)


def _find_bearer(work: UnitOfWork) -> Bearer | None:
    """Return the token that authenticates the request, or None on pages and the command line."""
    token = work.actor.token
    return token if isinstance(token, Bearer) else None


def _get_owner_id(work: UnitOfWork) -> int | None:
    """Return the ID of the owner whose tokens the actor can access, or None for all users."""
    is_of_all = work.actor.is_admin and work.actor.means is AccessMethod.TOKEN
    return None if is_of_all else work.actor.id


def _get_presented_token_id(work: UnitOfWork) -> int:
    bearer = _find_bearer(work)
    if bearer is None or bearer.personal_token_id is None:
        raise NotFoundError("This is an OAuth token. Use /oauth/token/info instead.")
    return bearer.personal_token_id


def _get_rotatable_token_id(work: UnitOfWork) -> int:
    bearer = _find_bearer(work)
    if bearer is None or bearer.personal_token_id is None:
        raise NotPersonalTokenError(
            "OAuth tokens cannot be rotated. Refresh the token at /oauth/token."
        )
    return bearer.personal_token_id


def _find_tokens(
    work: UnitOfWork, query: TokenQuery, token_filter: TokenFilter
) -> PageResult[TokenView]:
    return token_lists.find_tokens(
        token_filter,
        session=work.session,
        now=work.now,
        sort=query.requested_order,
        offset=query.offset,
        limit=query.page_size,
    )


def _get_token(work: UnitOfWork, token_id: int) -> TokenView:
    return token_lists.get_token(
        token_id, owner_id=_get_owner_id(work), session=work.session, now=work.now
    )


def _check_administrator_scopes(token: TokenView, bearer: Bearer) -> None:
    """Check that the bearer has the administrator scopes of a token.

    Raise InsufficientScopeError if the bearer does not have one of these scopes.
    """
    given = {*token.scopes, *((ADMIN_MODE,) if token.keeps_admin_mode else ())}
    own = {*bearer.scopes, *((ADMIN_MODE,) if bearer.keeps_admin_mode else ())}
    for scope in sorted(ADMINISTRATOR_SCOPES & given - own):
        raise InsufficientScopeError((scope,))


def _compute_rotated_expiry(work: UnitOfWork, rotation: RotationBody) -> datetime | None:
    lifetimes = work.policy(TokenLifetimes)
    usual = work.now.date() + min(_ROTATED_TOKEN_LIFETIME, lifetimes.longest)
    return lifetimes.compute_expiry(rotation.expires_at or usual, now=work.now)


def _build_details(work: UnitOfWork, token_body: TokenBody) -> TokenDetails:
    bearer, lifetimes = _find_bearer(work), work.policy(TokenLifetimes)
    parent = find_parent_authorization(bearer, session=work.session) if bearer else None
    return TokenDetails(
        name=token_body.name,
        scopes=" ".join(token_body.scopes),
        expires_at=lifetimes.compute_expiry(token_body.expires_at, now=work.now),
        description=token_body.description,
        parent=parent,
    )


def _create_token(work: UnitOfWork, user_id: int, details: TokenDetails) -> NewAccessToken:
    keyring = work.policy(Keyring)
    made = tokens.create_personal_token(
        user_id, details, session=work.session, keyring=keyring, now=work.now
    )
    _record_event(work, EventKind.TOKEN_ISSUED, made.token)
    return _build_new_token(made)


def _renew_token(work: UnitOfWork, old: TokenView) -> NewToken:
    lifetimes = work.policy(TokenLifetimes)
    until = lifetimes.compute_renewed_expiry(old.created_at, old.expires_at, now=work.now)
    return _rotate_token(work, old.id, until, owner_id=old.user_id)


def _rotate_token(
    work: UnitOfWork, token_id: int, until: datetime | None, *, owner_id: int | None
) -> NewToken:
    made = tokens.rotate_personal_token(work, token_id, until, owner_id=owner_id)
    _record_event(work, EventKind.TOKEN_ROTATED, made.token)
    return made


def _revoke_token(work: UnitOfWork, token_id: int, *, owner_id: int | None) -> AccessToken:
    gone = tokens.revoke_personal_token(work, token_id, owner_id=owner_id)
    if gone.revoked_at == work.now:  # Otherwise, the token had already been revoked.
        _record_event(work, EventKind.TOKEN_REVOKED, gone)
    return AccessToken.model_validate(gone)


def _record_event(work: UnitOfWork, kind: EventKind, token: TokenView) -> None:
    details = {"token_id": token.id, "scopes": " ".join(token.scopes)}
    place = find_bot_namespace(token.user_id, session=work.session)
    work.record_audit_event(
        kind, subject=token.name, details=details, user_id=token.user_id, event_namespace=place
    )


def _build_new_token(new_token: NewToken) -> NewAccessToken:
    return NewAccessToken.model_validate({**vars(new_token.token), "token": new_token.clear})


def _build_resource_token_fields(resource_token: ResourceToken) -> dict[str, Any]:
    return {
        **vars(resource_token.token),
        "access_level": resource_token.role,
        "resource_type": resource_token.namespace.resource_type,
        "resource_id": resource_token.namespace.id,
    }


def _build_resource_token(resource_token: ResourceToken) -> ResourceAccessToken:
    return ResourceAccessToken.model_validate(_build_resource_token_fields(resource_token))


def _build_new_resource_token(
    work: UnitOfWork, holder: ProjectOrGroup, new_token: NewToken
) -> NewResourceAccessToken:
    found = resource_tokens.get_resource_token(work, holder.namespace, new_token.token.id)
    fields = _build_resource_token_fields(found)
    return NewResourceAccessToken.model_validate({**fields, "token": new_token.clear})
