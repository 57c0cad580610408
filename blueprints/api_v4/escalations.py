"""/api/v4/projects/:id/escalation_policies and alert_routes: whom alerts page, and when."""

from domain.escalations import actions
from web.api.operations import Resources

escalation_policies = Resources(
    "escalation_policies", __name__, url_prefix="/projects/<path:reference>/escalation_policies"
)
escalation_policies.bind_usual(actions, "/<int:policy_id>")

alert_routes = Resources(
    "alert_routes", __name__, url_prefix="/projects/<path:reference>/alert_routes"
)
alert_routes.bind_usual(actions, "/<int:route_id>")
alert_routes.bind("POST", "/dry_run", actions.show_dry_run)
