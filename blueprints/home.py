"""The home page, and the list of groups and projects."""

from datetime import timedelta

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.alerts.listing.queries import open_alerts
from domain.oauth.personal_tokens.lists import TokenView, list_expiring
from domain.projects.access import my_projects, visible_groups
from web.access.marks import get_current_user, open_to_anyone, signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.server.bootstrap import has_first_password
from web.services import now, settings

home = PageBlueprint("home", __name__)
_MOST_ALERTS = 30


@home.get("/")
@signed_in
def index() -> ResponseReturnValue:
    """Show the open alerts of the user's projects, most severe first."""
    projects = my_projects(viewer(), session=db.session())
    watched = [project.id for project in projects if project.shows_alerts]
    alerts = open_alerts(watched, limit=_MOST_ALERTS, session=db.session())
    return render_template(
        "home/index.html",
        open_alerts=tuple((alert.project_path, alert) for alert in alerts),
        projects=projects,
        expiring_tokens=_expiring_tokens(),
        is_first_visit=not projects,
        first_password_hint=has_first_password(get_current_user().username),
    )


def _expiring_tokens() -> tuple[TokenView, ...]:
    within = timedelta(days=settings().expiring_token_notice_days)
    return list_expiring(get_current_user().id, within, session=db.session(), now=now())


@home.get("/groups")
@open_to_anyone
def groups_and_projects() -> ResponseReturnValue:
    """List the groups and projects that are visible to the user."""
    groups = visible_groups(viewer(), session=db.session())
    return render_template("home/groups_and_projects.html", groups=groups)
