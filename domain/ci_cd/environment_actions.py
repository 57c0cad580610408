"""What can be done with environments."""

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts import environments
from domain.alerts.environments import EnvironmentFilter, get_numbered_environment
from domain.ci_cd.types import Environment, EnvironmentChange, EnvironmentQuery, NewEnvironment
from domain.errors import ConflictError, InvalidError
from domain.projects.views import ProjectView
from domain.types.base import Found
from models import Environment as EnvironmentRow


@question("environments.index")
def list_environments(
    work: Work, project: ProjectView, query: EnvironmentQuery
) -> Found[Environment]:
    """List environments, all or by name."""
    if query.name and query.search:
        message = "name, search are mutually exclusive"
        raise InvalidError(message)
    wanted = EnvironmentFilter(project_id=project.id, name=query.name, search=query.search)
    found, total = environments.numbered_environments(
        wanted, offset=query.offset, limit=query.size, session=work.session
    )
    return Found(items=[Environment.model_validate(each) for each in found], total=total)


@question("environments.show")
def show_environment(work: Work, project: ProjectView, environment_id: int) -> Environment:
    """Show an environment."""
    found = get_numbered_environment(project.id, environment_id, session=work.session)
    return Environment.model_validate(found)


@action("environments.create")
def create_environment(work: Work, project: ProjectView, new: NewEnvironment) -> Environment:
    """Create an environment.

    Raises InvalidError, or TakenError.
    """
    made = environments.create_environment(project.id, new.name, session=work.session, now=work.now)
    return _with_url(work, project, made.id, new.external_url)


@action("environments.edit")
def change_environment(
    work: Work, project: ProjectView, environment_id: int, change: EnvironmentChange
) -> Environment:
    """Change the external URL of an environment."""
    return _with_url(work, project, environment_id, change.external_url)


@action("environments.delete")
def delete_environment(work: Work, project: ProjectView, environment_id: int) -> Environment:
    """Delete an environment.

    Returns it; its alerts stay and keep its name. Raises NotFoundError, or ConflictError if it has
    open alerts, which would be missing from its page.
    """
    found = get_numbered_environment(project.id, environment_id, session=work.session)
    if found.open_alerts:
        message = f"{found.name} has open alerts. Resolve or ignore them first."
        raise ConflictError(message, field="environment")
    work.session.delete(work.session.get_one(EnvironmentRow, environment_id))
    return Environment.model_validate(found)


def _with_url(work: Work, project: ProjectView, environment_id: int, url: str) -> Environment:
    found = get_numbered_environment(project.id, environment_id, session=work.session)
    work.session.get_one(EnvironmentRow, found.id).external_url = url or None
    work.session.flush()
    return show_environment(work, project, environment_id)
