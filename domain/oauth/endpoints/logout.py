"""RP-Initiated Logout (OpenID Connect RP-Initiated Logout 1.0)."""

from dataclasses import dataclass
from enum import Enum

from authlib.oauth2.rfc6749 import InvalidRequestError
from sqlalchemy.orm import Session

from domain.oauth.clients.applications import find_by_uid, is_trusted
from domain.oauth.clients.redirect_uris import is_registered, with_parameters
from domain.oauth.grants.registry import PARAMETERS
from domain.oauth.openid.id_tokens import Audience, InvalidHintError, read_hint
from domain.oauth.protocol import OAuthResponse, ProtocolRequest
from models import Application


class LogoutStep(Enum):
    """The next step of a logout request."""

    SIGN_OUT = "sign out"
    ASK = "ask"
    REDIRECT = "redirect"
    SHOW_DONE = "show done"


@dataclass(frozen=True, kw_only=True)
class LogoutRequest:
    """A validated logout request."""

    #: The user of a valid id_token_hint; None without one.
    user_id: int | None
    application_name: str | None
    #: Registered by the application.
    redirect_uri: str | None
    state: str | None
    #: Whether an administrator trusts the application; otherwise any user may have made it.
    is_trusted: bool = False


def check_logout(request: ProtocolRequest, *, issuer: str, session: Session) -> LogoutRequest:
    """Check every parameter (sections 2 and 3), or raise invalid_request for a page to show."""
    request.refuse_repeated_parameters(PARAMETERS)
    hinted = _hinted(request.value("id_token_hint"), issuer, session)
    uid = _uid(request.value("client_id"), hinted)
    application = find_by_uid(uid, session=session) if uid else None
    if uid and application is None:
        raise InvalidRequestError("No application with this client_id is registered.")
    return LogoutRequest(
        user_id=hinted.user_id if hinted else None,
        application_name=application.name if application else None,
        is_trusted=application is not None and is_trusted(application),
        redirect_uri=_redirect_uri(request.value("post_logout_redirect_uri"), application),
        state=request.value("state"),
    )


def _hinted(hint: str | None, issuer: str, session: Session) -> Audience | None:
    if hint is None:
        return None
    try:
        return read_hint(hint, issuer=issuer, session=session)
    except InvalidHintError:
        raise InvalidRequestError("The id_token_hint is not an ID token of this service.") from None


def _uid(client_id: str | None, hinted: Audience | None) -> str | None:
    if client_id is not None and "\x00" in client_id:
        raise InvalidRequestError("No application with this client_id is registered.")
    if hinted and client_id not in {None, hinted.application_uid}:
        raise InvalidRequestError("The id_token_hint was issued to another application.")
    return hinted.application_uid if hinted else client_id


def _redirect_uri(uri: str | None, application: Application | None) -> str | None:
    """Return the post-logout redirect URI, which must be registered."""
    if uri is None:
        return None
    if application is None:
        raise InvalidRequestError("post_logout_redirect_uri needs client_id or id_token_hint.")
    if not is_registered(uri, application.redirect_uris):
        raise InvalidRequestError(
            "The post_logout_redirect_uri is not one of those that the application registered."
        )
    return uri


def next_step(asked: LogoutRequest, *, user_id: int | None) -> LogoutStep:
    """Return the next step; `user_id` is the signed-in user, if any.

    Without a hint about the very user that is signed in, the user has to be asked (section 2):
    any page could send the browser here. For the same reason nobody is sent on without a hint
    or a click. Where nobody is signed in, a hint proves nothing about this browser: whoever makes
    an application has ID tokens for it. So only trusted ones are gone on to.
    """
    if user_id is not None:
        return LogoutStep.SIGN_OUT if asked.user_id == user_id else LogoutStep.ASK
    is_hinted = asked.user_id is not None and asked.redirect_uri is not None
    return LogoutStep.REDIRECT if is_hinted and asked.is_trusted else LogoutStep.SHOW_DONE


def return_url(asked: LogoutRequest) -> str | None:
    """Return the URL to continue at, with the state of the request (section 3)."""
    if asked.redirect_uri is None or asked.state is None:
        return asked.redirect_uri
    return with_parameters(asked.redirect_uri, [("state", asked.state)])


def redirect_to(location: str) -> OAuthResponse:
    """Return a redirect."""
    return OAuthResponse(status=302, headers=(("Location", location),))
