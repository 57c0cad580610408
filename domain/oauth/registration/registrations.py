"""Dynamic client registration (RFC 7591) and its management (RFC 7592)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7591 import InvalidClientMetadataError
from sqlalchemy import select

from domain.accounts.users import ACTIVE, HUMAN
from domain.audit.events import Event, EventKind
from domain.errors import ForbiddenError
from domain.keyring import CredentialType
from domain.oauth.clients import applications
from domain.oauth.clients.authentication import Method
from domain.oauth.clients.secrets import is_live, renew_secret
from domain.oauth.context import OAuthContext
from domain.oauth.grants.registry import registrable_grant_types
from domain.oauth.presented_tokens.bearer import BearerRefusedError, Refusal
from domain.oauth.protocol import NO_STORE, OAuthResponse
from domain.oauth.registration.metadata import ClientMetadata, read_metadata
from models import Application, ApplicationSecret, User

PATH = "/oauth/register"
#: Members that only the server sets; clients must not send them (RFC 7592 section 2.2).
_OURS = (
    "registration_access_token",
    "registration_client_uri",
    "client_secret_expires_at",
    "client_id_issued_at",
)
#: What is no metadata of the client, and stays as its owner has set it.
_OF_THE_OWNER = ("require_pkce", "refresh_for_devices", "omit_iss")


def register(
    body: Mapping[str, object], registrar_id: int | None, *, context: OAuthContext
) -> OAuthResponse:
    """Register a client and return its information response (RFC 7591 section 3.2.1).

    `registrar_id` is whose token came along; without one the instance itself keeps the client.
    """
    wanted = _read(body, context)
    token = context.keyring.issue(CredentialType.REGISTRATION)
    application, secret = applications.store_application(
        wanted.details,
        owner_id=registrar_id or _instance_owner_id(context),
        session=context.session,
        keyring=context.keyring,
        now=context.now,
    )
    application.is_instance_wide = registrar_id is None
    application.registration_digest = token.digest
    application.client_metadata = dict(wanted.own_words)
    _record(EventKind.APPLICATION_REGISTERED, application, context)
    shown = secret if application.confidential else None
    return _response(201, application, token.clear, context, secret=shown)


def _read(body: Mapping[str, object], context: OAuthContext) -> ClientMetadata:
    policy = context.policy
    return read_metadata(
        body,
        offered=registrable_grant_types(policy),
        require_https=policy.require_https_redirect_uris,
    )


def _instance_owner_id(context: OAuthContext) -> int:
    """Return the owner of a client that registered without a token: the first administrator."""
    found = context.session.scalar(
        select(User.id)
        .where(User.is_admin, User.state == ACTIVE, User.kind == HUMAN)
        .order_by(User.id)
        .limit(1)
    )
    if found is None:
        message = "This instance has no administrator, so clients cannot register."
        raise ForbiddenError(message)
    return found


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A registered client and the registration access token that it presented."""

    application_id: int
    token: str = field(repr=False)


def get_registration(uid: str, token: str | None, *, context: OAuthContext) -> Registration:
    """Return the registration of a registration access token (RFC 7592 section 2).

    Raises BearerRefusedError for any other, and for a client that is gone.
    """
    if token is None:
        raise BearerRefusedError(Refusal.MISSING)
    digests = context.keyring.credential_digests(token, CredentialType.REGISTRATION)
    application = context.session.scalar(
        select(Application).where(Application.registration_digest.in_(digests))
    )
    if application is None or application.uid != uid:
        raise BearerRefusedError(Refusal.UNKNOWN)
    if application.registration_digest != digests[0]:  # of an older secret key
        application.registration_digest, application.keyed_at = digests[0], context.now
    return Registration(application_id=application.id, token=token)


def _application_of(registration: Registration, context: OAuthContext) -> Application:
    return context.session.get_one(Application, registration.application_id)


def read(registration: Registration, *, context: OAuthContext) -> OAuthResponse:
    """Return the registration as it is, without the secret (RFC 7592 section 2.1)."""
    return _response(200, _application_of(registration, context), registration.token, context)


def change(
    registration: Registration, body: Mapping[str, object], *, context: OAuthContext
) -> OAuthResponse:
    """Replace the metadata of a client (RFC 7592 section 2.2).

    What is no metadata of its own stays as the client's owner has set it.
    """
    application = _application_of(registration, context)
    _check_identity(application, body, context)
    wanted = _read(body, context)
    had_secret = application.confidential
    https = context.policy.require_https_redirect_uris
    kept = {name: getattr(application, name) for name in _OF_THE_OWNER}
    details = wanted.details.model_copy(update=kept)
    has_lost_trust = applications.change(application, details, require_https=https)
    application.client_metadata = dict(wanted.own_words)
    more = applications.ENDED_TRUST if has_lost_trust else {}
    _record(EventKind.APPLICATION_CHANGED, application, context, **more)
    secret = None
    if application.confidential and not had_secret:
        keyring, now = context.keyring, context.now
        secret = renew_secret(application.id, session=context.session, keyring=keyring, now=now)
    return _response(200, application, registration.token, context, secret=secret)


def _check_identity(
    application: Application, body: Mapping[str, object], context: OAuthContext
) -> None:
    """Check the client's own client_id and client_secret in a replacement."""
    if body.get("client_id") != application.uid:
        raise InvalidRequestError("client_id does not match this registration.")
    for name in _OURS:
        if name in body:
            raise InvalidRequestError(f"{name} cannot be set by clients.")
    secret = body.get("client_secret")
    if secret is not None and not _is_secret_of(application, secret, context):
        raise InvalidClientMetadataError("client_secret does not match this registration.")


def _is_secret_of(application: Application, secret: object, context: OAuthContext) -> bool:
    digests = context.session.scalars(
        select(ApplicationSecret.digest).where(
            ApplicationSecret.application_id == application.id, is_live(context.now)
        )
    ).all()
    return isinstance(secret, str) and context.keyring.matches(secret, digests)


def remove(registration: Registration, *, context: OAuthContext) -> OAuthResponse:
    """Delete a client with its codes, tokens and consents (RFC 7592 section 2.3)."""
    application = _application_of(registration, context)
    _record(EventKind.APPLICATION_REMOVED, application, context)
    applications.remove(application.id, session=context.session)
    return OAuthResponse(status=204, headers=NO_STORE)


def _record(kind: EventKind, application: Application, context: OAuthContext, **more: str) -> None:
    context.record_event(
        Event(
            kind=kind,
            user_id=application.owner_id,
            subject=application.name,
            details={"application_id": application.uid, "by": "the client itself", **more},
        )
    )


def _response(
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
        "client_id_issued_at": _seconds(application.created_at),
        **new_secret,
        "registration_access_token": token,
        "registration_client_uri": f"{context.policy.issuer}{PATH}/{application.uid}",
        **_described(application),
    }
    return OAuthResponse(status=status, body=body, headers=NO_STORE)


def _described(application: Application) -> dict[str, object]:
    """Return all metadata in force, changed by the client or on a page."""
    own_words = dict(application.client_metadata or {})
    has_secret = own_words.get("token_endpoint_auth_method") != Method.NONE
    if has_secret != application.confidential:  # its owner has changed that on a page
        method = Method.BASIC if application.confidential else Method.NONE
        own_words["token_endpoint_auth_method"] = method.value
    return {
        "client_name": application.name,
        "redirect_uris": application.redirect_uris,
        "scope": application.scopes,
        "dpop_bound_access_tokens": application.require_dpop,
        **own_words,
    }


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
