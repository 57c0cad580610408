"""/api/v4/projects/:id/alert_management_integrations/:integration_id/deliveries: the log."""

from flask import Response

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.deliveries.log import get_body
from domain.alerts.integrations import delivery_actions as actions
from domain.alerts.integrations.integrations import get_receiver
from domain.database.paging import LARGEST_ID
from domain.projects.views import ProjectView
from web.alerts.files import payload_file
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.extensions import db
from web.http.work import work

_ONE = f"/<int(max={LARGEST_ID}):delivery_id>"

alert_deliveries = Resources("alert_deliveries", __name__, url_prefix=f"{AT}{ONE}/deliveries")
alert_deliveries.bind("GET", "", actions.list_deliveries)
alert_deliveries.bind("GET", _ONE, actions.show_delivery)
alert_deliveries.bind("POST", f"{_ONE}/resend", actions.resend)
alert_deliveries.bind("POST", "/replay", actions.replay_deliveries, status=200)


@alert_deliveries.get(f"{_ONE}/body")
@answers_with(file="application/octet-stream")
@operation("alert_deliveries.body")
def body(project: ProjectView, integration_id: int, delivery_id: int) -> Response:
    """Return the body of a delivery, as it was received."""
    integration = get_receiver(work(), project, integration_id)
    return payload_file(get_body(integration.id, delivery_id, session=db.session()))
