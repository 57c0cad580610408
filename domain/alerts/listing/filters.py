"""Filters for the alerts of one or several projects, and their SQL conditions."""

from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Select, exists, select, true
from sqlalchemy.orm import Session

from domain.alerts.listing.search import (
    MAX_MATCHES_LISTED_BY_ID,
    SearchResult,
    find_matches,
    find_matches_across_projects,
    parse_search_words,
)
from domain.alerts.parsing.incoming_alert import Severity
from domain.core.database.time_search import (
    OPEN_BOUNDS,
    TimeBounds,
    build_range_conditions,
    find_id_bounds,
)
from models import Alert, Assignment, User
from models.case_folding import fold_text

OPEN_STATUSES = ("triggered", "acknowledged")
STATUSES = ("triggered", "acknowledged", "resolved", "ignored")
#: Statuses that each tab of the list shows.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "ignored": ("ignored",),
    "all": STATUSES,
}
SEVERITIES = tuple(Severity)
#: Value that stands for no assignee. It is not a valid username.
NO_ASSIGNEE = "-"
#: Maximum number by which the IDs of alerts can deviate from chronological order, because of
#: concurrent transactions.
_MAX_DISORDER = 1_000
#: Maximum number of alerts in a project for which a filter by period does not use ID bounds.
_MAX_SMALL_PROJECT = 10_000
#: Condition for unassigned alerts. As a scalar subquery, it is evaluated for each alert in the
#: order of the list. Otherwise, Postgres would first join all alerts of a status with all
#: assignments.
_IS_UNASSIGNED = (
    select(true())
    .where(~exists().where(Assignment.alert_id == Alert.id).correlate(Alert))
    .correlate(Alert)
    .scalar_subquery()
    .is_not(None)
)


@dataclass(frozen=True, kw_only=True)
class AlertFilter:
    """A filter for the alerts of one or several projects. None and empty values match any alert."""

    project_id: int
    #: Query for the IDs of several projects. If it is set, `project_id` is ignored.
    projects: Select[int] | None = None
    statuses: tuple[str, ...] = STATUSES
    search: str = ""
    severity: Severity | None = None
    environment: str | None = None
    service: str | None = None
    #: Username of the assignee, or NO_ASSIGNEE for unassigned alerts.
    assignee: str | None = None
    integration_id: int | None = None
    #: Periods in which alerts started, and in which they were received.
    started: TimeBounds = OPEN_BOUNDS
    created: TimeBounds = OPEN_BOUNDS
    #: Bounds for the IDs of alerts in the `created` period. `resolve_alert_filter` sets them,
    #: because the indexes of lists contain the ID, but not the time of receipt.
    ids: tuple[int | None, ...] = (None, None)
    #: Upper bound for the ID of an alert.
    newest_id: int | None = None
    #: Alerts that match `search`, and alerts of the assignee. `resolve_alert_filter` sets both
    #: fields.
    matches: SearchResult | None = None
    assigned: SearchResult | None = None

    @property
    def has_conditions_besides_status(self) -> bool:
        """True if the filter has conditions other than the status."""
        return bool(self.search) or any(
            value is not None
            for value in (
                *(self.severity, self.environment, self.service),
                *(self.assignee, self.integration_id, *self.started, *self.created),
            )
        )

    @property
    def is_resolved_to_ids(self) -> bool:
        """True if the search or the assignee was resolved to a list of alert IDs."""
        return any(
            found is not None and not found.has_too_many_matches
            for found in (self.matches, self.assigned)
        )


def build_severity_order() -> ColumnElement[int]:
    """Return the sort expression of the severity index. In descending order, critical is first."""
    return -Alert.severity


def resolve_alert_filter(wanted: AlertFilter, *, session: Session) -> AlertFilter:
    """Return a copy of a filter in which the search, assignee and period are resolved to IDs."""
    if wanted.search and wanted.matches is None:
        words = parse_search_words(wanted.search)
        if wanted.projects is not None:
            found = find_matches_across_projects(words, wanted.projects, session=session)
        else:
            found = find_matches(words, project_id=wanted.project_id, session=session)
        wanted = replace(wanted, matches=found)
    if wanted.assignee not in {None, NO_ASSIGNEE} and wanted.assigned is None:
        wanted = replace(
            wanted, assigned=_find_assigned_alerts(wanted.assignee or "", session=session)
        )
    if any(wanted.created) and _has_large_project(wanted, session=session):
        first, following = find_id_bounds(Alert.created_at, wanted.created, session=session)
        ids = first and first - _MAX_DISORDER, following and following + _MAX_DISORDER
        wanted = replace(wanted, ids=ids)
    return wanted


def _has_large_project(wanted: AlertFilter, *, session: Session) -> bool:
    if wanted.projects is None:
        is_listed = Alert.project_id == wanted.project_id
    else:
        is_listed = Alert.project_id.in_(wanted.projects)
    large = select(true()).where(is_listed, Alert.iid > _MAX_SMALL_PROJECT).limit(1)
    return session.scalar(large) is not None


def _find_assigned_alerts(username: str, *, session: Session) -> SearchResult:
    """Find the alerts in all projects that are assigned to a user."""
    user_id = session.scalar(select(User.id).where(User.username_key == fold_text(username)))
    theirs = select(Assignment.alert_id).where(Assignment.user_id == user_id)
    ids = session.scalars(theirs.limit(MAX_MATCHES_LISTED_BY_ID + 1)).all()
    are_many = len(ids) > MAX_MATCHES_LISTED_BY_ID
    named = theirs if are_many else ids
    return SearchResult(condition=Alert.id.in_(named), has_too_many_matches=are_many)


def build_filter_conditions(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of a filter, excluding its status.

    The filter must come from `resolve_alert_filter`.
    """
    # Without `+ 0`, a planner without statistics would scan all alerts of the project instead of
    # the alerts in the list of IDs.
    column = Alert.project_id + 0 if wanted.is_resolved_to_ids else Alert.project_id
    return [column == wanted.project_id, *build_filter_conditions_across_projects(wanted)]


def build_filter_conditions_across_projects(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of a filter, excluding its status and its project."""
    found = [
        column == value
        for column, value in (
            (build_severity_order(), None if wanted.severity is None else -wanted.severity.rank),
            (Alert.environment, wanted.environment),
            (Alert.service, wanted.service),
            (Alert.integration_id, wanted.integration_id),
        )
        if value is not None
    ]
    if wanted.newest_id is not None:
        found.append(Alert.id <= wanted.newest_id)
    found += build_range_conditions(Alert.started_at, wanted.started)
    found += build_range_conditions(Alert.created_at, wanted.created)
    found += build_range_conditions(Alert.id, wanted.ids)
    if wanted.assignee == NO_ASSIGNEE:
        found.append(_IS_UNASSIGNED)
    found += [each.condition for each in (wanted.matches, wanted.assigned) if each is not None]
    # The assignee may also have alerts in other projects.
    if wanted.projects is not None and wanted.is_resolved_to_ids:
        found.append((Alert.project_id + 0).in_(wanted.projects))
    return found
