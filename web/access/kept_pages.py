"""Return addresses for other URLs: a long one is stored, and a handle takes its place.

The sign-in page, the second factor, identity providers and the session carry the address of the
page that the user asked for. Nested into another URL, a long address no longer fits into a request.
"""

from flask import request, url_for
from sqlalchemy.orm import Session

from domain.accounts.signing_in.kept_pages import LONGEST, find_kept_page, keep_page
from domain.core.errors import DomainError
from web.extensions import db
from web.http.transactions import begin_to_write, prepared, session_writes
from web.services import now, services

#: In characters. Quoted inside another URL, an address may become three times as long; the session
#: cookie has room for this many as well.
_LONGEST_NESTED = 1_500
#: The parameter of /oauth/authorize that has the handle of the actual parameters.
KEPT_REQUEST = "kept"


class LongAddressError(DomainError):
    """An address is too long even to be stored."""

    def __init__(self) -> None:
        """Set the message."""
        super().__init__(f"The request is too long: it has more than {LONGEST:,} characters.")


def short_address(path: str) -> str:
    """Return an address of this service that leads to `path` and fits into another URL.

    Raises TooManyAttemptsError if a network stores too many addresses.
    """
    if len(path) <= _LONGEST_NESTED:
        return path
    if len(path) > LONGEST:
        raise LongAddressError
    handle = _keep(path)
    if path.partition("?")[0] == url_for("authorize.consent"):
        # It may be too long for any URL, so nothing can redirect there.
        return url_for("authorize.consent", kept=handle)
    return url_for("sessions.go_on", handle=handle)


def find_address(handle: str) -> str | None:
    """Return the address that was stored with a handle, or None if it has expired."""
    return find_kept_page(handle, session=db.session(), keyring=services().keyring, now=now())


def _keep(path: str) -> str:
    if session_writes():
        return _store(path, db.session())
    # The request only reads, and may have begun to: the row is written in a session of its own.
    handles: list[str] = []

    def write(session: Session) -> None:
        begin_to_write()
        handles.append(_store(path, session))

    prepared(write)()
    return handles[0]


def _store(path: str, session: Session) -> str:
    address, keyring = request.remote_addr, services().keyring
    return keep_page(path, address=address, session=session, keyring=keyring, now=now())
