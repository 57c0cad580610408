"""/api/v4/projects/:id/escalation_policies: whom alerts page, and after how long."""

from domain.escalations import actions
from web.api.operations import Resources

escalation_policies = Resources(
    "escalation_policies", __name__, url_prefix="/projects/<path:reference>/escalation_policies"
)
escalation_policies.bind("GET", "", actions.list_policies)
escalation_policies.bind("GET", "/<int:policy_id>", actions.show_policy)
escalation_policies.bind("POST", "", actions.create_policy)
escalation_policies.bind("PUT", "/<int:policy_id>", actions.change_policy)
escalation_policies.bind("DELETE", "/<int:policy_id>", actions.delete_policy)
