"""What a view takes and returns, for one that has another mark than an operation of the API.

    @token.post("/token")
    @Description(name="oauth.token", tag=OAUTH, body=TokenRequest, returns=TokenResponse, …)
    @checks_its_client

OAuth endpoints, receivers and metadata read and write by their own code; the schemas here only say
what that is, and the tests send requests by them. Nothing is done when a request comes.
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

#: A security requirement of OpenAPI: names of schemes with scopes; one of several is enough.
Requirement = Mapping[str, tuple[str, ...]]


class Caller(Enum):
    """Who authenticates at an endpoint: its security requirements, one of which is enough.

    They are named, since an empty tuple cannot be the value of a member in Python 3.11.2.
    """

    ANYONE = "anyone"
    #: In the header, or in the body by client_id and client_secret.
    CLIENT = "client"
    #: A token of an application, not a personal one.
    OAUTH_TOKEN = "OAuth token"  # noqa: S105 - a name
    #: An initial access token, where the instance asks for one.
    REGISTRAR = "registrar"
    REGISTERED_CLIENT = "registered client"
    #: A client of the container registry, or one that pulls what is public.
    REGISTRY_CLIENT = "registry client"
    REGISTRY = "registry"
    SENDER = "sender"

    @property
    def security(self) -> tuple[Requirement, ...]:
        """Return the alternatives of the description."""
        return _SECURITY[self]


_SECURITY: Mapping[Caller, tuple[Requirement, ...]] = {
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
class Answer:
    """An answer besides success and errors."""

    text: str
    returns: type[BaseModel] | None = None
    content_type: str | None = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a view takes and returns; the decorator of the view."""

    #: The operationId; for the second method of a view its name follows.
    name: str
    tag: str
    caller: Caller = Caller.ANYONE
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    #: Media types of the body.
    accepts: tuple[str, ...] = (FORM, JSON)
    #: None for an answer without a body, or one that is no JSON.
    returns: type[BaseModel] | None = None
    status: int = 200
    #: The media type of the answer.
    content_type: str = JSON
    #: Statuses of errors, besides 503; a page has none, but others.
    errors: tuple[int, ...] = ()
    #: By status, what is no error in the endpoint's format.
    others: Mapping[int, Answer] = field(default_factory=dict)
    #: Whether it has an ETag.
    is_conditional: bool = False
    #: URLs with these variables are other names of the same thing, and are left out.
    without: tuple[str, ...] = ()

    def __call__(self, view: View) -> View:
        """Give a view its description."""
        return _saying("gatebell_description", self)(view)


def _saying(name: str, value: object) -> Callable[[View], View]:
    """Return the decorator that gives a view an attribute."""

    def decorate(view: View) -> View:
        setattr(view, name, value)
        return view

    return decorate


def answers_with(**media_types: str) -> Callable[[View], View]:
    """Say what an operation of the API answers with that is no JSON of a schema.

    By the word that `<any(…):…>` of the URL chose, or as `file`.
    """
    return _saying("gatebell_media_types", media_types)


def refuses_with(*statuses: int) -> Callable[[View], View]:
    """Say with which statuses an operation of the API refuses besides those of its kind."""
    return _saying("gatebell_refusals", statuses)


def find_refusals(view: Callable[..., Any]) -> tuple[int, ...]:
    """Return the statuses of refusals that an operation has besides those of its kind."""
    return getattr(view, "gatebell_refusals", ())


def find_media_types(view: Callable[..., Any]) -> Mapping[str, str]:
    """Return the media types of an operation that answers with files, by kind."""
    return getattr(view, "gatebell_media_types", {})


def find_description(view: Callable[..., Any]) -> Description | None:
    """Return the description of a view, or None."""
    return getattr(view, "gatebell_description", None)
