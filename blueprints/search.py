"""The search page, and the search results for the dialog that opens with Ctrl+K."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flask import render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.alerts.list_pages import is_partial_request
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.project_selection import (
    build_member_projects_query,
    select_projects_by_path,
)
from domain.alerts.listing.queries import (
    MAX_IID,
    AlertListRow,
    list_alerts,
    list_alerts_by_number,
)
from domain.alerts.listing.sort_orders import AlertSlice
from domain.core.database.pagination import PageRequest, get_search_text, parse_id
from domain.incidents.listing import IncidentSummary, list_incidents_by_number, search_incidents
from domain.projects.my_projects import list_my_projects, search_projects
from domain.projects.namespace_lists import GroupFilter, ProjectFilter, list_groups
from domain.projects.user_profiles import search_people
from web.access.decorators import get_current_user, get_request_viewer, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import get_list_query
from web.pages.templating import pluralize, replace_invisible_text

search = PageBlueprint("search", __name__, url_prefix="/-/search")
#: Maximum number of results of each kind.
_MAX_RESULTS = 5
#: Minimum length of a search text for which alerts and incidents are included.
_MIN_WORD_LENGTH = 2
#: Pattern for the number of an alert or incident, such as `#84` or `acme/shop#84`.
_NUMBER_PATTERN = re.compile(r"(?:(?P<path>[^\s#]+)\s*#|#)?(?P<number>[0-9]{1,10})")
#: Pages that every user can open, with their labels, endpoints and additional search words.
_PAGES = (
    ("Home", "home.index", "start overview"),
    ("Alerts", "all_alerts.index", "open triggered"),
    ("Groups and projects", "home.groups_and_projects", ""),
    ("On call", "own_on_call.index", "my shifts schedule oncall swaps"),
    ("Contacts", "contacts.index", "notifications phone email pages"),
    ("Profile", "account.profile", "name time zone"),
    ("Security", "account.security", "password two-factor 2fa passkeys sessions"),
    ("Applications", "applications.index", "oauth clients"),
    ("Authorized applications", "authorized_applications.index", "oauth revoke"),
    ("Access tokens", "access_tokens.index", "personal api"),
    ("Activity", "activity.index", "sign-ins audit"),
    ("Help", "help_pages.index", "documentation guides"),
    ("API reference", "api_viewer.show", "openapi rest"),
    ("Release schedule", "release_schedule.index", "changes deprecations"),
)
_ADMINISTRATOR_PAGES = (
    ("Administration", "admin.overview.index", "admin"),
    ("Users", "admin.users.index", "accounts admin"),
    ("Member roles", "admin.member_roles.index", "admin"),
    ("Identity providers", "admin.identity_providers.index", "admin sso ldap saml"),
    ("All applications", "admin.applications.index", "admin oauth"),
    ("Settings", "admin.settings.index", "admin"),
    ("Keys", "admin.keys.index", "admin signing"),
    ("Queues", "admin.queues.index", "admin notifications mail pages webhooks delivery"),
    ("API usage", "admin.api_usage.index", "admin"),
    ("Audit events", "audit.index", "admin log"),
)


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """A search result, with its label and URL."""

    label: str
    url: str
    detail: str = ""
    #: Status of an alert or incident, or empty.
    status: str = ""


@dataclass(frozen=True, kw_only=True)
class SearchSection:
    """The first search results of one kind."""

    name: str
    hits: tuple[SearchHit, ...]
    #: URL of a list with all results, or None.
    more_url: str | None = None


@search.get("")
@sign_in_required.with_changes(is_heavy=True)
def index() -> ResponseReturnValue:
    """Search pages, projects, alerts, incidents and people."""
    text = get_search_text(get_list_query("q"), "q").replace("\x00", " ").strip()
    sections = (
        _find_pages(text),
        _find_projects(text),
        *(
            (_find_groups(text), *_find_alerts_and_incidents(text), _find_people(text))
            if text
            else ()
        ),
    )
    return render_template(
        "search/_results.html" if is_partial_request() else "search/index.html",
        text=text,
        sections=[section for section in sections if section.hits],
    )


def _find_pages(text: str) -> SearchSection:
    """Return the pages whose label or search terms contain every word of the text."""
    pages = _PAGES + (_ADMINISTRATOR_PAGES if get_current_user().is_admin else ())
    words = text.lower().split()
    found = (
        SearchHit(label=label, url=url_for(endpoint))
        for label, endpoint, more in pages
        if all(word in f"{label} {more}".lower() for word in words)
    )
    return SearchSection(name="Pages", hits=tuple(found)[:_MAX_RESULTS])


def _find_projects(text: str) -> SearchSection:
    """Return the matching projects, or the viewer's own projects if the text is empty."""
    viewer, session = get_request_viewer(), db.session()
    part = PageRequest(size=_MAX_RESULTS, order_by="path")
    wanted = ProjectFilter(search=text, searches_groups=True)
    found = (
        search_projects(wanted, part, viewer, session=session).items
        if text
        else list_my_projects(viewer, maximum=_MAX_RESULTS, session=session).projects
    )
    hits = (
        SearchHit(
            label=each.path,
            url=url_for("projects.show_namespace", full_path=each.path),
            detail=pluralize(each.open_alerts, "open alert") if each.open_alerts else "",
        )
        for each in found
    )
    more = url_for("home.groups_and_projects", search=text) if text else None
    return SearchSection(name="Projects", hits=tuple(hits), more_url=more)


def _find_groups(text: str) -> SearchSection:
    part = PageRequest(size=_MAX_RESULTS, order_by="path")
    found = list_groups(GroupFilter(search=text), part, get_request_viewer(), session=db.session())
    paths = (each.group.path for each in found.items)
    hits = (
        SearchHit(label=path, url=url_for("projects.show_namespace", full_path=path))
        for path in paths
    )
    return SearchSection(name="Groups", hits=tuple(hits))


def _find_alerts_and_incidents(text: str) -> Iterator[SearchSection]:
    """Yield the matching alerts and incidents that the viewer can see.

    `text` contains a number or search words.
    """
    session, most = db.session(), _MAX_RESULTS
    watched = build_member_projects_query(get_request_viewer(), session=session)
    match = _NUMBER_PATTERN.fullmatch(text)
    number = min(parse_id(match["number"]) or 0, MAX_IID) if match else 0
    path = match["path"] if match else None
    named = select_projects_by_path(watched, path) if path else watched
    alerts = list_alerts_by_number(number, named, most=most, session=session)
    incidents = list_incidents_by_number(number, named, most=most, session=session)
    more, is_reference = None, "#" in text and bool(alerts or incidents)
    if not is_reference and len(text) >= _MIN_WORD_LENGTH:
        wanted = AlertFilter(project_id=0, projects=watched, search=text)
        alerts += list_alerts(wanted, AlertSlice(size=most), session=session).items
        incidents += search_incidents(text, watched, most=most, session=session)
        more = url_for("all_alerts.index", status="all", search=text)
    yield _build_section("Alerts", alerts, "alerts.show", more_url=more)
    yield _build_section("Incidents", incidents, "incidents.show")


def _build_section(
    name: str,
    found: Iterable[AlertListRow | IncidentSummary],
    endpoint: str,
    *,
    more_url: str | None = None,
) -> SearchSection:
    """Return a section of alerts or incidents, without duplicates."""
    hits = {
        (each.project_path, each.iid): SearchHit(
            label=replace_invisible_text(each.title),
            url=url_for(endpoint, project_path=each.project_path, iid=each.iid),
            detail=f"{each.project_path}#{each.iid}",
            status=each.status,
        )
        for each in found
    }
    return SearchSection(name=name, hits=tuple(hits.values())[:_MAX_RESULTS], more_url=more_url)


def _find_people(text: str) -> SearchSection:
    found = search_people(
        text.lstrip("@"), get_request_viewer(), most=_MAX_RESULTS, session=db.session()
    )
    hits = (
        SearchHit(
            label=f"@{person.username}",
            url=url_for("users.show", username=person.username),
            detail=replace_invisible_text(person.name, ""),
        )
        for person in found
    )
    return SearchSection(name="People", hits=tuple(hits))
