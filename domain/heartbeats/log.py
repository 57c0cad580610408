"""The log of a heartbeat: its recent pings."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, select
from sqlalchemy.orm import Session

from domain.database.paging import Listed, ListPart, Page, Slice, fetch_page, fetch_part
from domain.errors import NotFoundError
from domain.heartbeats.states import PingKind
from models import Heartbeat, HeartbeatPing


@dataclass(frozen=True, kw_only=True)
class PingView:
    """A ping in the log."""

    id: int
    created_at: datetime
    kind: PingKind
    exit_status: int | None
    rid: str | None
    duration: timedelta | None
    method: str
    sender: str
    user_agent: str
    #: In bytes as far as it was read.
    size: int
    #: What is kept of the body, as text.
    body: str = field(repr=False)
    is_cut: bool


def list_pings(
    project_id: int, heartbeat_id: int, part: ListPart, *, session: Session
) -> Listed[PingView]:
    """Return a part of the log of a heartbeat."""
    statement = _of(project_id, heartbeat_id)
    found = fetch_part(statement, {"id": HeartbeatPing.id}, part, session=session)
    return Listed(
        items=tuple(_view(row) for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def recent_pings(
    project_id: int, heartbeat_id: int, part: Slice, *, session: Session
) -> Page[PingView]:
    """Return a page of the log of a heartbeat, the newest first."""
    statement = _of(project_id, heartbeat_id)
    return fetch_page(statement, HeartbeatPing.id, part, session=session, view=_view)


def get_ping(project_id: int, heartbeat_id: int, ping_id: int, *, session: Session) -> PingView:
    """Return a ping of the log, or raise NotFoundError."""
    one = _of(project_id, heartbeat_id).where(HeartbeatPing.id == ping_id)
    row = session.execute(one).first()
    if row is None:
        raise NotFoundError("Ping not found in the log of this heartbeat.")
    return _view(row)


def _of(project_id: int, heartbeat_id: int) -> Select[*tuple[Any, ...]]:
    return (
        select(HeartbeatPing)
        .join(Heartbeat, Heartbeat.id == HeartbeatPing.heartbeat_id)
        .where(Heartbeat.id == heartbeat_id, Heartbeat.project_id == project_id)
    )


def _view(row: Row[*tuple[Any, ...]]) -> PingView:
    ping: HeartbeatPing = row[0]
    body = ping.body or b""
    return PingView(
        id=ping.id,
        created_at=ping.created_at,
        kind=PingKind(ping.kind),
        exit_status=ping.exit_status,
        rid=ping.rid,
        duration=None if ping.duration_ms is None else timedelta(milliseconds=ping.duration_ms),
        method=ping.method,
        sender=ping.sender,
        user_agent=ping.user_agent,
        size=ping.size,
        body=body.decode(errors="replace"),
        is_cut=ping.size > len(body),
    )
