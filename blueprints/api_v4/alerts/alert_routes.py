"""/api/v4/projects/:id/alert_routes: which alerts go to which escalation policy."""

from domain.escalations import actions
from web.api.operations import Resources

alert_routes = Resources(
    "alert_routes", __name__, url_prefix="/projects/<path:reference>/alert_routes"
)
alert_routes.bind("GET", "", actions.list_routes)
alert_routes.bind("GET", "/<int:route_id>", actions.show_route)
alert_routes.bind("POST", "", actions.create_route)
alert_routes.bind("PUT", "/<int:route_id>", actions.change_route)
alert_routes.bind("DELETE", "/<int:route_id>", actions.delete_route)
alert_routes.bind("POST", "/dry_run", actions.show_dry_run)
