"""/api/v4/projects/:id/alert_management_integrations/recognize: which tool posts a payload."""

from blueprints.api_v4.alerts.alert_integrations import AT
from domain.alerts.integrations.mapping_actions import recognize_payload
from web.api.operations import Resources

alert_recognition = Resources("alert_recognition", __name__, url_prefix=f"{AT}/recognize")
alert_recognition.bind("POST", "", recognize_payload)
