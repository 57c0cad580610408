"""Commands about the alerts of projects."""

from typing import Any
from urllib.parse import quote

import click
from flask.cli import AppGroup

from domain.access.checks import check_takes_changes
from domain.alerts.handling.alert_detail import get_alert
from domain.alerts.handling.removal import delete_alert
from domain.alerts.handling.status import StatusChange, change_status
from domain.alerts.listing.filters import STATUSES, TABS, AlertFilter
from domain.alerts.listing.queries import LARGEST_IID, AlertSlice, list_alerts
from domain.alerts.listing.sort_orders import SORT_ORDERS, read_cursor
from domain.alerts.reading.incoming import Severity
from domain.projects.views import ProjectView
from web.alerts.alert_audit import record_deletion
from web.api.schemas.alerts.alerts import Alert, AlertDetail
from web.commands.operator import project_at
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now, reading, settings

_IID = click.IntRange(1, LARGEST_IID)
_SEVERITY = click.Choice([each.value for each in Severity])
_MOST_LISTED = 100

alerts = AppGroup("alerts", help="Alerts of projects.")


@alerts.command("list")
@click.argument("project")
@click.option("--status", type=click.Choice(list(TABS)), default="open", show_default=True)
@click.option("--severity", type=_SEVERITY)
@click.option("--environment")
@click.option("--service")
@click.option("--assignee", help="A user name, or - for nobody.")
@click.option("--search", default="", help="Search the texts of alerts.")
@click.option("--sort", type=click.Choice(list(SORT_ORDERS)), default="started")
@click.option("--cursor", default="", help="The value of next_cursor, for the next page.")
@one_transaction
def list_alerts_command(*, project: str, **given: Any) -> dict[str, Any]:
    """List up to 100 alerts of PROJECT."""
    found, order = project_at(project), SORT_ORDERS[given["sort"]]
    wanted = AlertFilter(
        project_id=found.id,
        statuses=TABS[given["status"]],
        severity=Severity(given["severity"]) if given["severity"] else None,
        environment=given["environment"],
        service=given["service"],
        assignee=given["assignee"],
        search=given["search"].strip(),
    )
    following = read_cursor(given["cursor"], order)
    part = AlertSlice(size=_MOST_LISTED, order=order, following=following)
    page = list_alerts(wanted, part, session=db.session())
    return {
        "alerts": [
            Alert.of(row, alert_url(found, row.iid)).model_dump(mode="json") for row in page.items
        ],
        "next_cursor": page.next_before,
    }


@alerts.command("show")
@click.argument("project")
@click.argument("iid", type=_IID)
@one_transaction
def show_alert_command(*, project: str, iid: int) -> dict[str, Any]:
    """Show the alert IID of PROJECT with all its fields."""
    return _shown(project_at(project), iid)


@alerts.command("change")
@click.argument("project")
@click.argument("iid", type=_IID)
@click.option("--status", type=click.Choice(STATUSES), required=True)
@one_transaction
def change_alert_command(*, project: str, iid: int, status: str) -> dict[str, Any]:
    """Change the status of the alert IID of PROJECT."""
    found, session = project_at(project), db.session()
    check_takes_changes(found)
    wanted = StatusChange(status=status, by=None)
    change_status(found.id, iid, wanted, session=session, now=now())
    return _shown(found, iid)


@alerts.command("delete")
@click.argument("project")
@click.argument("iid", type=_IID)
@one_transaction
def delete_alert_command(*, project: str, iid: int) -> dict[str, Any]:
    """Delete the alert IID of PROJECT with its activity."""
    found = project_at(project)
    gone = delete_alert(found.id, iid, session=db.session())
    record_deletion(found, gone)
    return {"iid": iid, "deleted": True}


def _shown(project: ProjectView, iid: int) -> dict[str, Any]:
    found = get_alert(project.id, iid, session=db.session(), reading=reading())
    return AlertDetail.of_detail(found, alert_url(project, iid)).model_dump(mode="json")


def alert_url(project: ProjectView, iid: int) -> str:
    """Return the address of an alert's page."""
    return f"{settings().base_url}/{quote(project.path)}/-/alerts/{iid}"
