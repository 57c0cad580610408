"""A project's alerts: the list, one alert, and its status."""

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts import queries
from domain.alerts.queries import LARGEST_IID, TABS, AlertFilter
from domain.alerts.status import change_status as change
from domain.errors import ConflictError
from domain.paging import Slice, read_cursor
from domain.projects.views import ProjectView
from web.access import project_member
from web.extensions import db
from web.pages import page_links
from web.services import now, reading, settings

alerts = Blueprint("alerts", __name__, url_prefix="/<names:project_path>/-/alerts")
_LONGEST_SEARCH = 200
#: No alert has a larger number, and no database can be asked for one.
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the list."""

    key: str
    label: str
    count: int
    href: str
    current: bool


@alerts.get("")
@project_member(at_least=Role.DEVELOPER)
def index(project: ProjectView) -> ResponseReturnValue:
    """List alerts, the newest first."""
    tab = request.args.get("status", "open")
    search = request.args.get("search", "")[:_LONGEST_SEARCH]
    wanted = AlertFilter(project_id=project.id, statuses=TABS.get(tab, TABS["open"]), search=search)
    part = Slice(
        size=settings().page_size,
        before=read_cursor(request.args.get("before")),
        after=read_cursor(request.args.get("after")),
    )
    return render_template(
        "alerts/index.html",
        project=project,
        page=page_links(queries.list_alerts(wanted, part, session=db.session())),
        tabs=_tabs(project, tab if tab in TABS else "open", search),
        query=search,
    )


def _tabs(project: ProjectView, current: str, search: str) -> tuple[Tab, ...]:
    counts = queries.count_by_status(project.id, session=db.session())
    return tuple(
        Tab(
            key=key,
            label=key.capitalize(),
            count=sum(counts[status] for status in statuses),
            href=url_for(
                "alerts.index", project_path=project.path, status=key, search=search or None
            ),
            current=key == current,
        )
        for key, statuses in TABS.items()
    )


@alerts.get(_ONE)
@project_member(at_least=Role.DEVELOPER)
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an alert with every field that was kept."""
    alert = queries.get_alert(project.id, iid, session=db.session(), reading=reading())
    return render_template(
        "alerts/show.html", project=project, alert=alert, status_choices=queries.STATUSES
    )


@alerts.post(f"{_ONE}/status")
@project_member(at_least=Role.DEVELOPER)
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Give an alert another status."""
    status = request.form.get("status", "")
    try:
        change(project.id, iid, status, session=db.session(), now=now())
    except ConflictError as error:
        # The rejected write left the transaction unusable.
        db.session.rollback()
        flash(str(error), "error")
    else:
        flash(f"The alert is {status} now.")
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid))
