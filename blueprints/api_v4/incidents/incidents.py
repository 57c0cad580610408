"""/api/v4/projects/:id/incidents: problems that people work on."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.incidents import actions
from web.api.operations import Resources

#: The converter refuses numbers that no incident has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"

incidents = Resources("incidents", __name__, url_prefix="/projects/<path:reference>/incidents")
incidents.bind("GET", "", actions.list_incidents)
incidents.bind("POST", "", actions.create_incident)
incidents.bind("GET", _ONE, actions.show_incident)
incidents.bind("PUT", _ONE, actions.change_incident)
incidents.bind("DELETE", _ONE, actions.delete_incident)
