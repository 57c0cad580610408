"""/api/v4/projects/:id/incident_rules: which alerts open incidents."""

from domain.database.paging import LARGEST_ID
from domain.incidents import rule_actions as actions
from web.api.operations import Resources

incident_rules = Resources(
    "incident_rules", __name__, url_prefix="/projects/<path:reference>/incident_rules"
)
_ONE = f"/<int(max={LARGEST_ID}):rule_id>"
incident_rules.bind("GET", "", actions.list_rules)
incident_rules.bind("GET", _ONE, actions.show_rule)
incident_rules.bind("POST", "", actions.create_rule)
incident_rules.bind("PUT", _ONE, actions.change_rule)
incident_rules.bind("DELETE", _ONE, actions.delete_rule)
