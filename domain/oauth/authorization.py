"""Decides whether an authorization request needs a sign-in, consent, or neither.

Implements RFC 6749 section 4.1.1, and `prompt` and `max_age` of OpenID Connect Core section
3.1.2.1.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from authlib.oauth2.rfc6749 import (
    AccessDeniedError,
    InvalidRequestError,
    InvalidScopeError,
    OAuth2Error,
)
from sqlalchemy import or_, select

from domain.access.scopes import ADMIN_MODE, filter_grantable_scopes
from domain.audit.events import EventKind
from domain.core.clock import CLOCK_TOLERANCE
from domain.oauth.clients.allowed_groups import is_in_allowed_groups
from domain.oauth.clients.applications import is_trusted
from domain.oauth.clients.authentication import Client
from domain.oauth.consent.approvals import (
    Approver,
    ConsentPrompt,
    build_consent_prompt,
    store_consent,
)
from domain.oauth.consent.pushed_requests import consume_pushed_request
from domain.oauth.grants.authorization_code import DENIED_BY_USER, AuthorizationCodeGrant
from domain.oauth.openid.id_tokens import InvalidHintError, parse_id_token_hint
from domain.oauth.protocol import OAuthResponse, ProtocolRequest
from domain.oauth.rejection_reasons import (
    NOT_IN_ALLOWED_GROUPS,
    NOT_PUSHED,
    USER_OUTSIDE_GROUPS,
    RejectedParameterError,
    Rejection,
)
from domain.oauth.server import AuthorizationServer
from models import Application, Authorization

#: Error for requests that were not pushed, although pushing is required.
_NOT_PUSHED_REJECTION = Rejection(
    sentence="Authorization requests must be pushed first.", reason=NOT_PUSHED
)
_ANOTHER_USER_MESSAGE = "The signed-in user is not the user of the id_token_hint."
#: Values of `prompt` that require the consent page, which also lets users switch accounts.
_CONSENT_PROMPTS = frozenset({"consent", "select_account"})
#: Values of `prompt` that a new sign-in satisfies.
_SIGN_IN_PROMPTS = frozenset({"login", "select_account"})


class LoginRequiredError(OAuth2Error):
    """Error for a prompt=none request that requires a sign-in (OpenID Connect 3.1.2.6)."""

    error = "login_required"
    description = "The user is not signed in, or did not sign in recently enough."


class ConsentRequiredError(OAuth2Error):
    """Error for a prompt=none request that requires consent (OpenID Connect 3.1.2.6)."""

    error = "consent_required"
    description = "The user has not granted all scopes that the application requests."


class ConsentRequiredEachTimeError(ConsentRequiredError):
    """Error for a public client, which requires consent each time (RFC 8252 section 8.6)."""

    description = (
        "Public applications require the consent of the user each time. Only confidential and "
        "trusted applications can use prompt=none."
    )


class NotInAllowedGroupsError(AccessDeniedError):
    """Error for a user who is not in any of the groups that may use the application."""

    reason = USER_OUTSIDE_GROUPS


#: Errors that are not recorded. Clients send prompt=none to check whether a user is signed in, and
#: expect these errors.
_UNRECORDED_ERRORS = (LoginRequiredError, ConsentRequiredError)


class AuthorizationStep(Enum):
    """The next step of an authorization request, such as a sign-in or the consent page."""

    SIGN_IN = "sign in"
    SIGN_IN_AGAIN = "sign in again"
    CONSENT = "consent"
    ISSUE_CODE = "issue a code"


@dataclass(frozen=True, kw_only=True)
class CheckedAuthorizationRequest:
    """A validated authorization request."""

    grant: AuthorizationCodeGrant
    request: ProtocolRequest
    redirect_uri: str

    @property
    def application_id(self) -> int:
        """The ID of the application that sent the request."""
        return _get_application(self).id

    @property
    def scopes(self) -> str:
        """The requested scopes, in the order of `SCOPES`."""
        return str(self.request.scope)

    @property
    def prompts(self) -> frozenset[str]:
        """The values of the `prompt` parameter."""
        return frozenset((self.request.get_parameter("prompt") or "").split())

    @property
    def may_require_new_sign_in(self) -> bool:
        """True if `prompt` or `max_age` may require a new sign-in."""
        return (
            bool(self.prompts & _SIGN_IN_PROMPTS)
            or self.request.get_parameter("max_age") is not None
        )

    def needs_new_sign_in(self, approval: Approver, now: datetime) -> bool:
        """Return whether the client requires a new sign-in (`prompt=login`, `max_age`)."""
        max_age = self.request.get_parameter("max_age")
        if self._has_signed_in_for_request(approval):
            return False
        if "login" in self.prompts or max_age == "0":
            return True
        return max_age is not None and (now - approval.auth_time).total_seconds() > int(max_age)

    def requires_prompt(self, approval: Approver) -> bool:
        """Return whether the client requires the consent page even for approved scopes."""
        done = _SIGN_IN_PROMPTS if self._has_signed_in_for_request(approval) else frozenset()
        return bool((self.prompts & _CONSENT_PROMPTS) - done)

    def remove_ungrantable_scopes(self, approval: Approver) -> None:
        """Remove the requested scopes that the user cannot grant.

        Raise InvalidScopeError if no scope remains.
        """
        may = approval.may_administer
        self.request.scope = filter_grantable_scopes(self.scopes, may_administer=may)
        if not self.request.scope:
            raise InvalidScopeError(
                "The user has not granted the scope.", redirect_uri=self.redirect_uri
            )

    def _has_signed_in_for_request(self, approval: Approver) -> bool:
        """Return whether the user has signed in since the client first sent the request.

        Such a sign-in also satisfies `prompt=select_account`. Different hosts may have recorded the
        sign-in and the request. Since their clocks may differ, a new sign-in may be recorded as
        slightly older than the request.
        """
        first, pushed_at = self.request.first_asked, self.request.pushed_at
        if first is not None and approval.sign_in_id != first.sign_in_id:
            return approval.auth_time >= first.at - CLOCK_TOLERANCE
        return pushed_at is not None and approval.auth_time >= pushed_at


def _get_application(checked_request: CheckedAuthorizationRequest) -> Application:
    application: Application = checked_request.request.client.application
    return application


def can_redirect_error(request: ProtocolRequest, *, is_signed_in: bool) -> bool:
    """Return whether the browser may be redirected with an error (RFC 9700 section 4.11.2).

    Any user can register an application. Without this check, a link to this service could redirect
    its visitors to the application's redirect URI. Users therefore sign in first, unless an
    administrator trusts the application.
    """
    return is_signed_in or is_trusted(request.client.application)


def record_rejected_request(
    request: ProtocolRequest, error: OAuth2Error, server: AuthorizationServer
) -> None:
    """Record a rejected request for the owner of the application.

    The errors that clients expect for prompt=none are not recorded.
    """
    if type(error) not in _UNRECORDED_ERRORS:
        server.record_rejected_authorization(request, error)


def check_authorization_request(
    request: ProtocolRequest, server: AuthorizationServer
) -> CheckedAuthorizationRequest:
    """Return the validated authorization request.

    Raise OAuth2Error if the request is invalid. The error has a redirect_uri if the browser may be
    redirected with it.
    """
    grant = server.get_authorization_grant(request)
    redirect_uri = grant.validate_authorization_request()
    if request.pushed is None and _is_push_required(grant.request.client, server):
        raise RejectedParameterError(_NOT_PUSHED_REJECTION, redirect_uri=redirect_uri)
    return CheckedAuthorizationRequest(grant=grant, request=request, redirect_uri=redirect_uri)


def _is_push_required(client: Client, server: AuthorizationServer) -> bool:
    """Return whether the instance or the client requires pushed requests (RFC 9126 section 5)."""
    own_words = client.application.client_metadata or {}
    is_own_wish = bool(own_words.get("require_pushed_authorization_requests"))
    return server.context.policy.pushed_requests.is_required or is_own_wish


def get_consent_prompt(
    checked_request: CheckedAuthorizationRequest, *, user_id: int, server: AuthorizationServer
) -> ConsentPrompt:
    """Return the new scopes and the approved scopes of a request, for the consent page."""
    return build_consent_prompt(
        _get_application(checked_request),
        checked_request.scopes,
        user_id=user_id,
        session=server.context.session,
    )


def find_next_step(
    checked_request: CheckedAuthorizationRequest,
    approval: Approver | None,
    *,
    server: AuthorizationServer,
) -> AuthorizationStep:
    """Return the next step of an authorization request.

    `approval` is the signed-in user, or None if no user is signed in. Raise LoginRequiredError or
    ConsentRequiredError if prompt=none forbids a page.
    """
    is_silent = "none" in checked_request.prompts
    if approval is None:
        return _check_interaction_allowed(
            AuthorizationStep.SIGN_IN, LoginRequiredError, checked_request, is_silent=is_silent
        )
    checked_request.remove_ungrantable_scopes(approval)
    is_too_old = approval.has_old_proof and ADMIN_MODE in checked_request.scopes.split()
    if is_too_old or checked_request.needs_new_sign_in(approval, server.context.now):
        return _check_interaction_allowed(
            AuthorizationStep.SIGN_IN_AGAIN,
            LoginRequiredError,
            checked_request,
            is_silent=is_silent,
        )
    _check_id_token_hint(checked_request, approval.user_id, server)
    _check_group_membership(checked_request, approval, server)
    prompt = get_consent_prompt(checked_request, user_id=approval.user_id, server=server)
    if prompt.is_needed or checked_request.requires_prompt(approval):
        keeps_secret = _get_application(checked_request).confidential
        error = ConsentRequiredError if keeps_secret else ConsentRequiredEachTimeError
        return _check_interaction_allowed(
            AuthorizationStep.CONSENT, error, checked_request, is_silent=is_silent
        )
    return AuthorizationStep.ISSUE_CODE


def _check_id_token_hint(
    checked_request: CheckedAuthorizationRequest, user_id: int, server: AuthorizationServer
) -> None:
    """Check that id_token_hint identifies the signed-in user (OpenID Connect 3.1.2.1).

    Raise login_required if the hint identifies another user, and invalid_request if the hint is
    invalid.
    """
    hint = checked_request.request.get_parameter("id_token_hint")
    if hint is None:
        return
    context = server.context
    try:
        hinted = parse_id_token_hint(hint, issuer=context.policy.issuer, session=context.session)
    except InvalidHintError:
        raise InvalidRequestError(
            "The id_token_hint is not an ID token of this service.",
            redirect_uri=checked_request.redirect_uri,
        ) from None
    if hinted.user_id != user_id:
        raise LoginRequiredError(_ANOTHER_USER_MESSAGE, redirect_uri=checked_request.redirect_uri)


def _check_group_membership(
    checked_request: CheckedAuthorizationRequest, approval: Approver, server: AuthorizationServer
) -> None:
    """Check that the user may use the application.

    Raise access_denied if the user is not in any of the allowed groups.
    """
    groups = _get_application(checked_request).allowed_group_ids
    if not is_in_allowed_groups(groups, approval.user_id, server.context):
        raise NotInAllowedGroupsError(
            NOT_IN_ALLOWED_GROUPS.sentence, redirect_uri=checked_request.redirect_uri
        )


def _check_interaction_allowed(
    step: AuthorizationStep,
    error: type[OAuth2Error],
    checked_request: CheckedAuthorizationRequest,
    *,
    is_silent: bool,
) -> AuthorizationStep:
    if is_silent:
        raise error(redirect_uri=checked_request.redirect_uri)
    return step


def accept_request(
    checked_request: CheckedAuthorizationRequest, approval: Approver, *, server: AuthorizationServer
) -> OAuthResponse:
    """Store the user's consent, and redirect the browser to the client with a code."""
    context = server.context
    checked_request.remove_ungrantable_scopes(approval)
    _check_group_membership(checked_request, approval, server)
    consume_pushed_request(checked_request.request, context)
    store_consent(
        _get_application(checked_request),
        checked_request.scopes,
        user_id=approval.user_id,
        session=context.session,
        now=context.now,
    )
    _record_decision(EventKind.CONSENT_GIVEN, checked_request, approval, server)
    return _redirect_to_client(checked_request, approval, server)


def deny_request(
    checked_request: CheckedAuthorizationRequest, approval: Approver, *, server: AuthorizationServer
) -> OAuthResponse:
    """Redirect the browser to the client with access_denied, since the user denied the request."""
    consume_pushed_request(checked_request.request, server.context)
    _record_decision(EventKind.CONSENT_REFUSED, checked_request, approval, server)
    return _redirect_to_client(checked_request, None, server)


def repeat_recorded_decision(
    request: ProtocolRequest, user_id: int, *, is_yes: bool, server: AuthorizationServer
) -> OAuthResponse | None:
    """Repeat the response to the first submission of a consent form.

    Return None if the first decision was different, or if the code was redeemed, was revoked or has
    expired.
    """
    grant, context = server.get_authorization_grant(request), server.context
    try:
        redirect_uri = grant.check_client_and_redirect_uri()
    except OAuth2Error:  # The application has changed in the meantime.
        return None
    codes = {
        digest: code
        for code in grant.derive_codes(request.decision or "")
        for digest in context.keyring.compute_digests(code)
    }
    first = context.session.execute(
        select(
            Authorization.code_digest,
            Authorization.user_id,
            or_(
                Authorization.code_used_at.is_not(None),
                Authorization.revoked_at.is_not(None),
                Authorization.code_expires_at <= context.now,
            ).label("is_over"),
        ).where(Authorization.code_digest.in_(codes))
    ).first()
    if first is None:
        denied = AccessDeniedError(DENIED_BY_USER, redirect_uri=redirect_uri)
        return None if is_yes else server.handle_error_response(request, denied)
    if first.user_id != user_id or first.is_over or first.code_digest is None:
        return None
    location = grant.build_code_redirect_url(redirect_uri, codes[first.code_digest])
    return OAuthResponse(status=302, headers=(("Location", location),))


def _record_decision(
    kind: EventKind,
    checked_request: CheckedAuthorizationRequest,
    approval: Approver,
    server: AuthorizationServer,
) -> None:
    application = _get_application(checked_request)
    server.context.record_event(
        kind,
        application,
        user_id=approval.user_id,
        details={"application_id": application.uid, "scopes": checked_request.scopes},
    )


def finish_without_consent(
    checked_request: CheckedAuthorizationRequest,
    approval: Approver | None,
    *,
    server: AuthorizationServer,
) -> OAuthResponse:
    """Redirect the browser to the client with a code, without a consent page."""
    consume_pushed_request(checked_request.request, server.context)
    return _redirect_to_client(checked_request, approval, server)


def _redirect_to_client(
    checked_request: CheckedAuthorizationRequest,
    approval: Approver | None,
    server: AuthorizationServer,
) -> OAuthResponse:
    """Redirect the browser to the client.

    The redirect contains a code if `approval` is given, and access_denied otherwise.
    """
    response: OAuthResponse = server.create_authorization_response(
        checked_request.request, approval, checked_request.grant
    )
    return response
