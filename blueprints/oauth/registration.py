"""/oauth/register: dynamic client registration (RFC 7591) and its management (RFC 7592)."""

from functools import partial
from http import HTTPStatus
from typing import Any

from flask.typing import ResponseReturnValue

from domain.alerts.reading.body import read_object
from domain.core.errors import ForbiddenError, NotFoundError
from domain.oauth import registration as domain
from domain.oauth.presented_tokens.bearer import BearerRefusedError, Refusal
from web.access.bearer_token import TokenLocation, presented_token
from web.access.decorators import checks_its_client, find_bearer
from web.access.rate_limits import by_address, by_registrar
from web.api.description.described import JSON, REGISTRATION, Caller, Description
from web.api.schemas.oauth import ClientChange, ClientRegistration, RegisteredClient
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.request_bodies import check_media_type, read_bounded
from web.oauth import oauth_context, send
from web.services import settings

registration = MachineBlueprint(
    "registration", __name__, url_prefix="/oauth/register", errors=ErrorFormat.OAUTH
)
_LONGEST_BODY = 65_536
_DEEPEST = 20
#: Error statuses of requests. Status 404 is also returned while registration is turned off.
_OF_REGISTERED = (400, 401, 404, 429)
_OF_BODIES = (*_OF_REGISTERED, 408, 413, 415)
_for_registered = partial(
    Description, tag=REGISTRATION, caller=Caller.REGISTERED_CLIENT, errors=_OF_REGISTERED
)


@registration.before_request
def only_while_it_is_on() -> None:
    """Return status 404 if the instance does not offer registration."""
    if not settings().dynamic_client_registration:
        raise NotFoundError("Clients cannot register themselves on this instance.")


@registration.post("")
@Description(
    name="registration.create",
    tag=REGISTRATION,
    caller=Caller.REGISTRAR,
    body=ClientRegistration,
    accepts=(JSON,),
    returns=RegisteredClient,
    status=HTTPStatus.CREATED,
    errors=(*_OF_BODIES, HTTPStatus.FORBIDDEN),
)
@checks_its_client
@by_address
def register() -> ResponseReturnValue:
    """Register a client (RFC 7591 section 3.1)."""
    return _register(_registrar_id())


@by_registrar
def _register(registrar_id: int | None) -> ResponseReturnValue:
    return send(domain.register(_body(), registrar_id, context=oauth_context()))


@registration.get("/<uid>")
@_for_registered(name="registration.show", returns=RegisteredClient)
@checks_its_client
@by_address
def show(uid: str) -> ResponseReturnValue:
    """Return the registration of a client (RFC 7592 section 2.1)."""
    context = oauth_context()
    found = domain.get_registration(uid, _token(), context=context)
    return send(domain.read(found, context=context))


@registration.put("/<uid>")
@_for_registered(
    name="registration.change",
    body=ClientChange,
    accepts=(JSON,),
    returns=RegisteredClient,
    errors=_OF_BODIES,
)
@checks_its_client
@by_address
def change(uid: str) -> ResponseReturnValue:
    """Replace the metadata of a client (RFC 7592 section 2.2)."""
    context = oauth_context()
    found = domain.get_registration(uid, _token(), context=context)
    return send(domain.change(found, _body(), context=context))


@registration.delete("/<uid>")
@_for_registered(name="registration.remove", status=HTTPStatus.NO_CONTENT)
@checks_its_client
@by_address
def remove(uid: str) -> ResponseReturnValue:
    """Delete a client (RFC 7592 section 2.3)."""
    context = oauth_context()
    found = domain.get_registration(uid, _token(), context=context)
    return send(domain.remove(found, context=context))


def _registrar_id() -> int | None:
    """Return the user of the initial access token, or None if none is required (RFC 7591, 3)."""
    bearer = find_bearer("api")
    if bearer is not None and bearer.is_bot:
        raise ForbiddenError("Bots cannot own applications. Use a personal access token.")
    if bearer is None and not settings().open_client_registration:
        raise BearerRefusedError(Refusal.MISSING)
    return bearer.user_id if bearer else None


def _token() -> str | None:
    """Return the registration access token, which is accepted only in the header."""
    return presented_token(TokenLocation.HEADER)


def _body() -> dict[str, Any]:
    """Return the JSON object of the body.

    Raise an error if the body is too large or is not a JSON object.
    """
    body = read_bounded(_LONGEST_BODY)
    check_media_type()
    body.check()
    return read_object(body.content, nesting_limit=_DEEPEST)
