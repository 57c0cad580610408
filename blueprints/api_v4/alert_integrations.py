"""/api/v4/projects/:id/alert_management_integrations: integrations, keys, mappings, deliveries."""

from flask import Response

from blueprints.alerts.receivers import build_payload_response
from domain.alerts.deliveries import get_delivery_body
from domain.alerts.integrations import (
    actions,
    delivery_actions,
    mapping_actions,
    received_labels,
    sender_warnings,
)
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.core.database.pagination import MAX_ID
from domain.projects.views import ProjectView
from web.api.openapi.view_descriptions import declare_media_types
from web.api.operations import ResourceBlueprint, declare_operation
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

_COLLECTION_PATH = "/projects/<path:reference>/alert_management_integrations"
#: URL path of an integration. The converters reject numbers that are too large for a database
#: column.
_ITEM_PATH = f"/<int(max={MAX_ID}):integration_id>"
_DELIVERY_PATH = f"/<int(max={MAX_ID}):delivery_id>"

alert_integrations = ResourceBlueprint("alert_integrations", __name__, url_prefix=_COLLECTION_PATH)
alert_integrations.bind_crud_actions(actions, _ITEM_PATH, mapping_actions.create_mapped_integration)
alert_integrations.bind_action("GET", f"{_ITEM_PATH}/labels", received_labels.list_labels)
alert_integrations.bind_action("GET", f"{_ITEM_PATH}/warnings", sender_warnings.list_warnings)
alert_integrations.bind_action(
    "POST", f"{_ITEM_PATH}/test", delivery_actions.send_test_alert_or_preview, status=200
)

alert_integration_keys = ResourceBlueprint(
    "alert_integration_keys", __name__, url_prefix=f"{_COLLECTION_PATH}{_ITEM_PATH}"
)
alert_integration_keys.bind_action("GET", "/credentials", actions.read_credentials, writes=True)
alert_integration_keys.bind_action("GET", "/keys", actions.list_keys)
alert_integration_keys.bind_action("POST", "/keys", actions.rotate_key)
alert_integration_keys.bind_action("DELETE", "/keys/<key_id>", actions.delete_key)

alert_mappings = ResourceBlueprint(
    "alert_mappings", __name__, url_prefix=f"{_COLLECTION_PATH}{_ITEM_PATH}/mapping"
)
alert_mappings.bind_action("GET", "", mapping_actions.show_mapping)
alert_mappings.bind_action("PUT", "", mapping_actions.change_mapping)
alert_mappings.bind_action("DELETE", "", mapping_actions.delete_mapping)
alert_mappings.bind_action("POST", "/preview", mapping_actions.preview_mapping)

alert_recognition = ResourceBlueprint(
    "alert_recognition", __name__, url_prefix=f"{_COLLECTION_PATH}/recognize"
)
alert_recognition.bind_action("POST", "", mapping_actions.recognize_payload)

alert_deliveries = ResourceBlueprint(
    "alert_deliveries", __name__, url_prefix=f"{_COLLECTION_PATH}{_ITEM_PATH}/deliveries"
)
alert_deliveries.bind_crud_actions(delivery_actions, _DELIVERY_PATH)
alert_deliveries.bind_action(
    "POST", f"{_DELIVERY_PATH}/resend", delivery_actions.resend_inbound_delivery
)
alert_deliveries.bind_action("POST", "/recognize", delivery_actions.recognize_deliveries)
alert_deliveries.bind_action("POST", "/replay", delivery_actions.replay_deliveries, status=200)


@alert_deliveries.get(f"{_DELIVERY_PATH}/body")
@declare_media_types(file="application/octet-stream")
@declare_operation("alert_deliveries.body")
def body(project: ProjectView, integration_id: int, delivery_id: int) -> Response:
    """Return the body of a delivery as it was received."""
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    return build_payload_response(
        get_delivery_body(integration.id, delivery_id, session=db.session())
    )
