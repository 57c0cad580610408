"""Delivery log of integrations: requests from senders, with their outcomes and warnings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, islice
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field
from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, literal_column, select
from sqlalchemy.orm import Session, defer

from domain.alerts.formats.base import WRONG_FORMAT_PREFIX
from domain.alerts.parsing.payload_fields import format_payload
from domain.alerts.parsing.severity import find_unknown_words
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.core.database.time_search import (
    OPEN_BOUNDS,
    TimeBounds,
    build_range_conditions,
    find_id_bounds,
)
from domain.core.errors import NotFoundError, QueryError
from domain.core.labeled_enums import LabeledEnum
from domain.core.types.base import Query, RequestTimeOrDay, Resource, Time, build_choices_schema
from models import Delivery as DeliveryRow
from models import Integration, Project

#: Lowest status code that counts as a rejection.
MIN_REJECTED_STATUS = 300
#: Outcome of a delivery.
DeliveryOutcome = Annotated[str, build_choices_schema("accepted", "refused")]
#: Status codes of responses to deliveries over the rate limit (`RateLimitExceededError`).
_RATE_LIMIT_STATUSES = (429, 503)
_STATUS_CODE = re.compile(r"[0-9]{3}")
#: Maximum number of recent deliveries that a query reads, so that its cost does not grow with the
#: log.
MAX_RECENT_DELIVERIES = 1_000
#: Maximum number of recent deliveries that are examined for problems.
MAX_EXAMINED_DELIVERIES = 200
#: Maximum total size of the bodies that a query reads only to reach the columns after them.
_MAX_PASSED_BYTES = 32 * 1024 * 1024


def get_delivery_outcome(status_code: int) -> str:
    """Return `accepted` or `refused` for the status code of a response to a sender."""
    return "accepted" if status_code < MIN_REJECTED_STATUS else "refused"


class Delivery(Resource):
    """A request from a sender, with its outcome and the number of affected alerts."""

    id: int
    received_at: Time
    outcome: Annotated[DeliveryOutcome, BeforeValidator(get_delivery_outcome)] = Field(
        validation_alias="status_code",
        description="Outcome of the delivery. `refused` means that the delivery was rejected.",
    )
    status_code: int
    reason: str | None = Field(description="Reason why the delivery was rejected.")
    size: int = Field(description="Size of the received body, in bytes.")
    sender: str = Field(
        description="IP address of the sender, or name of the user who sent a test alert."
    )
    created: int = Field(
        validation_alias="opened", description="Number of alerts that were opened."
    )
    grouped: int = Field(
        validation_alias="joined",
        description="Number of reports that were grouped into open alerts.",
    )
    resolved: int = Field(description="Number of alerts that were resolved.")
    parse_warnings: tuple[str, ...]
    truncated_alerts: int = Field(description="Number of alerts that the sender omitted.")
    replayed_as: int | None = Field(
        description="ID of the delivery that was created when this rejected delivery was replayed."
    )
    dropped: int = Field(description="Number of items that a mapping rule dropped.")
    is_test: bool
    duration: int | None = Field(description="Processing time, in microseconds.")
    skipped: int = Field(
        description="Number of similar deliveries that were rejected and not stored."
    )

    @property
    def changed_alert_count(self) -> int:
        """Number of alerts that the delivery opened, updated or resolved."""
        return self.created + self.grouped + self.resolved


def _format_body(body: bytes | None) -> str | None:
    return format_payload(body) if body else None


class StoredDelivery(Delivery):
    """A delivery with its body, if the body is stored."""

    body: Annotated[str | None, BeforeValidator(_format_body)] = Field(
        description="Body of the delivery, indented if it is JSON. Null if it was not stored. The "
        "original bytes are available at `…/body`."
    )


class DeliverySelection(LabeledEnum):
    """The filters of a delivery list, such as accepted or rejected deliveries.

    The values of the filters are used in URLs.
    """

    ALL = "all", "All"
    ACCEPTED = "accepted", "Accepted"
    REFUSED = "refused", "Rejected"
    WARNINGS = "remarks", "With warnings"
    SENDERS = "senders", "From senders"
    TESTS = "tests", "Tests"


_SELECTION_CONDITIONS: Mapping[DeliverySelection, ColumnElement[bool]] = {
    DeliverySelection.ACCEPTED: DeliveryRow.status_code < MIN_REJECTED_STATUS,
    DeliverySelection.REFUSED: DeliveryRow.status_code >= MIN_REJECTED_STATUS,
    # This condition must be written exactly like the condition of the partial index. A bound
    # parameter would prevent the planner from using the index.
    DeliverySelection.WARNINGS: cast(DeliveryRow.parse_warnings, Text) != literal_column("'[]'"),
    DeliverySelection.SENDERS: DeliveryRow.is_test.is_(False),
    DeliverySelection.TESTS: and_(DeliveryRow.is_test),
}


class DeliveryPeriodQuery(Query):
    """Query parameters for the period of a delivery list, in the API and on web pages."""

    received_after: RequestTimeOrDay | None = Field(None, description="Start of the period.")
    received_before: RequestTimeOrDay | None = Field(None, description="End of the period.")

    @property
    def period(self) -> TimeBounds:
        """Start and end of the period."""
        return self.received_after, self.received_before


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """A filter for deliveries of an integration. A status code of None matches all status codes."""

    integration_id: int
    show: DeliverySelection = DeliverySelection.ALL
    status_code: int | None = None
    period: TimeBounds = OPEN_BOUNDS


def parse_delivery_selection(text: str | None) -> DeliverySelection:
    """Return the selection with this name, or DeliverySelection.ALL if the name is empty.

    Raise QueryError if no selection has this name.
    """
    try:
        return DeliverySelection(text or DeliverySelection.ALL)
    except ValueError as error:
        raise QueryError(
            f"`show` must be one of {', '.join(DeliverySelection)}.", field="show"
        ) from error


def parse_status_code(text: str | None) -> int | None:
    """Parse a three-digit status code.

    Return None if the text is empty. Raise QueryError if the text is not a status code.
    """
    if not text:
        return None
    if not _STATUS_CODE.fullmatch(text):
        raise QueryError("`status` must be a status code with three digits.", field="status")
    return int(text)


def list_deliveries(
    wanted: DeliveryFilter, part: KeysetRange, *, session: Session
) -> KeysetPage[Delivery]:
    """Return a page of an integration's deliveries, newest first."""
    inside = _build_period_conditions(wanted.period, session=session)
    found = _build_filtered_query(wanted).where(*inside)
    statement = found.order_by(DeliveryRow.id.desc()).limit(part.size + 1)
    if part.before is not None:
        statement = statement.where(DeliveryRow.id < part.before)
    rows = session.scalars(statement).all()
    items = tuple(map(Delivery.model_validate, rows[: part.size]))
    return KeysetPage(
        items=items, next_before=items[-1].id if items and len(rows) > part.size else None
    )


def _build_filtered_query(wanted: DeliveryFilter) -> Select[Any]:
    statement = (
        select(DeliveryRow)
        .options(defer(DeliveryRow.body))
        .where(DeliveryRow.integration_id == wanted.integration_id)
    )
    if wanted.show in _SELECTION_CONDITIONS:
        statement = statement.where(_SELECTION_CONDITIONS[wanted.show])
    if wanted.status_code is not None:
        statement = statement.where(DeliveryRow.status_code == wanted.status_code)
    return statement


def _build_period_conditions(period: TimeBounds, *, session: Session) -> list[ColumnElement[bool]]:
    ids = find_id_bounds(DeliveryRow.received_at, period, session=session)
    return build_range_conditions(DeliveryRow.id, ids)


def count_rejected_deliveries(integration_id: int, *, session: Session) -> Mapping[int, int]:
    """Return the number of recent rejected deliveries for each status code.

    Deliveries that were counted but not stored are included.
    """
    recent = (
        select(DeliveryRow.status_code, DeliveryRow.skipped)
        .where(DeliveryRow.integration_id == integration_id)
        .order_by(DeliveryRow.id.desc())
        .limit(MAX_RECENT_DELIVERIES)
        .subquery()
    )
    rows = session.execute(
        select(recent.c.status_code, func.sum(recent.c.skipped + 1))
        .where(recent.c.status_code >= MIN_REJECTED_STATUS)
        .group_by(recent.c.status_code)
        .order_by(recent.c.status_code)
    ).all()
    return {status: int(count) for status, count in rows}


def get_delivery(integration_id: int, delivery_id: int, *, session: Session) -> StoredDelivery:
    """Return a delivery with its body.

    Raise NotFoundError if the delivery is not stored.
    """
    return StoredDelivery.model_validate(
        get_delivery_row(integration_id, delivery_id, session=session)
    )


def get_delivery_body(integration_id: int, delivery_id: int, *, session: Session) -> bytes:
    """Return the body of a delivery as it was received.

    Raise NotFoundError if the delivery or its body is not stored.
    """
    body = get_delivery_row(integration_id, delivery_id, session=session).body
    if body is None:
        raise NotFoundError("The body of this delivery was not stored.")
    return body


def get_delivery_text(integration_id: int, delivery_id: int, *, session: Session) -> str:
    """Return the body of a delivery as indented JSON.

    Raise NotFoundError if the delivery or its body is not stored.
    """
    return format_payload(get_delivery_body(integration_id, delivery_id, session=session))


def get_delivery_row(integration_id: int, delivery_id: int, *, session: Session) -> DeliveryRow:
    """Return the database row of a delivery.

    Raise NotFoundError if the delivery is not stored.
    """
    delivery = session.scalar(
        select(DeliveryRow).where(
            DeliveryRow.id == delivery_id, DeliveryRow.integration_id == integration_id
        )
    )
    if delivery is None:
        raise NotFoundError("This delivery is no longer stored.")
    return delivery


@dataclass(frozen=True)
class RecentDelivery:
    """A delivery with its project and integration."""

    id: int
    received_at: datetime
    status_code: int
    reason: str | None
    project_path: str
    #: ID of the integration, or None if it was deleted.
    integration_id: int | None
    integration_name: str | None
    #: IP address of the client, or the name of the user or the part of the service that sent the
    #: delivery.
    sender: str

    @property
    def outcome(self) -> str:
        """Outcome of the delivery: `accepted` or `refused`."""
        return get_delivery_outcome(self.status_code)


_RECENT = (
    select(
        *(DeliveryRow.id, DeliveryRow.received_at, DeliveryRow.status_code, DeliveryRow.reason),
        Project.path.label("project_path"),
        DeliveryRow.integration_id,
        Integration.name.label("integration_name"),
        DeliveryRow.sender,
    )
    .join(Project, Project.id == DeliveryRow.project_id)
    .where(Project.deleted_at.is_(None))
)
_IS_RECEIVER = Integration.id == DeliveryRow.integration_id


def list_recent_inbound_deliveries(*, limit: int, session: Session) -> tuple[RecentDelivery, ...]:
    """Return the most recent deliveries, newest first."""
    found = _RECENT.outerjoin(Integration, _IS_RECEIVER).order_by(DeliveryRow.id.desc())
    return tuple(RecentDelivery(**row) for row in session.execute(found.limit(limit)).mappings())


def list_received_deliveries(
    times: DeliveryPeriodQuery, part: KeysetRange, *, session: Session
) -> KeysetPage[RecentDelivery]:
    """Return a page of the deliveries to any integration that arrived in a period, newest first."""
    inside = _build_period_conditions(times.period, session=session)
    found = _RECENT.join(Integration, _IS_RECEIVER).where(*inside)
    return fetch_page(
        found, DeliveryRow.id, part, session=session, view=lambda row: RecentDelivery(*row)
    )


@dataclass(frozen=True, kw_only=True)
class ProblemCount:
    """The number of times that a problem occurred, and the time of the last occurrence."""

    count: int
    last_at: datetime | None


class DeliverySize(NamedTuple):
    """The ID, body size and status code of a recent delivery."""

    id: int
    size: int
    status_code: int


def find_recent_delivery_sizes(integration_id: int, *, session: Session) -> Sequence[DeliverySize]:
    """Return the last MAX_EXAMINED_DELIVERIES deliveries from senders, newest first."""
    statement = (
        select(DeliveryRow.id, DeliveryRow.size, DeliveryRow.status_code)
        .where(DeliveryRow.integration_id == integration_id, DeliveryRow.is_test.is_(False))
        .order_by(DeliveryRow.id.desc())
        .limit(MAX_EXAMINED_DELIVERIES)
    )
    return [DeliverySize(*row) for row in session.execute(statement)]


def list_ids_within_size(rows: Iterable[DeliverySize], most_bytes: int) -> list[int]:
    """Return the IDs of the first deliveries with a total size of at most `most_bytes`."""
    totals = accumulate((row.size for row in rows), initial=0)
    sizes = zip(rows, islice(totals, 1, None), strict=False)
    return [row.id for row, total in sizes if total <= most_bytes]


@dataclass(frozen=True, kw_only=True)
class DeliveryProblems:
    """Problems found in recent deliveries, such as rate limiting or unknown severity words."""

    #: Alerts that senders omitted from their webhooks (truncatedAlerts).
    left_out: ProblemCount
    #: Deliveries in the format of another integration type.
    misread: ProblemCount
    #: Deliveries that were rejected by the rate limit.
    rate_limited: ProblemCount
    #: Words that could not be mapped to a severity, by the ID of the delivery.
    unknown_words: Mapping[int, tuple[str, ...]]


def find_delivery_problems(recent: Sequence[DeliverySize], *, session: Session) -> DeliveryProblems:
    """Return the problems that were recorded for recent deliveries.

    SQLite must read a whole body to reach the columns after it. Therefore, only the newest
    deliveries are examined, up to a limit on their total size.
    """
    statement = (
        select(DeliveryRow)
        .options(defer(DeliveryRow.body), defer(DeliveryRow.mapping))
        .where(DeliveryRow.id.in_(list_ids_within_size(recent, _MAX_PASSED_BYTES)))
        .order_by(DeliveryRow.id.desc())
    )
    rows = session.scalars(statement).all()
    words = {row.id: find_unknown_words(row.parse_warnings) for row in rows}
    return DeliveryProblems(
        left_out=_count_problem((row, row.truncated_alerts) for row in rows),
        misread=_count_problem((row, 1 + row.skipped) for row in rows if _has_wrong_format(row)),
        rate_limited=_count_problem(
            (row, 1 + row.skipped) for row in rows if row.status_code in _RATE_LIMIT_STATUSES
        ),
        unknown_words={key: found for key, found in words.items() if found},
    )


def _has_wrong_format(row: DeliveryRow) -> bool:
    return any(WRONG_FORMAT_PREFIX in text for text in (row.reason or "", *row.parse_warnings))


def _count_problem(found: Iterable[tuple[DeliveryRow, int]]) -> ProblemCount:
    """Return the total of the counts, and the time of the latest delivery with the problem."""
    counted = [(row.received_at, count) for row, count in found if count]
    last_at = counted[0][0] if counted else None
    return ProblemCount(count=sum(count for _, count in counted), last_at=last_at)
