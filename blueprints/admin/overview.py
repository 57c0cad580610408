"""The page /admin: the overview of the instance."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from domain.accounts.directory import count_accounts
from domain.alerts.deliveries import recent_deliveries
from domain.oauth.clients.directory import count_applications
from domain.projects.listing import count_namespaces
from web.access.decorators import administrator
from web.admin.instance_state import state_of_the_instance
from web.extensions import db

overview = Blueprint("overview", __name__)
_MOST_DELIVERIES = 5


@overview.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show problems, totals and the latest events."""
    session = db.session()
    return render_template(
        "admin/overview.html",
        state=state_of_the_instance(),
        accounts=count_accounts(session=session),
        applications=count_applications(session=session),
        namespaces=count_namespaces(session=session),
        deliveries=recent_deliveries(limit=_MOST_DELIVERIES, session=session),
    )
