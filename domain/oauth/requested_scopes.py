"""Checks the scopes that OAuth requests contain."""

from collections.abc import Iterable

from authlib.oauth2.rfc6749 import InvalidScopeError

from domain.access.scopes import UnknownScopeError, parse_scopes
from domain.oauth.clients.authentication import Client
from domain.oauth.protocol import format_error_description


def parse_known_scopes(text: str) -> tuple[str, ...]:
    """Return the requested scopes in the order of `SCOPES`.

    Raise invalid_scope if a scope is unknown or the text is empty.
    """
    try:
        scopes = parse_scopes(text)
    except UnknownScopeError as error:
        names = format_error_description(error.names)
        raise InvalidScopeError(f"Unknown scope: {names}{error.hint}.") from error
    if not scopes:
        raise InvalidScopeError("The request has no scope.")
    return scopes


def parse_allowed_scopes(text: str, client: Client) -> str:
    """Return the requested scopes, which the application must be registered for.

    Raise invalid_scope with the names of scopes that the application is not registered for.
    """
    scopes = parse_known_scopes(text)
    allowed = client.get_allowed_scope(text).split()
    check_scopes_allowed(scopes, allowed, "The application is not registered for the scope")
    return " ".join(scopes)


def check_scopes_allowed(asked: Iterable[str], allowed: Iterable[str], sentence: str) -> None:
    """Check that all requested scopes are allowed.

    Raise invalid_scope with the sentence and the names of the scopes that are not allowed.
    """
    known = set(allowed)
    refused = [name for name in asked if name not in known]
    if refused:
        raise InvalidScopeError(f"{sentence}: {format_error_description(refused)}.")
