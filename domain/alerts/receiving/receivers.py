"""Finds the integration that a request is addressed to, and checks its key.

A request requires one query, and a second query if the path may be a previous path of a project. A
`RejectedRequestSampler` selects the rejected deliveries that are stored. All other rejected
deliveries are only counted.
"""

import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    Case,
    Exists,
    Text,
    and_,
    bindparam,
    case,
    cast,
    exists,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from domain.access.features import AccessLevel
from domain.alerts.formats.base import AlertFormat
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.formats.registry import FORMATS, FORMATS_BY_NAME, INTEGRATION_TYPES
from domain.alerts.parsing.mapping import FieldMapping, load_mapping_from_json
from domain.alerts.parsing.parse_warnings import collect_error_warnings
from domain.alerts.storing.inbound_delivery import InboundDelivery, build_delivery_values
from domain.core.database.statements import Row, StatementConnection, build_columns
from domain.core.errors import DomainError, ForbiddenError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from models import Delivery, FormerPath, Integration, Project
from models.case_folding import fold_text

#: ID of the integration, and status code of the response.
RejectionKind = tuple[int | None, int]
#: Maximum length of the user agent column.
_MAX_USER_AGENT_LENGTH = 255

_INSERT_DELIVERY = insert(Delivery).returning(Delivery.id)

_ADD_SKIPPED_COUNT = (
    update(Delivery)
    .where(Delivery.id == bindparam("of_delivery"))
    .values(skipped=Delivery.skipped + bindparam("more"))
)


def store_rejection(
    delivery: InboundDelivery,
    status_code: int,
    error: DomainError,
    *,
    connection: StatementConnection,
) -> int:
    """Store a rejected delivery with its reasons, and return its ID."""
    values = {
        **build_delivery_values(delivery),
        "status_code": status_code,
        "reason": str(error),
        "opened": 0,
        "joined": 0,
        "resolved": 0,
        "remarks": collect_error_warnings(error),
        "truncated_alerts": 0,
        "dropped": 0,
        "skipped": 0,
        "user_agent": (delivery.user_agent or "")[:_MAX_USER_AGENT_LENGTH] or None,
    }
    delivery_id: int = connection.execute_statement(_INSERT_DELIVERY, values)[0][0]
    return delivery_id


def flush_rejections(counts: list[tuple[int, int]], *, connection: StatementConnection) -> None:
    """Add the pending counts of a `RejectedRequestSampler` to rows of the delivery log."""
    if counts:
        connection.execute_statement(
            _ADD_SKIPPED_COUNT, [{"of_delivery": row, "more": more} for row, more in counts]
        )


#: Minimum interval between updates of a key's last use, to limit writes.
KEY_USE_UPDATE_INTERVAL = timedelta(minutes=1)


class UnknownReceiverError(NotFoundError):
    """No integration has the requested URL."""


class WrongKeyError(DomainError):
    """The authorization key is missing or wrong."""


class DisabledReceiverError(ForbiddenError):
    """The integration is turned off."""


class RateLimitExceededError(DomainError):
    """The rate limit is exceeded."""


class RetryableRateLimitError(RateLimitExceededError):
    """The rate limit is exceeded, and the response has status 503 instead of 429.

    Some senders retry a request after a 503 response, but not after a 429 response.
    """


class NotJsonError(DomainError):
    """The media type is not JSON."""


class BodyTooLargeError(DomainError):
    """The body is larger than the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidKey:
    """A valid key of an integration."""

    digest: bytes = field(repr=False)
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """The columns of an integration that are needed to receive a delivery."""

    integration_id: int
    project_id: int
    format: AlertFormat
    active: bool
    #: Current key, and the previous key during its grace period.
    keys: tuple[ValidKey, ...]
    external_is_active: bool
    mapping: FieldMapping
    monitor_id: int | None = None
    #: True if the key can be passed in the URL as the `key` parameter.
    accepts_key_in_url: bool = False
    #: True if the project is archived. Archived projects do not accept alerts.
    is_archived: bool = False
    is_monitored: bool = True


class ReceiverRow(NamedTuple):
    """An integration and its project, as selected by `RECEIVER_QUERY`."""

    id: int
    project_id: int
    type: str
    active: bool
    key_digest: bytes
    previous_key_digest: bytes | None
    previous_key_expires_at: datetime | None
    previous_key_last_used_at: datetime | None
    key_last_used_at: datetime | None
    #: Mapping as JSON text, which is the key in the cache of parsed mappings.
    mapping: str | None
    monitor_id: int | None
    accepts_key_in_url: bool
    external_is_active: bool
    is_archived: bool
    monitor_access_level: str


_EXCLUSIVE_TYPES = tuple(each.name for each in INTEGRATION_TYPES if each.takes_over)
_ActiveIntegration = aliased(Integration)


def build_external_tool_active_condition(project_id: InstrumentedAttribute[int]) -> Exists:
    """Return a condition that is true if an external tool has taken over a project's alerts."""
    return exists().where(
        _ActiveIntegration.project_id == project_id,
        or_(*(_ActiveIntegration.type == name for name in _EXCLUSIVE_TYPES)),
        _ActiveIntegration.active.is_(True),
    )


RECEIVER_QUERY = select(
    *build_columns(
        ReceiverRow._fields,
        {"": Integration},
        mapping=cast(Integration.mapping, Text),
        external_is_active=build_external_tool_active_condition(Integration.project_id),
        is_archived=Project.archived_at.is_not(None),
        monitor_access_level=Project.monitor_access_level,
    )
).join(Project, Project.id == Integration.project_id)


def _build_last_use_expression(
    digest: InstrumentedAttribute[Any], last: InstrumentedAttribute[Any]
) -> Case[Any]:
    used = digest == bindparam("digest")
    return case((used, bindparam("now", type_=last.type)), else_=last)


_RECEIVER_BY_IDENTIFIER_QUERY = RECEIVER_QUERY.where(
    Integration.endpoint_identifier == bindparam("identifier"),
    Project.path_key == bindparam("path"),
)

_OLDEST_RECEIVER_QUERY = (
    RECEIVER_QUERY.where(
        Project.path_key == bindparam("path"), Integration.type == bindparam("type")
    )
    .order_by(Integration.id)
    .limit(1)
)

#: Query for a receiver at a previous path of its project. Previous paths still receive deliveries,
#: since senders do not follow redirects. A previous path is only used if no project currently has
#: this path.
_PREVIOUS_PATH_QUERY = RECEIVER_QUERY.join(
    FormerPath, FormerPath.project_id == Integration.project_id
).where(FormerPath.path_key == bindparam("path"))

_PREVIOUS_PATH_BY_IDENTIFIER_QUERY = _PREVIOUS_PATH_QUERY.where(
    Integration.endpoint_identifier == bindparam("identifier")
)

_PREVIOUS_PATH_OLDEST_QUERY = (
    _PREVIOUS_PATH_QUERY.where(Integration.type == bindparam("type"))
    .order_by(Integration.id)
    .limit(1)
)

_EVENT_TYPES = tuple(each.name for each in FORMATS if each.accepts_events)
_RECEIVER_BY_KEY_QUERY = RECEIVER_QUERY.where(
    or_(
        Integration.key_digest == bindparam("digest"),
        and_(
            Integration.previous_key_digest == bindparam("digest"),
            Integration.previous_key_expires_at > bindparam("now"),
        ),
    ),
    or_(*(Integration.type == name for name in _EVENT_TYPES)),
    Project.deleted_at.is_(None),
)

#: UPDATE statement that finds the key by its digest, since the current key may have become the
#: previous key.
_RECORD_KEY_USE = (
    update(Integration)
    .where(
        Integration.id == bindparam("integration_id"),
        or_(
            Integration.key_digest == bindparam("digest"),
            Integration.previous_key_digest == bindparam("digest"),
        ),
    )
    .values(
        key_last_used_at=_build_last_use_expression(
            Integration.key_digest, Integration.key_last_used_at
        ),
        previous_key_last_used_at=_build_last_use_expression(
            Integration.previous_key_digest, Integration.previous_key_last_used_at
        ),
    )
)


_KEY_IS_MISSING = "The authorization key is missing: there is no Authorization header."
_KEY_IS_MALFORMED = (
    'The Authorization header has no key. Send "Bearer KEY", or Basic with an empty username and '
    "the key as the password."
)


_KEY_IN_URL_IS_REJECTED = (
    'This integration does not accept a key in the URL. Send "Authorization: Bearer KEY", or turn '
    'on "Accept the key in the URL" on the integration\'s page.'
)


def get_receiver_by_identifier(
    project_path: str, identifier: str, *, connection: StatementConnection, now: datetime
) -> Receiver:
    """Return the receiver with this endpoint identifier.

    Raise UnknownReceiverError if no receiver matches.
    """
    parameters = {"identifier": identifier, "path": fold_text(project_path)}
    found = connection.fetch_rows(_RECEIVER_BY_IDENTIFIER_QUERY, parameters)
    return _build_receiver(
        found or connection.fetch_rows(_PREVIOUS_PATH_BY_IDENTIFIER_QUERY, parameters), now
    )


def get_oldest_receiver(
    project_path: str,
    body_format: AlertFormat,
    *,
    connection: StatementConnection,
    now: datetime,
) -> Receiver:
    """Return a project's oldest receiver of a format.

    Raise UnknownReceiverError if no receiver matches.
    """
    parameters = {"type": body_format.name, "path": fold_text(project_path)}
    found = connection.fetch_rows(_OLDEST_RECEIVER_QUERY, parameters)
    return _build_receiver(
        found or connection.fetch_rows(_PREVIOUS_PATH_OLDEST_QUERY, parameters), now
    )


def get_receiver_by_key(
    key: str, *, connection: StatementConnection, keyring: Keyring, now: datetime
) -> Receiver:
    """Return the HTTP receiver with this key.

    Raise UnknownReceiverError if no receiver matches.
    """
    for digest in keyring.compute_digests(key, CredentialType.INTEGRATION_KEY):
        rows = connection.fetch_rows(_RECEIVER_BY_KEY_QUERY, {"digest": digest, "now": now})
        if rows:
            return _build_receiver(rows, now)
    raise UnknownReceiverError("'routing_key' is not the key of an HTTP endpoint")


def get_matching_key(receiver: Receiver, key: str, *, keyring: Keyring) -> ValidKey:
    """Return the valid key of a receiver that matches the given key.

    Raise WrongKeyError if no key matches.
    """
    for valid in receiver.keys:
        if keyring.matches_any_digest(key, [valid.digest]):
            return valid
    raise WrongKeyError("The authorization key is wrong.")


def get_receiver_by_prometheus_url(
    project_path: str, *, connection: StatementConnection, now: datetime
) -> Receiver:
    """Return the receiver with the URL `PATH/prometheus/alerts/notify.json`.

    The URL belongs to the oldest Prometheus receiver of the project PATH, or to the oldest HTTP
    receiver of the project `PATH/prometheus`. Since projects cannot be nested, at most one of these
    projects exists. Raise UnknownReceiverError if there is no receiver.
    """
    with suppress(UnknownReceiverError):
        return get_oldest_receiver(project_path, PROMETHEUS, connection=connection, now=now)
    below = f"{project_path}/{PROMETHEUS.name}"
    return get_oldest_receiver(below, HTTP, connection=connection, now=now)


def _build_receiver(rows: Sequence[Row], now: datetime) -> Receiver:
    found = ReceiverRow._make(rows[0]) if rows else None
    body_format = FORMATS_BY_NAME.get(found.type) if found is not None else None
    if found is None or body_format is None:
        raise UnknownReceiverError("There is no alert integration at this URL.")
    keys = [ValidKey(digest=found.key_digest, last_used_at=found.key_last_used_at)]
    digest, expires_at = found.previous_key_digest, found.previous_key_expires_at
    if digest is not None and expires_at is not None and expires_at > now:
        keys.append(ValidKey(digest=digest, last_used_at=found.previous_key_last_used_at))
    return Receiver(
        integration_id=found.id,
        project_id=found.project_id,
        format=body_format,
        active=found.active,
        keys=tuple(keys),
        external_is_active=found.external_is_active,
        mapping=load_mapping_from_json(found.mapping),
        monitor_id=found.monitor_id,
        accepts_key_in_url=found.accepts_key_in_url,
        is_archived=found.is_archived,
        is_monitored=found.monitor_access_level != AccessLevel.DISABLED,
    )


def parse_authorization_key(authorization: str | None) -> str:
    """Return the key in a Bearer header, or the password in a Basic header without a username.

    Raise WrongKeyError if there is no key.
    """
    scheme, _, rest = (authorization or "").partition(" ")
    key = ""
    if scheme.lower() == "bearer":
        key = rest.strip()
    elif scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeError):
            decoded = base64.b64decode(rest.strip(), validate=True).decode()
            user, _, password = decoded.partition(":")
            key = "" if user else password
    if not key:
        raise WrongKeyError(_KEY_IS_MALFORMED if authorization else _KEY_IS_MISSING)
    return key


def is_bearer_or_basic(authorization: str | None) -> bool:
    """Return whether an Authorization header can contain a key.

    Some senders put a signature without a scheme into this header.
    """
    return (authorization or "").partition(" ")[0].lower() in {"bearer", "basic"}


def get_key_in_url(receiver: Receiver, given: str | None) -> str | None:
    """Return the key in the URL of a request, or None if the URL contains no key.

    Raise WrongKeyError if the integration does not accept keys in URLs.
    """
    if given and not receiver.accepts_key_in_url:
        raise WrongKeyError(_KEY_IN_URL_IS_REJECTED)
    return given or None


def check_accepts_alerts(receiver: Receiver) -> None:
    """Check that the integration and its project accept alerts.

    A project does not accept alerts while an external on-call tool is active. Raise
    DisabledReceiverError if alerts are not accepted.
    """
    if receiver.is_archived:
        message = "This project is archived and does not accept alerts. An owner can unarchive it."
        raise DisabledReceiverError(message)
    if not receiver.is_monitored:
        message = "Monitoring is turned off in this project, so it does not accept alerts."
        raise DisabledReceiverError(message)
    if receiver.external_is_active:
        message = "The project uses an external on-call tool, so this endpoint is disabled."
        raise DisabledReceiverError(message)
    if not receiver.active:
        raise DisabledReceiverError("This integration is turned off.")


def record_integration_key_use(
    receiver: Receiver, key: ValidKey, *, connection: StatementConnection, now: datetime
) -> None:
    """Store the time at which a key was last used."""
    parameters = {"integration_id": receiver.integration_id, "digest": key.digest, "now": now}
    connection.execute_statement(_RECORD_KEY_USE, parameters)
