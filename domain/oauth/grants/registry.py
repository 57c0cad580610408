"""All grants of the token endpoint."""

from collections.abc import Mapping
from typing import Any

from domain.oauth import protocol
from domain.oauth.client_requests import TokenGrant
from domain.oauth.context import OAuthPolicy
from domain.oauth.grants.authorization_code import AuthorizationCodeGrant
from domain.oauth.grants.client_credentials import ClientCredentialsGrant
from domain.oauth.grants.device_code import DeviceCodeGrant
from domain.oauth.grants.password import PasswordGrant
from domain.oauth.grants.refresh_token import RefreshTokenGrant
from domain.oauth.grants.token_exchange import TokenExchangeGrant

#: Grants, in the order of the specification.
GRANTS: tuple[type[TokenGrant[Any, Any]], ...] = (
    AuthorizationCodeGrant,
    RefreshTokenGrant,
    PasswordGrant,
    DeviceCodeGrant,
    ClientCredentialsGrant,
    TokenExchangeGrant,
)
#: Grants that administrators permit for individual applications.
PERMITTED_GRANTS = tuple(grant for grant in GRANTS if grant.PERMISSION)
#: Grants by grant type. The type is `Any`, since Authlib's constructor creates the instances.
GRANTS_BY_TYPE: Mapping[str, Any] = {grant.GRANT_TYPE: grant for grant in GRANTS}
#: Parameters that may appear only once in a request, for all endpoints (RFC 6749 section 3.2).
SINGLE_VALUE_PARAMETERS = protocol.ENDPOINT_PARAMETERS.union(
    *(grant.REQUEST.model_fields.keys() - grant.REPEATABLE for grant in GRANTS)
)


def list_enabled_grants(policy: OAuthPolicy) -> tuple[type[TokenGrant[Any, Any]], ...]:
    """Return the grant types that the policy enables."""
    return tuple(grant for grant in GRANTS if grant.SWITCH is None or grant.SWITCH(policy))


def list_registrable_grant_types(policy: OAuthPolicy) -> tuple[str, ...]:
    """Return the grant types that clients can register for."""
    return tuple(grant.GRANT_TYPE for grant in list_enabled_grants(policy) if grant.IS_REGISTRABLE)
