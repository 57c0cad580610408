"""Reads single incidents and lists of incidents, and locks them for changes.

The cost of a page does not depend on the number of incidents. A page with several statuses is
merged from the first rows of each status. In every index, the status precedes the sort keys. Lists
of alerts work in the same way.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, literal, select, union_all
from sqlalchemy.orm import Session

from domain.alerts.listing.search import (
    SearchIndex,
    SearchResult,
    find_ids_by_number,
    find_matches,
    find_matches_across_projects,
    parse_search_words,
)
from domain.alerts.listing.sort_orders import ListSlice, SortKey, SortOrder, build_order_by
from domain.alerts.parsing.incoming_alert import Severity
from domain.core.database.bulk_statements import build_session_insert
from domain.core.database.pagination import KeysetPage
from domain.core.errors import NotFoundError
from domain.core.types.base import get_column_values
from domain.incidents.types import (
    MAX_LISTED_ALERTS,
    MAX_URGENCY,
    OPEN_STATUSES,
    STATUSES,
    Incident,
    IncidentPerson,
    convert_to_severity,
    convert_to_urgency,
)
from domain.projects.access import COUNT_LIMIT
from models import Alert, IncidentAlert, IncidentAssignee, IncidentCounter, Project, User
from models import Incident as IncidentRow
from models.case_folding import fold_text

#: Statuses that each tab of the list shows.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "all": STATUSES,
}
#: Value that stands for no assignee. It is not a valid username.
NO_ASSIGNEE = "-"
_ID_KEY = SortKey("id", IncidentRow.id.expression)
SORT_ORDERS = {
    order.name: order
    for order in (
        SortOrder("created", "Newest", (_ID_KEY,)),
        SortOrder("oldest", "Oldest", (_ID_KEY,), is_descending=False),
        SortOrder(
            "severity",
            "Severity",
            (SortKey("urgency", IncidentRow.urgency.expression, max_value=MAX_URGENCY), _ID_KEY),
        ),
    )
}
NEWEST_FIRST = SORT_ORDERS["created"]
#: Maximum number of an assignee's or alert's incidents that are listed by ID.
_MAX_INCIDENTS_LISTED_BY_ID = 2_000
_INCIDENT_SEARCH_INDEX = SearchIndex(
    model=IncidentRow, table="incident_search", key="incident_id", function="incidents_with"
)


@dataclass(frozen=True, kw_only=True)
class IncidentFilter:
    """A filter for the incidents of a project. None and empty values match any incident."""

    project_id: int
    statuses: tuple[str, ...] = STATUSES
    search: str = ""
    severity: Severity | None = None
    #: Username of the assignee, or NO_ASSIGNEE.
    assignee: str | None = None
    #: Number of an alert that is linked to the incident.
    alert: int | None = None
    #: Incidents that match `search`, as set by `resolve_incident_filter`.
    matches: SearchResult | None = None
    #: IDs of the assignee's or alert's incidents, as set by `resolve_incident_filter`. None if the
    #: filter has no assignee or alert, or if there are too many incidents.
    ids: tuple[int, ...] | None = None

    @property
    def has_conditions_besides_status(self) -> bool:
        """True if the filter has conditions other than the status."""
        return bool(self.search or self.severity or self.assignee or self.alert is not None)


@dataclass(frozen=True, kw_only=True)
class IncidentSlice(ListSlice):
    """The requested page of an incident list."""

    order: SortOrder = NEWEST_FIRST


def resolve_incident_filter(incident_filter: IncidentFilter, *, session: Session) -> IncidentFilter:
    """Return a copy of a filter in which the search, assignee and alert are resolved to IDs."""
    if incident_filter.ids is None:
        incident_filter = replace(
            incident_filter, ids=_find_ids_by_assignee_or_alert(incident_filter, session=session)
        )
    if not incident_filter.search or incident_filter.matches is not None:
        return incident_filter
    words = parse_search_words(incident_filter.search)
    found = find_matches(
        words, project_id=incident_filter.project_id, session=session, index=_INCIDENT_SEARCH_INDEX
    )
    return replace(incident_filter, matches=found)


def _find_ids_by_assignee_or_alert(
    incident_filter: IncidentFilter, *, session: Session
) -> tuple[int, ...] | None:
    """Return the IDs of the incidents that have a filter's assignee or contain its alert.

    The result is None if the filter has no assignee or alert, or if there are too many incidents.

    The list of IDs prevents a query planner without statistics from reading all incidents of the
    project.
    """
    if incident_filter.alert is not None:
        found = _build_alert_query(incident_filter.project_id, incident_filter.alert)
    elif incident_filter.assignee not in {None, NO_ASSIGNEE}:
        found = _build_assignee_query(incident_filter.assignee or "")
    else:
        return None
    ids = session.scalars(found.limit(_MAX_INCIDENTS_LISTED_BY_ID + 1)).all()
    return tuple(ids) if len(ids) <= _MAX_INCIDENTS_LISTED_BY_ID else None


def list_incidents(
    incident_filter: IncidentFilter, incident_slice: IncidentSlice, *, session: Session
) -> KeysetPage[IncidentRow]:
    """Return a page of the incidents that match a filter."""
    incident_filter = resolve_incident_filter(incident_filter, session=session)
    together = union_all(
        *(
            select(branch.subquery())
            for branch in _build_queries_by_status(incident_filter, incident_slice)
        )
    ).subquery()
    columns = list(together.c)
    first = incident_slice.limit_query(columns, select(*columns)).subquery()
    columns = list(first.c)
    rows = session.execute(
        select(IncidentRow, *columns)
        .join(first, first.c.key_id == IncidentRow.id)
        .order_by(
            *build_order_by(
                columns, order=incident_slice.order, backwards=incident_slice.is_backwards
            )
        )
    ).all()
    return incident_slice.build_page(
        [(row[0], incident_slice.order.get_sort_values(row)) for row in rows]
    )


def _build_queries_by_status(
    incident_filter: IncidentFilter, incident_slice: IncidentSlice
) -> Iterator[Select[*tuple[Any, ...]]]:
    """Yield queries for the incidents of a page, which the caller merges.

    Usually, there is a query for each status. A single query is sufficient if all statuses are
    requested in order of ID, without a severity filter.
    """
    keys = incident_slice.order.keys
    found = select(*(key.column.label(f"key_{key.name}") for key in keys))
    found = incident_slice.limit_query(
        [key.column for key in keys], found.where(*_build_conditions(incident_filter))
    )
    # The index for all statuses does not contain the severity.
    is_by_id = keys == (_ID_KEY,) and incident_filter.severity is None
    if is_by_id and set(incident_filter.statuses) == set(STATUSES):
        yield found
        return
    for status in incident_filter.statuses:
        yield found.where(IncidentRow.status == status)


def _build_conditions(incident_filter: IncidentFilter) -> Iterator[ColumnElement[bool]]:
    is_listed = incident_filter.ids is not None or (
        incident_filter.matches is not None and not incident_filter.matches.has_too_many_matches
    )
    # Without `+ 0`, a planner without statistics would scan all incidents in the project instead of
    # the listed IDs.
    project = IncidentRow.project_id + 0 if is_listed else IncidentRow.project_id
    yield project == incident_filter.project_id
    if incident_filter.severity is not None:
        yield IncidentRow.urgency == convert_to_urgency(incident_filter.severity)
    if incident_filter.matches is not None:
        yield incident_filter.matches.condition
    if incident_filter.ids is not None:
        yield IncidentRow.id.in_(incident_filter.ids)
    if incident_filter.assignee == NO_ASSIGNEE:
        yield ~exists().where(IncidentAssignee.incident_id == IncidentRow.id)
    elif incident_filter.assignee is not None and (
        incident_filter.ids is None or incident_filter.alert is not None
    ):
        yield IncidentRow.id.in_(_build_assignee_query(incident_filter.assignee))
    if incident_filter.alert is not None and incident_filter.ids is None:
        yield IncidentRow.id.in_(
            _build_alert_query(incident_filter.project_id, incident_filter.alert)
        )


def _build_assignee_query(username: str) -> Select[int]:
    return (
        select(IncidentAssignee.incident_id)
        .join(User, User.id == IncidentAssignee.user_id)
        .where(User.username_key == fold_text(username))
    )


def _build_alert_query(project_id: int, iid: int) -> Select[int]:
    return (
        select(IncidentAlert.incident_id)
        .join(Alert, Alert.id == IncidentAlert.alert_id)
        .where(Alert.project_id == project_id, Alert.iid == iid)
    )


def count_incidents_by_status(
    incident_filter: IncidentFilter, *, session: Session
) -> dict[str, int]:
    """Return the number of incidents, by status.

    A number above COUNT_LIMIT is a lower bound. The result is empty if too many incidents match the
    search.
    """
    incident_filter = resolve_incident_filter(incident_filter, session=session)
    if incident_filter.matches is not None and incident_filter.matches.has_too_many_matches:
        return {}
    conditions = list(_build_conditions(incident_filter))
    # Without an order, Postgres may scan the table.
    order = [IncidentRow.id.desc()] if incident_filter.ids is None else []
    counts = [
        select(literal(status).label("status"), func.count().label("incidents")).select_from(
            select(literal(1))
            .select_from(IncidentRow)
            .where(*conditions, IncidentRow.status == status)
            .order_by(*order)
            .limit(COUNT_LIMIT + 1)
            .subquery()
        )
        for status in STATUSES
    ]
    return dict(session.execute(union_all(*counts)).all())


def lock_incidents(project_id: int, *, session: Session) -> IncidentCounter:
    """Lock the incidents of a project until the end of the transaction, and return their counter.

    To prevent deadlocks, every change to an incident takes this lock before any lock on alerts.
    """
    insert = build_session_insert(IncidentCounter, session=session)
    row = {"project_id": project_id, "last_iid": 0}
    session.execute(insert.values(row).on_conflict_do_nothing())
    return session.scalars(
        select(IncidentCounter)
        .where(IncidentCounter.project_id == project_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def lock_incident(project_id: int, iid: int, *, session: Session) -> IncidentRow:
    """Lock the incidents of a project, and return the incident with the given number.

    Raise NotFoundError if there is no such incident.
    """
    lock_incidents(project_id, session=session)
    return get_incident_row(project_id, iid, session=session)


def get_incident_row(project_id: int, iid: int, *, session: Session) -> IncidentRow:
    """Return the database row of an incident.

    Raise NotFoundError if there is no such incident.
    """
    found = session.scalars(
        select(IncidentRow)
        .where(IncidentRow.project_id == project_id, IncidentRow.iid == iid)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if found is None:
        raise NotFoundError(f"Incident {iid} not found in this project.")
    return found


def build_incident_resources(
    rows: Sequence[IncidentRow], *, url: str, session: Session
) -> list[Incident]:
    """Convert the database rows of incidents to resources, with a fixed number of queries.

    `url` is the URL of the list, without a trailing slash.
    """
    session.flush()
    assignees: dict[int, list[IncidentPerson]] = defaultdict(list)
    assigned = session.execute(
        select(IncidentAssignee.incident_id, User.id, User.username)
        .join(User, User.id == IncidentAssignee.user_id)
        .where(IncidentAssignee.incident_id.in_([row.id for row in rows]))
        .order_by(User.username_key, User.id)
    )
    for incident_id, user_id, username in assigned:
        assignees[incident_id].append(IncidentPerson(id=user_id, username=username))
    alerts = _find_alert_numbers(rows, session=session)
    shown = []
    for row in rows:
        name = row.author_name
        own = {
            "severity": convert_to_severity(row.urgency),
            "assignees": assignees.get(row.id, ()),
            "alerts": alerts.get(row.id, ()),
            "alerts_count": row.alerts,
            "close_when_resolved": row.closes_when_resolved,
            "quiet_alerts": row.quiets_alerts,
            "author": IncidentPerson(id=row.author_id, username=name) if name else None,
            "web_url": f"{url}/{row.iid}",
        }
        shown.append(Incident.model_validate({**get_column_values(row, Incident), **own}))
    return shown


def _find_alert_numbers(
    rows: Sequence[IncidentRow], *, session: Session
) -> Mapping[int, list[int]]:
    """Return the numbers of each incident's linked alerts, by incident ID.

    Incidents with many alerts are queried separately, up to MAX_LISTED_ALERTS alerts each.
    """
    found: dict[int, list[int]] = defaultdict(list)
    numbers = (
        select(IncidentAlert.incident_id, Alert.iid)
        .join(Alert, Alert.id == IncidentAlert.alert_id)
        .order_by(IncidentAlert.alert_id)
    )
    small = [row.id for row in rows if 0 < row.alerts <= MAX_LISTED_ALERTS]
    statements = [numbers.where(IncidentAlert.incident_id.in_(small))] if small else []
    statements += [
        numbers.where(IncidentAlert.incident_id == row.id).limit(MAX_LISTED_ALERTS)
        for row in rows
        if row.alerts > MAX_LISTED_ALERTS
    ]
    for statement in statements:
        for incident_id, iid in session.execute(statement):
            found[incident_id].append(iid)
    return found


@dataclass(frozen=True, kw_only=True)
class IncidentSummary:
    """An incident in a list for several projects."""

    iid: int
    title: str
    status: str
    project_path: str
    created_at: datetime


_FOUND_INCIDENTS_QUERY = select(
    IncidentRow.iid,
    IncidentRow.title,
    IncidentRow.status,
    IncidentRow.created_at,
    Project.path.label("project_path"),
).join(Project, Project.id == IncidentRow.project_id)


def list_open_incidents_for_user(
    user_id: int, projects: Select[int], *, maximum: int, session: Session
) -> tuple[IncidentSummary, ...]:
    """Return the newest open incidents assigned to a user in the selected projects."""
    rows = session.execute(
        _FOUND_INCIDENTS_QUERY.join(
            IncidentAssignee, IncidentAssignee.incident_id == IncidentRow.id
        )
        .where(
            IncidentAssignee.user_id == user_id,
            IncidentRow.status != "resolved",
            # `+ 0` disables the project's index, since the assignments of one user are more
            # selective.
            (IncidentRow.project_id + 0).in_(projects),
        )
        .order_by(IncidentAssignee.incident_id.desc())
        .limit(maximum)
    )
    return tuple(IncidentSummary(**row) for row in rows.mappings())


def search_incidents(
    text: str, projects: Select[int], *, most: int, session: Session
) -> tuple[IncidentSummary, ...]:
    """Return up to `most` incidents in the selected projects that match a search, newest first."""
    words = parse_search_words(text)
    found = find_matches_across_projects(
        words, projects, session=session, index=_INCIDENT_SEARCH_INDEX
    )
    # `+ 0` disables the project's index.
    within = (IncidentRow.project_id + 0).in_(projects)
    rows = session.execute(
        _FOUND_INCIDENTS_QUERY.where(within, found.condition)
        .order_by(IncidentRow.id.desc())
        .limit(most)
    )
    return tuple(IncidentSummary(**row) for row in rows.mappings())


def list_incidents_by_number(
    number: int, projects: Select[int], *, most: int, session: Session
) -> tuple[IncidentSummary, ...]:
    """Return up to `most` incidents with this number in the selected projects, newest first."""
    ids = find_ids_by_number(number, projects, session=session, index=_INCIDENT_SEARCH_INDEX)
    found = _FOUND_INCIDENTS_QUERY.where(IncidentRow.id.in_(ids[:most]))
    rows = session.execute(found.order_by(IncidentRow.id.desc()))
    return tuple(IncidentSummary(**row) for row in rows.mappings())
