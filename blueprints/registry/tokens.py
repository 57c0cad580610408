"""/jwt/auth: the token endpoint that a registry sends its clients to.

GET is the "Token Authentication Specification" of Docker's registry, POST its variant as an OAuth 2
endpoint ("Oauth2 Token Authentication"), which some clients try first.
"""

from collections.abc import Callable, Iterable

from flask import Response, request

from domain.errors import InvalidError
from domain.registry.access import (
    RegistryCredentialsError,
    allowed_access,
    parse_requested_scopes,
)
from domain.registry.tokens import SERVICE, RegistryToken
from web.access.marks import open_to_anyone
from web.access.rate_limits import by_address
from web.api.description.described import FORM, REGISTRY, Caller, Description, described
from web.api.schemas.registry.registry_protocol import (
    RegistryTokenForm,
    RegistryTokenQuery,
    RegistryTokenResponse,
)
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.errors import refusal
from web.http.json_responses import json_response
from web.registry.credentials import (
    NO_CREDENTIALS,
    RegistryUser,
    UnknownTokenError,
    basic_password,
    count_failure,
    user_with,
)
from web.registry.tokens import certificate_bundle, issue_token

registry_tokens = MachineBlueprint(
    "registry_tokens", __name__, url_prefix="/jwt", errors=ErrorFormat.REGISTRY
)
#: In bytes, of a form.
_LONGEST_FORM = 16_384
#: What requests are answered with, besides success.
_REFUSALS = (400, 401, 403, 429)


@registry_tokens.get("/auth")
@described(
    Description(
        name="registry.token",
        tag=REGISTRY,
        caller=Caller.REGISTRY_CLIENT,
        query=RegistryTokenQuery,
        returns=RegistryTokenResponse,
        errors=_REFUSALS,
    )
)
@open_to_anyone
@by_address
def issue() -> Response:
    """Issue a token for the credentials of Basic authentication, or for anonymous pulls."""
    _check_service(request.args.get("service", ""))
    scopes = request.args.getlist("scope")
    return _answer(basic_password, scopes, lambda token: token.as_json())


@registry_tokens.post("/auth")
@described(
    Description(
        name="registry.token_for_form",
        tag=REGISTRY,
        body=RegistryTokenForm,
        accepts=(FORM,),
        returns=RegistryTokenResponse,
        errors=(*_REFUSALS, 408, 413),
    )
)
@open_to_anyone.but(writes=False)
@by_address
def issue_for_form() -> Response:
    """Issue a token for the credentials of a form."""
    request.max_content_length = _LONGEST_FORM
    form = request.form
    _check_service(form.get("service", ""))
    if form.get("grant_type") != "password":
        message = "The only supported grant_type is password; there are no refresh tokens."
        raise InvalidError(message, field="grant_type")
    scopes = form.getlist("scope")
    return _answer(
        lambda: form.get("password", ""),
        scopes,
        lambda token: {**token.as_json(), "scope": " ".join(scopes)},
    )


def _answer(
    password: Callable[[], str | None],
    scopes: Iterable[str],
    as_json: Callable[[RegistryToken], dict[str, str | int]],
) -> Response:
    try:
        user = user_with(password())
    except UnknownTokenError as error:
        count_failure()
        # Returned and not raised, so that the count is stored.
        return refusal(error)
    response = json_response(as_json(_token_for(user, scopes)))
    response.headers["Cache-Control"] = "no-store"
    return response


def _token_for(user: RegistryUser, scopes: Iterable[str]) -> RegistryToken:
    access = allowed_access(parse_requested_scopes(scopes), user.requester, session=db.session())
    if not access and not user.name:
        raise RegistryCredentialsError(NO_CREDENTIALS)
    return issue_token(access, subject=user.name)


def _check_service(name: str) -> None:
    if name != SERVICE:
        message = f"The service is unknown: the registry's auth.token.service must be {SERVICE}."
        raise InvalidError(message, field="service")


@registry_tokens.get("/certificates")
@open_to_anyone
@by_address
def certificates() -> Response:
    """Return the certificates that registries have to trust (`rootcertbundle`), in PEM."""
    response = Response(certificate_bundle(), mimetype="application/x-pem-file")
    response.headers["Cache-Control"] = "no-cache"
    return response
