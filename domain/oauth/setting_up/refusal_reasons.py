"""Why requests of clients are refused, and what the owner of an application can do about it.

The owner may learn more than the client, which may be a thief: that a secret was wrong, for
example, and not only that authentication failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.oauth import pkce
from domain.oauth.consent import pushed_requests
from domain.oauth.context import ClientProblem, RefusedRequest
from domain.oauth.grants import authorization_code, device_code, password, refresh_token


class RefusalReason(StrEnum):
    """A reason, as it is stored; requests with the same one are counted together."""

    NO_SECRET = "no_secret"  # noqa: S105 - the reason
    WRONG_SECRET = "wrong_secret"  # noqa: S105 - the reason
    SECRET_OF_PUBLIC = "secret_of_public"  # noqa: S105 - the reason
    UNKNOWN_CODE = "unknown_code"
    EXPIRED_CODE = "expired_code"
    USED_CODE = "used_code"
    OTHER_REDIRECT_URI = "other_redirect_uri"
    WRONG_VERIFIER = "wrong_verifier"
    MISSING_VERIFIER = "missing_verifier"
    UNEXPECTED_VERIFIER = "unexpected_verifier"
    UNKNOWN_REFRESH_TOKEN = "unknown_refresh_token"  # noqa: S105 - the reason
    REUSED_REFRESH_TOKEN = "reused_refresh_token"  # noqa: S105 - the reason
    REVOKED_REFRESH_TOKEN = "revoked_refresh_token"  # noqa: S105 - the reason
    UNKNOWN_DEVICE_CODE = "unknown_device_code"
    USED_DEVICE_CODE = "used_device_code"
    EXPIRED_DEVICE_CODE = "expired_device_code"
    DENIED = "denied"
    WRONG_PASSWORD = "wrong_password"  # noqa: S105 - the reason
    TOO_MANY_GUESSES = "too_many_guesses"
    SCOPE = "scope"
    GRANT_TYPE = "grant_type"
    NOT_REGISTERED_GRANT = "not_registered_grant"
    PROOF = "proof"
    UNREGISTERED_REDIRECT_URI = "unregistered_redirect_uri"
    RESPONSE_TYPE = "response_type"
    MISSING_CHALLENGE = "missing_challenge"
    CHALLENGE_METHOD = "challenge_method"
    ASKED_EACH_TIME = "asked_each_time"
    NOT_PUSHED = "not_pushed"
    REQUEST_URI = "request_uri"
    REQUEST = "request"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class ReasonText:
    """A reason in words, and what to change."""

    title: str
    advice: str


_ONCE = "Redeem each code once, right after the browser brings it back."
TEXTS: Mapping[str, ReasonText] = {
    RefusalReason.NO_SECRET: ReasonText(
        title="No client secret",
        advice=(
            "The application is confidential, so its token requests need client_secret, in the "
            "body or as the password of Basic authentication. A browser, mobile or desktop app "
            "cannot keep one: turn “Confidential” off."
        ),
    ),
    RefusalReason.WRONG_SECRET: ReasonText(
        title="Wrong client secret",
        advice=(
            "Compare the secret in the configuration of the client, without spaces or line breaks. "
            "If it is lost, or was renewed, renew it and copy the new one."
        ),
    ),
    RefusalReason.SECRET_OF_PUBLIC: ReasonText(
        title="Client secret sent by a public application",
        advice=(
            "The secret is not one of this application's. Public applications use PKCE: leave "
            "client_secret out, or turn “Confidential” on and renew the secret."
        ),
    ),
    RefusalReason.UNKNOWN_CODE: ReasonText(
        title="Unknown authorization code",
        advice=(
            "The code is cut off, is from another installation, or was issued to another "
            f"client_id. {_ONCE}"
        ),
    ),
    RefusalReason.EXPIRED_CODE: ReasonText(
        title="Expired authorization code",
        advice=f"A code is valid for at most ten minutes. {_ONCE}",
    ),
    RefusalReason.USED_CODE: ReasonText(
        title="Authorization code used twice",
        advice=(
            f"{_ONCE} A second use ends the tokens of the first one, since one of the two "
            "may be a thief. Common causes: a reloaded callback page, or a retry after a timeout."
        ),
    ),
    RefusalReason.OTHER_REDIRECT_URI: ReasonText(
        title="Other redirect URI",
        advice=(
            "Send the same redirect_uri in the token request as in the authorization request, "
            "character by character."
        ),
    ),
    RefusalReason.WRONG_VERIFIER: ReasonText(
        title="Wrong code verifier",
        advice=(
            "code_challenge is the SHA-256 hash of code_verifier as base64url without padding. "
            "Keep the verifier of each request with its state: a second tab must not replace it."
        ),
    ),
    RefusalReason.MISSING_VERIFIER: ReasonText(
        title="No code verifier",
        advice="The authorization request had a code_challenge: send its code_verifier.",
    ),
    RefusalReason.UNEXPECTED_VERIFIER: ReasonText(
        title="Code verifier without a challenge",
        advice="Send code_challenge and code_challenge_method=S256 with the authorization request.",
    ),
    RefusalReason.UNKNOWN_REFRESH_TOKEN: ReasonText(
        title="Unknown refresh token",
        advice=(
            "It is cut off, was issued to another client_id, or ended long ago. Send the user "
            "through authorization again."
        ),
    ),
    RefusalReason.REUSED_REFRESH_TOKEN: ReasonText(
        title="Refresh token used twice",
        advice=(
            "Each refresh returns a new refresh token: store it, and let only one process or tab "
            "refresh at a time."
        ),
    ),
    RefusalReason.REVOKED_REFRESH_TOKEN: ReasonText(
        title="Revoked refresh token",
        advice=(
            "The user or an administrator ended the access. Send the user through authorization."
        ),
    ),
    RefusalReason.UNKNOWN_DEVICE_CODE: ReasonText(
        title="Unknown device code",
        advice="Poll with the device_code of the answer, not with the user_code.",
    ),
    RefusalReason.USED_DEVICE_CODE: ReasonText(
        title="Device code used twice",
        advice="Stop polling once the tokens have arrived.",
    ),
    RefusalReason.EXPIRED_DEVICE_CODE: ReasonText(
        title="Expired device code",
        advice="Request a new device code and show the new user code.",
    ),
    RefusalReason.DENIED: ReasonText(
        title="Denied by the user",
        advice="Nothing is wrong with the request. Do not ask again unless the user wants it.",
    ),
    RefusalReason.WRONG_PASSWORD: ReasonText(
        title="Wrong user name or password",
        advice=(
            "An account with two-factor authentication needs more than a password: use "
            "the authorization code or device flow."
        ),
    ),
    RefusalReason.TOO_MANY_GUESSES: ReasonText(
        title="Too many wrong passwords",
        advice="Wait for the time in the header Retry-After, and ask for the password again.",
    ),
    RefusalReason.SCOPE: ReasonText(
        title="Scope not allowed",
        advice="Add the scope to the application, or request fewer.",
    ),
    RefusalReason.GRANT_TYPE: ReasonText(
        title="Unsupported grant type",
        advice=(
            "grant_types_supported in the metadata lists what this instance offers. There is no "
            "client_credentials: use a project or group access token for a machine."
        ),
    ),
    RefusalReason.NOT_REGISTERED_GRANT: ReasonText(
        title="Grant type not registered",
        advice="The application registered itself with other grant_types: it has to add this one.",
    ),
    RefusalReason.PROOF: ReasonText(
        title="DPoP proof refused",
        advice="Create a new proof for each request, with its URL and the correct time.",
    ),
    RefusalReason.UNREGISTERED_REDIRECT_URI: ReasonText(
        title="Redirect URI not registered",
        advice=(
            "It has to be one of the application's redirect URIs, character by character; only the "
            "port of 127.0.0.1 and [::1] may differ. Add it to the application, or send another."
        ),
    ),
    RefusalReason.RESPONSE_TYPE: ReasonText(
        title="Unsupported response type",
        advice="Send response_type=code, with PKCE instead of the implicit flow.",
    ),
    RefusalReason.MISSING_CHALLENGE: ReasonText(
        title="No code challenge",
        advice=(
            "The application has to use PKCE: send code_challenge and code_challenge_method=S256 "
            "with the authorization request, and code_verifier with the token request."
        ),
    ),
    RefusalReason.CHALLENGE_METHOD: ReasonText(
        title="Unsupported code challenge method",
        advice=(
            "Send code_challenge_method=S256, with the SHA-256 hash of code_verifier as "
            "base64url without padding. The method plain, which is the default, is not supported."
        ),
    ),
    RefusalReason.ASKED_EACH_TIME: ReasonText(
        title="Cannot ask without a page",
        advice=(
            "Users are asked about a public application each time, so prompt=none always fails. "
            "Leave it out; renew access with the refresh token."
        ),
    ),
    RefusalReason.NOT_PUSHED: ReasonText(
        title="Request not pushed",
        advice=(
            "Send the parameters to the pushed authorization request endpoint first, and the "
            "browser with client_id and the request_uri of the answer."
        ),
    ),
    RefusalReason.REQUEST_URI: ReasonText(
        title="Pushed request unknown or expired",
        advice="Push a request for each authorization, and send the browser right after it.",
    ),
    RefusalReason.REQUEST: ReasonText(
        title="Malformed request",
        advice="The answer names the parameter. Send each once, as a form or a JSON object.",
    ),
    RefusalReason.OTHER: ReasonText(
        title="Refused",
        advice="The page about errors explains the code.",
    ),
}

_BY_PROBLEM: Mapping[ClientProblem, RefusalReason] = {
    ClientProblem.NO_SECRET: RefusalReason.NO_SECRET,
    ClientProblem.WRONG_SECRET: RefusalReason.WRONG_SECRET,
    ClientProblem.SECRET_OF_PUBLIC: RefusalReason.SECRET_OF_PUBLIC,
}
_BY_SENTENCE: Mapping[str, RefusalReason] = {
    authorization_code.UNKNOWN_CODE: RefusalReason.UNKNOWN_CODE,
    authorization_code.EXPIRED_CODE: RefusalReason.EXPIRED_CODE,
    authorization_code.USED_CODE: RefusalReason.USED_CODE,
    authorization_code.LOST_CODE: RefusalReason.USED_CODE,
    authorization_code.OTHER_URI: RefusalReason.OTHER_REDIRECT_URI,
    authorization_code.OTHER_KEY: RefusalReason.PROOF,
    pkce.WRONG_VERIFIER: RefusalReason.WRONG_VERIFIER,
    pkce.MALFORMED_VERIFIER: RefusalReason.WRONG_VERIFIER,
    pkce.MISSING_VERIFIER: RefusalReason.MISSING_VERIFIER,
    pkce.NO_CHALLENGE: RefusalReason.UNEXPECTED_VERIFIER,
    refresh_token.UNKNOWN: RefusalReason.UNKNOWN_REFRESH_TOKEN,
    refresh_token.USED: RefusalReason.REUSED_REFRESH_TOKEN,
    refresh_token.STOLEN: RefusalReason.REUSED_REFRESH_TOKEN,
    refresh_token.REVOKED: RefusalReason.REVOKED_REFRESH_TOKEN,
    refresh_token.OTHER_URI: RefusalReason.OTHER_REDIRECT_URI,
    refresh_token.OTHER_KEY: RefusalReason.PROOF,
    device_code.UNKNOWN_CODE: RefusalReason.UNKNOWN_DEVICE_CODE,
    device_code.REDEEMED_CODE: RefusalReason.USED_DEVICE_CODE,
    device_code.LOST_CODE: RefusalReason.USED_DEVICE_CODE,
    device_code.WITHDRAWN_CODE: RefusalReason.DENIED,
    password.REFUSED: RefusalReason.WRONG_PASSWORD,
    authorization_code.UnknownRedirectUriError.description: (
        RefusalReason.UNREGISTERED_REDIRECT_URI
    ),
    pkce.MISSING_CHALLENGE: RefusalReason.MISSING_CHALLENGE,
    pkce.OTHER_METHOD: RefusalReason.CHALLENGE_METHOD,
    pushed_requests.NOT_PUSHED: RefusalReason.NOT_PUSHED,
}
_BY_ERROR: Mapping[str, RefusalReason] = {
    "access_denied": RefusalReason.DENIED,
    "consent_required": RefusalReason.ASKED_EACH_TIME,
    "expired_token": RefusalReason.EXPIRED_DEVICE_CODE,
    "invalid_dpop_proof": RefusalReason.PROOF,
    "invalid_request": RefusalReason.REQUEST,
    "invalid_request_uri": RefusalReason.REQUEST_URI,
    "request_uri_not_supported": RefusalReason.REQUEST_URI,
    "invalid_scope": RefusalReason.SCOPE,
    "temporarily_unavailable": RefusalReason.TOO_MANY_GUESSES,
    "unauthorized_client": RefusalReason.NOT_REGISTERED_GRANT,
    "unsupported_grant_type": RefusalReason.GRANT_TYPE,
    "unsupported_response_type": RefusalReason.RESPONSE_TYPE,
}


def reason_of(refused: RefusedRequest) -> RefusalReason:
    """Return why a request was refused."""
    if refused.client_problem is not None:
        return _BY_PROBLEM[refused.client_problem]
    of_error = _BY_ERROR.get(refused.error, RefusalReason.OTHER)
    return _BY_SENTENCE.get(refused.description, of_error)


def text_of(reason: str) -> ReasonText:
    """Return a stored reason in words; one of a newer release is just a refusal."""
    return TEXTS.get(reason, TEXTS[RefusalReason.OTHER])
