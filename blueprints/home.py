"""The home page, and the list of groups and projects."""

from datetime import timedelta
from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.accounts.passwords import has_initial_password
from domain.alerts.listing.filters import OPEN_STATUSES, AlertFilter
from domain.alerts.listing.hourly_counts import count_alerts_by_hour
from domain.alerts.listing.project_selection import build_member_projects_query, list_project_ids
from domain.alerts.listing.queries import (
    count_alerts_by_status,
    count_open_alerts_by_severity,
    list_open_alerts,
)
from domain.core.database.pagination import PageRequest, get_search_text
from domain.incidents.listing import list_open_incidents_for_user
from domain.oauth.personal_tokens.token_lists import TokenView, list_expiring_tokens
from domain.paging.escalations.reporting.explanation import find_unanswered_alerts
from domain.paging.escalations.routes import find_projects_without_policy
from domain.paging.on_call.shifts import find_user_duties
from domain.paging.on_call.swap_requests import list_own_swap_requests
from domain.paging.page_digests.alerts import find_home_digest
from domain.paging.silences.active_mutes import find_active_mutes, find_mutes_for_listed_alerts
from domain.projects.my_projects import (
    can_see_any_project,
    list_groups_with_projects,
    list_my_projects,
    search_projects,
)
from domain.projects.namespace_lists import GroupFilter, ProjectFilter, list_groups
from domain.projects.views import Viewer
from web.access.decorators import (
    get_current_user,
    get_request_viewer,
    open_to_anyone,
    sign_in_required,
)
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import build_numbered_page_links, get_list_query, get_page_request
from web.pages.live_pages import render_live_page
from web.services import get_current_time, get_parser_settings, get_settings

home = PageBlueprint("home", __name__)
_MAX_ALERTS = 10
_MAX_INCIDENTS = 5
_MAX_PROJECTS = 50


@home.get("/")
@sign_in_required
def index() -> ResponseReturnValue:
    """Show the user's open alerts, on-call shifts, incidents and expiring tokens."""
    watched = build_member_projects_query(get_request_viewer(), session=db.session())
    ids = list_project_ids(watched, session=db.session())
    mark = find_home_digest(
        get_current_user().id, ids, session=db.session(), now=get_current_time()
    )
    return render_live_page(mark, _render_home)


def _render_home() -> ResponseReturnValue:
    session, user = db.session(), get_request_viewer()
    mine = list_my_projects(user, maximum=_MAX_PROJECTS, session=session)
    return render_template(
        "home/index.html",
        projects=mine.projects,
        has_more_projects=mine.has_more,
        in_force=find_active_mutes(mine.projects, moment=get_current_time(), session=session),
        strips=count_alerts_by_hour(
            [each.id for each in mine.projects if each.can_see_alerts],
            session=session,
            now=get_current_time(),
        ),
        expiring_tokens=_list_expiring_tokens(),
        is_first_visit=not mine.projects and not _can_administer_projects(user),
        first_password_hint=has_initial_password(
            get_current_user().username, get_settings().instance_path
        ),
        paging_nobody=find_projects_without_policy(
            [each for each in mine.projects if each.can_see_alerts], session=session
        ),
        **_build_open_alerts_context(user),
        **_build_responsibilities_context(user),
    )


def _build_open_alerts_context(user: Viewer) -> dict[str, Any]:
    """Return the most severe open alerts, and the number of open alerts by severity."""
    session = db.session()
    watched = build_member_projects_query(user, session=session)
    alerts = list_open_alerts(watched, limit=_MAX_ALERTS, session=session)
    return {
        "open_alerts": tuple((alert.project_path, alert) for alert in alerts),
        "mutes": find_mutes_for_listed_alerts(
            alerts,
            moment=get_current_time(),
            session=session,
            parser_settings=get_parser_settings(),
        ),
        "unanswered": find_unanswered_alerts([alert.id for alert in alerts], session=session),
        "severity_counts": count_open_alerts_by_severity(watched, session=session)
        if alerts
        else {},
    }


def _build_responsibilities_context(user: Viewer) -> dict[str, Any]:
    """Return the alerts, incidents and on-call shifts that the user is responsible for."""
    session, me = db.session(), get_current_user()
    watched = build_member_projects_query(user, session=session)
    assigned = AlertFilter(project_id=0, projects=watched, assignee=me.username)
    counts = count_alerts_by_status(assigned, session=session)
    return {
        "assigned_alerts": sum(counts[status] for status in OPEN_STATUSES),
        "incidents": list_open_incidents_for_user(
            me.id, watched, maximum=_MAX_INCIDENTS, session=session
        ),
        "duties": find_user_duties(me.id, session=session, now=get_current_time()),
        "swap_requests": [
            pair
            for pair in list_own_swap_requests(get_unit_of_work())
            if pair[1].other_user.id == me.id
        ],
    }


def _can_administer_projects(user: Viewer) -> bool:
    return user.is_admin and can_see_any_project(user, session=db.session())


def _list_expiring_tokens() -> tuple[TokenView, ...]:
    within = timedelta(days=get_settings().expiring_token_notice_days)
    return list_expiring_tokens(
        get_current_user().id, within, session=db.session(), now=get_current_time()
    )


@home.get("/groups")
@open_to_anyone
def groups_and_projects() -> ResponseReturnValue:
    """List or search the groups and projects that the user can see."""
    search, session = get_search_text(get_list_query("search", "page"), "search"), db.session()
    part, user = get_page_request(order_by="path"), get_request_viewer()
    if search:
        return _render_search_results(search, part, user)
    groups = list_groups_with_projects(GroupFilter(with_personal=True), part, user, session=session)
    return render_template(
        "home/groups_and_projects.html",
        groups=groups.items,
        in_force=find_active_mutes(
            (project for group in groups.items for project in group.projects),
            moment=get_current_time(),
            session=session,
        ),
        total=groups.total,
        page=build_numbered_page_links(groups, part),
    )


def _render_search_results(
    search: str, page_request: PageRequest, user: Viewer
) -> ResponseReturnValue:
    """Show the first matching groups, and one page of the matching projects."""
    session, first = db.session(), PageRequest(size=page_request.size, order_by="path")
    groups = list_groups(GroupFilter(search=search), first, user, session=session)
    projects = search_projects(ProjectFilter(search=search), page_request, user, session=session)
    return render_template(
        "home/search.html",
        search=search,
        groups=[each.group for each in groups.items],
        group_total=groups.total,
        projects=projects.items,
        in_force=find_active_mutes(projects.items, moment=get_current_time(), session=session),
        project_total=projects.total,
        page=build_numbered_page_links(projects, page_request),
    )
