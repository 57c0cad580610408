"""/api/v4/projects/:id/flap_settings: what becomes of alerts that open again and again."""

from flask import Blueprint

from domain.projects.views import ProjectView
from domain.silences.flapping import get_settings, store_settings
from web.alerts.silences import record_flap_settings
from web.api.operations import operation
from web.api.schemas.silences.maintenance_windows import FlapSettingsBody, FlapSettingsResource
from web.extensions import db

flap_settings = Blueprint(
    "flap_settings", __name__, url_prefix="/projects/<path:reference>/flap_settings"
)


@flap_settings.get("")
@operation("flap_settings.show", returns=FlapSettingsResource)
def show(project: ProjectView) -> FlapSettingsResource:
    """Show the settings of flap detection."""
    return FlapSettingsResource.of(get_settings(project.id, session=db.session()))


@flap_settings.put("")
@operation("flap_settings.edit", body=FlapSettingsBody, returns=FlapSettingsResource)
def edit(project: ProjectView, body: FlapSettingsBody) -> FlapSettingsResource:
    """Change the settings of flap detection."""
    session = db.session()
    wanted = body.wanted(get_settings(project.id, session=session))
    stored = store_settings(project.id, wanted, session=session)
    record_flap_settings(project.path, stored)
    return FlapSettingsResource.of(stored)
