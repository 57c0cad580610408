"""/api/v4/projects/:id/alert_management_integrations/recognize: which tool posts a payload."""

from flask import Blueprint

from blueprints.api_v4.alerts.alert_integrations import AT
from domain.alerts.integrations.recognition import recognize as recognized
from domain.projects.views import ProjectView
from web.api.operations import operation
from web.api.schemas.alerts.alert_recognition import AlertRecognition, RecognitionBody
from web.services import now, reading

alert_recognition = Blueprint("alert_recognition", __name__, url_prefix=f"{AT}/recognize")


@alert_recognition.post("")
@operation("alert_recognition.recognize", body=RecognitionBody, returns=AlertRecognition).but(
    writes=False
)
def recognize(project: ProjectView, body: RecognitionBody) -> AlertRecognition:
    """Recognize the tool that posts a payload, and propose type, mapping and severities."""
    del project  # it decides who may ask
    return AlertRecognition.of(recognized(body.sample, now=now(), reading=reading()))
