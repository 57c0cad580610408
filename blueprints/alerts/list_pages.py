"""The alert lists for one project and for all projects."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from flask import request, url_for
from werkzeug.datastructures import MultiDict

from domain.access.roles import Ability
from domain.alerts.listing import queries
from domain.alerts.listing.filters import (
    NO_ASSIGNEE,
    SEVERITIES,
    TABS,
    resolve_alert_filter,
)
from domain.alerts.listing.project_selection import (
    ProjectSelection,
    build_member_projects_query,
    exclude_archived_projects,
)
from domain.alerts.listing.queries import AlertListRow
from domain.alerts.listing.saved_filters import SavedFilter, list_saved_filters
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice, SortOrder, parse_sort_cursor
from domain.core.database.pagination import KeysetPage, get_row_id
from domain.core.time_zones import format_period
from domain.paging.escalations.reporting.explanation import find_unanswered_alerts
from domain.paging.silences.active_mutes import Mute, find_mutes_for_listed_alerts
from domain.projects.views import ProjectView
from forms.alerts import (
    ALERT_LIST_PARAMETERS,
    ALERT_LIST_PARAMETERS_ACROSS,
    AlertListQuery,
    parse_alert_list_query,
    parse_alert_list_query_for_all_projects,
)
from web.access.decorators import get_current_user, get_request_viewer
from web.extensions import db
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    LinkedPage,
    Tab,
    build_page_links,
    get_list_query,
    get_page_size,
)
from web.pages.templating import format_capped_count
from web.services import get_current_time, get_parser_settings

#: Query parameter for the number of the first row, which keyset pagination does not provide.
_POSITION_PARAMETER = "position"


@dataclass(frozen=True)
class SortLink:
    """A link in a column heading that selects or reverses a sort order."""

    href: str
    #: Value of `aria-sort`: the current direction, or empty if the list is sorted by another
    #: column.
    direction: str = ""


@dataclass(frozen=True, kw_only=True)
class FilterChip:
    """An active filter, with a link that removes the filter."""

    label: str
    value: str
    href: str


class AlertList(ABC):
    """A page of an alert list, with the values that its template shows."""

    #: Project of the list, or None for the list for all projects.
    project: ProjectView | None = None
    shows_project = False
    #: Endpoints that show the list, export the list, and change several alerts. `_filter_suffix` is
    #: appended to the names of the endpoints that save and delete filters.
    _index: ClassVar[str]
    _download: ClassVar[str]
    _change: ClassVar[str]
    _filter_suffix = ""

    #: Supported query parameters.
    parameters: tuple[str, ...] = ALERT_LIST_PARAMETERS

    def __init__(self, arguments: MultiDict[str, str] | None = None) -> None:
        """Parse the given query arguments, or the arguments of the current request.

        Raise QueryError for unknown parameters or values.
        """
        known = (*self.parameters, *CURSOR_PARAMETERS, _POSITION_PARAMETER)
        self._given = get_list_query(*known) if arguments is None else arguments
        query = self._parse_query(self._given)
        wanted = resolve_alert_filter(query.wanted, session=db.session())
        self.query = replace(query, wanted=wanted)

    @abstractmethod
    def _parse_query(self, arguments: MultiDict[str, str]) -> AlertListQuery:
        """Return the list query for the given query parameters.

        Raise QueryError for unknown parameters or values.
        """

    def build_url(self, **arguments: Any) -> str:
        """Return the URL of the list with the given arguments."""
        return url_for(self._index, **self._url_arguments, **arguments)

    def build_export_url(self, kind: str) -> str:
        """Return the URL that downloads the filtered list.

        `kind` is "json" or "csv".
        """
        return url_for(
            self._download, **self._url_arguments, kind=kind, **self.query.query_parameters
        )

    @property
    def change_url(self) -> str:
        """URL to which the form for changing several alerts is submitted."""
        return url_for(self._change, **self._url_arguments)

    def build_filter_url(self, action: str, filter_id: int | None = None) -> str:
        """Return the URL that saves or deletes a filter."""
        given = (
            self._url_arguments
            if filter_id is None
            else {**self._url_arguments, "filter_id": filter_id}
        )
        return url_for(f"alert_list_settings.{action}{self._filter_suffix}", **given)

    @property
    def _url_arguments(self) -> dict[str, Any]:
        return {"project_path": self.project.path} if self.project else {}

    @property
    def may_select_alerts(self) -> bool:
        """True if the viewer may select alerts to change in this list.

        In the list for all projects, a change skips alerts that the viewer is not allowed to
        change.
        """
        return self.project is None or self.project.can_handle_alerts

    @cached_property
    def saved_filters(self) -> tuple[SavedFilter, ...]:
        """The user's saved filters for this list, and filters that other users have shared."""
        place = self.project.id if self.project else None
        return list_saved_filters(get_current_user().id, place, session=db.session())

    @property
    def sort_orders(self) -> tuple[SortOrder, ...]:
        """Sort orders that the list supports."""
        return tuple(SORT_ORDERS.values())

    @property
    def severities(self) -> tuple[Any, ...]:
        """Severities that the filter form offers."""
        return SEVERITIES

    @cached_property
    def page_size(self) -> int:
        """Number of rows on a page."""
        return get_page_size()

    @cached_property
    def _keyset_page(self) -> KeysetPage[AlertListRow]:
        part = AlertSlice(
            size=self.page_size,
            order=self.query.order,
            # As in all lists, `before` leads to older rows.
            following=parse_sort_cursor(self._given.get("before"), self.query.order),
            preceding=parse_sort_cursor(self._given.get("after"), self.query.order),
        )
        return queries.list_alerts(self.query.wanted, part, session=db.session())

    @cached_property
    def page(self) -> LinkedPage:
        """Rows of the page, with links to the previous and next pages."""
        first = self.first_row_number
        return build_page_links(
            self._keyset_page,
            next_position=None if first is None else first + len(self._keyset_page.items),
            previous_position=None if first is None else max(1, first - self.page_size),
        )

    @cached_property
    def first_row_number(self) -> int | None:
        """Number of the first row on this page, or None if it is unknown.

        The number is unknown if the URL of a later page does not contain it.
        """
        if self._keyset_page.previous_after is None:
            return 1
        return get_row_id(self._given, _POSITION_PARAMETER)

    @cached_property
    def mutes_by_alert(self) -> Mapping[int, Mute]:
        """Reasons why alerts do not page anyone, by alert ID."""
        return find_mutes_for_listed_alerts(
            self._keyset_page.items,
            moment=get_current_time(),
            session=db.session(),
            parser_settings=get_parser_settings(),
        )

    @cached_property
    def unanswered_alert_ids(self) -> Collection[int]:
        """IDs of the alerts that users were paged about but have not acknowledged."""
        return find_unanswered_alerts(
            [row.id for row in self._keyset_page.items], session=db.session()
        )

    @cached_property
    def counts_by_status(self) -> Mapping[str, int]:
        """Number of alerts by status. Empty if counting would be slow."""
        return queries.count_alerts_by_status(self.query.wanted, session=db.session())

    @cached_property
    def tabs(self) -> tuple[Tab, ...]:
        """Status tabs, each with the number of its alerts."""
        return tuple(
            Tab(
                key=key,
                count=self._count_alerts(key),
                href=self.build_url(**{**self.query.query_parameters, "status": key}),
                current=key == self.query.tab,
            )
            for key in TABS
        )

    def _count_alerts(self, tab: str) -> int | None:
        return (
            sum(self.counts_by_status[status] for status in TABS[tab])
            if self.counts_by_status
            else None
        )

    @property
    def open_count(self) -> int | None:
        """Number of open alerts, or None if counting would be slow."""
        return self._count_alerts("open")

    @property
    def total_count(self) -> int | None:
        """Number of alerts in this list, or None if counting would be slow.

        A value above COUNT_LIMIT is a lower bound.
        """
        return self._count_alerts(self.query.tab)

    @property
    def row_range(self) -> str:
        """Range of the rows on this page, such as "1-20 of 111"."""
        shown = len(self._keyset_page.items)
        whole = "many" if self.total_count is None else format_capped_count(self.total_count)
        if not shown or self.first_row_number is None:
            return f"{whole} alerts" if shown else ""
        return f"{self.first_row_number:,}\u2013{self.first_row_number + shown - 1:,} of {whole}"

    @property
    def has_other_pages(self) -> bool:
        """True if more alerts match than this page shows."""
        return bool(self.page.next_url or self.page.previous_url)

    @property
    def sort_links(self) -> Mapping[str, SortLink]:
        """Links in the column headings, by the name of the column's default sort order."""
        names = {order.name for order in self.sort_orders}
        current = self.query.order.name
        found = {
            name: self._build_sort_link(name, "descending" if name == current else "")
            for name in ("severity", "events")
            if name in names
        }
        direction = {"started": "descending", "oldest": "ascending"}.get(current, "")
        other = "oldest" if direction == "descending" else "started"
        return found | {"started": self._build_sort_link(other, direction)}

    def _build_sort_link(self, name: str, direction: str) -> SortLink:
        return SortLink(self.build_url(**{**self.query.query_parameters, "sort": name}), direction)

    @property
    def filter_chips(self) -> tuple[FilterChip, ...]:
        """Active filters. A period counts as one filter."""
        given = self.query.query_parameters
        zone, wanted = get_current_user().time_zone, self.query.wanted
        periods = {"started": wanted.started, "created": wanted.created}
        words = given | {key: format_period(*each, zone) for key, each in periods.items()}
        if given.get("assignee") == NO_ASSIGNEE:
            words["assignee"] = "nobody"
        return tuple(
            FilterChip(
                label=label,
                value=words[name],
                href=self.build_url(
                    **{key: value for key, value in given.items() if key.partition("_")[0] != name}
                ),
            )
            for name, label in _FILTER_LABELS.items()
            if words.get(name)
        )


_FILTER_LABELS = {
    "search": "Search",
    "project": "Project",
    "severity": "Severity",
    "environment": "Environment",
    "service": "Service",
    "assignee": "Assigned to",
    "integration": "Integration",
    "started": "Started",
    "created": "Received",
}


class ProjectAlertList(AlertList):
    """The alert list of a project."""

    _index = "alerts.index"
    _download = "alerts.download"
    _change = "alert_changes.change_several"

    def __init__(self, project: ProjectView, arguments: MultiDict[str, str] | None = None) -> None:
        """Parse the given query arguments, or the arguments of the current request."""
        self.project = project
        self._id = project.id
        super().__init__(arguments)

    def _parse_query(self, arguments: MultiDict[str, str]) -> AlertListQuery:
        return parse_alert_list_query(arguments, project_id=self._id)


class AllAlertsList(AlertList):
    """The alert list for all of a member's projects.

    Only sort orders that are supported by a database index are available.
    """

    shows_project = True
    _index = "all_alerts.index"
    _download = "all_alerts.download"
    _change = "all_alerts.change_several"
    _filter_suffix = "_for_all_projects"
    parameters = ALERT_LIST_PARAMETERS_ACROSS
    #: Ability that the user must have in a project.
    ability = Ability.READ_ALERTS
    #: SQL selection of project IDs: all projects where the user has the ability, or the project in
    #: the query.
    projects: ProjectSelection

    def _parse_query(self, arguments: MultiDict[str, str]) -> AlertListQuery:
        query = parse_alert_list_query_for_all_projects(arguments)
        self.projects = build_member_projects_query(
            get_request_viewer(), session=db.session(), ability=self.ability, path=query.project
        )
        if self.ability is Ability.ADMIN_ALERTS:
            self.projects = exclude_archived_projects(self.projects)
        return replace(query, wanted=replace(query.wanted, projects=self.projects))

    @property
    def sort_orders(self) -> tuple[SortOrder, ...]:
        """Sort orders that the list supports."""
        return tuple(order for order in SORT_ORDERS.values() if not order.is_among_newest)


class ChangeableAlertsList(AllAlertsList):
    """The list of alerts in the projects where the user may change alerts."""

    ability = Ability.ADMIN_ALERTS


def is_partial_request() -> bool:
    """Return whether the page's script requested only the list."""
    return request.args.get("_part") == "list"
