"""Finds the integration that a request is addressed to, and checks its key.

This takes one query, and a second one if the path may be a former path of a project. A
`RefusalSampler` selects the rejected deliveries that are stored. All others are only counted.
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
from domain.alerts.formats.base import Format
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.formats.registry import FORMATS, FORMATS_BY_NAME, INTEGRATION_TYPES
from domain.alerts.reading.mapping import FieldMapping, mapping_of_json
from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.storing.inbound_delivery import InboundDelivery, delivery_values
from domain.core.database.statements import KeptConnection, Row, columns_for
from domain.core.errors import DomainError, ForbiddenError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from models import Delivery, FormerPath, Integration, Project
from models.folding import fold

#: ID of the integration, and status code of the response.
RefusalKind = tuple[int | None, int]
#: Length of the column for the user agent.
_LONGEST_USER_AGENT = 255

_INSERT = insert(Delivery).returning(Delivery.id)

_SKIP = (
    update(Delivery)
    .where(Delivery.id == bindparam("of_delivery"))
    .values(skipped=Delivery.skipped + bindparam("more"))
)


def store_refusal(
    delivery: InboundDelivery, status_code: int, error: DomainError, *, connection: KeptConnection
) -> int:
    """Store a rejected delivery with its reasons, and return its ID."""
    values = {
        **delivery_values(delivery),
        "status_code": status_code,
        "reason": str(error),
        "opened": 0,
        "joined": 0,
        "resolved": 0,
        "remarks": parse_warnings_on(error),
        "truncated_alerts": 0,
        "dropped": 0,
        "skipped": 0,
        "user_agent": (delivery.user_agent or "")[:_LONGEST_USER_AGENT] or None,
    }
    delivery_id: int = connection.all(_INSERT, values)[0][0]
    return delivery_id


def flush_refusals(counts: list[tuple[int, int]], *, connection: KeptConnection) -> None:
    """Add pending counts to rows that a `RefusalSampler` returned."""
    if counts:
        connection.all(_SKIP, [{"of_delivery": row, "more": more} for row, more in counts])


#: Minimum interval between updates of the time of last use, to limit writes.
USE_RESOLUTION = timedelta(minutes=1)


class UnknownReceiverError(NotFoundError):
    """There is no integration with this URL."""


class WrongKeyError(DomainError):
    """The authorization key is missing or wrong."""


class DisabledReceiverError(ForbiddenError):
    """The integration is turned off."""


class OverLimitError(DomainError):
    """The rate limit is exceeded."""


class BusyError(OverLimitError):
    """The rate limit is exceeded, and the sender retries after a 503 but not after a 429."""


class NotJsonError(DomainError):
    """The media type is not JSON."""


class BodyTooLargeError(DomainError):
    """The body is larger than the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveKey:
    """A valid key of an integration."""

    digest: bytes = field(repr=False)
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """The columns of an integration that are needed to receive a delivery."""

    integration_id: int
    project_id: int
    format: Format
    active: bool
    #: Current key, and the previous key during its grace period.
    keys: tuple[LiveKey, ...]
    external_is_active: bool
    mapping: FieldMapping
    monitor_id: int | None = None
    #: True if the key can be passed in the URL as the parameter `key`.
    accepts_key_in_url: bool = False
    #: True if the project is archived. Archived projects do not accept alerts.
    is_archived: bool = False
    is_monitored: bool = True


class FoundIntegration(NamedTuple):
    """An integration and its project, as selected by `INTEGRATION`."""

    id: int
    project_id: int
    type: str
    active: bool
    key_digest: bytes
    previous_key_digest: bytes | None
    previous_key_expires_at: datetime | None
    previous_key_last_used_at: datetime | None
    key_last_used_at: datetime | None
    #: Mapping as text, which is the key of the cache of parsed mappings.
    mapping: str | None
    monitor_id: int | None
    accepts_key_in_url: bool
    external_is_active: bool
    is_archived: bool
    monitor_access_level: str


_TAKE_OVER = tuple(each.name for each in INTEGRATION_TYPES if each.takes_over)
_Active = aliased(Integration)


def is_taken_over(project_id: InstrumentedAttribute[int]) -> Exists:
    """Return the condition that an external tool has taken over the alerts of a project."""
    return exists().where(
        _Active.project_id == project_id,
        or_(*(_Active.type == name for name in _TAKE_OVER)),
        _Active.active.is_(True),
    )


INTEGRATION = select(
    *columns_for(
        FoundIntegration._fields,
        {"": Integration},
        mapping=cast(Integration.mapping, Text),
        external_is_active=is_taken_over(Integration.project_id),
        is_archived=Project.archived_at.is_not(None),
        monitor_access_level=Project.monitor_access_level,
    )
).join(Project, Project.id == Integration.project_id)


def _if_used(digest: InstrumentedAttribute[Any], last: InstrumentedAttribute[Any]) -> Case[Any]:
    used = digest == bindparam("digest")
    return case((used, bindparam("now", type_=last.type)), else_=last)


_BY_IDENTIFIER = INTEGRATION.where(
    Integration.endpoint_identifier == bindparam("identifier"),
    Project.path_key == bindparam("path"),
)

_OLDEST_OF_TYPE = (
    INTEGRATION.where(Project.path_key == bindparam("path"), Integration.type == bindparam("type"))
    .order_by(Integration.id)
    .limit(1)
)

#: Senders do not follow redirects, so former paths of a project keep receiving deliveries. A former
#: path is only used if no project has this path now.
_AT_FORMER_PATH = INTEGRATION.join(
    FormerPath, FormerPath.project_id == Integration.project_id
).where(FormerPath.path_key == bindparam("path"))

_FORMER_BY_IDENTIFIER = _AT_FORMER_PATH.where(
    Integration.endpoint_identifier == bindparam("identifier")
)

_FORMER_OLDEST_OF_TYPE = (
    _AT_FORMER_PATH.where(Integration.type == bindparam("type")).order_by(Integration.id).limit(1)
)

_TAKE_EVENTS = tuple(each.name for each in FORMATS if each.takes_events)
_BY_KEY = INTEGRATION.where(
    or_(
        Integration.key_digest == bindparam("digest"),
        and_(
            Integration.previous_key_digest == bindparam("digest"),
            Integration.previous_key_expires_at > bindparam("now"),
        ),
    ),
    or_(*(Integration.type == name for name in _TAKE_EVENTS)),
    Project.deleted_at.is_(None),
)

#: Update that finds the key by its digest, since the current key may have become the previous one.
_RECORD_USE = (
    update(Integration)
    .where(
        Integration.id == bindparam("integration_id"),
        or_(
            Integration.key_digest == bindparam("digest"),
            Integration.previous_key_digest == bindparam("digest"),
        ),
    )
    .values(
        key_last_used_at=_if_used(Integration.key_digest, Integration.key_last_used_at),
        previous_key_last_used_at=_if_used(
            Integration.previous_key_digest, Integration.previous_key_last_used_at
        ),
    )
)


_MISSING = "The authorization key is missing: there is no Authorization header."
_IN_OTHER_FORM = (
    'The Authorization header has no key. Send "Bearer KEY", or Basic with an empty user name and '
    "the key as the password."
)


_NOT_IN_URL = (
    'This integration does not accept a key in the URL. Send "Authorization: Bearer KEY", or turn '
    'on "Accept the key in the URL" on its page.'
)


def find_receiver(
    project_path: str, identifier: str, *, connection: KeptConnection, now: datetime
) -> Receiver:
    """Return the receiver with this endpoint identifier.

    Raise UnknownReceiverError if there is none.
    """
    parameters = {"identifier": identifier, "path": fold(project_path)}
    found = connection.look_up(_BY_IDENTIFIER, parameters)
    return _receiver(found or connection.look_up(_FORMER_BY_IDENTIFIER, parameters), now)


def find_oldest_receiver(
    project_path: str,
    body_format: Format,
    *,
    connection: KeptConnection,
    now: datetime,
) -> Receiver:
    """Return a project's oldest receiver of a format.

    Raise UnknownReceiverError if there is none.
    """
    parameters = {"type": body_format.name, "path": fold(project_path)}
    found = connection.look_up(_OLDEST_OF_TYPE, parameters)
    return _receiver(found or connection.look_up(_FORMER_OLDEST_OF_TYPE, parameters), now)


def find_receiver_by_key(
    key: str, *, connection: KeptConnection, keyring: Keyring, now: datetime
) -> Receiver:
    """Return the HTTP receiver with this key.

    Raise UnknownReceiverError if there is none.
    """
    for digest in keyring.digests(key, CredentialType.INTEGRATION_KEY):
        rows = connection.look_up(_BY_KEY, {"digest": digest, "now": now})
        if rows:
            return _receiver(rows, now)
    raise UnknownReceiverError("'routing_key' is not the key of an HTTP endpoint")


def key_of(receiver: Receiver, key: str, *, keyring: Keyring) -> LiveKey:
    """Return the valid key of a receiver that matches the given key.

    Raise WrongKeyError if none matches.
    """
    for live in receiver.keys:
        if keyring.matches(key, [live.digest]):
            return live
    raise WrongKeyError("The authorization key is wrong.")


def find_metrics_receiver(
    project_path: str, *, connection: KeptConnection, now: datetime
) -> Receiver:
    """Return the receiver with the URL `PATH/prometheus/alerts/notify.json`.

    This is the oldest Prometheus receiver of the project PATH, or the oldest HTTP receiver of the
    project `PATH/prometheus`. Since projects cannot be nested, at most one of them exists. Raise
    UnknownReceiverError if there is no receiver.
    """
    with suppress(UnknownReceiverError):
        return find_oldest_receiver(project_path, PROMETHEUS, connection=connection, now=now)
    below = f"{project_path}/{PROMETHEUS.name}"
    return find_oldest_receiver(below, HTTP, connection=connection, now=now)


def _receiver(rows: Sequence[Row], now: datetime) -> Receiver:
    found = FoundIntegration._make(rows[0]) if rows else None
    body_format = FORMATS_BY_NAME.get(found.type) if found is not None else None
    if found is None or body_format is None:
        raise UnknownReceiverError("There is no alert integration at this URL.")
    keys = [LiveKey(digest=found.key_digest, last_used_at=found.key_last_used_at)]
    digest, expires_at = found.previous_key_digest, found.previous_key_expires_at
    if digest is not None and expires_at is not None and expires_at > now:
        keys.append(LiveKey(digest=digest, last_used_at=found.previous_key_last_used_at))
    return Receiver(
        integration_id=found.id,
        project_id=found.project_id,
        format=body_format,
        active=found.active,
        keys=tuple(keys),
        external_is_active=found.external_is_active,
        mapping=mapping_of_json(found.mapping),
        monitor_id=found.monitor_id,
        accepts_key_in_url=found.accepts_key_in_url,
        is_archived=found.is_archived,
        is_monitored=found.monitor_access_level != AccessLevel.DISABLED,
    )


def presented_key(authorization: str | None) -> str:
    """Return the key in a Bearer header, or the password in a Basic header without a user name.

    Raise WrongKeyError if there is none.
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
        raise WrongKeyError(_IN_OTHER_FORM if authorization else _MISSING)
    return key


def key_of_url(receiver: Receiver, given: str | None) -> str | None:
    """Return the key in the URL of a request, or None if there is none.

    Raise WrongKeyError if the integration does not accept keys in URLs.
    """
    if given and not receiver.accepts_key_in_url:
        raise WrongKeyError(_NOT_IN_URL)
    return given or None


def check_open(receiver: Receiver) -> None:
    """Raise DisabledReceiverError if the integration or its project does not accept alerts.

    This is also the case while an external on-call tool is active.
    """
    if receiver.is_archived:
        message = "This project is archived and does not accept alerts. An owner can unarchive it."
        raise DisabledReceiverError(message)
    if not receiver.is_monitored:
        message = "Monitoring is turned off in this project, so it does not accept alerts."
        raise DisabledReceiverError(message)
    if receiver.external_is_active:
        message = "The project uses an external on-call tool, so this endpoint is closed."
        raise DisabledReceiverError(message)
    if not receiver.active:
        raise DisabledReceiverError("This integration is turned off.")


def record_use(
    receiver: Receiver, key: LiveKey, *, connection: KeptConnection, now: datetime
) -> None:
    """Store the time at which a key was last used."""
    parameters = {"integration_id": receiver.integration_id, "digest": key.digest, "now": now}
    connection.all(_RECORD_USE, parameters)
