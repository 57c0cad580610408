"""/api/v4/projects/:id/alerts/:iid/mute: what holds the pages of an alert back."""

from flask import Blueprint

from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.queries import LARGEST_IID
from domain.projects.views import ProjectView
from domain.silences.muting import muted_alert
from web.api.operations import operation
from web.api.schemas.silences.silences import AlertMute
from web.extensions import db
from web.services import now, reading

alert_mutes = Blueprint("alert_mutes", __name__, url_prefix="/projects/<path:reference>/alerts")


@alert_mutes.get(f"/<int(max={LARGEST_IID}):iid>/mute")
@operation("alert_mutes.show", returns=AlertMute)
def show(project: ProjectView, iid: int) -> AlertMute:
    """Show whether and why an alert pages nobody."""
    session = db.session()
    alert_id = get_alert_id(project.id, iid, session=session)
    return AlertMute.of(muted_alert(alert_id, at=now(), session=session, reading=reading()))
