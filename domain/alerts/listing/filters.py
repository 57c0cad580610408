"""Filters on the alerts of one or several projects, and the conditions that they become in SQL."""

from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Select, exists, select
from sqlalchemy.orm import Session

from domain.alerts.listing.search import (
    SearchResult,
    find_matches,
    find_matches_across,
    search_words,
)
from domain.alerts.reading.incoming import Severity
from models import Alert, Assignment, User
from models.folding import fold

OPEN_STATUSES = ("triggered", "acknowledged")
STATUSES = ("triggered", "acknowledged", "resolved", "ignored")
#: The tabs of the list, with the statuses that each shows.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "ignored": ("ignored",),
    "all": STATUSES,
}
SEVERITIES = tuple(Severity)
#: The assignee of alerts without one; no user can have this name.
NOBODY = "-"


@dataclass(frozen=True, kw_only=True)
class AlertFilter:
    """A filter on the alerts of a project, or of several; None or empty matches any."""

    project_id: int
    #: Selects the ids of several projects; then `project_id` does not count.
    projects: Select[int] | None = None
    statuses: tuple[str, ...] = STATUSES
    search: str = ""
    severity: Severity | None = None
    environment: str | None = None
    service: str | None = None
    #: A user name, or NOBODY.
    assignee: str | None = None
    integration_id: int | None = None
    #: Alerts with a higher id are left out.
    newest_id: int | None = None
    #: The alerts that match `search`; set by `looked_up`.
    matches: SearchResult | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether it filters by more than the status."""
        return bool(self.search) or any(
            value is not None
            for value in (
                *(self.severity, self.environment, self.service),
                *(self.assignee, self.integration_id),
            )
        )

    @property
    def is_listed(self) -> bool:
        """Whether the alerts that match the search are named by their ids."""
        return self.matches is not None and not self.matches.are_many


def severity_order() -> ColumnElement[int]:
    """Return the expression of the index on severity; in descending order critical is first."""
    return -Alert.severity


def looked_up(wanted: AlertFilter, *, session: Session) -> AlertFilter:
    """Return the filter with its full-text search done, so that it is done only once."""
    if not wanted.search or wanted.matches is not None:
        return wanted
    words = search_words(wanted.search)
    if wanted.projects is not None:
        found = find_matches_across(words, wanted.projects, session=session)
    else:
        found = find_matches(words, project_id=wanted.project_id, session=session)
    return replace(wanted, matches=found)


def conditions_of(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of a filter that was `looked_up`, without that on the status."""
    # Without statistics the planner would scan all alerts of the project instead of those that are
    # listed by their ids.
    column = Alert.project_id + 0 if wanted.is_listed else Alert.project_id
    return [column == wanted.project_id, *conditions_anywhere(wanted)]


def conditions_anywhere(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of a filter in any project, without that on the status."""
    found = [
        column == value
        for column, value in (
            (severity_order(), None if wanted.severity is None else -wanted.severity.rank),
            (Alert.environment, wanted.environment),
            (Alert.service, wanted.service),
            (Alert.integration_id, wanted.integration_id),
        )
        if value is not None
    ]
    if wanted.newest_id is not None:
        found.append(Alert.id <= wanted.newest_id)
    if wanted.assignee is not None:
        found.append(_assigned_to(wanted.assignee))
    if wanted.matches is not None:
        found.append(wanted.matches.condition)
    return found


def _assigned_to(username: str) -> ColumnElement[bool]:
    if username == NOBODY:
        return ~exists().where(Assignment.alert_id == Alert.id)
    return Alert.id.in_(
        select(Assignment.alert_id)
        .join(User, User.id == Assignment.user_id)
        .where(User.username_key == fold(username))
    )
