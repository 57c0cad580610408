"""The environments of a project, such as production or staging.

Users can create environments. If an alert names an unknown environment, a trigger creates the
environment in the transaction that stores the alert (migration 0051).
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
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import KeysetPage
from domain.core.errors import InvalidError, NotFoundError, TakenError
from domain.core.types.base import get_column_values
from domain.projects.access import COUNT_LIMIT
from models import Alert, Environment
from models.case_folding import build_search_text, fold_text

#: Minimum length of a search text, in characters. Shorter texts match too many names and are slow.
MIN_ENVIRONMENT_SEARCH_LENGTH = 3
MAX_ENVIRONMENT_NAME_LENGTH = 255
_MAX_SLUG_LENGTH = 24
_SUFFIX_LENGTH = 6
_SUFFIX_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: Pattern of names that can be used unchanged in a URL path. It excludes names such as ".." and
#: names that start or end with spaces or slashes.
_PLAIN_NAME = re.compile(r"[^\W_][\w.-]*(?:/[^\W_][\w.-]*)*")
_NUMBER_REFERENCE = re.compile(r"~([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True)
class EnvironmentView:
    """An environment with the number of its open alerts."""

    id: int
    name: str
    created_at: datetime
    #: URL of the deployed environment, if it is known.
    external_url: str | None = None
    #: Number of open alerts. It is exact up to COUNT_LIMIT; a larger value is a lower bound.
    open_alerts: int = 0
    stopped_at: datetime | None = None

    @property
    def state(self) -> str:
        """State of the environment in the API: `available` or `stopped`."""
        return "available" if self.stopped_at is None else "stopped"

    @property
    def reference(self) -> str:
        """Reference of the environment in URLs: its name, or `~` and its ID."""
        return format_environment_reference(self.id, self.name)

    @property
    def slug(self) -> str:
        """Name of the environment in a form that is valid in host names, for API clients."""
        return build_environment_slug(self.name)


@dataclass(frozen=True, kw_only=True)
class EnvironmentFilter:
    """Criteria for selecting a project's environments. None matches any value."""

    project_id: int
    #: Exact name to match.
    name: str | None = None
    #: Part of the name to match, ignoring case.
    search: str | None = None
    #: State to match, available or stopped; None matches both.
    state: str | None = None


def check_environment_search(search: str) -> None:
    """Check that a search text is long enough. Raise InvalidError if it is too short."""
    if search and len(search) < MIN_ENVIRONMENT_SEARCH_LENGTH:
        message = f"The search must have at least {MIN_ENVIRONMENT_SEARCH_LENGTH} characters."
        raise InvalidError(message, field="search")


def is_url_safe_name(name: str) -> bool:
    """Return whether a name can be used in a URL path unchanged."""
    return _PLAIN_NAME.fullmatch(name) is not None


def format_environment_reference(environment_id: int, name: str) -> str:
    """Return the environment's reference for URLs: its name if possible, else `~` and its ID."""
    return name if is_url_safe_name(name) else f"~{environment_id}"


def build_environment_slug(name: str) -> str:
    """Return a slug of at most 24 lowercase letters, digits and dashes.

    A slug that differs from its name ends with a hash, so that different names have different
    slugs.
    """
    slug = re.sub(r"[^a-z0-9]", "-", name.lower())
    if not re.match(r"[a-z]", slug):
        slug = f"env-{slug}"
    slug = re.sub(r"-+", "-", slug)
    if len(slug) <= _MAX_SLUG_LENGTH and slug == name:
        return slug
    beginning = slug[: _MAX_SLUG_LENGTH - _SUFFIX_LENGTH - 1]
    return f"{beginning}{'' if beginning.endswith('-') else '-'}{_compute_slug_suffix(name)}"


def _compute_slug_suffix(name: str) -> str:
    number, digits = int(sha256(name.encode()).hexdigest(), 16), ""
    while len(digits) < _SUFFIX_LENGTH:
        number, digit = divmod(number, len(_SUFFIX_DIGITS))
        digits = _SUFFIX_DIGITS[digit] + digits
    return digits


def build_environment_view(environment: Environment, open_alerts: int = 0) -> EnvironmentView:
    """Convert an environment's database row to a view."""
    return EnvironmentView(
        **get_column_values(environment, EnvironmentView), open_alerts=open_alerts
    )


def _build_conditions(wanted: EnvironmentFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [Environment.project_id == wanted.project_id]
    if wanted.name:
        found.append(Environment.name == replace_unstorable_characters(wanted.name))
    if wanted.state is not None:
        is_available = Environment.stopped_at.is_(None)
        found.append(is_available if wanted.state == "available" else ~is_available)
    if wanted.search:
        name = build_search_text(Environment.name, Environment.name_key)
        found.append(
            name.contains(fold_text(replace_unstorable_characters(wanted.search)), autoescape=True)
        )
    return found


def _build_query_with_open_alerts() -> Select[Any]:
    """Return a query for environments that also counts their open alerts."""
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
) -> KeysetPage[EnvironmentView]:
    """Return a page of environments sorted by name, starting after the name `after`."""
    statement = (
        _build_query_with_open_alerts().where(*_build_conditions(wanted)).order_by(Environment.name)
    )
    if after:
        statement = statement.where(Environment.name > replace_unstorable_characters(after))
    rows = session.execute(statement.limit(size + 1)).all()
    items = tuple(build_environment_view(*row) for row in rows[:size])
    return KeysetPage(items=items, next_before=items[-1].name if len(rows) > size else None)


def list_environments_in_id_order(
    wanted: EnvironmentFilter, *, offset: int, limit: int, session: Session
) -> tuple[Sequence[EnvironmentView], int]:
    """Return a range of matching environments, sorted by ID, and the number of all matches."""
    conditions = _build_conditions(wanted)
    rows = session.scalars(
        select(Environment).where(*conditions).order_by(Environment.id).offset(offset).limit(limit)
    )
    total = session.scalar(select(func.count()).select_from(Environment).where(*conditions))
    return [build_environment_view(row) for row in rows], total or 0


def list_environment_names(project_id: int, *, most: int, session: Session) -> tuple[str, ...]:
    """Return up to `most` environment names of a project, sorted."""
    found = session.scalars(
        select(Environment.name)
        .where(Environment.project_id == project_id)
        .order_by(Environment.name)
        .limit(most)
    )
    return tuple(found)


def find_environment_reference(project_id: int, name: str, *, session: Session) -> str | None:
    """Return an environment's reference for URLs, or None if the environment was deleted."""
    found = session.execute(
        select(Environment).where(Environment.project_id == project_id, Environment.name == name)
    ).scalar_one_or_none()
    return build_environment_view(found).reference if found else None


def get_environment(project_id: int, reference: str, *, session: Session) -> EnvironmentView:
    """Return the environment with this name, or with the ID in a reference such as `~12`.

    Raise NotFoundError if the project has no such environment.
    """
    number = _NUMBER_REFERENCE.fullmatch(reference)
    if number:
        return get_environment_by_id(project_id, int(number[1]), session=session)
    return _get_environment(
        project_id, Environment.name == replace_unstorable_characters(reference), session=session
    )


def get_environment_by_id(
    project_id: int, environment_id: int, *, session: Session
) -> EnvironmentView:
    """Return the environment with this ID.

    Raise NotFoundError if the project has no such environment.
    """
    return _get_environment(project_id, Environment.id == environment_id, session=session)


def _get_environment(
    project_id: int, condition: ColumnElement[bool], *, session: Session
) -> EnvironmentView:
    statement = _build_query_with_open_alerts().where(
        Environment.project_id == project_id, condition
    )
    row = session.execute(statement).first()
    if row is None:
        raise NotFoundError("Environment not found in this project.")
    return build_environment_view(*row)


def create_environment(
    project_id: int, name: str, *, session: Session, now: datetime
) -> EnvironmentView:
    """Create an environment in a project.

    Raise InvalidError if the name is not valid, and TakenError if the name is already in use.
    """
    kept = replace_unstorable_characters(name).strip()
    if not kept or not kept.isprintable():
        message = "Enter a name with letters, digits or symbols, such as production."
        raise InvalidError(message, field="name")
    if len(kept) > MAX_ENVIRONMENT_NAME_LENGTH:
        raise InvalidError(
            f"The name can have at most {MAX_ENVIRONMENT_NAME_LENGTH} characters.", field="name"
        )
    made = Environment(project_id=project_id, name=kept, created_at=now)
    try:
        with session.begin_nested():
            session.add(made)
    except IntegrityError as error:
        raise TakenError(f"The environment {kept} already exists.", field="name") from error
    return build_environment_view(made)
