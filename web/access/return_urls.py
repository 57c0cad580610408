"""Shortens long return URLs that are passed inside other URLs.

A long URL is stored and replaced by a handle. The sign-in page, the second factor, identity
providers and the session carry the URL of the requested page. Inside another URL, a long URL would
exceed the limits of a request.
"""

from flask import request, url_for
from sqlalchemy.orm import Session

from domain.accounts.sign_in.return_urls import (
    MAX_RETURN_URL_LENGTH,
    find_return_url,
    store_return_url,
)
from domain.core.errors import DomainError
from web.extensions import db
from web.http.transactions import allow_writes, can_session_write, defer_transaction
from web.services import get_current_time, get_services

#: Maximum length of a nested URL in characters. Percent-encoding may make it three times as long. A
#: URL of this length also fits into the session cookie.
_MAX_NESTED_LENGTH = 1_500
#: Parameter of /oauth/authorize with the handle of the actual parameters.
STORED_REQUEST_PARAMETER = "kept"


class ReturnUrlTooLongError(DomainError):
    """Error for a URL that is too long to be stored."""

    def __init__(self) -> None:
        """Set the message, which names the maximum length."""
        super().__init__(
            f"The request is too long. It can have at most {MAX_RETURN_URL_LENGTH:,} characters."
        )


def shorten_return_url(path: str) -> str:
    """Return a URL that redirects to `path` and fits into another URL.

    Raise ReturnUrlTooLongError if the path is too long to be stored. Raise TooManyAttemptsError if
    the client's network has stored too many URLs.
    """
    if len(path) <= _MAX_NESTED_LENGTH:
        return path
    if len(path) > MAX_RETURN_URL_LENGTH:
        raise ReturnUrlTooLongError
    handle = _store_return_url_with_write_access(path)
    if path.partition("?")[0] == url_for("authorize.consent"):
        # The path may be too long for any URL, so it cannot be the target of a redirect.
        return url_for("authorize.consent", kept=handle)
    return url_for("sessions.redirect_to_stored_url", handle=handle)


def find_stored_return_url(handle: str) -> str | None:
    """Return the URL that is stored under a handle, or None if it has expired."""
    return find_return_url(
        handle, session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )


def _store_return_url_with_write_access(path: str) -> str:
    if can_session_write():
        return _store_return_url(path, db.session())
    # The request's own transaction may be read-only, so the row is written in a separate session.
    handles: list[str] = []

    def write(session: Session) -> None:
        allow_writes()
        handles.append(_store_return_url(path, session))

    defer_transaction(write)()
    return handles[0]


def _store_return_url(path: str, session: Session) -> str:
    address, keyring = request.remote_addr, get_services().keyring
    return store_return_url(
        path, address=address, session=session, keyring=keyring, now=get_current_time()
    )
