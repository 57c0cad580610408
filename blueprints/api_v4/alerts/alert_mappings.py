"""/api/v4/projects/:id/alert_management_integrations/:integration_id/mapping: custom mappings."""

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.integrations import mapping_actions as actions
from web.api.operations import Resources

alert_mappings = Resources("alert_mappings", __name__, url_prefix=f"{AT}{ONE}/mapping")
alert_mappings.bind("GET", "", actions.show_mapping)
alert_mappings.bind("PUT", "", actions.change_mapping)
alert_mappings.bind("DELETE", "", actions.delete_mapping)
alert_mappings.bind("POST", "/preview", actions.preview_mapping)
