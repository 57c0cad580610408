"""Queries for lists of alerts. The cost of a page does not depend on the number of alerts.

If a page contains several statuses, it is merged from the first rows of each status. In every
index, the status precedes the sort keys. The only exception is the index on the start time across
all statuses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Subquery,
    exists,
    false,
    func,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from domain.alerts.listing.filters import (
    OPEN_STATUSES,
    SEVERITIES,
    STATUSES,
    AlertFilter,
    build_filter_conditions,
    build_filter_conditions_across_projects,
    resolve_alert_filter,
)
from domain.alerts.listing.search import find_ids_by_number
from domain.alerts.listing.sort_orders import (
    NEWEST_FIRST,
    SORT_ORDERS,
    AlertSlice,
    SortValues,
    build_order_by,
)
from domain.core.database.pagination import KeysetPage
from domain.core.types.base import get_column_values
from domain.projects.access import COUNT_LIMIT
from models import (
    Alert,
    Assignment,
    Delivery,
    Escalation,
    Integration,
    Occurrence,
    Project,
    User,
)

MAX_IID = 2**31 - 1
#: Maximum number of alerts of each status that are sorted if no index has the sort order. Only the
#: newest alerts are sorted.
MAX_SORTED_ALERTS = 2_000
#: Maximum number of alerts of each status that are counted before all of them are changed.
_MAX_COUNTED_ALERTS = 100_000


@dataclass(frozen=True, kw_only=True)
class AlertListRow:
    """An alert with the columns that alert lists show."""

    id: int
    iid: int
    title: str
    severity: str
    #: Severity before it was raised, or None if it was not raised.
    raised_from: str | None
    status: str
    started_at: datetime
    ended_at: datetime | None
    events: int
    service: str | None
    environment: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    last_event_at: datetime
    integration_name: str | None
    project_id: int
    project_path: str
    #: Username of the assignee, or None.
    assignee: str | None
    #: True if the alert was reported only by test alerts from users.
    is_test: bool
    #: End of the snooze, or None if the alert is not snoozed.
    snoozed_until: datetime | None


_reporting_delivery = aliased(Delivery)
#: Condition that is true if a sender has also reported the alert. The condition is only evaluated
#: for test alerts.
_IS_REPORTED_BY_SENDER = exists(
    select(Occurrence.alert_id)
    .join(_reporting_delivery, _reporting_delivery.id == Occurrence.delivery_id)
    .where(Occurrence.alert_id == Alert.id, _reporting_delivery.is_test.is_(False))
    .correlate(Alert)
)

#: End of the snooze. The states are defined in `domain/paging/escalations/state.py`.
_SNOOZED_UNTIL = (
    select(Escalation.next_at)
    .where(Escalation.alert_id == Alert.id, Escalation.state == "snoozed")
    .scalar_subquery()
)
ALERT_LIST_QUERY = (
    select(
        Alert,
        Integration.name.label("integration_name"),
        Project.path.label("project_path"),
        User.username.label("assignee"),
        func.coalesce(Delivery.is_test & ~_IS_REPORTED_BY_SENDER, false()).label("is_test"),
        _SNOOZED_UNTIL.label("snoozed_until"),
    )
    .join(Project, Project.id == Alert.project_id)
    .outerjoin(Integration, Integration.id == Alert.integration_id)
    .outerjoin(Assignment, Assignment.alert_id == Alert.id)
    .outerjoin(User, User.id == Assignment.user_id)
    .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
)


def build_alert_list_row(row: Row[*tuple[Any, ...]]) -> AlertListRow:
    """Convert a row of ALERT_LIST_QUERY to a view."""
    alert: Alert = row[0]
    return AlertListRow(
        **get_column_values(alert, AlertListRow)
        | {
            "severity": SEVERITIES[alert.severity].value,
            "raised_from": None
            if alert.raised_from is None
            else SEVERITIES[alert.raised_from].value,
            "hosts": tuple(alert.hosts.split("\n")) if alert.hosts else (),
        },
        integration_name=row.integration_name,
        project_path=row.project_path,
        assignee=row.assignee,
        is_test=row.is_test,
        snoozed_until=row.snoozed_until,
    )


def list_alerts(
    wanted: AlertFilter, part: AlertSlice, *, session: Session
) -> KeysetPage[AlertListRow]:
    """Return a page of the alerts that match a filter, in the requested sort order."""
    wanted = resolve_alert_filter(wanted, session=session)
    if wanted.projects is not None:
        return list_alerts_across_projects(wanted, wanted.projects, part, session=session)
    branches = _build_status_queries(build_filter_conditions(wanted), wanted.statuses, part)
    return part.build_page(_fetch_first_rows(branches, part, session=session))


def list_alerts_across_projects(
    wanted: AlertFilter, projects: Select[int], part: AlertSlice, *, session: Session
) -> KeysetPage[AlertListRow]:
    """Return a page of alerts from several projects, in a sort order that has an index.

    `projects` is a query for the project IDs. The filter must come from `resolve_alert_filter`. The
    project of the filter is ignored.
    """
    if wanted.is_resolved_to_ids:
        named = _build_status_queries(
            build_filter_conditions_across_projects(wanted), wanted.statuses, part
        )
        return part.build_page(_fetch_first_rows(named, part, session=session))
    within = (
        _build_lateral_query
        if session.get_bind().dialect.name == "postgresql"
        else _build_query_by_ids
    )
    listed = projects.subquery("listed")
    conditions = [Alert.project_id == listed.c.id, *build_filter_conditions_across_projects(wanted)]
    branches = (
        within(branch.correlate(listed), listed)
        for branch in _build_status_queries(conditions, wanted.statuses, part)
    )
    return part.build_page(_fetch_first_rows(branches, part, session=session))


def _build_lateral_query(
    branch: Select[*tuple[Any, ...]], listed: Subquery
) -> Select[*tuple[Any, ...]]:
    """Return a query that runs `branch` for each listed project, using a lateral join."""
    first = branch.lateral()
    return select(*first.c).select_from(listed.join(first, true()))


def _build_query_by_ids(
    branch: Select[*tuple[Any, ...]], listed: Subquery
) -> Select[*tuple[Any, ...]]:
    """Return an equivalent of `_build_lateral_query` for SQLite, which has no lateral joins.

    The query selects the IDs first, then the rows.
    """
    found = aliased(Alert)
    ids = branch.with_only_columns(Alert.id, maintain_column_froms=True)
    of_each = select(found.id).select_from(listed.join(found, found.id.in_(ids)))
    return select(*branch.selected_columns).where(Alert.id.in_(of_each))


def _build_newest_order() -> list[ColumnElement[Any]]:
    return build_order_by(
        [key.column for key in NEWEST_FIRST.keys], order=NEWEST_FIRST, backwards=False
    )


def _build_status_queries(
    conditions: Sequence[ColumnElement[bool]], statuses: Sequence[str], part: AlertSlice
) -> Iterator[Select[*tuple[Any, ...]]]:
    """Yield a query for each status, or one query for all statuses.

    Each query returns enough rows for the page.
    """
    found = select(*(key.column.label(f"key_{key.name}") for key in part.order.keys)).where(
        *conditions
    )
    if part.order.is_among_newest:
        found = found.order_by(*_build_newest_order()).limit(MAX_SORTED_ALERTS)
    else:
        found = part.limit_query([key.column for key in part.order.keys], found)
    if part.order.is_ordered_by_start and set(statuses) == set(STATUSES):
        yield found
        return
    for status in statuses:
        yield found.where(Alert.status == status)


def _fetch_first_rows(
    branches: Iterator[Select[*tuple[Any, ...]]], part: AlertSlice, *, session: Session
) -> list[tuple[AlertListRow, SortValues]]:
    """Merge the results of `branches`, and return the first rows with their sort key values."""
    together = union_all(*(select(branch.subquery()) for branch in branches)).subquery()
    columns = list(together.c)
    candidates = part.limit_query(columns, select(*columns)).subquery()
    columns = list(candidates.c)
    statement = (
        ALERT_LIST_QUERY.add_columns(*columns)
        .join(candidates, candidates.c.key_id == Alert.id)
        .order_by(*build_order_by(columns, order=part.order, backwards=part.is_backwards))
    )
    return [
        (build_alert_list_row(row), part.order.get_sort_values(row))
        for row in session.execute(statement)
    ]


def list_open_alerts(
    projects: Select[int], *, limit: int, session: Session
) -> tuple[AlertListRow, ...]:
    """Return open alerts from several projects, sorted by severity and then newest first.

    `projects` is a query for the project IDs.
    """
    wanted = AlertFilter(project_id=0, statuses=OPEN_STATUSES)
    part = AlertSlice(size=limit, order=SORT_ORDERS["severity"])
    return list_alerts_across_projects(wanted, projects, part, session=session).items


def list_alerts_by_number(
    number: int, projects: Select[int], *, most: int, session: Session
) -> tuple[AlertListRow, ...]:
    """Return up to `most` alerts with the given number in several projects, newest first."""
    ids = find_ids_by_number(number, projects, session=session)[:most]
    rows = session.execute(ALERT_LIST_QUERY.where(Alert.id.in_(ids)).order_by(Alert.id.desc()))
    return tuple(map(build_alert_list_row, rows))


def count_open_alerts_by_severity(projects: Select[int], *, session: Session) -> dict[str, int]:
    """Return the number of open alerts in several projects, by severity.

    `projects` is a query for the project IDs. A number above COUNT_LIMIT is a lower bound.
    """
    is_postgres = session.get_bind().dialect.name == "postgresql"
    parts = []
    for severity in SEVERITIES:
        wanted = AlertFilter(project_id=0, projects=projects, severity=severity)
        rows = union_all(
            *(
                _build_count_query(wanted, status, COUNT_LIMIT, is_postgres=is_postgres)
                for status in OPEN_STATUSES
            )
        ).subquery()
        counted = select(rows.c.one).limit(COUNT_LIMIT + 1).subquery()
        label = literal(severity.value).label("severity")
        parts.append(select(label, func.count().label("alerts")).select_from(counted))
    return dict(session.execute(union_all(*parts)).all())


def count_alerts_by_status(
    wanted: AlertFilter, *, session: Session, limit: int = COUNT_LIMIT
) -> dict[str, int]:
    """Return the number of alerts that match a filter, by status.

    The statuses in the filter are ignored. A number above `limit` is a lower bound. The result is
    empty if too many alerts match the search.
    """
    wanted = resolve_alert_filter(wanted, session=session)
    if (
        wanted.matches is not None
        and wanted.matches.has_too_many_matches
        and not wanted.is_resolved_to_ids
    ):
        return {}
    is_postgres = session.get_bind().dialect.name == "postgresql"
    counts = [
        select(literal(status).label("status"), func.count().label("alerts")).select_from(
            _build_count_query(wanted, status, limit, is_postgres=is_postgres)
            .limit(limit + 1)
            .subquery()
        )
        for status in STATUSES
    ]
    return dict(session.execute(union_all(*counts)).all())


def count_matching_alerts(wanted: AlertFilter, *, session: Session) -> int | None:
    """Return the number of matching alerts, or None if there are too many to count."""
    counts = count_alerts_by_status(wanted, session=session, limit=_MAX_COUNTED_ALERTS)
    of_each = [counts.get(status, _MAX_COUNTED_ALERTS + 1) for status in wanted.statuses]
    return sum(of_each) if max(of_each) <= _MAX_COUNTED_ALERTS else None


def _build_count_query(
    wanted: AlertFilter, status: str, limit: int, *, is_postgres: bool
) -> Select[int]:
    """Return a query with one row for each alert of a status.

    With several projects, each project contributes at most `limit` + 1 rows.
    """
    found = select(literal(1).label("one")).select_from(Alert).where(Alert.status == status)
    if wanted.projects is None or wanted.is_resolved_to_ids:
        inside = [] if wanted.projects is not None else build_filter_conditions(wanted)
        conditions = inside or build_filter_conditions_across_projects(wanted)
        return found.where(*conditions).order_by(*_build_counting_order(wanted))
    found = found.where(*build_filter_conditions_across_projects(wanted))
    if not is_postgres:
        return found.where(Alert.project_id.in_(wanted.projects))
    listed = wanted.projects.subquery("listed")
    of_each = found.where(Alert.project_id == listed.c.id).order_by(*_build_counting_order(wanted))
    return _build_lateral_query(of_each.limit(limit + 1).correlate(listed), listed)


def _build_counting_order(wanted: AlertFilter) -> list[ColumnElement[Any]]:
    """Return a sort order that has an index, or no order if alerts are found by assignee.

    Without an order, Postgres may scan the table, or may collect all alerts before it checks which
    alerts are unassigned.
    """
    return _build_newest_order() if wanted.assigned is None else []


def list_service_names(project_id: int, *, most: int, session: Session) -> tuple[str, ...]:
    """Return up to `most` distinct service names, sorted.

    The query jumps from one name to the next in the index. Therefore, its cost depends on the
    number of names, not on the number of alerts.
    """
    least = func.min(Alert.service)
    named = (
        select(least.label("name"))
        .where(Alert.project_id == project_id, Alert.service.is_not(None))
        .cte("named", recursive=True)
    )
    following = (
        select(least)
        .where(Alert.project_id == project_id, Alert.service > named.c.name)
        .correlate(named)
        .scalar_subquery()
    )
    named = named.union_all(select(following).where(named.c.name.is_not(None)))
    found = session.scalars(select(named.c.name).where(named.c.name.is_not(None)).limit(most))
    return tuple(found)
