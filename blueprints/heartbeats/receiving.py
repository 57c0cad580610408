"""The receiver of pings: a hot path without a session, where the URL is the secret."""

import logging
from uuid import UUID

from flask import g, request

from domain.core.errors import NotFoundError, QueryError
from domain.heartbeats.evaluation import settle
from domain.heartbeats.pings import Ping, StoredPing, is_due, is_known, store_ping
from domain.heartbeats.states import PingKind
from web.access.rate_limits import by_heartbeat, by_pinging_address
from web.database.errors import SQLAlchemyError
from web.http.request_bodies import BodyBeginning, read_beginning
from web.services import now, services, settings

_log = logging.getLogger("gatebell.heartbeats")
#: Maximum number of body bytes that are read. A ping with a larger body still counts.
_MOST_READ = 2**20
_LONGEST_EXIT_STATUS = 255


def receive_ping(key: str, kind: PingKind, exit_status: int | None = None) -> BodyBeginning:
    """Store a ping and return the part of its body that was read.

    Raise NotFoundError for an unknown key, and QueryError for a malformed run id or exit status.
    """
    moment = now()
    _count(key)
    if exit_status is not None and exit_status > _LONGEST_EXIT_STATUS:
        raise QueryError("invalid url format: an exit status must be from 0 to 255")
    rid, own = _run_id(), services()
    kept = settings().heartbeat_body_limit_bytes
    # Check the key first, so that clients with an unknown key cannot send large bodies.
    is_large = "Transfer-Encoding" in request.headers or (request.content_length or 0) > kept
    if is_large and not is_known(key, connection=own.connections, keyring=own.keyring):
        raise _unknown()
    body = read_beginning(kept, _MOST_READ)
    ping = Ping(
        kind=kind,
        exit_status=exit_status,
        rid=rid,
        method=request.method,
        sender=request.remote_addr or "",
        user_agent=request.headers.get("User-Agent", ""),
        size=body.size,
        body=body.content,
        received_at=moment,
    )
    stored = store_ping(key, ping, connection=own.connections, keyring=own.keyring)
    if stored is None:
        raise _unknown()
    if is_due(stored, ping):
        _settle(stored)
    return body


@by_pinging_address
def _count(key: str) -> None:
    """Count the ping by IP address and by heartbeat.

    Raise NotFoundError for a malformed key.
    """
    if not _is_well_formed(key):
        raise _unknown()
    # The key may be unknown, since requests are counted before the database is queried.
    g.heartbeat = services().keyring.digest(key).hex()
    _count_for_heartbeat()


@by_heartbeat
def _count_for_heartbeat() -> None:
    """Count the request; the decorator does all the work."""


def _is_well_formed(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _unknown() -> NotFoundError:
    return NotFoundError("not found")


def _run_id() -> str | None:
    given = request.args.get("rid")
    if given is None:
        return None
    try:
        return str(UUID(given))
    except ValueError as error:
        raise QueryError("invalid uuid format: rid must be the UUID of a run") from error


def _settle(stored: StoredPing) -> None:
    """Open or resolve the alert immediately; if that fails, the worker does it later."""
    try:
        settle(stored.heartbeat_id, connection=services().connections, now=now())
    except SQLAlchemyError as error:
        said = {"heartbeat_id": stored.heartbeat_id, "reason": type(error).__name__}
        _log.warning(
            "Heartbeat was not evaluated after its ping; the worker retries.",
            extra={"event": "heartbeat.evaluation_postponed", **said},
        )
