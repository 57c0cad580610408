"""Who calls an operation of the API: the bearer that its permission admits."""

from collections.abc import Sequence
from typing import Any

from domain.access.permissions import Permission
from domain.errors import ForbiddenError
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import admit, admit_or_anonymous
from web.api.sudo import acting, acting_or_anonymous, named_beside_the_body


def get_ready_caller(permission: Permission) -> Bearer:
    """Return the bearer of an operation that takes no parameters and asks for scopes alone."""
    return acting(admit(permission.scopes), named_beside_the_body())


def get_caller(permission: Permission, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer of a request, None for one without a token if that is allowed.

    `named` is whom the request wants to act as. Raises the error of a token that is not enough.
    """
    scopes = permission.scopes
    if permission.is_open:
        bearer = acting_or_anonymous(admit_or_anonymous(scopes), named)
    else:
        bearer = acting(admit(scopes), named)
    if bearer is not None:
        _check(bearer, permission)
    return bearer


def _check(bearer: Bearer, permission: Permission) -> None:
    if permission.is_for_administrators:
        bearer.require_administrator()
    if permission.is_for_people and bearer.is_of_application:
        message = "An application cannot do this: use a personal access token, or the page."
        raise ForbiddenError(message)
