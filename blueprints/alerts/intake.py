"""Views that receive alerts from monitoring systems.

The order of the checks is part of the API because it determines the error in the response.
"""

from functools import partial

from flask import Response

from blueprints.alerts.events_api import build_event_response
from blueprints.alerts.receivers import receive_request
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import AlertArray, MetricsAlerts
from domain.alerts.parsing.incoming_alert import ParsedBody
from domain.alerts.receiving import receivers
from domain.alerts.storing.intake_result import IntakeResult
from web.access.decorators import authenticates_integration
from web.api.openapi.view_descriptions import JSON, RECEIVERS, Caller, ViewDescription
from web.api.schemas.receivers import AnyAlerts, GenericAlerts, ReceivedAlerts
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.json_responses import build_json_response

intake = ApiClientBlueprint("intake", __name__, errors=ErrorFormat.MESSAGE)

_describe_receiver = partial(
    ViewDescription,
    tag=RECEIVERS,
    caller=Caller.SENDER,
    accepts=(JSON,),
    returns=ReceivedAlerts,
    errors=(400, 401, 403, 404, 408, 413, 415, 422, 429),
)


@intake.post("/<names:project_path>/alerts/notify/<slug>/<endpoint_identifier>.json")
@_describe_receiver(name="receivers.integration", body=AnyAlerts)
@authenticates_integration
def notify(project_path: str, slug: str, endpoint_identifier: str) -> Response:
    """Accept alerts sent to the URL of an integration.

    The slug in the URL is ignored.
    """
    # "notify" cannot be an endpoint identifier, because endpoint identifiers are longer.
    if (slug, endpoint_identifier) == ("alerts", "notify"):
        return notify_http(f"{project_path}/alerts/notify")
    find = partial(receivers.get_receiver_by_identifier, project_path, endpoint_identifier)
    return _build_intake_response(*receive_request(find))


@intake.post("/<names:project_path>/alerts/notify/<slug>/<endpoint_identifier>/api/v2/alerts")
@_describe_receiver(name="receivers.alertmanager_api", body=AlertArray)
@authenticates_integration
def notify_as_alertmanager(project_path: str, slug: str, endpoint_identifier: str) -> Response:
    """Accept alerts from clients that use an integration's URL as an Alertmanager API."""
    del slug
    identifier = endpoint_identifier.removesuffix(".json")
    return _build_intake_response(
        *receive_request(partial(receivers.get_receiver_by_identifier, project_path, identifier))
    )


@intake.post("/<names:project_path>/alerts/notify.json")
@_describe_receiver(name="receivers.http", body=GenericAlerts)
@authenticates_integration
def notify_http(project_path: str) -> Response:
    """Accept alerts sent to the project's oldest HTTP endpoint."""
    find = partial(receivers.get_oldest_receiver, project_path, HTTP)
    return _build_intake_response(*receive_request(find))


@intake.post("/<names:project_path>/prometheus/alerts/notify.json")
@_describe_receiver(name="receivers.metrics", body=MetricsAlerts)
@authenticates_integration
def notify_prometheus(project_path: str) -> Response:
    """Accept alerts sent to the project's oldest Prometheus integration.

    If the last part of a project's path is "prometheus", this URL belongs to that project's oldest
    HTTP endpoint.
    """
    return _build_intake_response(
        *receive_request(partial(receivers.get_receiver_by_prometheus_url, project_path))
    )


def _build_intake_response(parsed_body: ParsedBody, result: IntakeResult) -> Response:
    if parsed_body.event is not None:
        return build_event_response(parsed_body.event)
    return build_json_response([{"iid": item.iid, "title": item.title} for item in result.items])
