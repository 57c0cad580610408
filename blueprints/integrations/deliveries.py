"""The delivery log of an integration, and views that reprocess stored deliveries."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts import deliveries as domain
from domain.alerts.deliveries import DeliverySelection
from domain.alerts.handling.occurrences import (
    MAX_AFFECTED_ALERTS,
    find_single_affected_alerts,
    list_affected_alerts,
)
from domain.alerts.integrations import delivery_actions as actions
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.mapping_questions import count_open_questions
from domain.alerts.integrations.related_deliveries import find_earlier_message
from domain.alerts.integrations.sender_warnings import find_warnings
from domain.alerts.integrations.trial_alerts import ReplayBody, ReplayResult
from domain.alerts.parsing.severity import find_unknown_words
from domain.paging.page_digests.projects import find_deliveries_digest
from domain.projects.views import ProjectView
from forms.integrations import ReplayForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import (
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
    read_query_parameters,
)
from web.pages.live_pages import render_live_page
from web.pages.templating import pluralize

deliveries = PageBlueprint(
    "deliveries",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/deliveries",
)


@deliveries.get("")
@permission_required("alert_deliveries.index")
def index(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """List the deliveries with their outcomes."""
    get_receiving_integration(get_unit_of_work(), project, integration_id)
    mark = find_deliveries_digest(integration_id, session=db.session())
    return render_live_page(mark, lambda: _render_log(project, integration_id))


def _render_log(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    wanted = _parse_delivery_filter(integration_id)
    page = domain.list_deliveries(wanted, get_requested_keyset_range(), session=db.session())
    with_one = [each.id for each in page.items if each.changed_alert_count == 1]
    return render_template(
        "integrations/deliveries.html",
        project=project,
        integration=integration,
        open_questions=count_open_questions(get_unit_of_work(), integration),
        wanted=wanted,
        shows=tuple(domain.DeliverySelection),
        refusals=domain.count_rejected_deliveries(integration_id, session=db.session()),
        warnings=find_warnings(get_unit_of_work(), integration),
        recent=domain.MAX_RECENT_DELIVERIES,
        page=build_page_links(page),
        only_alerts=find_single_affected_alerts(with_one, session=db.session()),
        replays=ReplayForm(request.args, meta={"csrf": False}),
    )


def _parse_delivery_filter(integration_id: int) -> domain.DeliveryFilter:
    given = get_list_query(
        *("show", "status", "before", "after", "period"), *domain.DeliveryPeriodQuery.model_fields
    )
    return domain.DeliveryFilter(
        integration_id=integration_id,
        show=domain.parse_delivery_selection(given.get("show")),
        status_code=domain.parse_status_code(given.get("status")),
        period=read_query_parameters(domain.DeliveryPeriodQuery).period,
    )


@deliveries.get("/<int:delivery_id>")
@permission_required("alert_deliveries.show")
def show(project: ProjectView, integration_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show a delivery with its payload."""
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    delivery = domain.get_delivery(integration_id, delivery_id, session=db.session())
    return render_template(
        "integrations/delivery.html",
        project=project,
        integration=integration,
        alerts=list_affected_alerts(delivery_id, session=db.session()),
        most_alerts=MAX_AFFECTED_ALERTS,
        delivery=delivery,
        earlier=find_earlier_message(get_unit_of_work(), project, integration_id, delivery_id)
        if integration.type.has_mapping
        else None,
        unknown_words=[
            word
            for word in find_unknown_words(delivery.parse_warnings)
            if word not in integration.mapping.rules.severity_words
        ],
    )


@deliveries.post("/replay")
@permission_required("alert_deliveries.replay").with_changes(writes=False)
def replay(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Reprocess the rejected deliveries from the chosen period."""
    form, unit = ReplayForm(), get_unit_of_work()
    if form.validate_on_submit():
        period = ReplayBody(since=unit.now - form.period_length, after=form.after.data or 0)
        result = actions.replay_deliveries(unit, project, integration_id, period)
        _flash_replay_result(result)
        after, length = result.next_after, form.period.data
    else:
        flash("Choose a period.", "error")
        after, length = None, None
    url = url_for(
        "deliveries.index",
        project_path=project.path,
        integration_id=integration_id,
        show=DeliverySelection.REFUSED.value,
        after=after,
        period=length if after else None,
    )
    return redirect(url)


def _flash_replay_result(result: ReplayResult) -> None:
    done, still = len(result.replayed), len(result.still_refused)
    told = f"{pluralize(done, 'delivery was', 'deliveries were')} replayed"
    told += f", {pluralize(still, 'is', 'are')} still rejected" if still else ""
    told += ". More deliveries remain. Replay again to continue." if result.next_after else "."
    flash(told, "warning" if still and not done else "message")


@deliveries.post("/<int:delivery_id>/send_again")
@permission_required("alert_deliveries.resend").with_changes(writes=False)
def send_again(project: ProjectView, integration_id: int, delivery_id: int) -> ResponseReturnValue:
    """Reprocess the body of a delivery as a new delivery, with the current mapping."""
    resent = actions.resend_inbound_delivery(
        get_unit_of_work(), project, integration_id, delivery_id
    )
    if resent.outcome == "accepted":
        flash(f"Delivery {delivery_id} was sent again. This is the new delivery.")
    else:
        flash("The delivery was processed again and rejected.", "error")
    url = url_for(
        "deliveries.show",
        project_path=project.path,
        integration_id=integration_id,
        delivery_id=resent.id,
    )
    return redirect(url)
