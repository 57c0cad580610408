"""/api/v4/projects/:id/statuses/:sha: what external CI says of commits."""

from domain.ci_cd import status_actions as actions
from web.api.operations import Resources

commit_statuses = Resources("commit_statuses", __name__, url_prefix="/projects/<path:reference>")
commit_statuses.bind("GET", "/repository/commits/<sha:sha>/statuses", actions.list_statuses)
commit_statuses.bind("POST", "/statuses/<sha:sha>", actions.report_status)
