"""The home page, and the list of groups and projects."""

from datetime import timedelta

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.alerts.listing.queries import open_alerts
from domain.alerts.listing.watched_projects import projects_of_member
from domain.database.list_queries import words
from domain.database.paging import ListPart
from domain.oauth.personal_tokens.lists import TokenView, list_expiring
from domain.projects.listing import GroupFilter, ProjectFilter, list_groups
from domain.projects.overview import (
    maintains_a_group,
    my_projects,
    page_of_groups,
    search_projects,
    sees_any_project,
)
from domain.projects.views import Viewer
from web.access.marks import get_current_user, open_to_anyone, signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.links import numbered_links
from web.pages.list_query import asked_part, list_query
from web.server.bootstrap import has_first_password
from web.services import now, settings

home = PageBlueprint("home", __name__)
_MOST_ALERTS = 30
_MOST_PROJECTS = 50


@home.get("/")
@signed_in
def index() -> ResponseReturnValue:
    """Show the open alerts of the user's projects, most severe first."""
    session, user = db.session(), viewer()
    mine = my_projects(user, most=_MOST_PROJECTS, session=session)
    watched = projects_of_member(user, session=session)
    alerts = open_alerts(watched, limit=_MOST_ALERTS, session=session)
    return render_template(
        "home/index.html",
        open_alerts=tuple((alert.project_path, alert) for alert in alerts),
        projects=mine.projects,
        has_more_projects=mine.has_more,
        expiring_tokens=_expiring_tokens(),
        is_first_visit=not mine.projects and not _administers_projects(user),
        first_password_hint=has_first_password(get_current_user().username),
    )


def _administers_projects(user: Viewer) -> bool:
    return user.is_admin and sees_any_project(user, session=db.session())


def _expiring_tokens() -> tuple[TokenView, ...]:
    within = timedelta(days=settings().expiring_token_notice_days)
    return list_expiring(get_current_user().id, within, session=db.session(), now=now())


@home.get("/groups")
@open_to_anyone
def groups_and_projects() -> ResponseReturnValue:
    """List the groups and projects that are visible to the user, or those with a word."""
    search, session = words(list_query("search", "page"), "search"), db.session()
    part, user = asked_part(order_by="path"), viewer()
    if search:
        return _found(search, part, user)
    groups = page_of_groups(GroupFilter(), part, user, session=session)
    return render_template(
        "home/groups_and_projects.html",
        groups=groups.items,
        total=groups.total,
        page=numbered_links(groups, part),
        may_create_projects=maintains_a_group(user, session=session),
    )


def _found(search: str, part: ListPart, user: Viewer) -> ResponseReturnValue:
    """Show the first groups with a word, and the projects page by page."""
    session, first = db.session(), ListPart(size=part.size, order_by="path")
    groups = list_groups(GroupFilter(search=search), first, user, session=session)
    projects = search_projects(ProjectFilter(search=search), part, user, session=session)
    return render_template(
        "home/search.html",
        search=search,
        groups=[each.group for each in groups.items],
        group_total=groups.total,
        projects=projects.items,
        project_total=projects.total,
        page=numbered_links(projects, part),
    )
