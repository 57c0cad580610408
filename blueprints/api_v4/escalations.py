"""/api/v4/projects/:id/escalation_policies and alert_routes: whom alerts page, and when."""

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

alert_routes = Resources(
    "alert_routes", __name__, url_prefix="/projects/<path:reference>/alert_routes"
)
alert_routes.bind("GET", "", actions.list_routes)
alert_routes.bind("GET", "/<int:route_id>", actions.show_route)
alert_routes.bind("POST", "", actions.create_route)
alert_routes.bind("PUT", "/<int:route_id>", actions.change_route)
alert_routes.bind("DELETE", "/<int:route_id>", actions.delete_route)
alert_routes.bind("POST", "/dry_run", actions.show_dry_run)
