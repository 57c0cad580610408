"""/api/v4/projects/:id/alert_management_integrations: integrations, keys, mappings, deliveries."""

from flask import Response

from blueprints.alerts.receiving import payload_file
from domain.alerts.deliveries import get_body
from domain.alerts.integrations import (
    actions,
    delivery_actions,
    mapping_actions,
    received_labels,
)
from domain.alerts.integrations.integrations import get_receiver
from domain.core.database.paging import LARGEST_ID
from domain.projects.views import ProjectView
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.extensions import db
from web.http.work import work

_AT = "/projects/<path:reference>/alert_management_integrations"
#: Part of a URL for an integration. The converters reject numbers that databases reject.
_ONE = f"/<int(max={LARGEST_ID}):integration_id>"
_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"

alert_integrations = Resources("alert_integrations", __name__, url_prefix=_AT)
alert_integrations.bind_usual(actions, _ONE)
alert_integrations.bind("GET", f"{_ONE}/labels", received_labels.list_labels)
alert_integrations.bind("POST", f"{_ONE}/test", delivery_actions.send_test, status=200)

alert_integration_keys = Resources("alert_integration_keys", __name__, url_prefix=f"{_AT}{_ONE}")
alert_integration_keys.bind("GET", "/credentials", actions.read_credentials, writes=True)
alert_integration_keys.bind("GET", "/keys", actions.list_keys)
alert_integration_keys.bind("POST", "/keys", actions.rotate_key)
alert_integration_keys.bind("DELETE", "/keys/<key_id>", actions.delete_key)

alert_mappings = Resources("alert_mappings", __name__, url_prefix=f"{_AT}{_ONE}/mapping")
alert_mappings.bind("GET", "", mapping_actions.show_mapping)
alert_mappings.bind("PUT", "", mapping_actions.change_mapping)
alert_mappings.bind("DELETE", "", mapping_actions.delete_mapping)
alert_mappings.bind("POST", "/preview", mapping_actions.preview_mapping)

alert_recognition = Resources("alert_recognition", __name__, url_prefix=f"{_AT}/recognize")
alert_recognition.bind("POST", "", mapping_actions.recognize_payload)

alert_deliveries = Resources("alert_deliveries", __name__, url_prefix=f"{_AT}{_ONE}/deliveries")
alert_deliveries.bind_usual(delivery_actions, _DELIVERY)
alert_deliveries.bind("POST", f"{_DELIVERY}/resend", delivery_actions.resend)
alert_deliveries.bind("POST", "/replay", delivery_actions.replay_deliveries, status=200)


@alert_deliveries.get(f"{_DELIVERY}/body")
@answers_with(file="application/octet-stream")
@operation("alert_deliveries.body")
def body(project: ProjectView, integration_id: int, delivery_id: int) -> Response:
    """Return the body of a delivery as it was received."""
    integration = get_receiver(work(), project, integration_id)
    return payload_file(get_body(integration.id, delivery_id, session=db.session()))
