"""Return addresses inside other URLs: a long address is stored and replaced by a handle.

The sign-in page, the second factor, identity providers and the session carry the address of the
requested page. Inside another URL, a long address would exceed the limits of a request.
"""

from flask import request, url_for
from sqlalchemy.orm import Session

from domain.accounts.signing_in.kept_pages import LONGEST, find_kept_page, keep_page
from domain.core.errors import DomainError
from web.extensions import db
from web.http.transactions import begin_to_write, prepared, session_writes
from web.services import now, services

#: Maximum length of an address in characters. Quoted inside another URL, it may become three times
#: as long. The session cookie also has room for it.
_LONGEST_NESTED = 1_500
#: Parameter of /oauth/authorize with the handle of the actual parameters.
KEPT_REQUEST = "kept"


class LongAddressError(DomainError):
    """Error for an address that is too long to be stored."""

    def __init__(self) -> None:
        """Set the message."""
        super().__init__(f"The request is too long. It can have at most {LONGEST:,} characters.")


def short_address(path: str) -> str:
    """Return an address that leads to `path` and fits into another URL.

    Raise LongAddressError if the path is too long to be stored. Raise TooManyAttemptsError if a
    network stores too many addresses.
    """
    if len(path) <= _LONGEST_NESTED:
        return path
    if len(path) > LONGEST:
        raise LongAddressError
    handle = _keep(path)
    if path.partition("?")[0] == url_for("authorize.consent"):
        # It may be too long for any URL, so no redirect can lead there.
        return url_for("authorize.consent", kept=handle)
    return url_for("sessions.go_on", handle=handle)


def find_address(handle: str) -> str | None:
    """Return the address that is stored under a handle, or None if it has expired."""
    return find_kept_page(handle, session=db.session(), keyring=services().keyring, now=now())


def _keep(path: str) -> str:
    if session_writes():
        return _store(path, db.session())
    # The request only reads, and may have begun to, so the row is written in a separate session.
    handles: list[str] = []

    def write(session: Session) -> None:
        begin_to_write()
        handles.append(_store(path, session))

    prepared(write)()
    return handles[0]


def _store(path: str, session: Session) -> str:
    address, keyring = request.remote_addr, services().keyring
    return keep_page(path, address=address, session=session, keyring=keyring, now=now())
