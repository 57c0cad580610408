"""Descriptions of views that are not API operations.

    @token.post("/token")
    @ViewDescription(name="oauth.token", tag=OAUTH, body=TokenRequest, returns=TokenResponse, …)
    @authenticates_client

OAuth endpoints, receivers and metadata read and write data with their own code. The schemas here
only document that data, and tests generate requests from them. They have no effect on requests.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

View = TypeVar("View", bound=Callable[..., Any])

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
HTML = "text/html"
TEXT = "text/plain"

OAUTH = "OAuth"
OPENID = "OpenID Connect"
REGISTRATION = "Client registration"
RECEIVERS = "Receivers"
HEARTBEATS = "Heartbeats"
METADATA = "Metadata"
HEALTH = "Health"
REGISTRY = "Container registry"

#: OpenAPI security requirement, which maps names of security schemes to scopes. A request must meet
#: one of several requirements.
Requirement = Mapping[str, tuple[str, ...]]


class Caller(Enum):
    """Kind of caller of an endpoint, with alternative security requirements.

    The values are names, because Python 3.11.2 does not support empty tuples as values of members.
    """

    ANYONE = "anyone"
    #: Client that authenticates in the header, or with client_id and client_secret in the body.
    CLIENT = "client"
    #: Application that sends an OAuth token. Personal access tokens are not accepted.
    OAUTH_TOKEN = "OAuth token"  # noqa: S105 - a name
    #: Client with an initial access token, if the instance requires this token.
    REGISTRAR = "registrar"
    REGISTERED_CLIENT = "registered client"
    #: Client of the container registry, or an anonymous client that pulls public images.
    REGISTRY_CLIENT = "registry client"
    REGISTRY = "registry"
    SENDER = "sender"

    @property
    def security_requirements(self) -> tuple[Requirement, ...]:
        """Alternative security requirements in the description."""
        return _SECURITY_REQUIREMENTS[self]


_SECURITY_REQUIREMENTS: Mapping[Caller, tuple[Requirement, ...]] = {
    Caller.ANYONE: (),
    Caller.CLIENT: ({"client_credentials": ()}, {}),
    Caller.OAUTH_TOKEN: ({"oauth_token": ()},),
    Caller.REGISTRAR: ({"access_token": ()}, {}),
    Caller.REGISTERED_CLIENT: ({"registration_access_token": ()},),
    Caller.REGISTRY_CLIENT: ({"token_as_password": ()}, {}),
    Caller.REGISTRY: ({"notification_secret": ()},),
    Caller.SENDER: ({"integration_key": ()}, {"integration_key_as_password": ()}),
}


@dataclass(frozen=True, kw_only=True)
class AdditionalResponse:
    """Response that is neither the usual success response nor an error."""

    text: str
    returns: type[BaseModel] | None = None
    content_type: str | None = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ViewDescription:
    """Decorator that attaches an OpenAPI description to a view."""

    #: Value of `operationId`. For additional methods of a view, the method is appended.
    name: str
    tag: str
    caller: Caller = Caller.ANYONE
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    #: Media types of the request body.
    accepts: tuple[str, ...] = (FORM, JSON)
    #: Schema of the response, or None if it has no body or is not JSON.
    returns: type[BaseModel] | None = None
    status: int = 200
    #: Media type of the response.
    content_type: str = JSON
    #: Error statuses in addition to 503. Pages use `others` instead.
    errors: tuple[int, ...] = ()
    #: Other responses by status, which do not have the endpoint's error format.
    others: Mapping[int, AdditionalResponse] = field(default_factory=dict)
    #: `True` if the response has an ETag.
    is_conditional: bool = False
    #: Variables in alternative URLs of the view. The description omits URLs with these variables.
    without: tuple[str, ...] = ()

    def __call__(self, view: View) -> View:
        """Attach the description to a view."""
        return _set_view_attribute("gatebell_description", self)(view)


def _set_view_attribute(name: str, value: object) -> Callable[[View], View]:
    """Return a decorator that sets an attribute of a view."""

    def decorate(view: View) -> View:
        setattr(view, name, value)
        return view

    return decorate


def declare_media_types(**media_types: str) -> Callable[[View], View]:
    """Declare the media types of an operation that does not return JSON with a schema.

    The keys are values of `<any(…):…>` in the URL, or `file`.
    """
    return _set_view_attribute("gatebell_media_types", media_types)


def declare_error_statuses(*statuses: int) -> Callable[[View], View]:
    """Declare additional error statuses of an API operation."""
    return _set_view_attribute("gatebell_refusals", statuses)


def find_additional_errors(view: Callable[..., Any]) -> tuple[int, ...]:
    """Return the additional error statuses that an operation declares."""
    return getattr(view, "gatebell_refusals", ())


def find_media_types(view: Callable[..., Any]) -> Mapping[str, str]:
    """Return the media types of an operation that returns files, by kind."""
    return getattr(view, "gatebell_media_types", {})


def find_view_description(view: Callable[..., Any]) -> ViewDescription | None:
    """Return the description of a view, or None if the view has no description."""
    return getattr(view, "gatebell_description", None)
