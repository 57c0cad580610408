"""/api/v4/projects/:id/environments: the environments of a project."""

from domain.ci_cd import environment_actions as actions
from web.api.operations import Resources

environments = Resources(
    "environments", __name__, url_prefix="/projects/<path:reference>/environments"
)
environments.bind("GET", "", actions.list_environments)
environments.bind("GET", "/<int:environment_id>", actions.show_environment)
environments.bind("POST", "", actions.create_environment)
environments.bind("PUT", "/<int:environment_id>", actions.change_environment)
environments.bind("DELETE", "/<int:environment_id>", actions.delete_environment)
