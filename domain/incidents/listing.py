"""Lists of incidents. The cost of a page does not grow with the number of incidents.

As for alerts, a page with several statuses is merged from the first rows of each, since every index
has the status before the sort keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, literal, select, union_all
from sqlalchemy.orm import Session

from domain.alerts.listing.search import SearchIndex, SearchResult, find_matches, search_words
from domain.alerts.listing.sort_orders import (
    SortKey,
    SortOrder,
    Values,
    beyond,
    sorted_by,
    write_cursor,
)
from domain.alerts.reading.incoming import Severity
from domain.database.paging import Page
from domain.incidents.fields import HIGHEST_URGENCY, OPEN_STATUSES, STATUSES, urgency_of
from domain.projects.access import COUNT_LIMIT
from models import Alert, Incident, IncidentAlert, IncidentAssignee, User
from models.folding import fold

#: The tabs of the list, with the statuses that each shows.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "all": STATUSES,
}
#: The assignee of incidents without one; no user can have this name.
NOBODY = "-"
_ID = SortKey("id", Incident.id.expression)
SORT_ORDERS = {
    order.name: order
    for order in (
        SortOrder("created", "Newest", (_ID,)),
        SortOrder("oldest", "Oldest", (_ID,), is_descending=False),
        SortOrder(
            "severity",
            "Severity",
            (SortKey("urgency", Incident.urgency.expression, largest=HIGHEST_URGENCY), _ID),
        ),
    )
}
NEWEST = SORT_ORDERS["created"]
#: The most incidents of an assignee or alert that are listed by their ids.
_MOST_NAMED = 2_000
_INDEX = SearchIndex(
    model=Incident, table="incident_search", key="incident_id", function="incidents_with"
)


@dataclass(frozen=True, kw_only=True)
class IncidentFilter:
    """A filter on the incidents of a project; None or empty matches any."""

    project_id: int
    statuses: tuple[str, ...] = STATUSES
    search: str = ""
    severity: Severity | None = None
    #: A user name, or NOBODY.
    assignee: str | None = None
    #: The number of an alert that it has.
    alert: int | None = None
    #: The incidents that match `search`; set by `looked_up`.
    matches: SearchResult | None = None
    #: Ids of the incidents that the assignee or the alert has, if they are few; set by `looked_up`.
    ids: tuple[int, ...] | None = None

    @property
    def is_narrow(self) -> bool:
        """Return whether it filters by more than the status."""
        return bool(self.search or self.severity or self.assignee or self.alert is not None)


@dataclass(frozen=True, kw_only=True)
class IncidentSlice:
    """A page of a list: the incidents that follow a row in its order, or precede one."""

    size: int
    order: SortOrder = NEWEST
    following: Values | None = None
    preceding: Values | None = None

    @property
    def is_backwards(self) -> bool:
        """Return whether the page is read from its last row to its first."""
        return self.preceding is not None


def looked_up(wanted: IncidentFilter, *, session: Session) -> IncidentFilter:
    """Return the filter with what it names looked up, so that this is done only once."""
    if wanted.ids is None:
        wanted = replace(wanted, ids=_named(wanted, session=session))
    if not wanted.search or wanted.matches is not None:
        return wanted
    words = search_words(wanted.search)
    found = find_matches(words, project_id=wanted.project_id, session=session, index=_INDEX)
    return replace(wanted, matches=found)


def _named(wanted: IncidentFilter, *, session: Session) -> tuple[int, ...] | None:
    """Return the ids of the incidents of an assignee or alert, or None if these are many.

    Without statistics the planner would read all incidents of the project for them.
    """
    if wanted.alert is not None:
        found = _of_alert(wanted.project_id, wanted.alert)
    elif wanted.assignee not in {None, NOBODY}:
        found = _of_assignee(wanted.assignee or "")
    else:
        return None
    ids = session.scalars(found.limit(_MOST_NAMED + 1)).all()
    return tuple(ids) if len(ids) <= _MOST_NAMED else None


def list_incidents(
    wanted: IncidentFilter, part: IncidentSlice, *, session: Session
) -> Page[Incident]:
    """Return a page of the incidents."""
    wanted = looked_up(wanted, session=session)
    together = union_all(
        *(select(branch.subquery()) for branch in _branches(wanted, part))
    ).subquery()
    columns = list(together.c)
    first = _cut(columns, select(*columns), part).subquery()
    columns = list(first.c)
    rows = session.execute(
        select(Incident, *columns)
        .join(first, first.c.key_id == Incident.id)
        .order_by(*sorted_by(columns, order=part.order, backwards=part.is_backwards))
    ).all()
    positions = [part.order.values_of(row) for row in rows]
    found = [row[0] for row in rows[: part.size]]
    return _page(found, positions, part)


def _page(
    found: Sequence[Incident], positions: Sequence[Values], part: IncidentSlice
) -> Page[Incident]:
    is_more, shown = len(positions) > part.size, positions[: part.size]
    items = tuple(found)
    if part.is_backwards:
        items, shown = items[::-1], shown[::-1]
    has_next = is_more or part.is_backwards
    has_previous = is_more if part.is_backwards else part.following is not None
    return Page(
        items=items,
        next_before=write_cursor(shown[-1]) if shown and has_next else None,
        previous_after=write_cursor(shown[0]) if shown and has_previous else None,
    )


def _branches(wanted: IncidentFilter, part: IncidentSlice) -> Iterator[Select[*tuple[Any, ...]]]:
    """Yield a query per status that returns enough rows for the page, or one for all statuses."""
    keys = part.order.keys
    found = select(*(key.column.label(f"key_{key.name}") for key in keys))
    found = _cut([key.column for key in keys], found.where(*_conditions(wanted)), part)
    # The index of all statuses has no severity.
    is_by_id = keys == (_ID,) and wanted.severity is None
    if is_by_id and set(wanted.statuses) == set(STATUSES):
        yield found
        return
    for status in wanted.statuses:
        yield found.where(Incident.status == status)


def _cut(
    columns: Sequence[ColumnElement[Any]],
    found: Select[*tuple[Any, ...]],
    part: IncidentSlice,
) -> Select[*tuple[Any, ...]]:
    """Limit a query to the rows of a page and one more, which shows that another page follows."""
    order, backwards = part.order, part.is_backwards
    position = part.preceding if backwards else part.following
    if position is not None:
        found = found.where(beyond(columns, position, order=order, backwards=backwards))
    return found.order_by(*sorted_by(columns, order=order, backwards=backwards)).limit(
        part.size + 1
    )


def _conditions(wanted: IncidentFilter) -> Iterator[ColumnElement[bool]]:
    is_listed = wanted.ids is not None or (
        wanted.matches is not None and not wanted.matches.are_many
    )
    # Without statistics the planner would scan all incidents of the project instead of these.
    project = Incident.project_id + 0 if is_listed else Incident.project_id
    yield project == wanted.project_id
    if wanted.severity is not None:
        yield Incident.urgency == urgency_of(wanted.severity)
    yield from _named_conditions(wanted)
    if wanted.matches is not None:
        yield wanted.matches.condition


def _named_conditions(wanted: IncidentFilter) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions on assignee and alert."""
    if wanted.ids is not None:
        yield Incident.id.in_(wanted.ids)
    if wanted.assignee == NOBODY:
        yield ~exists().where(IncidentAssignee.incident_id == Incident.id)
    elif wanted.assignee is not None and (wanted.ids is None or wanted.alert is not None):
        yield Incident.id.in_(_of_assignee(wanted.assignee))
    if wanted.alert is not None and wanted.ids is None:
        yield Incident.id.in_(_of_alert(wanted.project_id, wanted.alert))


def _of_assignee(username: str) -> Select[int]:
    return (
        select(IncidentAssignee.incident_id)
        .join(User, User.id == IncidentAssignee.user_id)
        .where(User.username_key == fold(username))
    )


def _of_alert(project_id: int, iid: int) -> Select[int]:
    return (
        select(IncidentAlert.incident_id)
        .join(Alert, Alert.id == IncidentAlert.alert_id)
        .where(Alert.project_id == project_id, Alert.iid == iid)
    )


def count_by_status(wanted: IncidentFilter, *, session: Session) -> dict[str, int]:
    """Return the number of incidents by status; every status is a key.

    A number above COUNT_LIMIT means at least that many. If too many match the search to be counted,
    the result is empty.
    """
    wanted = looked_up(wanted, session=session)
    if wanted.matches is not None and wanted.matches.are_many:
        return {}
    conditions = list(_conditions(wanted))
    # Without an order Postgres may scan the table.
    order = [Incident.id.desc()] if wanted.ids is None else []
    counts = [
        select(literal(status).label("status"), func.count().label("incidents")).select_from(
            select(literal(1))
            .select_from(Incident)
            .where(*conditions, Incident.status == status)
            .order_by(*order)
            .limit(COUNT_LIMIT + 1)
            .subquery()
        )
        for status in STATUSES
    ]
    return dict(session.execute(union_all(*counts)).all())


def incidents_of_alert(alert_id: int, *, session: Session) -> Sequence[Incident]:
    """Return the newest incidents that have an alert, at most ten."""
    return session.scalars(
        select(Incident)
        .where(
            Incident.id.in_(
                select(IncidentAlert.incident_id).where(IncidentAlert.alert_id == alert_id)
            )
        )
        .order_by(Incident.id.desc())
        .limit(10)
    ).all()
