"""The page /admin: the overview of the instance."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from domain.accounts.directory import count_accounts
from domain.alerts.deliveries import list_recent_inbound_deliveries
from domain.oauth.clients.directory import count_applications
from domain.projects.listing import count_namespaces
from web.access.decorators import administrator_required
from web.admin.instance_state import get_instance_state
from web.extensions import db

overview = Blueprint("overview", __name__)
_MAX_DELIVERIES = 5


@overview.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """Show problems, totals and the latest events."""
    session = db.session()
    return render_template(
        "admin/overview.html",
        state=get_instance_state(),
        accounts=count_accounts(session=session),
        applications=count_applications(session=session),
        namespaces=count_namespaces(session=session),
        deliveries=list_recent_inbound_deliveries(limit=_MAX_DELIVERIES, session=session),
    )
