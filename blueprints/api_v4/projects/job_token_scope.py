"""/api/v4/projects/:id/job_token_scope: what limits the tokens of CI jobs of a project."""

from domain.projects import project_actions as actions
from web.api.operations import Resources

job_token_scope = Resources(
    "job_token_scope", __name__, url_prefix="/projects/<string:reference>/job_token_scope"
)
job_token_scope.bind("GET", "", actions.show_limits)
job_token_scope.bind("PATCH", "", actions.change_limits, status=204)
