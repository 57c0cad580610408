"""Explanations of OAuth endpoint errors, with remedies for developers."""

from dataclasses import dataclass

from domain.oauth.grants.registry import GRANTS


@dataclass(frozen=True, kw_only=True)
class ErrorHelp:
    """An error code with its meaning and remedies."""

    code: str
    meaning: str
    remedies: tuple[str, ...]


def _build_help(code: str, meaning: str, *remedies: str) -> ErrorHelp:
    return ErrorHelp(code=code, meaning=meaning, remedies=remedies)


*_FIRST_CREDENTIALS, _LAST_CREDENTIAL = (grant.CREDENTIAL for grant in GRANTS)
OAUTH_ERRORS: tuple[ErrorHelp, ...] = (
    _build_help(
        "invalid_request",
        "A parameter is missing, repeated or malformed, or the request has the wrong format.",
        "Read error_description, which names the parameter.",
        (
            "Send a POST request with a form (application/x-www-form-urlencoded) or a JSON object "
            "of strings. Send each parameter only once."
        ),
        "Send client_secret either in the body or with Basic authentication, not both.",
    ),
    _build_help(
        "invalid_client",
        "The application could not be authenticated.",
        "Compare client_id with the Application ID on the application's page.",
        (
            "Use a valid client secret. After a renewal, the old secret stops working immediately "
            "or after the selected time."
        ),
        "If the application is public, send client_id without a secret.",
    ),
    _build_help(
        "invalid_grant",
        f"The {', '.join(_FIRST_CREDENTIALS)} or {_LAST_CREDENTIAL} cannot be used.",
        *(remedy for grant in GRANTS for remedy in grant.REMEDIES),
        "Otherwise, send the user through authorization again.",
    ),
    _build_help(
        "invalid_request_uri",
        (
            "The pushed request is unknown, has expired or was already used. This code is only "
            "shown on the error page."
        ),
        "Push a new request for each authorization, and redirect the browser immediately.",
    ),
    _build_help(
        "unauthorized_client",
        "The application is not allowed to make this request.",
        (
            "Enable the grant type for the application. error_description names missing settings, "
            "such as the service account."
        ),
        "Revoke a token with the client_id of the application that it was issued to.",
    ),
    _build_help(
        "unsupported_grant_type",
        "This instance does not support the grant type.",
        (
            "Use one of grant_types_supported in /.well-known/oauth-authorization-server. "
            "Administrators can disable the password and device grants."
        ),
    ),
    _build_help(
        "unsupported_response_type",
        "The only supported response_type is code.",
        "Use the authorization code flow with PKCE instead of the implicit flow.",
    ),
    _build_help(
        "invalid_scope",
        "A requested scope does not exist, or is not allowed for the application or the user.",
        "Read error_description, which names the rejected scopes.",
        "Add the scopes on the application's page, or request fewer scopes.",
        "When you refresh a token, request only scopes that the user granted.",
    ),
    _build_help(
        "invalid_target",
        "The token was requested for a service other than this instance.",
        "Omit resource and audience, or set them to the URL of this instance.",
    ),
    _build_help(
        "access_denied",
        "The user denied the request, or is not in a group that can use the application.",
        "Do not repeat the request unless the user asks for it.",
    ),
    _build_help(
        "authorization_pending",
        "The user has not approved the device yet.",
        "Wait for the interval, then poll again.",
    ),
    _build_help(
        "slow_down",
        "The device polls too frequently.",
        "Use the interval of the response from now on.",
    ),
    _build_help(
        "expired_token",
        "The device code has expired.",
        "Request a new device code and show the new user code.",
    ),
    _build_help(
        "invalid_token",
        "The access token is missing, unknown, expired or revoked.",
        "Refresh it, or send the user through authorization again.",
        "If the token is bound to a key, send it with the DPoP scheme and a proof.",
    ),
    _build_help(
        "insufficient_scope",
        "The access token is valid, but its scopes do not cover this request.",
        "Request one of the scopes in the scope member of the response.",
    ),
    _build_help(
        "invalid_dpop_proof",
        "The DPoP proof is missing, malformed, too old or was already used.",
        "Create a new proof for each request, with its method, its URL and the current time.",
    ),
    _build_help(
        "invalid_redirect_uri",
        "A redirect URI cannot be registered.",
        (
            "Use https, http on a loopback address for development, or a custom scheme such as "
            "com.example.app:/callback."
        ),
    ),
    _build_help(
        "invalid_client_metadata",
        "The client metadata in the registration is not valid.",
        "Read error_description, which names the invalid member.",
    ),
    _build_help(
        "login_required",
        "The user has to sign in, but the request has prompt=none.",
        "Repeat the request without prompt=none.",
    ),
    _build_help(
        "consent_required",
        "The user has to consent, but the request has prompt=none.",
        (
            "Repeat the request without prompt=none. Public applications require consent each "
            "time, unless an administrator marks them as trusted."
        ),
    ),
    _build_help(
        "request_not_supported",
        "Authorization parameters cannot be sent as a JWT in the request parameter.",
        "Send them as ordinary parameters, or push them to /oauth/par.",
    ),
    _build_help(
        "request_uri_not_supported",
        "The request_uri was not returned by /oauth/par.",
        "Push the parameters to /oauth/par first.",
    ),
    _build_help(
        "temporarily_unavailable",
        "The service is busy, its database is unreachable, or a rate limit was exceeded.",
        "Wait for the number of seconds in the Retry-After header, then retry.",
    ),
    _build_help(
        "server_error",
        "An internal error occurred.",
        "Try again. If the error persists, give the request_id to an administrator.",
    ),
)
