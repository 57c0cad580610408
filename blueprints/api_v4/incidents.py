"""/api/v4/projects/:id/incidents and incident_rules: problems that people work on."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.database.paging import LARGEST_ID
from domain.incidents import actions, note_actions, rule_actions
from web.api.operations import Resources

_AT = "/projects/<path:reference>/incidents"
#: The converters refuse numbers that nothing has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
_ONE_ALERT = f"/<int(max={LARGEST_IID}):alert_iid>"
_ONE_NOTE = f"/<int(max={LARGEST_ID}):note_id>"
_ONE_RULE = f"/<int(max={LARGEST_ID}):rule_id>"

incidents = Resources("incidents", __name__, url_prefix=_AT)
incidents.bind("GET", "", actions.list_incidents)
incidents.bind("POST", "", actions.create_incident)
incidents.bind("GET", _ONE, actions.show_incident)
incidents.bind("PUT", _ONE, actions.change_incident)
incidents.bind("DELETE", _ONE, actions.delete_incident)

incident_alerts = Resources("incident_alerts", __name__, url_prefix=f"{_AT}{_ONE}/alerts")
incident_alerts.bind("GET", "", actions.list_alerts)
incident_alerts.bind("POST", "", actions.link_alerts)
incident_alerts.bind("DELETE", _ONE_ALERT, actions.unlink_alert)

incident_notes = Resources("incident_notes", __name__, url_prefix=f"{_AT}{_ONE}/notes")
incident_notes.bind("GET", "", note_actions.list_notes)
incident_notes.bind("GET", _ONE_NOTE, note_actions.show_note)
incident_notes.bind("POST", "", note_actions.create_note)
incident_notes.bind("PUT", _ONE_NOTE, note_actions.change_note)
incident_notes.bind("DELETE", _ONE_NOTE, note_actions.delete_note)

incident_rules = Resources(
    "incident_rules", __name__, url_prefix="/projects/<path:reference>/incident_rules"
)
incident_rules.bind("GET", "", rule_actions.list_rules)
incident_rules.bind("GET", _ONE_RULE, rule_actions.show_rule)
incident_rules.bind("POST", "", rule_actions.create_rule)
incident_rules.bind("PUT", _ONE_RULE, rule_actions.change_rule)
incident_rules.bind("DELETE", _ONE_RULE, rule_actions.delete_rule)
