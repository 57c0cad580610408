"""The meaning of each error of the OAuth endpoints, and what a developer can do about it."""

from dataclasses import dataclass

from domain.oauth.grants.registry import GRANTS


@dataclass(frozen=True, kw_only=True)
class ErrorHelp:
    """One error code."""

    code: str
    meaning: str
    remedies: tuple[str, ...]


*_FIRST, _LAST = (grant.CREDENTIAL for grant in GRANTS)
ERRORS: tuple[ErrorHelp, ...] = (
    ErrorHelp(
        code="invalid_request",
        meaning="A parameter is missing, repeated or malformed, or the request has the wrong form.",
        remedies=(
            "Read error_description: it names the parameter.",
            (
                "Send a POST with application/x-www-form-urlencoded, or a JSON object whose values "
                "are all strings, and send each parameter once."
            ),
            "Send client_secret either in the body or by Basic authentication, not both.",
        ),
    ),
    ErrorHelp(
        code="invalid_client",
        meaning="The application could not be authenticated.",
        remedies=(
            "Compare client_id with the Application ID on the application's page.",
            (
                "Use a client secret that is still valid. Renewing a secret ends the old one, "
                "immediately or after the chosen time."
            ),
            "A public application sends its client_id and no secret.",
        ),
    ),
    ErrorHelp(
        code="invalid_grant",
        meaning=f"The {', '.join(_FIRST)} or {_LAST} cannot be used.",
        remedies=(
            *(remedy for grant in GRANTS for remedy in grant.REMEDIES),
            "Otherwise, send the user through authorization again.",
        ),
    ),
    ErrorHelp(
        code="unauthorized_client",
        meaning="The application is not allowed to make this request.",
        remedies=(
            "It is not registered for this grant type, or the token is another application's.",
        ),
    ),
    ErrorHelp(
        code="unsupported_grant_type",
        meaning="This instance does not offer the grant type.",
        remedies=(
            (
                "grant_types_supported in /.well-known/oauth-authorization-server lists what it "
                "offers; administrators can turn passwords and devices off."
            ),
        ),
    ),
    ErrorHelp(
        code="unsupported_response_type",
        meaning="The only supported response_type is code.",
        remedies=("Use the authorization code flow with PKCE instead of the implicit flow.",),
    ),
    ErrorHelp(
        code="invalid_scope",
        meaning="A requested scope does not exist, or the application or user does not allow it.",
        remedies=(
            "error_description names the scopes that were refused.",
            "Add them on the application's page, or request fewer.",
            "A refresh cannot request more than the user approved.",
        ),
    ),
    ErrorHelp(
        code="invalid_target",
        meaning="The token is wanted for another service than this instance.",
        remedies=("Leave resource and audience out, or send the URL of this instance.",),
    ),
    ErrorHelp(
        code="access_denied",
        meaning="The user denied the request.",
        remedies=("Do not ask again unless the user wants it.",),
    ),
    ErrorHelp(
        code="authorization_pending",
        meaning="The user has not approved the device yet.",
        remedies=("Wait for the interval, then poll again.",),
    ),
    ErrorHelp(
        code="slow_down",
        meaning="The device polled too early.",
        remedies=("From now on, wait five seconds longer between polls.",),
    ),
    ErrorHelp(
        code="expired_token",
        meaning="The device code has expired.",
        remedies=("Request a new device code and show the new user code.",),
    ),
    ErrorHelp(
        code="invalid_token",
        meaning="The access token is missing, unknown, expired or revoked.",
        remedies=(
            "Refresh it, or send the user through authorization again.",
            "A token that is bound to a key is sent with the scheme DPoP and a proof.",
        ),
    ),
    ErrorHelp(
        code="insufficient_scope",
        meaning="The access token is valid, but its scopes do not cover this request.",
        remedies=("Request one of the scopes in the member scope of the answer.",),
    ),
    ErrorHelp(
        code="invalid_dpop_proof",
        meaning="The DPoP proof is missing, malformed, too old or has already been used.",
        remedies=(
            (
                "Create a new proof for each request, with the method and URL of that request "
                "and the current time."
            ),
        ),
    ),
    ErrorHelp(
        code="invalid_redirect_uri",
        meaning="A redirect URI cannot be registered.",
        remedies=(
            (
                "Use https, http on a loopback address for development, or a custom scheme of your "
                "own such as com.example.app:/callback."
            ),
        ),
    ),
    ErrorHelp(
        code="invalid_client_metadata",
        meaning="The client metadata in the registration is not valid.",
        remedies=("error_description names the member.",),
    ),
    ErrorHelp(
        code="login_required",
        meaning="The user has to sign in, and prompt=none forbids that.",
        remedies=("Send the user again without prompt=none.",),
    ),
    ErrorHelp(
        code="consent_required",
        meaning="The user has to approve the request, and prompt=none forbids that.",
        remedies=(
            (
                "Send the user again without prompt=none. Public applications are asked about each "
                "time, unless an administrator trusts them."
            ),
        ),
    ),
    ErrorHelp(
        code="interaction_required",
        meaning="The user has to interact, and prompt=none forbids that.",
        remedies=("Send the user again without prompt=none.",),
    ),
    ErrorHelp(
        code="request_not_supported",
        meaning="Authorization parameters cannot be sent as a JWT in the parameter request.",
        remedies=("Send them as ordinary parameters, or push them to /oauth/par.",),
    ),
    ErrorHelp(
        code="request_uri_not_supported",
        meaning="The only request_uri accepted is one that /oauth/par returned.",
        remedies=("Push the parameters to /oauth/par first.",),
    ),
    ErrorHelp(
        code="temporarily_unavailable",
        meaning="The service is busy, its database is unreachable, or a rate limit was exceeded.",
        remedies=("Wait for the time in the header Retry-After, then send the request again.",),
    ),
    ErrorHelp(
        code="server_error",
        meaning="An internal error occurred.",
        remedies=("Try again. If the error persists, give the request_id to an administrator.",),
    ),
)
