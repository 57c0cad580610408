"""Explanations of the errors of the OAuth endpoints, with remedies for developers."""

from dataclasses import dataclass

from domain.oauth.grants.registry import GRANTS


@dataclass(frozen=True, kw_only=True)
class ErrorHelp:
    """An error code with its meaning and remedies."""

    code: str
    meaning: str
    remedies: tuple[str, ...]


def _help(code: str, meaning: str, *remedies: str) -> ErrorHelp:
    return ErrorHelp(code=code, meaning=meaning, remedies=remedies)


*_FIRST, _LAST = (grant.CREDENTIAL for grant in GRANTS)
ERRORS: tuple[ErrorHelp, ...] = (
    _help(
        "invalid_request",
        "A parameter is missing, repeated or malformed, or the request has the wrong form.",
        "Read error_description: it names the parameter.",
        (
            "Send a POST with application/x-www-form-urlencoded, or a JSON object whose values "
            "are all strings, and send each parameter once."
        ),
        "Send client_secret either in the body or by Basic authentication, not both.",
    ),
    _help(
        "invalid_client",
        "The application could not be authenticated.",
        "Compare client_id with the Application ID on the application's page.",
        (
            "Use a client secret that is still valid. Renewing a secret ends the old one, "
            "immediately or after the chosen time."
        ),
        "A public application sends its client_id and no secret.",
    ),
    _help(
        "invalid_grant",
        f"The {', '.join(_FIRST)} or {_LAST} cannot be used.",
        *(remedy for grant in GRANTS for remedy in grant.REMEDIES),
        "Otherwise, send the user through authorization again.",
    ),
    _help(
        "invalid_request_uri",
        "The pushed request is unknown, expired or already used. Only the error page shows this.",
        "Push a request for each authorization, and send the browser immediately.",
    ),
    _help(
        "unauthorized_client",
        "The application is not allowed to make this request.",
        "It is not registered for this grant type, or the token is another application's.",
    ),
    _help(
        "unsupported_grant_type",
        "This instance does not offer the grant type.",
        (
            "grant_types_supported in /.well-known/oauth-authorization-server lists what it "
            "offers; administrators can turn passwords and devices off."
        ),
    ),
    _help(
        "unsupported_response_type",
        "The only supported response_type is code.",
        "Use the authorization code flow with PKCE instead of the implicit flow.",
    ),
    _help(
        "invalid_scope",
        "A requested scope does not exist, or the application or user does not allow it.",
        "error_description names the scopes that were refused.",
        "Add them on the application's page, or request fewer.",
        "A refresh cannot request more than the user approved.",
    ),
    _help(
        "invalid_target",
        "The token is wanted for another service than this instance.",
        "Leave resource and audience out, or send the URL of this instance.",
    ),
    _help(
        "access_denied",
        "The user denied the request.",
        "Do not ask again unless the user wants it.",
    ),
    _help(
        "authorization_pending",
        "The user has not approved the device yet.",
        "Wait for the interval, then poll again.",
    ),
    _help(
        "slow_down",
        "The device polled too early.",
        "From now on, wait five seconds longer between polls.",
    ),
    _help(
        "expired_token",
        "The device code has expired.",
        "Request a new device code and show the new user code.",
    ),
    _help(
        "invalid_token",
        "The access token is missing, unknown, expired or revoked.",
        "Refresh it, or send the user through authorization again.",
        "A token that is bound to a key is sent with the scheme DPoP and a proof.",
    ),
    _help(
        "insufficient_scope",
        "The access token is valid, but its scopes do not cover this request.",
        "Request one of the scopes in the member scope of the answer.",
    ),
    _help(
        "invalid_dpop_proof",
        "The DPoP proof is missing, malformed, too old or has already been used.",
        (
            "Create a new proof for each request, with the method and URL of that request "
            "and the current time."
        ),
    ),
    _help(
        "invalid_redirect_uri",
        "A redirect URI cannot be registered.",
        (
            "Use https, http on a loopback address for development, or a custom scheme of your "
            "own such as com.example.app:/callback."
        ),
    ),
    _help(
        "invalid_client_metadata",
        "The client metadata in the registration is not valid.",
        "error_description names the member.",
    ),
    _help(
        "login_required",
        "The user has to sign in, and prompt=none forbids that.",
        "Send the user again without prompt=none.",
    ),
    _help(
        "consent_required",
        "The user has to approve the request, and prompt=none forbids that.",
        (
            "Send the user again without prompt=none. Public applications are asked about each "
            "time, unless an administrator trusts them."
        ),
    ),
    _help(
        "interaction_required",
        "The user has to interact, and prompt=none forbids that.",
        "Send the user again without prompt=none.",
    ),
    _help(
        "request_not_supported",
        "Authorization parameters cannot be sent as a JWT in the parameter request.",
        "Send them as ordinary parameters, or push them to /oauth/par.",
    ),
    _help(
        "request_uri_not_supported",
        "The only request_uri accepted is one that /oauth/par returned.",
        "Push the parameters to /oauth/par first.",
    ),
    _help(
        "temporarily_unavailable",
        "The service is busy, its database is unreachable, or a rate limit was exceeded.",
        "Wait for the time in the header Retry-After, then send the request again.",
    ),
    _help(
        "server_error",
        "An internal error occurred.",
        "Try again. If the error persists, give the request_id to an administrator.",
    ),
)
