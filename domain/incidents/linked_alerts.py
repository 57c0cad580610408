"""Lists the alerts of an incident."""

from sqlalchemy.orm import Session

from domain.alerts.listing.queries import ROWS, AlertRow, row_of
from domain.database.paging import Page, Slice, fetch_page
from models import Alert, IncidentAlert


def list_linked(incident_id: int, part: Slice, *, session: Session) -> Page[AlertRow]:
    """Return a page of the alerts of an incident, the newest first."""
    linked = ROWS.join(IncidentAlert, IncidentAlert.alert_id == Alert.id).where(
        IncidentAlert.incident_id == incident_id
    )
    return fetch_page(linked, IncidentAlert.alert_id, part, session=session, view=row_of)
