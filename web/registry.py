"""Functions that the container registry's views share: credentials, tokens and configuration."""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from flask import g, request

from domain.accounts.attempt_counters import AttemptLimit, consume_attempt
from domain.core.errors import ForbiddenError
from domain.core.ip_addresses import get_client_network
from domain.core.keyring import CredentialType
from domain.oauth.token_authentication.bearer import (
    Bearer,
    InvalidTokenError,
    TokenRejectionReason,
    get_bearer,
    record_token_use,
)
from domain.projects.views import Viewer
from domain.registry.access import PULL_SCOPES, InvalidRegistryCredentialsError, Requester
from domain.registry.notifications import MissingNotificationSecretError
from domain.registry.signing_keys import TokenSigner, get_signer, has_signer, list_keys
from domain.registry.tokens import RegistryConfiguration, RegistryToken, sign_token
from web.access.decorators import get_current_user
from web.extensions import db
from web.http.transactions import allow_writes
from web.services import (
    get_current_time,
    get_registry_policy,
    get_services,
    get_settings,
    get_sign_in_limits,
)

_CREDENTIAL_HINT = (
    "Use a personal, project or group access token with read_registry or write_registry as the "
    "password."
)
NO_CREDENTIALS_MESSAGE = f"Sign in to the container registry. {_CREDENTIAL_HINT}"
_UNKNOWN_TOKEN_MESSAGE = f"The access token is invalid. {_CREDENTIAL_HINT}"
_OAUTH_TOKEN_MESSAGE = (
    f"OAuth access tokens cannot sign in to the container registry. {_CREDENTIAL_HINT}"
)
_BOUND_TOKEN_MESSAGE = (
    "This access token is bound to a key, which the container registry cannot check. "
    f"{_CREDENTIAL_HINT}"
)
_MISSING_SCOPE_MESSAGE = (
    "The access token has none of the scopes read_registry, write_registry and api. Create a "
    "token with one of these scopes."
)
ANONYMOUS_REQUESTER = Requester(viewer=Viewer(user_id=None))
_DERIVATION_PURPOSE = "the container registry of this installation"


@dataclass(frozen=True, kw_only=True)
class RegistryUser:
    """User of a token request. The name is empty if the request is anonymous."""

    name: str
    requester: Requester = field(default=ANONYMOUS_REQUESTER)


class InvalidRegistryTokenError(InvalidRegistryCredentialsError):
    """Error for a password that is not a valid access token, which counts as a failed attempt."""


def find_basic_password() -> str | None:
    """Return the password of Basic authentication, or None if there is no Authorization header.

    Raise InvalidRegistryCredentialsError for any other scheme and for an invalid header.
    """
    if "Authorization" not in request.headers:
        return None
    given = request.authorization
    if given is None or given.type != "basic" or not given.password:
        raise InvalidRegistryCredentialsError(NO_CREDENTIALS_MESSAGE)
    return str(given.password)


def get_registry_user(token: str | None) -> RegistryUser:
    """Return the user of an access token, or an anonymous user if there is no token.

    Raise InvalidRegistryCredentialsError if the registry does not accept the token, and
    ForbiddenError if the token has no registry scope.
    """
    if token is None:
        return RegistryUser(name="")
    found = _get_bearer(token)
    if found.access_token_id is not None:
        raise InvalidRegistryCredentialsError(_OAUTH_TOKEN_MESSAGE)
    if found.key_thumbprint is not None:
        raise InvalidRegistryCredentialsError(_BOUND_TOKEN_MESSAGE)
    if not PULL_SCOPES & set(found.scopes):
        raise ForbiddenError(_MISSING_SCOPE_MESSAGE)
    record_token_use(
        found,
        address=request.remote_addr,
        connection=get_services().connections,
        now=get_current_time(),
    )
    g.bearer = found
    viewer = Viewer(user_id=found.user_id, is_admin=found.is_admin)
    return RegistryUser(
        name=found.username,
        requester=Requester(viewer=viewer, token_scopes=frozenset(found.scopes)),
    )


def _get_bearer(token: str) -> Bearer:
    own = get_services()
    try:
        return get_bearer(
            token, connection=own.connections, keyring=own.keyring, now=get_current_time()
        )
    except InvalidTokenError as error:
        known = error.refusal in {TokenRejectionReason.EXPIRED, TokenRejectionReason.REVOKED}
        raise InvalidRegistryTokenError(
            f"{error} {_CREDENTIAL_HINT}" if known else _UNKNOWN_TOKEN_MESSAGE
        ) from error


def count_wrong_registry_token() -> None:
    """Count a wrong token from this IP address.

    Raise TooManyAttemptsError above the limit. A valid token is accepted in any case, since 256
    random bits cannot be guessed. A script with an expired token must not lock out other clients at
    the same address.
    """
    allow_writes()
    limits = get_sign_in_limits()
    limit = AttemptLimit(
        subject=f"registry address {get_client_network(request.remote_addr or '')}",
        attempts=limits.per_address,
        window=limits.window,
    )
    consume_attempt(
        limit, session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )


def _list_notification_secrets() -> tuple[str, ...]:
    """Return the accepted secrets, the first of which is for the registry's configuration.

    Without REGISTRY_NOTIFICATION_SECRETS, the secrets are derived from the secret keys.
    """
    return (
        get_settings().registry_notification_secrets
        or get_services().keyring.derive_credentials(
            _DERIVATION_PURPOSE, CredentialType.REGISTRY_NOTIFICATIONS
        )
    )


def check_notification_secret() -> None:
    """Check that the Authorization header contains an accepted secret.

    The `Bearer` prefix is optional, since the registry sends the header exactly as configured.
    Raise MissingNotificationSecretError if no accepted secret matches.
    """
    header = request.headers.get("Authorization", "").strip()
    scheme, _, rest = header.partition(" ")
    given = (rest.strip() if scheme.lower() == "bearer" else header).encode(errors="replace")
    # All secrets are compared, so that the time does not reveal which of them matched.
    matching = [hmac.compare_digest(given, each.encode()) for each in _list_notification_secrets()]
    if not any(matching):
        raise MissingNotificationSecretError(
            "The Authorization header must contain the notification secret, which "
            "administrators find under Container registry."
        )


def build_full_configuration() -> RegistryConfiguration:
    """Return the configuration with the secret, for administrators."""
    return RegistryConfiguration(
        base_url=get_settings().base_url, notification_secret=_list_notification_secrets()[0]
    )


def build_visible_configuration() -> RegistryConfiguration:
    """Return the configuration for a project page, with the secret only for administrators.

    The secret belongs to the instance. Anyone who knows it could report images of other projects.
    """
    if get_current_user().is_admin:
        return build_full_configuration()
    return RegistryConfiguration(base_url=get_settings().base_url)


def issue_registry_token(access: Iterable[Mapping[str, object]], *, subject: str) -> RegistryToken:
    """Return a signed registry token that grants the given access to a subject."""
    policy = get_registry_policy().tokens
    return sign_token(
        access,
        subject=subject,
        signer=_get_or_create_signer(),
        policy=policy,
        now=get_current_time(),
    )


def _get_or_create_signer() -> TokenSigner:
    """Return the signing key, which is created at the first request."""
    session, keyring, moment = db.session(), get_services().keyring, get_current_time()
    if not has_signer(session=session, keyring=keyring, now=moment):
        session.rollback()  # this transaction cannot write, but the next one can
        allow_writes()
    return get_signer(session=session, keyring=keyring, now=moment)


def build_certificate_bundle() -> str:
    """Return the certificates for the signing key, a pending key and previous keys."""
    _get_or_create_signer()
    keys = list_keys(session=db.session(), keyring=get_services().keyring, now=get_current_time())
    return "".join(key.certificate for key in keys)
