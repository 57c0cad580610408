"""The /admin page: an overview of the instance."""

from collections.abc import Sequence
from itertools import pairwise

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.account_lists import count_accounts
from domain.alerts.deliveries import (
    DeliveryPeriodQuery,
    list_received_deliveries,
    list_recent_inbound_deliveries,
)
from domain.alerts.integrations.delivery_counts import count_deliveries
from domain.audit.events import EventKind
from domain.audit.log import read_event_times
from domain.oauth.clients.application_lists import count_applications
from domain.projects.namespace_lists import count_namespaces
from web.access.decorators import administrator_required, get_current_user
from web.admin.instance_state import get_instance_state
from web.extensions import db
from web.pages.charts import add_period_to_url
from web.pages.daily_charts import (
    MAX_EVENTS,
    TitledChart,
    build_instance_charts,
    list_last_days,
)
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
    read_query_parameters,
)
from web.services import get_current_time

overview = Blueprint("overview", __name__)
_MAX_DELIVERIES = 5


@overview.get("")
@administrator_required.with_changes(is_heavy=True)
def index() -> ResponseReturnValue:
    """Show problems, totals, charts and the latest deliveries."""
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
    """Return the charts of daily deliveries and failed sign-ins, in the user's time zone."""
    session = db.session()
    days = list_last_days(get_current_time(), get_current_user().time_zone)
    failures = read_event_times(
        EventKind.SIGN_IN_FAILED, min(days.values()), maximum=MAX_EVENTS, session=session
    )
    list_url = url_for("admin.overview.list_deliveries")
    return build_instance_charts(
        days,
        count_deliveries([*days.values()], session=session),
        failures,
        delivery_links=[
            add_period_to_url(list_url, "received", *pair)
            for pair in pairwise((*days.values(), get_current_time()))
        ],
        failure_links=[
            url_for("audit.index", kind=EventKind.SIGN_IN_FAILED.value, since=day, until=day)
            for day in days
        ],
    )


@overview.get("/deliveries")
@administrator_required.with_changes(is_heavy=True)
def list_deliveries() -> ResponseReturnValue:
    """List the deliveries of all integrations, newest first."""
    get_list_query(*DeliveryPeriodQuery.model_fields, *CURSOR_PARAMETERS)
    times, session = read_query_parameters(DeliveryPeriodQuery), db.session()
    bounds = [each for each in times.period if each is not None]
    found = list_received_deliveries(times, get_requested_keyset_range(), session=session)
    return render_template(
        "admin/deliveries.html",
        page=build_page_links(found),
        period=times.period,
        counts=count_deliveries(bounds, session=session)[:1] if len(bounds) > 1 else (),
    )
