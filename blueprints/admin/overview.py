"""The page /admin: the overview of the instance."""

from collections.abc import Sequence

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from domain.accounts.directory import count_accounts
from domain.alerts.deliveries import list_recent_inbound_deliveries
from domain.alerts.integrations.delivery_hours import count_deliveries
from domain.audit.events import EventKind
from domain.audit.log import read_event_times
from domain.oauth.clients.directory import count_applications
from domain.projects.listing import count_namespaces
from web.access.decorators import administrator_required, get_current_user
from web.admin.instance_state import get_instance_state
from web.extensions import db
from web.pages.daily_charts import (
    MAX_EVENTS,
    TitledChart,
    build_instance_charts,
    list_last_days,
)
from web.services import get_current_time

overview = Blueprint("overview", __name__)
_MAX_DELIVERIES = 5


@overview.get("")
@administrator_required.with_changes(is_heavy=True)
def index() -> ResponseReturnValue:
    """Show problems, totals and the latest events."""
    session = db.session()
    return render_template(
        "admin/overview.html",
        state=get_instance_state(),
        accounts=count_accounts(session=session),
        applications=count_applications(session=session),
        namespaces=count_namespaces(session=session),
        charts=_build_charts(),
        deliveries=list_recent_inbound_deliveries(limit=_MAX_DELIVERIES, session=session),
    )


def _build_charts() -> Sequence[TitledChart]:
    """Return the charts of deliveries and failed sign-ins by day, in the user's time zone."""
    session = db.session()
    days = list_last_days(get_current_time(), get_current_user().time_zone)
    failures = read_event_times(
        EventKind.SIGN_IN_FAILED, min(days.values()), maximum=MAX_EVENTS, session=session
    )
    return build_instance_charts(
        days, count_deliveries([*days.values()], session=session), failures
    )
