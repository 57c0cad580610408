"""Dynamic client registration (RFC 7591) and client configuration management (RFC 7592).

Each supported metadata member (RFC 7591 section 2) has an entry in `_PARSERS`, which validates it.
Other members are ignored, as RFC 7591 requires. Registered URLs are stored and displayed, but never
fetched by this server.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7591 import InvalidClientMetadataError, InvalidRedirectURIError
from sqlalchemy import select

from domain.access.scopes import ADMIN_MODE
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.audit.events import EventKind
from domain.core.errors import ForbiddenError, InvalidError
from domain.core.keyring import CredentialType
from domain.oauth.clients import applications
from domain.oauth.clients.applications import check_application_details, check_logout_uri_address
from domain.oauth.clients.authentication import ClientAuthMethod
from domain.oauth.clients.redirect_uris import MAX_REDIRECT_URI_LENGTH
from domain.oauth.clients.secrets import build_live_secret_condition, renew_secret
from domain.oauth.clients.types import ApplicationDetails
from domain.oauth.context import OAuthContext
from domain.oauth.grants.registry import list_registrable_grant_types
from domain.oauth.protocol import OAUTH_NO_STORE_HEADERS, OAuthResponse
from domain.oauth.token_authentication.bearer import InvalidTokenError, TokenRejectionReason
from models import Application, ApplicationSecret, User

#: Scopes of a client that requests no scopes; they are sufficient for sign-in.
DEFAULT_REGISTRATION_SCOPES = "read_user openid profile email"
DEFAULT_CLIENT_NAME = "Application without a name"
_MAX_NAME_LENGTH = 100
_MAX_TEXT_LENGTH = 255
_MAX_VALUES = 50
#: Pattern of https URLs without user information, whitespace, or characters that could end an
#: attribute or a header.
_HTTPS_URL_PATTERN = re.compile(r"https://[A-Za-z0-9.\-:\[\]]+(?:[/?#][!#-;=?-~]*)?")
_STORED_UNCHANGED = (
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "contacts",
    "software_id",
    "software_version",
    "require_pushed_authorization_requests",
)
REGISTRATION_PATH = "/oauth/register"
#: Members that only the server sets; clients must not send them (RFC 7592 section 2.2).
_SERVER_MEMBERS = (
    "registration_access_token",
    "registration_client_uri",
    "client_secret_expires_at",
    "client_id_issued_at",
)
#: Settings that are not client metadata; the client cannot change these settings.
_OWNER_SETTINGS = (
    "require_pkce",
    "refresh_for_devices",
    "omit_iss",
    "service_account",
    "refresh_idle_days",
    "refresh_longest_days",
)


@dataclass(frozen=True, kw_only=True)
class ClientMetadata:
    """The validated metadata of a client."""

    details: ApplicationDetails
    #: Metadata members that are stored together in the `client_metadata` column.
    own_words: Mapping[str, object]


def parse_client_metadata(
    body: Mapping[str, object], *, offered: Sequence[str], require_https: bool
) -> ClientMetadata:
    """Validate and return the metadata of a client.

    Raise one of the errors in section 3.2.2 if the metadata is invalid. `offered` lists the grant
    types that clients can register for.
    """
    said = {
        name: read(name, body[name])
        for name, read in _PARSERS.items()
        # null is equivalent to an omitted member (RFC 7592 section 2.2).
        if body.get(name) is not None
    }
    method = _parse_auth_method(
        said.get("token_endpoint_auth_method", ClientAuthMethod.BASIC.value)
    )
    grant_types = _select_grant_types(said.get("grant_types"), offered)
    own_words = {
        **{name: said[name] for name in _STORED_UNCHANGED if name in said},
        "token_endpoint_auth_method": method.value,
        "grant_types": grant_types,
        "response_types": _select_response_types(said.get("response_types"), grant_types),
    }
    if method is ClientAuthMethod.PRIVATE_KEY and not said.get("jwks"):
        message = "private_key_jwt requires jwks. jwks_uri is not supported."
        raise InvalidClientMetadataError(message)
    details = ApplicationDetails(
        name=said.get("client_name") or DEFAULT_CLIENT_NAME,
        redirect_uris=said.get("redirect_uris", ()),
        scopes=tuple((said.get("scope") or DEFAULT_REGISTRATION_SCOPES).split()),
        confidential=method is not ClientAuthMethod.NONE,
        require_pkce=True,
        require_dpop=said.get("dpop_bound_access_tokens", False),
        backchannel_logout_uri=said.get("backchannel_logout_uri"),
        jwks=said["jwks"] if method is ClientAuthMethod.PRIVATE_KEY else None,
    )
    if "authorization_code" in grant_types and not details.redirect_uris:
        raise InvalidRedirectURIError("The grant type authorization_code requires redirect_uris.")
    _check_application_rules(details, require_https=require_https)
    return ClientMetadata(details=details, own_words=own_words)


def _check_application_rules(details: ApplicationDetails, *, require_https: bool) -> None:
    """Check a client's details against the rules for all applications.

    Raise invalid_redirect_uri or invalid_client_metadata if a rule is violated, or if the client
    requests the ADMIN_MODE scope.
    """
    try:
        scopes = check_application_details(details, require_https=require_https)
    except InvalidError as error:
        is_uri = error.field == "redirect_uris"
        kind = InvalidRedirectURIError if is_uri else InvalidClientMetadataError
        raise kind(_convert_to_ascii(str(error))) from error
    if ADMIN_MODE in scopes:
        message = f"Only administrators can register the {ADMIN_MODE} scope."
        raise InvalidClientMetadataError(message)


def _convert_to_ascii(sentence: str) -> str:
    """Replace characters that RFC 6749 does not permit in error descriptions."""
    plain = sentence.replace('"', "'")
    return "".join(each if " " <= each <= "~" and each not in '"\\' else "?" for each in plain)


def _parse_auth_method(text: str) -> ClientAuthMethod:
    try:
        return ClientAuthMethod(text)
    except ValueError:
        names = ", ".join(ClientAuthMethod)
        raise InvalidClientMetadataError(
            f"token_endpoint_auth_method must be one of {names}."
        ) from None


def _select_grant_types(asked: list[str] | None, offered: Sequence[str]) -> list[str]:
    """Return the requested grant types that the server supports.

    Unsupported types are omitted, since the response lists the registered types (section 2). Raise
    invalid_client_metadata if only refresh_token remains.
    """
    wanted = set(asked or ["authorization_code"]) | {"refresh_token"}
    found = [name for name in offered if name in wanted]
    if found == ["refresh_token"]:
        raise InvalidClientMetadataError("None of the grant_types is available to this client.")
    return found


def _select_response_types(asked: list[str] | None, grant_types: list[str]) -> list[str]:
    """Return the response types that match the grant types (table in section 2.1)."""
    fitting = ["code"] if "authorization_code" in grant_types else []
    if asked is not None and fitting and "code" not in asked:
        raise InvalidClientMetadataError("The only supported response_type is code.")
    return fitting


def _build_error(name: str, must: str) -> InvalidClientMetadataError:
    kind = InvalidRedirectURIError if name == "redirect_uris" else InvalidClientMetadataError
    return kind(f"{name} must be {must}.")


def _parse_text(name: str, value: object, *, max_length: int = _MAX_TEXT_LENGTH) -> str:
    if not isinstance(value, str) or len(value) > max_length or _has_control_characters(value):
        raise _build_error(name, f"a string of at most {max_length} characters")
    return value


def _has_control_characters(text: str) -> bool:
    # A lone surrogate is legal in JSON, but cannot be stored.
    return any(unicodedata.category(each) in {"Cc", "Cs"} for each in text)


def _parse_texts(name: str, value: object, *, max_length: int = _MAX_TEXT_LENGTH) -> list[str]:
    if not isinstance(value, list) or len(value) > _MAX_VALUES:
        raise _build_error(name, f"an array of at most {_MAX_VALUES} strings")
    return [_parse_text(name, each, max_length=max_length) for each in value]


def _parse_https_url(name: str, value: object) -> str:
    url = _parse_text(name, value, max_length=MAX_REDIRECT_URI_LENGTH)
    try:
        is_fine = _HTTPS_URL_PATTERN.fullmatch(url) and urlsplit(url).port != 0
    except ValueError:  # The brackets or the port are not valid.
        is_fine = False
    if not is_fine:
        raise _build_error(name, "an https URL")
    return url


def _parse_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _build_error(name, "true or false")
    return value


def _parse_jwks(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or "keys" not in value:
        raise _build_error(name, "a JWK Set")
    return value


_PARSERS: Mapping[str, Callable[[str, object], Any]] = {
    "redirect_uris": partial(_parse_texts, max_length=MAX_REDIRECT_URI_LENGTH),
    "client_name": partial(_parse_text, max_length=_MAX_NAME_LENGTH),
    "scope": partial(_parse_text, max_length=1000),
    "token_endpoint_auth_method": _parse_text,
    "grant_types": _parse_texts,
    "response_types": _parse_texts,
    "client_uri": _parse_https_url,
    "logo_uri": _parse_https_url,
    "tos_uri": _parse_https_url,
    "policy_uri": _parse_https_url,
    "contacts": _parse_texts,
    "software_id": _parse_text,
    "software_version": _parse_text,
    "jwks": _parse_jwks,
    # Back-Channel Logout section 2.2: every logout token of this server contains a session ID.
    "backchannel_logout_uri": _parse_https_url,
    "backchannel_logout_session_required": _parse_bool,
    # RFC 9449 section 5.2 and RFC 9126 section 6.
    "dpop_bound_access_tokens": _parse_bool,
    "require_pushed_authorization_requests": _parse_bool,
}


def register_client(
    body: Mapping[str, object], registrar_id: int | None, *, context: OAuthContext
) -> OAuthResponse:
    """Register a client, and return the client information response (RFC 7591 section 3.2.1).

    `registrar_id` is the ID of the user whose token was sent. If it is None, no token was sent, and
    the client becomes instance-wide.
    """
    wanted = _parse_body(body, context)
    token = context.keyring.issue_credential(CredentialType.REGISTRATION)
    application, secret = applications.store_application(
        wanted.details,
        owner_id=registrar_id or _get_instance_owner_id(context),
        session=context.session,
        keyring=context.keyring,
        now=context.now,
    )
    application.is_instance_wide = registrar_id is None
    application.registration_digest = token.digest
    application.client_metadata = dict(wanted.own_words)
    _record_event(EventKind.APPLICATION_REGISTERED, application, context)
    shown = secret if _has_client_secret(application) else None
    return _build_response(201, application, token.clear, context, secret=shown)


def _parse_body(body: Mapping[str, object], context: OAuthContext) -> ClientMetadata:
    policy = context.policy
    read = parse_client_metadata(
        body,
        offered=list_registrable_grant_types(policy),
        require_https=policy.require_https_redirect_uris,
    )
    try:
        check_logout_uri_address(read.details.backchannel_logout_uri, policy.private_addresses)
    except InvalidError as error:
        raise InvalidClientMetadataError(_convert_to_ascii(str(error))) from error
    return read


def _get_instance_owner_id(context: OAuthContext) -> int:
    """Return the ID of the first administrator, who owns clients that registered without a token.

    Raise ForbiddenError if the instance has no active administrator.
    """
    found = context.session.scalar(
        select(User.id).where(User.is_admin, IS_ACTIVE_HUMAN).order_by(User.id).limit(1)
    )
    if found is None:
        raise ForbiddenError("This instance has no administrator, so clients cannot register.")
    return found


@dataclass(frozen=True, kw_only=True)
class PresentedRegistration:
    """A registered client and the registration access token that it presented."""

    application_id: int
    token: str = field(repr=False)


def get_registration(
    uid: str, token: str | None, *, context: OAuthContext
) -> PresentedRegistration:
    """Return the registration that a registration access token belongs to (RFC 7592 section 2).

    Raise InvalidTokenError if the token is invalid or the client was deleted.
    """
    if token is None:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    digests = context.keyring.compute_digests(token, CredentialType.REGISTRATION)
    application = context.session.scalar(
        select(Application).where(Application.registration_digest.in_(digests))
    )
    if application is None or application.uid != uid:
        raise InvalidTokenError(TokenRejectionReason.UNKNOWN)
    if application.registration_digest != digests[0]:  # The hash was made with an older key.
        application.registration_digest, application.keyed_at = digests[0], context.now
    return PresentedRegistration(application_id=application.id, token=token)


def _get_application(registration: PresentedRegistration, context: OAuthContext) -> Application:
    return context.session.get_one(Application, registration.application_id)


def show_registration(
    registration: PresentedRegistration, *, context: OAuthContext
) -> OAuthResponse:
    """Return the current registration without the secret (RFC 7592 section 2.1)."""
    return _build_response(
        200, _get_application(registration, context), registration.token, context
    )


def change_registration(
    registration: PresentedRegistration, body: Mapping[str, object], *, context: OAuthContext
) -> OAuthResponse:
    """Replace the metadata of a client (RFC 7592 section 2.2).

    Settings of the owner that are not client metadata do not change.
    """
    application = _get_application(registration, context)
    _check_client_identity(application, body, context)
    wanted = _parse_body(body, context)
    had_secret = _has_client_secret(application)
    https = context.policy.require_https_redirect_uris
    kept = {name: getattr(application, name) for name in _OWNER_SETTINGS}
    kept["service_account"] &= wanted.details.confidential
    details = wanted.details.model_copy(update=kept)
    has_lost_trust = applications.update_application(
        application, details, require_https=https, session=context.session, now=context.now
    )
    application.client_metadata = dict(wanted.own_words)
    more = applications.ENDED_TRUST_DETAILS if has_lost_trust else {}
    _record_event(EventKind.APPLICATION_CHANGED, application, context, **more)
    secret = None
    if _has_client_secret(application) and not had_secret:
        keyring, now = context.keyring, context.now
        secret = renew_secret(application.id, session=context.session, keyring=keyring, now=now)
    return _build_response(200, application, registration.token, context, secret=secret)


def _has_client_secret(application: Application) -> bool:
    """Return whether the client has received a secret.

    Clients that use keys never receive a secret.
    """
    method = (application.client_metadata or {}).get("token_endpoint_auth_method")
    return application.confidential and method != ClientAuthMethod.PRIVATE_KEY


def _check_client_identity(
    application: Application, body: Mapping[str, object], context: OAuthContext
) -> None:
    """Check the client_id and client_secret in a request that replaces metadata.

    Raise invalid_request for another client_id or a member that only the server sets, and
    invalid_client_metadata for a wrong client_secret.
    """
    if body.get("client_id") != application.uid:
        raise InvalidRequestError("client_id does not match this registration.")
    for name in _SERVER_MEMBERS:
        if name in body:
            raise InvalidRequestError(f"{name} cannot be set by clients.")
    secret = body.get("client_secret")
    if secret is not None and not _is_client_secret(application, secret, context):
        raise InvalidClientMetadataError("client_secret does not match this registration.")


def _is_client_secret(application: Application, secret: object, context: OAuthContext) -> bool:
    digests = context.session.scalars(
        select(ApplicationSecret.digest).where(
            ApplicationSecret.application_id == application.id,
            build_live_secret_condition(context.now),
        )
    ).all()
    return isinstance(secret, str) and context.keyring.matches_any_digest(secret, digests)


def delete_registration(
    registration: PresentedRegistration, *, context: OAuthContext
) -> OAuthResponse:
    """Delete a client with its codes, tokens and consents (RFC 7592 section 2.3)."""
    application = _get_application(registration, context)
    _record_event(EventKind.APPLICATION_REMOVED, application, context)
    mine = Application.id == application.id
    applications.delete_matching_applications(mine, session=context.session)
    return OAuthResponse(status=204, headers=OAUTH_NO_STORE_HEADERS)


def _record_event(
    kind: EventKind, application: Application, context: OAuthContext, **more: str
) -> None:
    context.record_event(
        kind,
        application,
        user_id=application.owner_id,
        details={"application_id": application.uid, "by": "the client itself", **more},
    )


def _build_response(
    status: int,
    application: Application,
    token: str,
    context: OAuthContext,
    *,
    secret: str | None = None,
) -> OAuthResponse:
    """Return the client information response (RFC 7591 section 3.2.1, RFC 7592 section 3)."""
    new_secret = {"client_secret": secret, "client_secret_expires_at": 0} if secret else {}
    body = {
        "client_id": application.uid,
        "client_id_issued_at": _to_epoch_seconds(application.created_at),
        **new_secret,
        "registration_access_token": token,
        "registration_client_uri": f"{context.policy.issuer}{REGISTRATION_PATH}/{application.uid}",
        **_describe_metadata(application),
    }
    return OAuthResponse(status=status, body=body, headers=OAUTH_NO_STORE_HEADERS)


def _describe_metadata(application: Application) -> dict[str, object]:
    """Return the current metadata, including changes that were made on web pages."""
    own_words = dict(application.client_metadata or {})
    has_secret = own_words.get("token_endpoint_auth_method") != ClientAuthMethod.NONE
    if has_secret != application.confidential:  # The owner has changed the client type on a page.
        method = ClientAuthMethod.BASIC if application.confidential else ClientAuthMethod.NONE
        own_words["token_endpoint_auth_method"] = method.value
    return {
        "client_name": application.name,
        "redirect_uris": application.redirect_uris,
        "scope": application.scopes,
        "dpop_bound_access_tokens": application.require_dpop,
        **_describe_logout(application),
        **({"jwks": application.jwks} if application.jwks else {}),
        **own_words,
    }


def _describe_logout(application: Application) -> dict[str, object]:
    uri = application.backchannel_logout_uri
    if uri is None:
        return {}
    return {"backchannel_logout_uri": uri, "backchannel_logout_session_required": True}


def _to_epoch_seconds(moment: datetime) -> int:
    return int(moment.timestamp())
