"""Reasons for rejected requests, with a message for the client and advice for the owner.

The owner of the application may learn more than the client, which may be an attacker. For example,
only the owner learns that a secret was wrong, and not just that authentication failed. Reasons that
only one grant has are declared in that grant's module.
"""

from dataclasses import dataclass

from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749 import (
    InvalidGrantError,
    InvalidRequestError,
    UnauthorizedClientError,
)


@dataclass(frozen=True, kw_only=True)
class RejectionReason:
    """A reason for rejected requests, with a title and advice for the owner of the application."""

    #: Stored name of the reason; requests with the same name are counted together.
    name: str
    title: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """The text of an error description, with the reason for the rejection."""

    sentence: str
    reason: RejectionReason


class _RejectionError(OAuth2Error):
    """Base class for OAuth errors with a `RejectionReason`."""

    def __init__(self, refusal: Rejection, *, redirect_uri: str | None = None) -> None:
        """Set the error description, and keep the reason for the owner of the application."""
        super().__init__(refusal.sentence, redirect_uri=redirect_uri)
        self.reason = refusal.reason


class RejectedGrantError(_RejectionError, InvalidGrantError):
    """The invalid_grant error, with a reason for the owner of the application."""


class RejectedParameterError(_RejectionError, InvalidRequestError):
    """The invalid_request error, with a reason for the owner of the application."""


class RejectedClientError(_RejectionError, UnauthorizedClientError):
    """The unauthorized_client error, with a reason for the owner of the application."""


CONSENT_EACH_TIME = RejectionReason(
    name="asked_each_time",
    title="Consent required",
    advice=(
        "Public applications require consent each time, so prompt=none always fails. Omit prompt, "
        "and use the refresh token to renew access."
    ),
)
DENIED_BY_OWNER = RejectionReason(
    name="denied",
    title="Denied by the user",
    advice="The request is valid. Do not repeat it unless the user asks for it.",
)
UNSUPPORTED_GRANT_TYPE = RejectionReason(
    name="grant_type",
    title="Unsupported grant type",
    advice="Use a grant type that grant_types_supported in the server metadata lists.",
)
MISSING_SECRET = RejectionReason(
    name="no_secret",
    title="No client secret",
    advice=(
        "Token requests of confidential applications require client_secret, in the body or as "
        "the password of Basic authentication. Browser, mobile and desktop apps cannot keep a "
        "secret: turn “Confidential” off."
    ),
)
GRANT_NOT_PERMITTED = RejectionReason(
    name="not_allowed_grant",
    title="Grant type not allowed",
    advice="An administrator must allow the grant type on the application's page.",
)
NOT_PUSHED = RejectionReason(
    name="not_pushed",
    title="Request not pushed",
    advice=(
        "Send the parameters to the pushed authorization request endpoint first. Then redirect "
        "the browser with client_id and the request_uri of the response."
    ),
)
GRANT_NOT_REGISTERED = RejectionReason(
    name="not_registered_grant",
    title="Grant type not registered",
    advice="The application registered itself without this grant type. Add it to grant_types.",
)
OTHER_REASON = RejectionReason(
    name="other", title="Rejected", advice="See the explanation of the error code."
)
REDIRECT_URI_MISMATCH = RejectionReason(
    name="other_redirect_uri",
    title="Redirect URI mismatch",
    advice=(
        "Send exactly the same redirect_uri in the token request as in the authorization request."
    ),
)
USER_OUTSIDE_GROUPS = RejectionReason(
    name="outside_groups",
    title="User not in an allowed group",
    advice=(
        "Only members of the allowed groups can use the application. Add the user to one of the "
        "groups, or change the allowed groups."
    ),
)
INVALID_PROOF = RejectionReason(
    name="proof",
    title="DPoP proof rejected",
    advice="Create a new proof for each request, with its URL and the correct time.",
)
MALFORMED_REQUEST = RejectionReason(
    name="request",
    title="Malformed request",
    advice=(
        "The response names the parameter. Send each parameter once, as a form or a JSON object."
    ),
)
INVALID_REQUEST_URI = RejectionReason(
    name="request_uri",
    title="Pushed request unknown or expired",
    advice="Push a new request for each authorization, and redirect the browser immediately.",
)
UNSUPPORTED_RESPONSE_TYPE = RejectionReason(
    name="response_type",
    title="Unsupported response type",
    advice="Send response_type=code, and use PKCE instead of the implicit flow.",
)
SCOPE_NOT_ALLOWED = RejectionReason(
    name="scope",
    title="Scope not allowed",
    advice="Add the scope to the application, or request fewer scopes.",
)
SECRET_OF_PUBLIC_APPLICATION = RejectionReason(
    name="secret_of_public",
    title="Client secret sent by a public application",
    advice=(
        "The secret does not belong to this application. Public applications use PKCE: omit "
        "client_secret, or turn “Confidential” on and renew the secret."
    ),
)
TOO_MANY_GUESSES = RejectionReason(
    name="too_many_guesses",
    title="Too many wrong passwords",
    advice=(
        "Wait for the number of seconds in the Retry-After header, then ask for the password again."
    ),
)
UNREGISTERED_REDIRECT_URI = RejectionReason(
    name="unregistered_redirect_uri",
    title="Redirect URI not registered",
    advice=(
        "The redirect URI must exactly match a redirect URI of the application. Only the port of "
        "127.0.0.1 and [::1] may differ. Register the URI, or send a registered URI."
    ),
)
WRONG_ASSERTION = RejectionReason(
    name="wrong_assertion",
    title="Client assertion rejected",
    advice=(
        "Sign the assertion with a key whose public key is registered for the application. Set "
        "aud to the issuer, iss and sub to the client_id, jti to a new value, and exp to a time "
        "within the next hour."
    ),
)
WRONG_SECRET = RejectionReason(
    name="wrong_secret",
    title="Wrong client secret",
    advice=(
        "Check the secret in the configuration of the client, also for spaces and line breaks. "
        "If the secret is lost or was renewed, renew it and copy the new secret."
    ),
)
REMOVED_SCOPES = RejectionReason(
    name="removed_scopes",
    title="Scopes removed from the application",
    advice="Add the scopes to the application, or send the user through authorization again.",
)
ALL_SCOPES_REMOVED = Rejection(
    sentence="The application is no longer registered for any scope that the user granted.",
    reason=REMOVED_SCOPES,
)

#: Error of the token endpoint for a user outside the allowed groups.
NOT_IN_ALLOWED_GROUPS = Rejection(
    sentence="The user is in none of the groups that can use this application.",
    reason=USER_OUTSIDE_GROUPS,
)

#: Reasons for errors that all grants and endpoints can return.
SHARED_REASONS = tuple(each for each in [*globals().values()] if isinstance(each, RejectionReason))
#: Default reasons by error code, for errors without a reason of their own.
REASONS_BY_ERROR = {
    "access_denied": DENIED_BY_OWNER,
    "consent_required": CONSENT_EACH_TIME,
    "invalid_dpop_proof": INVALID_PROOF,
    "invalid_request": MALFORMED_REQUEST,
    "invalid_request_uri": INVALID_REQUEST_URI,
    "request_uri_not_supported": INVALID_REQUEST_URI,
    "invalid_scope": SCOPE_NOT_ALLOWED,
    "temporarily_unavailable": TOO_MANY_GUESSES,
    "unauthorized_client": GRANT_NOT_REGISTERED,
    "unsupported_grant_type": UNSUPPORTED_GRANT_TYPE,
    "unsupported_response_type": UNSUPPORTED_RESPONSE_TYPE,
}
