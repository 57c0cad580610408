"""The home page, and the list of groups and projects."""

from datetime import timedelta
from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.accounts.passwords import has_first_password
from domain.alerts.listing.filters import OPEN_STATUSES, AlertFilter
from domain.alerts.listing.queries import count_by_status, count_open_by_severity, open_alerts
from domain.alerts.listing.watched_projects import projects_of_member
from domain.core.database.paging import ListPart, words
from domain.incidents.listing import open_incidents_of
from domain.oauth.personal_tokens.lists import TokenView, list_expiring
from domain.paging.escalations.explanation import unanswered_among
from domain.paging.escalations.routes import paging_nobody
from domain.paging.on_call.shifts import duties_of
from domain.paging.silences.muting import in_force, muted_rows
from domain.projects.listing import (
    GroupFilter,
    ProjectFilter,
    list_groups,
    my_projects,
    page_of_groups,
    search_projects,
    sees_any_project,
)
from domain.projects.views import Viewer
from web.access.decorators import get_current_user, open_to_anyone, signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import asked_part, list_query, numbered_links
from web.services import now, reading, settings

home = PageBlueprint("home", __name__)
_MOST_ALERTS = 10
_MOST_INCIDENTS = 5
_MOST_PROJECTS = 50


@home.get("/")
@signed_in
def index() -> ResponseReturnValue:
    """Show the user's open alerts, duties, incidents and expiring tokens."""
    session, user = db.session(), viewer()
    mine = my_projects(user, most=_MOST_PROJECTS, session=session)
    return render_template(
        "home/index.html",
        projects=mine.projects,
        has_more_projects=mine.has_more,
        in_force=in_force(mine.projects, at=now(), session=session),
        expiring_tokens=_expiring_tokens(),
        is_first_visit=not mine.projects and not _administers_projects(user),
        first_password_hint=has_first_password(
            get_current_user().username, settings().instance_path
        ),
        paging_nobody=paging_nobody(
            [each for each in mine.projects if each.shows_alerts], session=session
        ),
        **_alerts_that_wait(user),
        **_what_is_mine(user),
    )


def _alerts_that_wait(user: Viewer) -> dict[str, Any]:
    """Return the most severe open alerts, and the number of open alerts by severity."""
    session = db.session()
    watched = projects_of_member(user, session=session)
    alerts = open_alerts(watched, limit=_MOST_ALERTS, session=session)
    return {
        "open_alerts": tuple((alert.project_path, alert) for alert in alerts),
        "mutes": muted_rows(alerts, at=now(), session=session, reading=reading()),
        "unanswered": unanswered_among([alert.id for alert in alerts], session=session),
        "severity_counts": count_open_by_severity(watched, session=session) if alerts else {},
    }


def _what_is_mine(user: Viewer) -> dict[str, Any]:
    """Return the alerts, incidents and duties that the user is responsible for."""
    session, me = db.session(), get_current_user()
    watched = projects_of_member(user, session=session)
    assigned = AlertFilter(project_id=0, projects=watched, assignee=me.username)
    counts = count_by_status(assigned, session=session)
    return {
        "assigned_alerts": sum(counts[status] for status in OPEN_STATUSES),
        "incidents": open_incidents_of(me.id, watched, most=_MOST_INCIDENTS, session=session),
        "duties": duties_of(me.id, session=session, now=now()),
    }


def _administers_projects(user: Viewer) -> bool:
    return user.is_admin and sees_any_project(user, session=db.session())


def _expiring_tokens() -> tuple[TokenView, ...]:
    within = timedelta(days=settings().expiring_token_notice_days)
    return list_expiring(get_current_user().id, within, session=db.session(), now=now())


@home.get("/groups")
@open_to_anyone
def groups_and_projects() -> ResponseReturnValue:
    """List the groups and projects that the user can see, or search them."""
    search, session = words(list_query("search", "page"), "search"), db.session()
    part, user = asked_part(order_by="path"), viewer()
    if search:
        return _found(search, part, user)
    groups = page_of_groups(GroupFilter(with_personal=True), part, user, session=session)
    return render_template(
        "home/groups_and_projects.html",
        groups=groups.items,
        in_force=in_force(
            (project for group in groups.items for project in group.projects),
            at=now(),
            session=session,
        ),
        total=groups.total,
        page=numbered_links(groups, part),
    )


def _found(search: str, part: ListPart, user: Viewer) -> ResponseReturnValue:
    """Show the first matching groups, and the matching projects page by page."""
    session, first = db.session(), ListPart(size=part.size, order_by="path")
    groups = list_groups(GroupFilter(search=search), first, user, session=session)
    projects = search_projects(ProjectFilter(search=search), part, user, session=session)
    return render_template(
        "home/search.html",
        search=search,
        groups=[each.group for each in groups.items],
        group_total=groups.total,
        projects=projects.items,
        in_force=in_force(projects.items, at=now(), session=session),
        project_total=projects.total,
        page=numbered_links(projects, part),
    )
