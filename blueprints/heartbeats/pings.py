"""Receives pings in a hot path, without a database session.

The URL of a heartbeat is the secret that identifies it.
"""

import logging
from uuid import UUID

from flask import g, request

from domain.core.errors import NotFoundError, QueryError
from domain.heartbeats.evaluation import evaluate_heartbeat
from domain.heartbeats.pings import Ping, PingedHeartbeat, is_valid_ping_key, store_ping
from domain.heartbeats.states import PingKind, convert_to_unix_ms
from web.access.rate_limits import limit_pings_by_address, limit_pings_by_heartbeat
from web.database.errors import SQLAlchemyError
from web.http.request_bodies import BodyPrefix, read_body_prefix
from web.services import get_current_time, get_services, get_settings

_log = logging.getLogger("gatebell.heartbeats")
#: Maximum number of bytes read from a body. A ping with a larger body is still recorded.
_MAX_READ_BYTES = 2**20
_MAX_EXIT_STATUS = 255


def receive_ping(key: str, kind: PingKind, exit_status: int | None = None) -> BodyPrefix:
    """Store a ping, and return the beginning of its body.

    Raise NotFoundError for an unknown key, and QueryError for a malformed run ID or exit status.
    """
    moment = get_current_time()
    _count_ping_in_rate_limits(key)
    if exit_status is not None and exit_status > _MAX_EXIT_STATUS:
        raise QueryError("invalid url format: an exit status must be from 0 to 255")
    given, own = request.args.get("rid"), get_services()
    rid = None if given is None else _parse_uuid(given)
    if given is not None and rid is None:
        raise QueryError("invalid uuid format: rid must be the UUID of a run")
    kept = get_settings().heartbeat_body_limit_bytes
    # Check the key first, so that clients with an unknown key cannot send large bodies.
    is_large = "Transfer-Encoding" in request.headers or (request.content_length or 0) > kept
    if is_large and not is_valid_ping_key(key, connection=own.connections, keyring=own.keyring):
        raise NotFoundError("not found")
    body = read_body_prefix(kept, _MAX_READ_BYTES)
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
        raise NotFoundError("not found")
    if stored.due_ms is not None and stored.due_ms <= convert_to_unix_ms(moment):
        _evaluate_heartbeat(stored)
    return body


@limit_pings_by_address
def _count_ping_in_rate_limits(key: str) -> None:
    """Count the ping toward the rate limits for the IP address and the heartbeat.

    Raise NotFoundError for a malformed key.
    """
    if _parse_uuid(key) != key:
        raise NotFoundError("not found")
    # The key may be unknown because requests are counted before the database is queried.
    g.heartbeat = get_services().keyring.compute_digest(key).hex()
    _count_ping_toward_heartbeat_limit()


@limit_pings_by_heartbeat
def _count_ping_toward_heartbeat_limit() -> None:
    """Count the request toward the heartbeat's rate limit.

    The decorator does the counting.
    """


def _parse_uuid(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _evaluate_heartbeat(stored_ping: PingedHeartbeat) -> None:
    """Evaluate the heartbeat after a ping, and open or resolve its alert.

    If the evaluation fails, the worker retries it later.
    """
    try:
        evaluate_heartbeat(
            stored_ping.heartbeat_id, connection=get_services().connections, now=get_current_time()
        )
    except SQLAlchemyError as error:
        said = {"heartbeat_id": stored_ping.heartbeat_id, "reason": type(error).__name__}
        _log.warning(
            "Heartbeat was not evaluated after its ping; the worker will retry.",
            extra={"event": "heartbeat.evaluation_postponed", **said},
        )
