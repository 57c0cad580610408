"""/api/v4/projects/:id/deployments: what was brought to which environment."""

from domain.ci_cd import deployment_actions as actions
from web.api.operations import Resources

deployments = Resources(
    "deployments", __name__, url_prefix="/projects/<path:reference>/deployments"
)
deployments.bind("GET", "", actions.list_deployments)
deployments.bind("GET", "/<int:deployment_id>", actions.show_deployment)
deployments.bind("POST", "", actions.create_deployment)
deployments.bind("PUT", "/<int:deployment_id>", actions.change_deployment)
deployments.bind("DELETE", "/<int:deployment_id>", actions.delete_deployment)
