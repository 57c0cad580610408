"""/api/v4/projects/:id/incidents/:iid/notes: comments on an incident, and what became of it."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.database.paging import LARGEST_ID
from domain.incidents import note_actions as actions
from web.api.operations import Resources

incident_notes = Resources(
    "incident_notes",
    __name__,
    url_prefix=f"/projects/<path:reference>/incidents/<int(max={LARGEST_IID}):iid>/notes",
)
_ONE = f"/<int(max={LARGEST_ID}):note_id>"
incident_notes.bind("GET", "", actions.list_notes)
incident_notes.bind("GET", _ONE, actions.show_note)
incident_notes.bind("POST", "", actions.create_note)
incident_notes.bind("PUT", _ONE, actions.change_note)
incident_notes.bind("DELETE", _ONE, actions.delete_note)
