"""/api/v4/projects/:id/alert_management_integrations: integrations, and their test alerts."""

from domain.alerts.integrations import actions
from domain.alerts.integrations.delivery_actions import send_test
from domain.database.paging import LARGEST_ID
from web.api.operations import Resources

AT = "/projects/<path:reference>/alert_management_integrations"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):integration_id>"

alert_integrations = Resources("alert_integrations", __name__, url_prefix=AT)
alert_integrations.bind("GET", "", actions.list_summaries)
alert_integrations.bind("POST", "", actions.create_integration)
alert_integrations.bind("GET", ONE, actions.show_integration)
alert_integrations.bind("PUT", ONE, actions.change_integration)
alert_integrations.bind("DELETE", ONE, actions.delete_integration)
alert_integrations.bind("POST", f"{ONE}/test", send_test, status=200)
