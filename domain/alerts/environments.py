"""The environments of a project, such as production or staging.

Users can create environments. An alert that names an unknown environment creates it, too. A trigger
inserts the environment in the transaction that stores the alert (migration 0051).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.reading.text import storable
from domain.core.database.paging import Page
from domain.core.errors import InvalidError, NotFoundError, TakenError
from domain.core.types.base import columns_of
from domain.projects.access import COUNT_LIMIT
from models import Alert, Environment
from models.folding import fold, searchable

#: Minimum number of characters in a search. Shorter searches match too much and are slow.
SHORTEST_SEARCH = 3
LONGEST_NAME = 255
_LONGEST_SLUG = 24
_SUFFIX_LENGTH = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: Names that can be used in a URL path unchanged. Other names may be "..", or may start or end with
#: spaces or slashes.
_PLAIN = re.compile(r"[^\W_][\w.-]*(?:/[^\W_][\w.-]*)*")
_BY_NUMBER = re.compile(r"~([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True)
class EnvironmentView:
    """An environment with the number of its open alerts."""

    id: int
    name: str
    created_at: datetime
    #: URL at which the environment runs, if it is known.
    external_url: str | None = None
    #: Number of open alerts. It is exact up to COUNT_LIMIT; a larger value is a lower bound.
    open_alerts: int = 0
    stopped_at: datetime | None = None

    @property
    def state(self) -> str:
        """State of the environment as the API returns it."""
        return "available" if self.stopped_at is None else "stopped"

    @property
    def reference(self) -> str:
        """Reference of the environment in URLs: its name, or `~` and its ID."""
        return reference_of(self.id, self.name)

    @property
    def slug(self) -> str:
        """Name of the environment in a form that is valid in host names, for API clients."""
        return slug_of(self.name)


@dataclass(frozen=True, kw_only=True)
class EnvironmentFilter:
    """A filter on the environments of a project."""

    project_id: int
    #: Exact name.
    name: str | None = None
    #: Part of the name, matched case-insensitively.
    search: str | None = None
    #: State, available or stopped; None matches both.
    state: str | None = None


def check_search(search: str) -> None:
    """Raise InvalidError if a search is too short."""
    if search and len(search) < SHORTEST_SEARCH:
        message = f"The search must have at least {SHORTEST_SEARCH} characters."
        raise InvalidError(message, field="search")


def is_plain(name: str) -> bool:
    """Return whether a name can be used in a URL path unchanged."""
    return _PLAIN.fullmatch(name) is not None


def reference_of(environment_id: int, name: str) -> str:
    """Return the environment's reference for URLs: its name if possible, else `~` and its ID."""
    return name if is_plain(name) else f"~{environment_id}"


def slug_of(name: str) -> str:
    """Return a slug of at most 24 lowercase letters, digits and dashes.

    A slug that differs from its name ends with a hash, so that different names have different
    slugs.
    """
    slug = re.sub(r"[^a-z0-9]", "-", name.lower())
    if not re.match(r"[a-z]", slug):
        slug = f"env-{slug}"
    slug = re.sub(r"-+", "-", slug)
    if len(slug) <= _LONGEST_SLUG and slug == name:
        return slug
    beginning = slug[: _LONGEST_SLUG - _SUFFIX_LENGTH - 1]
    return f"{beginning}{'' if beginning.endswith('-') else '-'}{_suffix(name)}"


def _suffix(name: str) -> str:
    number, digits = int(sha256(name.encode()).hexdigest(), 16), ""
    while len(digits) < _SUFFIX_LENGTH:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def view_of(environment: Environment, open_alerts: int = 0) -> EnvironmentView:
    """Convert a row of the database to a view."""
    return EnvironmentView(**columns_of(environment, EnvironmentView), open_alerts=open_alerts)


def _conditions(wanted: EnvironmentFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [Environment.project_id == wanted.project_id]
    if wanted.name:
        found.append(Environment.name == storable(wanted.name))
    if wanted.state is not None:
        is_available = Environment.stopped_at.is_(None)
        found.append(is_available if wanted.state == "available" else ~is_available)
    if wanted.search:
        name = searchable(Environment.name, Environment.name_key)
        found.append(name.contains(fold(storable(wanted.search)), autoescape=True))
    return found


def _with_open_alerts() -> Select[Any]:
    """Return a query for environments with the number of their open alerts."""
    counts = [
        select(func.count())
        .select_from(
            select(literal(1))
            .where(
                Alert.project_id == Environment.project_id,
                Alert.environment == Environment.name,
                Alert.status == status,
            )
            .correlate(Environment)
            .limit(COUNT_LIMIT)
            .subquery()
        )
        .correlate(Environment)
        .scalar_subquery()
        for status in OPEN_STATUSES
    ]
    return select(Environment, counts[0] + counts[1])


def list_environments(
    wanted: EnvironmentFilter, after: str | None, *, size: int, session: Session
) -> Page[EnvironmentView]:
    """Return a page of environments sorted by name, starting after the name `after`."""
    statement = _with_open_alerts().where(*_conditions(wanted)).order_by(Environment.name)
    if after:
        statement = statement.where(Environment.name > storable(after))
    rows = session.execute(statement.limit(size + 1)).all()
    items = tuple(view_of(*row) for row in rows[:size])
    return Page(items=items, next_before=items[-1].name if len(rows) > size else None)


def numbered_environments(
    wanted: EnvironmentFilter, *, offset: int, limit: int, session: Session
) -> tuple[Sequence[EnvironmentView], int]:
    """Return a part of the environments sorted by ID, and the total number."""
    conditions = _conditions(wanted)
    rows = session.scalars(
        select(Environment).where(*conditions).order_by(Environment.id).offset(offset).limit(limit)
    )
    total = session.scalar(select(func.count()).select_from(Environment).where(*conditions))
    return [view_of(row) for row in rows], total or 0


def names_of(project_id: int, *, most: int, session: Session) -> tuple[str, ...]:
    """Return up to `most` environment names of a project, sorted."""
    found = session.scalars(
        select(Environment.name)
        .where(Environment.project_id == project_id)
        .order_by(Environment.name)
        .limit(most)
    )
    return tuple(found)


def reference_to(project_id: int, name: str, *, session: Session) -> str | None:
    """Return the reference of an environment for URLs, or None if it was deleted."""
    found = session.execute(
        select(Environment).where(Environment.project_id == project_id, Environment.name == name)
    ).scalar_one_or_none()
    return view_of(found).reference if found else None


def get_environment(project_id: int, reference: str, *, session: Session) -> EnvironmentView:
    """Return the environment with this name or `~` and ID.

    Raise NotFoundError if the project has no such environment.
    """
    number = _BY_NUMBER.fullmatch(reference)
    if number:
        return get_numbered_environment(project_id, int(number[1]), session=session)
    return _one(project_id, Environment.name == storable(reference), session=session)


def get_numbered_environment(
    project_id: int, environment_id: int, *, session: Session
) -> EnvironmentView:
    """Return the environment with this ID.

    Raise NotFoundError if the project has no such environment.
    """
    return _one(project_id, Environment.id == environment_id, session=session)


def _one(project_id: int, condition: ColumnElement[bool], *, session: Session) -> EnvironmentView:
    statement = _with_open_alerts().where(Environment.project_id == project_id, condition)
    row = session.execute(statement).first()
    if row is None:
        raise NotFoundError("Environment not found in this project.")
    return view_of(*row)


def create_environment(
    project_id: int, name: str, *, session: Session, now: datetime
) -> EnvironmentView:
    """Create an environment.

    Raise InvalidError if the name is not valid, and TakenError if it already exists.
    """
    kept = storable(name).strip()
    if not kept or not kept.isprintable():
        message = "Enter a name with letters, digits or symbols, such as production."
        raise InvalidError(message, field="name")
    if len(kept) > LONGEST_NAME:
        raise InvalidError(f"The name can have at most {LONGEST_NAME} characters.", field="name")
    made = Environment(project_id=project_id, name=kept, created_at=now)
    try:
        with session.begin_nested():
            session.add(made)
    except IntegrityError as error:
        raise TakenError(f"The environment {kept} already exists.", field="name") from error
    return view_of(made)
