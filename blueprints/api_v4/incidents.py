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
incidents.bind_usual(actions, _ONE)

incident_alerts = Resources("incident_alerts", __name__, url_prefix=f"{_AT}{_ONE}/alerts")
incident_alerts.bind_usual(actions, _ONE_ALERT)

incident_notes = Resources("incident_notes", __name__, url_prefix=f"{_AT}{_ONE}/notes")
incident_notes.bind_usual(note_actions, _ONE_NOTE)

incident_rules = Resources(
    "incident_rules", __name__, url_prefix="/projects/<path:reference>/incident_rules"
)
incident_rules.bind_usual(rule_actions, _ONE_RULE)
