"""What limits the tokens of CI jobs of a project.

This service makes no tokens for jobs: it keeps the limits for the external CI that does.
"""

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.projects.changes import record_edit
from domain.projects.editing import edit_project
from domain.projects.views import JobTokenScope, ProjectView, viewer_of
from domain.types.base import Body


class JobTokenScopeBody(Body):
    """The limits of a project; what is missing stays."""

    #: The name that clients know for `inbound_enabled`.
    enabled: bool | None = None
    inbound_enabled: bool | None = None
    outbound_enabled: bool | None = None


@question("job_token_scope.show")
def show_limits(_work: Work, project: ProjectView) -> JobTokenScope:
    """Show the limits."""
    return project.job_token_scope


@action("job_token_scope.change")
def change_limits(work: Work, project: ProjectView, change: JobTokenScopeBody) -> None:
    """Change the limits."""
    inbound = change.enabled if change.inbound_enabled is None else change.inbound_enabled
    limits = {
        "limits_job_token_to_others": change.outbound_enabled,
        "limits_job_tokens_of_others": inbound,
    }
    changes = edit_project(project.id, limits, by=viewer_of(work), session=work.session)
    record_edit(work, project.namespace, changes)
