"""Silences: matchers whose alerts page nobody for a time. Alerts are stored and shown as ever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.orm import Session, aliased

from domain.alerts.matching.matchers import Matcher, as_text, matches
from domain.alerts.matching.parser import parse_matchers
from domain.alerts.reading.text import storable
from domain.audit.events import Actor
from domain.database.paging import Listed, ListPart, Page, Slice, fetch_page, fetch_part
from domain.durations import duration_text
from domain.errors import ConflictError, InvalidError, NotFoundError
from models import Silence, User

LONGEST_COMMENT = 1_000
SHORTEST = timedelta(minutes=1)
#: In a project: more would make each page slow to decide.
MOST_LIVE = 500
#: A start may lie so long in the past, as when a form was open for a while.
_LATE_START = timedelta(days=1)
_LATEST_START = timedelta(days=366)


class SilenceState(StrEnum):
    """Where a moment lies relative to a silence."""

    ACTIVE = "active"
    PENDING = "pending"
    EXPIRED = "expired"


@dataclass(frozen=True, kw_only=True)
class SilenceView:
    """A silence as pages, the API and commands see it."""

    id: int
    project_id: int
    matchers: tuple[Matcher, ...]
    comment: str
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    #: User names; empty for the command line.
    created_by: str
    #: Who ended it before its time, or empty.
    ended_by: str

    def state(self, at: datetime) -> SilenceState:
        """Return its state at a moment."""
        if self.ends_at <= at:
            return SilenceState.EXPIRED
        return SilenceState.ACTIVE if self.starts_at <= at else SilenceState.PENDING

    @property
    def text(self) -> str:
        """Its matchers in their canonical form."""
        return as_text(self.matchers)


@dataclass(frozen=True, kw_only=True)
class NewSilence:
    """What a silence is to be."""

    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    comment: str = ""


_AUTHOR, _ENDER = aliased(User), aliased(User)
_ROWS: Select[Silence, str | None, str | None] = (
    select(Silence, _AUTHOR.username, _ENDER.username)
    .outerjoin(_AUTHOR, _AUTHOR.id == Silence.created_by_id)
    .outerjoin(_ENDER, _ENDER.id == Silence.ended_by_id)
)


def _view(row: Row[*tuple[Any, ...]]) -> SilenceView:
    silence: Silence = row[0]
    author, ender = row[1], row[2]
    return SilenceView(
        id=silence.id,
        project_id=silence.project_id,
        matchers=parse_matchers(silence.matchers),
        comment=silence.comment,
        starts_at=silence.starts_at,
        ends_at=silence.ends_at,
        created_at=silence.created_at,
        created_by=author or "",
        ended_by=ender or "",
    )


def check_matchers(matchers: Sequence[Matcher]) -> None:
    """Raise InvalidError for matchers that would silence alerts which have none of the labels."""
    if not matchers:
        message = 'Give at least one matcher, such as service="web".'
        raise InvalidError(message, field="matchers")
    if matches(matchers, {}):
        message = (
            "These matchers match every alert without such labels. At least one of them must not "
            'match an empty value, such as service="web" or alertname=~".+".'
        )
        raise InvalidError(message, field="matchers")


def create_silence(
    project_id: int,
    wanted: NewSilence,
    *,
    by: Actor | None,
    longest: timedelta,
    session: Session,
    now: datetime,
) -> SilenceView:
    """Store a silence, or raise InvalidError or ConflictError."""
    check_matchers(wanted.matchers)
    _check_times(wanted.starts_at, wanted.ends_at, longest=longest, now=now)
    _check_room(project_id, session=session, now=now)
    made = Silence(
        project_id=project_id,
        matchers=as_text(wanted.matchers),
        comment=_checked_comment(wanted.comment),
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        created_at=now,
        created_by_id=by.id if by else None,
    )
    session.add(made)
    session.flush()
    return get_silence(project_id, made.id, session=session)


def _check_times(
    starts_at: datetime, ends_at: datetime, *, longest: timedelta, now: datetime
) -> None:
    if not now - _LATE_START <= starts_at <= now + _LATEST_START:
        message = "A silence can start now, or within a year."
        raise InvalidError(message, field="starts_at")
    if ends_at <= now or ends_at - starts_at < SHORTEST:
        message = "A silence must end in the future and last at least one minute."
        raise InvalidError(message, field="ends_at")
    if ends_at - max(starts_at, now) > longest:
        message = f"A silence can last at most {duration_text(longest)}."
        raise InvalidError(message, field="ends_at")


def _check_room(project_id: int, *, session: Session, now: datetime) -> None:
    live = select(func.count()).where(Silence.project_id == project_id, Silence.ends_at > now)
    if (session.scalar(live) or 0) >= MOST_LIVE:
        message = f"This project has {MOST_LIVE} silences that have not ended: end some first."
        raise ConflictError(message, field="matchers")


def _checked_comment(text: str) -> str:
    comment = storable(text).strip()
    if len(comment) > LONGEST_COMMENT:
        message = f"A comment can have at most {LONGEST_COMMENT:,} characters."
        raise InvalidError(message, field="comment")
    return comment


def find_live(
    project_ids: Sequence[int], *, at: datetime, session: Session
) -> Mapping[int, Sequence[SilenceView]]:
    """Return the active silences of projects by project, the one that ends last first."""
    rows = session.execute(
        _ROWS.where(
            Silence.project_id.in_(project_ids), Silence.ends_at > at, Silence.starts_at <= at
        ).order_by(Silence.ends_at.desc(), Silence.id)
    )
    found: dict[int, list[SilenceView]] = {}
    for row in rows:
        view = _view(row)
        found.setdefault(view.project_id, []).append(view)
    return found


def get_silence(project_id: int, silence_id: int, *, session: Session) -> SilenceView:
    """Return a silence, or raise NotFoundError."""
    row = session.execute(
        _ROWS.where(Silence.project_id == project_id, Silence.id == silence_id)
    ).first()
    if row is None:
        message = f"Silence {silence_id} not found in this project."
        raise NotFoundError(message)
    return _view(row)


def _in_state(state: SilenceState | None, now: datetime) -> list[ColumnElement[bool]]:
    match state:
        case SilenceState.EXPIRED:
            return [Silence.ends_at <= now]
        case SilenceState.ACTIVE:
            return [Silence.ends_at > now, Silence.starts_at <= now]
        case SilenceState.PENDING:
            return [Silence.ends_at > now, Silence.starts_at > now]
    return []


def list_silences(
    project_id: int, state: SilenceState | None, part: Slice, *, session: Session, now: datetime
) -> Page[SilenceView]:
    """Return a page of silences, the newest first."""
    statement = _ROWS.where(Silence.project_id == project_id, *_in_state(state, now))
    return fetch_page(statement, Silence.id, part, session=session, view=_view)


def numbered_silences(
    project_id: int, state: SilenceState | None, part: ListPart, *, session: Session, now: datetime
) -> Listed[SilenceView]:
    """Return a part of the silences for the API."""
    statement = _ROWS.where(Silence.project_id == project_id, *_in_state(state, now))
    orders = {"id": Silence.id, "starts_at": Silence.starts_at, "ends_at": Silence.ends_at}
    found = fetch_part(statement, orders, part, session=session)
    items = tuple(_view(row) for row in found.items)
    return Listed(items=items, total=found.total, next_cursor=found.next_cursor)


def count_by_state(
    project_id: int, *, session: Session, now: datetime
) -> Mapping[SilenceState, int]:
    """Return how many are active and pending; expired ones are not counted."""
    rows = session.scalars(
        select(Silence.starts_at).where(Silence.project_id == project_id, Silence.ends_at > now)
    ).all()
    active = sum(starts_at <= now for starts_at in rows)
    return {SilenceState.ACTIVE: active, SilenceState.PENDING: len(rows) - active}


@dataclass(frozen=True, kw_only=True)
class SilenceChange:
    """What changes in a silence; None leaves a value as it is."""

    ends_at: datetime | None = None
    comment: str | None = None


def change_silence(
    project_id: int,
    silence_id: int,
    change: SilenceChange,
    *,
    longest: timedelta,
    session: Session,
    now: datetime,
) -> SilenceView:
    """Give a silence another end or comment; raise ConflictError if it has ended."""
    row = _lock_live(project_id, silence_id, session=session, now=now)
    if change.ends_at is not None:
        starts_at = row.starts_at
        # It was checked when it was new, and may have begun long ago.
        _check_times(max(starts_at, now), change.ends_at, longest=longest, now=now)
        row.ends_at = change.ends_at
    if change.comment is not None:
        row.comment = _checked_comment(change.comment)
    session.flush()
    return get_silence(project_id, silence_id, session=session)


def expire_silence(
    project_id: int, silence_id: int, *, by: Actor | None, session: Session, now: datetime
) -> SilenceView:
    """End a silence now; raise ConflictError if it has ended."""
    row = _lock_live(project_id, silence_id, session=session, now=now)
    row.starts_at = min(row.starts_at, now)
    row.ends_at = now
    row.ended_by_id = by.id if by else None
    session.flush()
    return get_silence(project_id, silence_id, session=session)


def _lock_live(project_id: int, silence_id: int, *, session: Session, now: datetime) -> Silence:
    row = session.scalar(
        select(Silence)
        .where(Silence.project_id == project_id, Silence.id == silence_id)
        .with_for_update()
    )
    if row is None:
        message = f"Silence {silence_id} not found in this project."
        raise NotFoundError(message)
    if row.ends_at <= now:
        message = "This silence has ended. Create a new one."
        raise ConflictError(message)
    return row
