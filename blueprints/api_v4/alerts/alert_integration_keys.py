"""/api/v4/projects/:id/alert_management_integrations/:integration_id: credentials and keys."""

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.integrations import actions
from web.api.operations import Resources

alert_integration_keys = Resources("alert_integration_keys", __name__, url_prefix=f"{AT}{ONE}")
alert_integration_keys.bind("GET", "/credentials", actions.read_credentials, writes=True)
alert_integration_keys.bind("GET", "/keys", actions.list_keys)
alert_integration_keys.bind("POST", "/keys", actions.rotate_key)
alert_integration_keys.bind("DELETE", "/keys/<key_id>", actions.delete_key)
